//! Two texts compared as a method compares them, step by step.

use operators::method::{Method, MethodJob};
use operators::text::Cleaner;
use operators::{Record, Similarity, jaccard};

/// Two texts, the earlier one first.
pub(crate) struct Comparison<'a> {
    pub a: &'a str,
    pub b: &'a str,
    /// The least similarity of a pair; `None`: a match of fingerprints is enough.
    pub verify: Option<Similarity>,
}

/// What was found of two texts.
pub(crate) struct Compared {
    /// A line for each step.
    pub steps: Vec<String>,
    /// Whether the two match.
    pub matches: bool,
}

impl MethodJob for Comparison<'_> {
    type Output = Compared;

    fn run<M: Method>(self, mut cleaner: Cleaner, mut method: M) -> Compared {
        let [a, b] = [self.a, self.b].map(|text| cleaner.clean(text).to_owned());
        let identical = a == b;
        let fingerprints = [&a, &b].map(|text| method.fingerprint(text));
        let distance = method.distance(&fingerprints[0], &fingerprints[1]);
        let agree: Vec<String> = (0..method.blocks())
            .filter(|&block| {
                let [a, b] = fingerprints.each_ref().map(|fingerprint| method.block(block, fingerprint));
                a == b
            })
            .map(|block| block.to_string())
            .collect();
        let of = method.blocks();
        let agree = if agree.is_empty() { "none".to_owned() } else { agree.join(", ") };
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
            format!("blocks that agree: {agree}, of 0 to {}", of - 1),
            format!(
                "features: {} and {}, similarity {similarity}{}",
                features_a.len(),
                features_b.len(),
                against(similarity, self.verify)
            ),
        ];
        Compared { steps, matches: identical || distance.is_some() && similar }
    }
}

/// What cleaning left of two texts.
fn cleaned(a: &str, b: &str) -> String {
    let same = if a == b { "the same text" } else { "different texts" };
    format!("once cleaned: {} and {} characters, {same}", a.chars().count(), b.chars().count())
}

/// A similarity held against the threshold.
fn against(similarity: Similarity, least: Option<Similarity>) -> String {
    match least {
        None => "; no threshold was set".to_owned(),
        Some(least) if similarity >= least => format!(", not under the threshold {least}"),
        Some(least) => format!(", under the threshold {least}"),
    }
}

fn bits_apart<F: Record>(a: &F, b: &F) -> u32 {
    let bytes = |fingerprint: &F| {
        let mut bytes = vec![0; F::BYTES];
        fingerprint.write(&mut bytes);
        bytes
    };
    bytes(a).iter().zip(bytes(b)).map(|(a, b)| (a ^ b).count_ones()).sum()
}
