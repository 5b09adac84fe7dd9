//! Expected results by brute force: every pair of documents is compared.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use operators::method::Spec;
use operators::search::MappedText;
use operators::sets::{SetKind, Sets};
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;

use crate::corpus::json_lines;

/// Document of a test's own corpus.
#[derive(Clone, Debug)]
pub struct Doc {
    pub id: String,
    pub text: String,
}

impl Doc {
    pub fn new(id: impl ToString, text: impl ToString) -> Self {
        Doc { id: id.to_string(), text: text.to_string() }
    }

    pub fn json_lines(docs: &[Doc]) -> String {
        json_lines(docs.iter().map(|doc| (&doc.id, &doc.text)))
    }
}

/// Two documents by their indexes, `low < high`, whose fingerprints match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    pub low: usize,
    pub high: usize,
    /// Distance in bits.
    pub hamming: u32,
    /// Similarity of their features, in millionths, rounded down.
    pub millionths: u64,
    /// Whether their cleaned texts are equal.
    pub identical: bool,
}

/// Returns all candidates of a method, in order.
pub fn candidates(method: &str, docs: &[Doc]) -> Vec<Candidate> {
    let spec: Spec = method.parse().unwrap();
    let mut method = spec.method(&Lexicon::default(), &Statistics::default(), None).unwrap();
    let mut search = method.text_search();
    let map = |doc: &Doc| {
        let text = method.cleaner.clean(&doc.text).to_owned();
        let mut sets = Sets::default();
        method.rule.without_threshold().sets(&text, &mut sets);
        (
            MappedText::new(&mut *search, text.as_str().into()),
            [sets.long, sets.short].map(HashSet::<u64>::from_iter),
            text,
        )
    };
    let mapped: Vec<_> = docs.iter().map(map).collect();
    let mut found = Vec::new();
    for (high, b) in mapped.iter().enumerate() {
        for (low, a) in mapped[..high].iter().enumerate() {
            if !search.are_candidates(&a.0, &b.0) {
                continue;
            }
            let kind = [0, 1].into_iter().find(|&kind| a.1[kind].len().min(b.1[kind].len()) > 0).unwrap();
            let millionths = jaccard_millionths(&a.1[kind], &b.1[kind]);
            let threshold =
                method.rule.measure([SetKind::Long, SetKind::Short][kind]).1.as_millionths().into();
            if !method.verified || millionths >= threshold {
                let hamming = search.distance(&a.0, &b.0).unwrap_or(0);
                found.push(Candidate { low, high, hamming, millionths, identical: a.2 == b.2 });
            }
        }
    }
    found.sort_by_key(|pair| (pair.low, pair.high));
    found
}

fn jaccard_millionths<T: std::hash::Hash + Eq>(a: &HashSet<T>, b: &HashSet<T>) -> u64 {
    let both = a.intersection(b).count() as u64;
    let either = a.union(b).count() as u64;
    both * 1_000_000 / either
}

/// Returns the Jaccard similarity of the character 5-grams of two texts, in millionths, without any code of
/// the program.
pub fn similarity_of_grams(a: &str, b: &str) -> u64 {
    let grams = |text: &str| -> HashSet<Vec<char>> {
        text.chars().collect::<Vec<_>>().windows(5).map(<[char]>::to_vec).collect()
    };
    jaccard_millionths(&grams(a), &grams(b))
}

/// Verdict of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    Kept,
    /// Index of the document that stays and names the cluster, similarity, and reason.
    Removed(usize, Option<f64>, &'static str),
}

/// Returns the verdicts of `--resolve greedy` for matching pairs, in the keep order of `rank`: a document is
/// removed if it matches one that stays, and the most similar one is named.
pub fn greedy(count: usize, pairs: &[Candidate], rank: impl Fn(usize) -> usize) -> Vec<Decision> {
    let between = |a: usize, b: usize| pairs.iter().find(|p| (p.low, p.high) == (a.min(b), a.max(b)));
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&doc| (rank(doc), doc));
    let mut decided: BTreeMap<usize, Decision> = BTreeMap::new();
    for (at, &doc) in order.iter().enumerate() {
        let stay = order[..at].iter().enumerate().filter(|(_, other)| decided[*other] == Decision::Kept);
        let matches = stay.filter_map(|(at, &other)| Some((at, other, between(other, doc)?)));
        let decision = match matches.max_by_key(|(at, _, p)| (p.identical, p.millionths, Reverse(*at))) {
            None => Decision::Kept,
            Some((_, kept, pair)) => {
                let reason = if pair.identical { "identical" } else { "similar" };
                Decision::Removed(kept, Some(pair.millionths as f64 / 1e6), reason)
            }
        };
        decided.insert(doc, decision);
    }
    decided.into_values().collect()
}
