//! The law of changed clusters: nights that decide only what they touch end in the decisions of one batch.
use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;

use operators::incremental::{CorpusChange, StoredCluster};
use operators::{DocId, Matches, Pair, Resolve, Sides, Similarity, survivors};

/// A corpus in which each document has a text, and some texts match; and the state that nights have kept of
/// it.
#[derive(Default)]
struct Nights {
    /// Text of each document, by number.
    docs: Vec<u64>,
    gone: BTreeSet<DocId>,
    clusters: BTreeMap<DocId, StoredCluster>,
    labels: BTreeMap<DocId, DocId>,
    /// Documents that are removed.
    removed: BTreeSet<DocId>,
}

/// Two texts match if their numbers differ by one or by five.
fn similar(a: u64, b: u64) -> Option<Similarity> {
    matches!(a.abs_diff(b), 1 | 5).then(|| Similarity::ratio(50 + (a + b) as usize % 50, 100))
}

impl Nights {
    fn first(&self, text: u64) -> DocId {
        DocId(self.docs.iter().position(|&other| other == text).unwrap() as u64)
    }

    /// Returns all matches by definition, among the documents that are not withdrawn.
    fn matches(&self) -> Matches {
        let live: Vec<DocId> =
            (0..self.docs.len() as u64).map(DocId).filter(|doc| !self.gone.contains(doc)).collect();
        let text = |doc: DocId| self.docs[doc.0 as usize];
        let first = |of: u64| live.iter().copied().find(|&doc| text(doc) == of);
        let copies = live.iter().filter_map(|&doc| Some((doc, first(text(doc))?)));
        let copies = copies.filter(|(doc, first)| doc != first).collect();
        let firsts: Vec<DocId> = live.iter().copied().filter(|&doc| first(text(doc)) == Some(doc)).collect();
        let pairs = firsts.iter().flat_map(|&a| firsts.iter().map(move |&b| (a, b)));
        let pairs = pairs
            .filter(|(a, b)| a < b)
            .filter_map(|(a, b)| Some((Pair::new(a, b, 0), Some(similar(text(a), text(b))?))));
        Matches { copies, pairs: pairs.collect() }
    }

    /// Adds documents with these texts, and withdraws others, by the clusters that are touched alone.
    fn night(&mut self, texts: &[u64], withdrawn: &[u64], rank: impl Fn(DocId) -> (u64, DocId)) {
        let first_new = DocId(self.docs.len() as u64);
        let old_texts: BTreeSet<u64> = self.docs.iter().copied().collect();
        self.docs.extend(texts);
        let going: BTreeSet<DocId> =
            withdrawn.iter().map(|&doc| DocId(doc)).filter(|doc| *doc < first_new).collect();
        let going: Vec<DocId> = going.difference(&self.gone).copied().collect();
        let gone_before: Vec<DocId> = self.gone.iter().copied().collect();
        let dead = |text: u64| {
            let mut docs = (0..first_new.0).filter(|&doc| self.docs[doc as usize] == text);
            docs.all(|doc| self.gone.contains(&DocId(doc)))
        };
        let mut matches = Matches::default();
        // A text whose documents are all withdrawn is forgotten, and begins anew.
        let mut place: BTreeMap<u64, DocId> = old_texts
            .iter()
            .filter(|&&text| !dead(text))
            .map(|&text| (text, self.alive_name(text)))
            .collect();
        for doc in (first_new.0..self.docs.len() as u64).map(DocId) {
            let text = self.docs[doc.0 as usize];
            match place.get(&text) {
                Some(&first) => matches.copies.push((doc, first)),
                None => {
                    let near =
                        place.iter().filter_map(|(&other, &place)| Some((place, similar(other, text)?)));
                    matches.pairs.extend(near.map(|(place, s)| (Pair::new(place, doc, 0), Some(s))));
                    place.insert(text, doc);
                }
            }
        }
        let mut touched: BTreeSet<DocId> = going.iter().copied().collect();
        touched.extend(matches.copies.iter().map(|copy| copy.1));
        touched.extend(matches.pairs.iter().map(|(pair, _)| pair.low));
        let labels: BTreeSet<DocId> =
            touched.iter().filter_map(|doc| self.labels.get(doc).copied()).collect();
        for label in labels {
            let cluster = &self.clusters[&label];
            matches.copies.extend(&cluster.copies);
            matches.pairs.extend(&cluster.pairs);
        }
        let reorders = rank(DocId(1)) < rank(DocId(0));
        let change = CorpusChange { first_new, gone_before: &gone_before, going: &going, reorders };
        let changed = change.decide(&matches, &rank);
        for (label, cluster) in changed.stored {
            match cluster == StoredCluster::default() {
                true => self.clusters.remove(&label),
                false => self.clusters.insert(label, cluster),
            };
        }
        for (doc, label) in changed.labels {
            match label {
                Some(label) => self.labels.insert(doc, label),
                None => self.labels.remove(&doc),
            };
        }
        for (doc, removed) in changed.corrections {
            assert!(doc < first_new);
            let changed =
                if removed.is_some() { self.removed.insert(doc) } else { self.removed.remove(&doc) };
            assert!(changed, "a correction of {doc:?} that changes nothing");
        }
        let new = changed.members.iter().filter(|member| member.doc >= first_new && member.removed.is_some());
        self.removed.extend(new.map(|member| member.doc));
        self.gone.extend(going);
        self.removed.retain(|doc| !self.gone.contains(doc));
    }

    /// Returns the first document of the latest life of a text.
    fn alive_name(&self, text: u64) -> DocId {
        let stored = self.clusters.values().flat_map(|cluster| &cluster.copies);
        let of_text = |doc: DocId| self.docs[doc.0 as usize] == text;
        let named = stored.filter(|(doc, _)| of_text(*doc)).map(|copy| copy.1).next();
        let live = (0..self.docs.len() as u64).map(DocId);
        let mut live = live.filter(|&doc| of_text(doc) && !self.gone.contains(&doc));
        named.or_else(|| live.next()).unwrap_or_else(|| self.first(text))
    }
}

proptest! {
    #[test]
    fn nights_end_in_the_decisions_of_one_batch(
        nights in vec((vec(0u64..24, 0..9), vec(0u64..60, 0..4)), 1..9),
        newest in any::<bool>(),
    ) {
        let rank = |doc: DocId| (if newest { u64::MAX - doc.0 } else { 0 }, doc);
        let mut state = Nights::default();
        for (texts, withdrawn) in &nights {
            state.night(texts, withdrawn, rank);
            let batch = survivors(&state.matches(), Resolve::Greedy, Sides::default(), rank);
            let expected: BTreeSet<DocId> =
                batch.iter().filter(|member| member.removed.is_some()).map(|member| member.doc).collect();
            prop_assert_eq!(&state.removed, &expected);
            for (doc, label) in &state.labels {
                let cluster = &state.clusters[label];
                let docs = cluster.copies.iter().flat_map(|&(doc, text)| [doc, text]);
                let texts = cluster.pairs.iter().flat_map(|(pair, _)| [pair.low, pair.high]);
                prop_assert!(docs.chain(texts).any(|other| other == *doc));
            }
        }
    }
}
