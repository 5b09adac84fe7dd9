//! Compares two texts as a method does, step by step, for people.

use operators::method::Method;
use operators::search::{Explanation, MappedText, RuleTurn};
use operators::sets::reading::NumbersOfPair;
use operators::sets::{PackedSets, SetKind};
use operators::text::cleaned::{has_text, is_code, shown};
use operators::text::ignored_lines::{CleanedText, IgnoredLines, LineCleaner};
use operators::{Overlap, Similarity, shared};

use super::side_by_side::only_in_one;

/// Result of the comparison of two texts.
pub(crate) struct PairTrace {
    /// One line for each step.
    pub steps: Vec<String>,
    /// Whether the two texts match.
    pub matches: bool,
}

/// Compares two texts, the earlier one first, as `method` does. `ignored`: the lines that are left out, if any.
pub(crate) fn trace(method: Method, ignored: Option<IgnoredLines>, a: &str, b: &str) -> PairTrace {
    let mut cleaner = LineCleaner::new(method.cleaner.clone(), ignored);
    let [(whole_a, a), (whole_b, b)] = [a, b].map(|text| {
        let text = cleaner.clean(text);
        (text.whole.to_owned(), text.compared.to_owned())
    });
    let identical = whole_a == whole_b;
    let mut steps = vec![cleaned(&whole_a, &whole_b)];
    if !has_text(&whole_a) || !has_text(&whole_b) {
        steps.push("a document without text is never a duplicate".to_owned());
        return PairTrace { steps, matches: false };
    }
    if a.len() < whole_a.len() || b.len() < whole_b.len() {
        steps.push(format!("without ignored lines: {}", lengths(&a, &b)));
    }
    steps.extend(differing(&a, &b));
    let mut search = method.text_search();
    let [mapped_a, mapped_b] = [(&whole_a, &a), (&whole_b, &b)]
        .map(|(whole, compared)| MappedText::new(&mut *search, CleanedText { whole, compared }));
    let Explanation { steps: of_search, found, rule } = search.explain(&mapped_a, &mapped_b);
    let matches = match rule {
        RuleTurn::Never => {
            steps.extend(of_search);
            return PairTrace { steps, matches: found };
        }
        RuleTurn::Last => {
            steps.extend(of_search);
            measured(&method, &a, &b, &mut steps) == Some(true) && found
        }
        RuleTurn::First => measured(&method, &a, &b, &mut steps).is_some_and(|near| {
            steps.extend(of_search);
            found && near
        }),
    };
    PairTrace { steps, matches: identical || matches }
}

/// Whether two texts are similar enough for the rule of the method; `None` if one is short and the other far
/// too long. Adds the reason to `steps`.
fn measured(method: &Method, a: &str, b: &str, steps: &mut Vec<String>) -> Option<bool> {
    if method.rule.reader.is_some() {
        let code = [a, b].map(is_code);
        steps.push(match code {
            [true, true] => {
                "both are code, of which all characters count but those of a licence at the head".to_owned()
            }
            [false, false] => "neither is code, so both are read as prose".to_owned(),
            [first, _] => format!(
                "only the {} is code, and they are read as code",
                if first { "first" } else { "second" }
            ),
        });
    }
    let [a, b] = [a, b].map(|text| method.rule.packed(text));
    let [a, b] = [PackedSets(&a), PackedSets(&b)];
    let Some((kind, similarity)) = method.rule.similarity(a, b) else {
        steps.push("one of them is short, and the other far too long to match it".to_owned());
        return None;
    };
    let (overlap, least) = method.rule.measure(kind);
    let least = Some(least).filter(|_| method.verified);
    let [of_a, of_b] = [a, b].map(|sets| sets.features(kind));
    let numbers = method.rule.numbers(a, b);
    if let Some(NumbersOfPair { counts: [of_a, of_b], shared }) = numbers.filter(|of| of.counts != [0, 0]) {
        let more = numbers.map_or(0, NumbersOfPair::differing_features);
        steps.push(format!(
            "numbers: {of_a} and {of_b}, of which both have {shared}, which counts as {more} more features that each of the \
             two lacks"
        ));
    }
    let measure = match overlap {
        Overlap::Jaccard => String::new(),
        Overlap::Corrected => {
            let more = numbers.map_or(0, NumbersOfPair::differing_features);
            let smaller = of_a.len().min(of_b.len()) + more;
            format!(
                " (Jaccard similarity {}, and each difference counts 1 + 1/{smaller} times)",
                Overlap::Jaccard.similarity(shared(of_a, of_b), of_a.len() + more, of_b.len() + more)
            )
        }
        Overlap::Revision | Overlap::Contained => {
            " (the part of the smaller one that the other has)".to_owned()
        }
    };
    steps.push(format!(
        "features{}: {} and {}, similarity {similarity}{measure}{}",
        if kind == SetKind::Short { " of short texts" } else { "" },
        of_a.len(),
        of_b.len(),
        against(similarity, least)
    ));
    let apart = method.rule.apart(a, b, similarity);
    steps.extend(
        apart.as_ref().map(|difference| format!("read side by side: {difference}, so they are different")),
    );
    Some(least.is_none_or(|least| similarity >= least) && apart.is_none())
}

/// Says what only one of two cleaned texts has.
fn differing(a: &str, b: &str) -> Vec<String> {
    let sides = ["first", "second"].into_iter().zip(only_in_one(&shown(a), &shown(b)));
    let said = sides.filter(|(_, stretches)| !stretches.is_empty()).map(|(side, stretches)| {
        let all = stretches.join(" … ");
        let most = all.char_indices().nth(MOST_SHOWN).map(|(at, _)| format!("{} …", &all[..at]));
        format!("only the {side} has: {}", most.unwrap_or(all))
    });
    said.collect()
}

/// Largest number of characters that are shown of what only one text has.
const MOST_SHOWN: usize = 200;

/// Says what cleaning left of two texts.
fn cleaned(a: &str, b: &str) -> String {
    format!("once cleaned: {}", lengths(a, b))
}

fn lengths(a: &str, b: &str) -> String {
    let same = if a == b { "the same text" } else { "different texts" };
    let [a, b] = [a, b].map(|text| shown(text).chars().count());
    format!("{a} and {b} characters, {same}")
}

/// Says how a similarity compares with the threshold.
fn against(similarity: Similarity, least: Option<Similarity>) -> String {
    match least {
        None => "; no threshold was set".to_owned(),
        Some(least) if similarity >= least => format!(", not under the threshold {least}"),
        Some(least) => format!(", under the threshold {least}"),
    }
}
