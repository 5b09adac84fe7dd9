//! Compares two texts as a method does, step by step, for people.

use operators::method::{Keys, Method, Search};
use operators::sets::{PackedSets, SetKind};
use operators::{Similarity, jaccard};

/// Result of the comparison of two texts.
pub(crate) struct PairTrace {
    /// One line for each step.
    pub steps: Vec<String>,
    /// Whether the two texts match.
    pub matches: bool,
}

/// Compares two texts, the earlier one first, as `method` does.
pub(crate) fn trace(mut method: Method, a: &str, b: &str) -> PairTrace {
    let [a, b] = [a, b].map(|text| method.cleaner.clean(text).to_owned());
    let mut steps = vec![cleaned(&a, &b)];
    let keys = [method.keys(&a), method.keys(&b)];
    let matches = match (&method.search, &keys) {
        (Search::Nothing, _) => {
            steps.push("only equal texts match".to_owned());
            false
        }
        (Search::Zhou(zhou), [Keys::Words(row_a), Keys::Words(row_b)]) => {
            let met = method.are_candidates(&keys[0], &keys[1]);
            let duplicates = zhou.duplicates(row_a, row_b).is_some();
            steps.push(format!(
                "fingerprints: {} bits differ; the two {} in a copy",
                keys[0].distance(&keys[1]).unwrap_or(0),
                if met { "meet" } else { "do not meet" }
            ));
            steps.push(format!(
                "words: {} and {}, similarity {}; with the bits that differ {} the threshold",
                row_a.words.len(),
                row_b.words.len(),
                jaccard(&row_a.words, &row_b.words),
                if duplicates { "not under" } else { "under" }
            ));
            return PairTrace { steps, matches: met && duplicates };
        }
        (Search::SimHash64(_) | Search::SimHash128(_), _) => {
            let candidate = candidates(&method, &keys, &mut steps);
            measured(&method, &a, &b, &mut steps) == Some(true) && candidate
        }
        _ => measured(&method, &a, &b, &mut steps)
            .is_some_and(|near| candidates(&method, &keys, &mut steps) && near),
    };
    PairTrace { steps, matches: a == b || matches }
}

/// Whether the search makes two texts a candidate. Adds the reason to `steps`.
fn candidates(method: &Method, [a, b]: &[Keys; 2], steps: &mut Vec<String>) -> bool {
    let candidate = method.are_candidates(a, b);
    let article = if candidate { "a" } else { "no" };
    let fingerprints = a.distance(b);
    if let Some(distance) = fingerprints {
        steps.push(format!("fingerprints: {distance} bits differ, so they are {article} candidate"));
    }
    match method.agreeing(a, b) {
        Some((all, agree)) => {
            let name = if fingerprints.is_some() { "blocks" } else { "bands" };
            steps.push(agreeing(name, all, &agree));
            if fingerprints.is_none() {
                steps.push(format!("so they are {article} candidate"));
            }
        }
        None => steps.push("every pair that is similar enough is found".to_owned()),
    }
    candidate
}

/// Whether two texts are similar enough for the rule of the method; `None` if one is short and the other far
/// too long. Adds the reason to `steps`.
fn measured(method: &Method, a: &str, b: &str, steps: &mut Vec<String>) -> Option<bool> {
    let [a, b] = [a, b].map(|text| method.rule.packed(text));
    let [a, b] = [PackedSets(&a), PackedSets(&b)];
    let Some((kind, similarity)) = method.rule.similarity(a, b) else {
        steps.push("one of them is short, and the other far too long to match it".to_owned());
        return None;
    };
    let least = Some(method.rule.measure(kind).1).filter(|_| method.verified);
    steps.push(format!(
        "features{}: {} and {}, similarity {similarity}{}",
        if kind == SetKind::Short { " of short texts" } else { "" },
        a.features(kind).len(),
        b.features(kind).len(),
        against(similarity, least)
    ));
    Some(least.is_none_or(|least| similarity >= least))
}

/// Says on which of `all` blocks or bands two texts agree.
fn agreeing(name: &str, all: usize, agree: &[usize]) -> String {
    let agree: Vec<String> = agree.iter().map(usize::to_string).collect();
    match agree.is_empty() {
        true => format!("none of the {all} {name} agree"),
        false => format!("of the {name} 0 to {}, these agree: {}", all - 1, agree.join(", ")),
    }
}

/// Says what cleaning left of two texts.
fn cleaned(a: &str, b: &str) -> String {
    let same = if a == b { "the same text" } else { "different texts" };
    format!("once cleaned: {} and {} characters, {same}", a.chars().count(), b.chars().count())
}

/// Says how a similarity compares with the threshold.
fn against(similarity: Similarity, least: Option<Similarity>) -> String {
    match least {
        None => "; no threshold was set".to_owned(),
        Some(least) if similarity >= least => format!(", not under the threshold {least}"),
        Some(least) => format!(", under the threshold {least}"),
    }
}
