//! The law of changed clusters: nights that decide only what they touch end in the decisions of one batch.
use std::collections::{BTreeMap, BTreeSet, HashMap};

use proptest::collection::vec;
use proptest::prelude::*;

use operators::incremental::{ChangedClusters, CorpusChange, Parent};
use operators::{DocId, Matches, Pair, Resolve, Sides, Similarity, survivors};

/// A corpus in which each document has a text, and some texts match; and the state that nights have kept of
/// it.
#[derive(Default)]
struct Nights {
    /// Text of each document, by number.
    docs: Vec<u64>,
    gone: BTreeSet<DocId>,
    /// Texts by their documents, but for the first one; and texts by those that go for them.
    parents: BTreeMap<DocId, Parent>,
    /// Documents that are removed.
    removed: BTreeSet<DocId>,
}

/// Two texts match if their numbers differ by one or by five.
fn similar(a: u64, b: u64) -> Option<Similarity> {
    matches!(a.abs_diff(b), 1 | 5).then(|| Similarity::ratio(50 + (a + b) as usize % 50, 100))
}

impl Nights {
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

    fn is_dead(&self, text: u64) -> bool {
        (0..self.docs.len() as u64)
            .map(DocId)
            .all(|doc| self.docs[doc.0 as usize] != text || self.gone.contains(&doc))
    }

    /// Returns the text of a document of the state, by its first document.
    fn text_of(&self, doc: DocId) -> DocId {
        self.parents.get(&doc).filter(|parent| parent.apart.is_none()).map_or(doc, |parent| parent.text)
    }

    /// Returns the text for which a text goes.
    fn goes_for(&self, text: DocId) -> Option<DocId> {
        self.parents.get(&text).filter(|parent| parent.apart.is_some()).map(|parent| parent.text)
    }

    /// Returns the documents and texts below a text: those that have it, or those that go for it.
    fn below(&self, text: DocId, goes: bool) -> impl Iterator<Item = DocId> {
        let of_text =
            move |(_, parent): &(&DocId, &Parent)| parent.text == text && parent.apart.is_some() == goes;
        self.parents.iter().filter(of_text).map(|(&doc, _)| doc)
    }

    /// Returns the matches of the texts that a change touches. `asking`: texts that ask for others. `old`: texts of the state.
    fn touched_matches(
        &self,
        change: &CorpusChange,
        copies: &[(DocId, DocId)],
        asking: &[(u64, DocId)],
        old: &[(u64, DocId)],
    ) -> Matches {
        let mut matches = Matches { copies: copies.to_vec(), pairs: Vec::new() };
        let stayed = old.iter().filter(|(_, text)| self.goes_for(*text).is_none());
        for (at, &(text, one)) in asking.iter().enumerate() {
            for &(other_text, other) in asking[..at].iter().chain(stayed.clone()) {
                if let Some(similarity) = similar(text, other_text) {
                    matches.pairs.push((Pair::new(one, other, 0), Some(similarity)));
                }
            }
        }
        let mut touched: BTreeSet<DocId> = change.going.iter().map(|&doc| self.text_of(doc)).collect();
        touched.extend(copies.iter().map(|copy| copy.1));
        touched.extend(matches.pairs.iter().flat_map(|(pair, _)| [pair.low, pair.high]));
        touched.extend(asking.iter().map(|asking| asking.1));
        touched.retain(|&text| text < change.first_new);
        for text in touched.clone() {
            if let Some(Parent { text: above, apart: Some((distance, similarity)) }) = self.parents.get(&text)
            {
                touched.insert(*above);
                matches.pairs.push((Pair::new(*above, text, *distance), *similarity));
            }
        }
        let stored = touched.iter().flat_map(|&text| self.below(text, false).map(move |doc| (doc, text)));
        matches.copies.extend(stored);
        matches
    }

    /// Takes what a night has changed. `first_new`: its first document.
    fn apply(&mut self, changed: ChangedClusters, first_new: DocId) {
        for (doc, parent) in changed.parents {
            match parent {
                Some(parent) => self.parents.insert(doc, parent),
                None => self.parents.remove(&doc),
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
    }

    /// Adds documents with these texts, and withdraws others, by what the change touches alone.
    fn night(&mut self, texts: &[u64], withdrawn: &[u64], rank: impl Fn(DocId) -> (u64, DocId)) {
        let first_new = DocId(self.docs.len() as u64);
        let going: BTreeSet<DocId> =
            withdrawn.iter().map(|&doc| DocId(doc)).filter(|doc| *doc < first_new).collect();
        let going: Vec<DocId> = going.difference(&self.gone).copied().collect();
        let gone_before: Vec<DocId> = self.gone.iter().copied().collect();
        // A text whose documents are all withdrawn is forgotten, and begins anew.
        let mut place: BTreeMap<u64, DocId> = BTreeMap::new();
        for doc in (0..first_new.0).map(DocId).filter(|doc| !self.gone.contains(doc)) {
            place.insert(self.docs[doc.0 as usize], self.text_of(doc));
        }
        let old: Vec<(u64, DocId)> = place.iter().map(|(&text, &first)| (text, first)).collect();
        self.docs.extend(texts);
        let (mut copies, mut asking) = (Vec::new(), Vec::new());
        for doc in (first_new.0..self.docs.len() as u64).map(DocId) {
            let text = self.docs[doc.0 as usize];
            match place.get(&text) {
                Some(&first) => copies.push((doc, first)),
                None => {
                    asking.push((text, doc));
                    place.insert(text, doc);
                }
            }
        }
        let reorders = rank(DocId(1)) < rank(DocId(0));
        let change = CorpusChange { first_new, gone_before: &gone_before, going: &going, reorders };
        // The only document of a text may be in no match.
        let mut unseated: BTreeSet<DocId> =
            going.iter().copied().filter(|&doc| self.below(doc, false).next().is_none()).collect();
        let freed: BTreeSet<DocId> = unseated.iter().flat_map(|&text| self.below(text, true)).collect();
        asking.extend(freed.into_iter().map(|text| (self.docs[text.0 as usize], text)));
        let matches = loop {
            let matches = self.touched_matches(&change, &copies, &asking, &old);
            let moved = change.moved(&matches, &rank);
            let fresh: Vec<DocId> =
                moved.unseated.into_iter().filter(|&text| unseated.insert(text)).collect();
            let freed = fresh.into_iter().flat_map(|text| self.below(text, true));
            let risen = moved.risen.into_iter().filter(|&text| self.goes_for(text).is_some());
            let known = |text: &DocId| asking.iter().all(|(_, other)| other != text);
            let more: BTreeSet<DocId> = freed.chain(risen).filter(known).collect();
            if more.is_empty() {
                break matches;
            }
            asking.extend(more.into_iter().map(|text| (self.docs[text.0 as usize], text)));
        };
        let went: HashMap<DocId, DocId> =
            touched_of(&matches).filter_map(|text| Some((text, self.goes_for(text)?))).collect();
        let changed = change.decide(&matches, &went, &rank);
        // Whether a text that need not ask has asked makes no difference to its name.
        let moved = change.moved(&matches, &rank);
        for (doc, parent) in &changed.parents {
            let Some((above, parent)) = went.get(doc).zip(parent.filter(|parent| parent.apart.is_some()))
            else {
                continue;
            };
            let may_ask = moved.unseated.contains(above) || moved.risen.contains(doc);
            assert!(may_ask || parent.text == *above, "{doc:?} went for {above:?}, and goes for {parent:?}");
        }
        self.apply(changed, first_new);
        self.gone.extend(going);
        self.removed.retain(|doc| !self.gone.contains(doc));
    }
}

/// Returns the texts of some matches.
fn touched_of(matches: &Matches) -> impl Iterator<Item = DocId> {
    let of_pairs = matches.pairs.iter().flat_map(|(pair, _)| [pair.low, pair.high]);
    of_pairs.chain(matches.copies.iter().map(|copy| copy.1))
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
            for (&doc, parent) in state.parents.iter().filter(|(_, parent)| parent.apart.is_some()) {
                let [goes, stays] = [doc, parent.text].map(|doc| state.docs[doc.0 as usize]);
                prop_assert!(similar(goes, stays).is_some() && !state.is_dead(goes) && !state.is_dead(stays));
                prop_assert_eq!(state.goes_for(parent.text), None);
            }
        }
    }
}
