//! Compares two texts as a method does, step by step, for people.

use operators::method::zhou::retrieval::meet;
use operators::method::{Method, MethodJob, SetMethod, SetSearch, Zhou};
use operators::sets::{PackedSets, SetKind, Sets};
use operators::text::Cleaner;
use operators::{DocId, Record, Similarity, jaccard};

/// Two texts, the earlier one first.
pub(crate) struct Comparison<'a> {
    pub a: &'a str,
    pub b: &'a str,
    /// Least similarity of a pair; `None` if a match of fingerprints is enough.
    pub verify: Option<Similarity>,
}

/// Result of the comparison of two texts.
pub(crate) struct PairTrace {
    /// One line for each step.
    pub steps: Vec<String>,
    /// Whether the two texts match.
    pub matches: bool,
}

impl MethodJob for Comparison<'_> {
    type Output = PairTrace;

    fn run<M: Method>(self, mut cleaner: Cleaner, mut method: M) -> PairTrace {
        let [a, b] = [self.a, self.b].map(|text| cleaner.clean(text).to_owned());
        let identical = a == b;
        let fingerprints = [&a, &b].map(|text| method.fingerprint(text));
        let distance = method.distance(&fingerprints[0], &fingerprints[1]);
        let blocks = method.blocks();
        if blocks.is_empty() {
            let steps = vec![cleaned(&a, &b), "only equal texts match".to_owned()];
            return PairTrace { steps, matches: identical };
        }
        let values = |at: &usize| fingerprints.each_ref().map(|of| M::value(&blocks[*at], of));
        let agree: Vec<usize> = (0..blocks.len()).filter(|at| values(at)[0] == values(at)[1]).collect();
        let [features_a, features_b] = [&a, &b].map(|text| {
            let mut features = Vec::new();
            method.features(text, &mut features);
            features
        });
        let similarity = jaccard(&features_a, &features_b);
        let similar = self.verify.is_none_or(|least| similarity >= least);
        let steps = vec![
            cleaned(&a, &b),
            format!(
                "fingerprints: {} bits differ, so they are {} candidate",
                bits_apart(&fingerprints[0], &fingerprints[1]),
                if distance.is_some() { "a" } else { "no" }
            ),
            agreeing("blocks", blocks.len(), &agree),
            format!(
                "features: {} and {}, similarity {similarity}{}",
                features_a.len(),
                features_b.len(),
                against(similarity, self.verify)
            ),
        ];
        PairTrace { steps, matches: identical || distance.is_some() && similar }
    }

    fn sets(self, mut method: SetMethod) -> PairTrace {
        let [a, b] = [self.a, self.b].map(|text| method.cleaner.clean(text).to_owned());
        let sets = [&a, &b].map(|text| {
            let mut sets = Sets::default();
            method.rule.sets(text, &mut sets);
            sets
        });
        let packed = sets.each_ref().map(|sets| {
            let mut packed = Vec::new();
            sets.pack(&mut packed);
            packed
        });
        let [set_a, set_b] = packed.each_ref().map(|packed| PackedSets(packed));
        let mut steps = vec![cleaned(&a, &b)];
        let Some((kind, similarity)) = method.rule.similarity(set_a, set_b) else {
            steps.push("one of them is short, and the other far too long to match it".to_owned());
            return PairTrace { steps, matches: false };
        };
        let least = method.rule.measure(kind).1;
        let short = if kind == SetKind::Short { " of short texts" } else { "" };
        steps.push(format!(
            "features{short}: {} and {}, similarity {similarity}{}",
            set_a.features(kind).len(),
            set_b.features(kind).len(),
            against(similarity, Some(least))
        ));
        let candidate = match method.search {
            SetSearch::Prefix => {
                steps.push("every pair that is similar enough is found".to_owned());
                true
            }
            SetSearch::Bands(minhash) => {
                let [keys_a, keys_b] = sets.each_ref().map(|sets| {
                    let mut keys = Vec::new();
                    minhash.bands_of(sets, &mut keys);
                    keys
                });
                let agree: Vec<usize> = minhash.agreeing(&keys_a, &keys_b).collect();
                steps.push(agreeing("bands", minhash.bands as usize, &agree));
                steps.push(format!("so they are {} candidate", if agree.is_empty() { "no" } else { "a" }));
                !agree.is_empty()
            }
        };
        PairTrace { steps, matches: a == b || candidate && similarity >= least }
    }

    fn zhou(self, mut cleaner: Cleaner, method: Zhou) -> PairTrace {
        let [a, b] = [self.a, self.b].map(|text| cleaner.clean(text).to_owned());
        let [row_a, row_b] = [&a, &b].map(|text| method.row(DocId(0), text));
        let met = meet(row_a.fingerprint, row_b.fingerprint);
        let duplicates = method.duplicates(&row_a, &row_b).is_some();
        let steps = vec![
            cleaned(&a, &b),
            format!(
                "fingerprints: {} bits differ; the two {} in a copy",
                bits_apart(&u64::from(row_a.fingerprint), &u64::from(row_b.fingerprint)),
                if met { "meet" } else { "do not meet" }
            ),
            format!(
                "words: {} and {}, similarity {}; with the bits that differ {} the threshold",
                row_a.words.len(),
                row_b.words.len(),
                jaccard(&row_a.words, &row_b.words),
                if duplicates { "not under" } else { "under" }
            ),
        ];
        PairTrace { steps, matches: met && duplicates }
    }
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

/// Returns the number of bits in which two fingerprints differ.
fn bits_apart<F: Record>(a: &F, b: &F) -> u32 {
    let bytes = |fingerprint: &F| {
        let mut bytes = vec![0; F::BYTES];
        fingerprint.write(&mut bytes);
        bytes
    };
    bytes(a).iter().zip(bytes(b)).map(|(a, b)| (a ^ b).count_ones()).sum()
}
