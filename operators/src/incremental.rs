//! Decisions about clusters that change: documents come in, and withdrawn documents give back what they had
//! suppressed.
//!
//! A kept state remembers the matches of each cluster. When a night adds or withdraws documents, the clusters that
//! they touch are loaded, and all that is kept about them is worked out again: who stays, which earlier
//! decisions have changed, and what is to be stored. Nothing else of the state is read.
//!
//! ```text
//! stored cluster of 1    copies 2 of 1    pairs 1-5, 5-8
//! document 1 goes        text 1 lives on in document 2: stored are copies 2 of 1, pairs 1-5, 5-8
//! document 2 goes too    text 1 is dead: stored is the pair 5-8 in a cluster of 5; document 5 is restored
//! ```
//!
//! A *text* is named by the first document that ever had it, even after that document was withdrawn.

use crate::record::{DocId, Pair};
use crate::sides::Sides;
use crate::survivors::{Matches, Member, NearPair, Removed, Resolve, survivors};

/// Change of a corpus between two nights.
pub struct CorpusChange<'a> {
    /// First document that the change adds. All later documents are new.
    pub first_new: DocId,
    /// Documents that were withdrawn before, sorted.
    pub gone_before: &'a [DocId],
    /// Documents that are withdrawn now, sorted.
    pub going: &'a [DocId],
    /// Whether earlier decisions may change although nothing is withdrawn, because new documents may come before
    /// old ones in keep order.
    pub reorders: bool,
}

/// A cluster as a state stores it: copies by their text, and pairs of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredCluster {
    /// Each document that is identical to an earlier one, with the text of both.
    pub copies: Vec<(DocId, DocId)>,
    /// Pairs of texts.
    pub pairs: Vec<NearPair>,
}

/// Clusters after a change, and what differs from those before.
///
/// Memory: that of [`survivors`], twice, and 40 bytes a document.
#[derive(Debug, Default)]
pub struct ChangedClusters {
    /// Matches of documents that are not withdrawn. Copies name the first such document of their text.
    pub live: Matches,
    /// Decision about each of these documents, by cluster.
    pub members: Vec<Member>,
    /// Decision about each old document whose decision has changed, in the order of documents.
    pub corrections: Vec<(DocId, Option<Removed>)>,
    /// Clusters to be stored by their labels, in order. Nothing is stored of a label whose cluster is empty.
    pub stored: Vec<(DocId, StoredCluster)>,
    /// Documents and texts whose label changes, in order; `None` if they are in no cluster any more.
    pub labels: Vec<(DocId, Option<DocId>)>,
    /// TextClasses of which every document is withdrawn, in order.
    pub dead_texts: Vec<DocId>,
}

impl CorpusChange<'_> {
    /// Decides some clusters anew. `matches`: all that is stored about them and all matches of new documents,
    /// copies by their text and pairs by texts. `rank`: the keep order, in which the least rank comes first.
    ///
    /// Cost: sorting the matches.
    pub fn decide<K: Ord>(&self, matches: &Matches, rank: impl Fn(DocId) -> K) -> ChangedClusters {
        let old = Matches {
            copies: matches.copies.iter().copied().filter(|(doc, _)| self.is_old(*doc)).collect(),
            pairs: matches.pairs.iter().copied().filter(|(pair, _)| self.is_old(pair.high)).collect(),
        };
        let gone = |doc: DocId| is_in(self.gone_before, doc) || is_in(self.going, doc);
        let texts = TextClasses::new(matches, gone);
        let live = texts.live(matches);
        let members = survivors(&live, Resolve::Greedy, Sides::default(), &rank);
        let corrections = match self.reorders || !self.going.is_empty() {
            true => {
                let before = TextClasses::new(&old, |doc| is_in(self.gone_before, doc)).live(&old);
                let before = survivors(&before, Resolve::Greedy, Sides::default(), &rank);
                self.corrections(&before, &members)
            }
            false => Vec::new(),
        };
        let after = texts.stored(matches);
        let (was, is) = [&old, &after].map(labels).into();
        ChangedClusters {
            live,
            members,
            corrections,
            stored: stored(&was, &is, after),
            labels: changed(&was, &is),
            dead_texts: texts.dead(),
        }
    }

    fn is_old(&self, doc: DocId) -> bool {
        doc < self.first_new
    }

    /// Returns the old documents that stay in one of two results and go in the other. A document that is in no
    /// cluster stays.
    fn corrections(&self, before: &[Member], after: &[Member]) -> Vec<(DocId, Option<Removed>)> {
        let mut decisions: Vec<(DocId, bool, Option<Removed>)> = Vec::new();
        let of = |members: &[Member], is_after: bool| -> Vec<_> {
            members.iter().map(|member| (member.doc, is_after, member.removed)).collect()
        };
        decisions.extend(of(before, false));
        decisions.extend(of(after, true));
        decisions.retain(|(doc, _, _)| self.is_old(*doc) && !is_in(self.going, *doc));
        decisions.sort_unstable_by_key(|&(doc, is_after, _)| (doc, is_after));
        let of_docs = decisions.chunk_by(|a, b| a.0 == b.0);
        let change = of_docs.filter_map(|of_doc| {
            let decided = |is_after| of_doc.iter().find(|of| of.1 == is_after).and_then(|of| of.2);
            let (before, after) = (decided(false), decided(true));
            (before.is_some() != after.is_some()).then_some((of_doc[0].0, after))
        });
        change.collect()
    }
}

fn is_in(docs: &[DocId], doc: DocId) -> bool {
    docs.binary_search(&doc).is_ok()
}

/// TextClasses of some matches, some of whose documents are withdrawn.
struct TextClasses<G> {
    /// Each text in order, with its first document that is not withdrawn.
    firsts: Vec<(DocId, Option<DocId>)>,
    /// Whether a document is withdrawn.
    gone: G,
}

impl<G: Fn(DocId) -> bool> TextClasses<G> {
    fn new(matches: &Matches, gone: G) -> Self {
        let of_pairs = matches.pairs.iter().flat_map(|(pair, _)| [pair.low, pair.high]);
        let of_pairs = of_pairs.map(|text| (text, text));
        let of_copies = matches.copies.iter().flat_map(|&(doc, text)| [(text, text), (text, doc)]);
        let mut docs: Vec<(DocId, DocId)> = of_pairs.chain(of_copies).collect();
        docs.sort_unstable();
        docs.dedup();
        let first =
            |docs: &[(DocId, DocId)]| (docs[0].0, docs.iter().map(|&(_, doc)| doc).find(|&doc| !gone(doc)));
        let firsts = docs.chunk_by(|a, b| a.0 == b.0).map(first).collect();
        TextClasses { firsts, gone }
    }

    /// Returns the first live document of a text.
    fn first(&self, text: DocId) -> Option<DocId> {
        let at = self.firsts.binary_search_by_key(&text, |&(text, _)| text).ok()?;
        self.firsts[at].1
    }

    /// Returns the texts without a live document.
    fn dead(&self) -> Vec<DocId> {
        self.firsts.iter().filter(|(_, first)| first.is_none()).map(|&(text, _)| text).collect()
    }

    /// Returns the matches of live documents, where each text is named by its first live document.
    fn live(&self, matches: &Matches) -> Matches {
        let copies = matches.copies.iter().filter_map(|&(doc, text)| {
            let first = self.first(text).filter(|&first| first != doc && !(self.gone)(doc))?;
            Some((doc, first))
        });
        let pairs = matches.pairs.iter().filter_map(|&(pair, similarity)| {
            let (one, other) = (self.first(pair.low)?, self.first(pair.high)?);
            Some((Pair::new(one, other, pair.distance), similarity))
        });
        Matches { copies: copies.collect(), pairs: pairs.collect() }
    }

    /// Returns the matches that are stored: those of live copies and of texts that live, by their texts.
    fn stored(&self, matches: &Matches) -> Matches {
        let lives = |text: DocId| self.first(text).is_some();
        let copies = matches.copies.iter().copied().filter(|&(doc, _)| !(self.gone)(doc));
        let pairs = matches.pairs.iter().copied().filter(|(pair, _)| lives(pair.low) && lives(pair.high));
        Matches { copies: copies.collect(), pairs: pairs.collect() }
    }
}

/// Returns each document and text of some matches with the label of its cluster, in order. The label is the
/// first of them.
fn labels(matches: &Matches) -> Vec<(DocId, DocId)> {
    let members = survivors(matches, Resolve::Components, Sides::default(), |doc| doc);
    let mut labels: Vec<_> = members.into_iter().map(|member| (member.doc, member.cluster)).collect();
    labels.sort_unstable();
    labels
}

/// Returns the label of a document.
fn label(labels: &[(DocId, DocId)], doc: DocId) -> Option<DocId> {
    labels.binary_search_by_key(&doc, |&(doc, _)| doc).ok().map(|at| labels[at].1)
}

/// Returns the documents whose labels differ, with their labels now.
fn changed(was: &[(DocId, DocId)], is: &[(DocId, DocId)]) -> Vec<(DocId, Option<DocId>)> {
    let left = was.iter().filter(|&&(doc, _)| label(is, doc).is_none()).map(|&(doc, _)| (doc, None));
    let now = is.iter().filter(|&&(doc, now)| label(was, doc) != Some(now));
    let mut changed: Vec<_> = left.chain(now.map(|&(doc, now)| (doc, Some(now)))).collect();
    changed.sort_unstable();
    changed
}

/// Divides matches into clusters by their labels, and adds an empty cluster for each label that is gone.
fn stored(
    was: &[(DocId, DocId)],
    is: &[(DocId, DocId)],
    mut matches: Matches,
) -> Vec<(DocId, StoredCluster)> {
    let of = |doc: DocId| label(is, doc).unwrap_or(doc);
    matches.copies.sort_unstable_by_key(|&(doc, text)| (of(text), text, doc));
    matches.pairs.sort_unstable_by_key(|&(pair, _)| (of(pair.low), pair));
    let mut names: Vec<DocId> = was.iter().chain(is).map(|&(_, label)| label).collect();
    names.sort_unstable();
    names.dedup();
    let (mut copies, mut pairs) = (&matches.copies[..], &matches.pairs[..]);
    let cluster = |name: DocId| {
        let (of_copies, of_pairs);
        (of_copies, copies) = copies.split_at(copies.partition_point(|&(_, text)| of(text) <= name));
        (of_pairs, pairs) = pairs.split_at(pairs.partition_point(|(pair, _)| of(pair.low) <= name));
        (name, StoredCluster { copies: of_copies.to_vec(), pairs: of_pairs.to_vec() })
    };
    names.into_iter().map(cluster).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Similarity;

    #[test]
    fn a_withdrawn_document_gives_back_what_it_suppressed() {
        let near = Some(Similarity::ratio(9, 10));
        let matches = Matches {
            copies: vec![(DocId(2), DocId(1))],
            pairs: vec![(Pair::new(DocId(1), DocId(5), 0), near), (Pair::new(DocId(5), DocId(8), 0), near)],
        };
        let change = |going: &[DocId], gone_before: &[DocId], matches: &Matches| {
            let change = CorpusChange { first_new: DocId(9), gone_before, going, reorders: false };
            change.decide(matches, |doc| doc)
        };
        let first = change(&[DocId(1)], &[], &matches);
        assert_eq!(first.corrections, [(DocId(2), None)]);
        assert_eq!((first.labels.as_slice(), first.dead_texts.as_slice()), (&[][..], &[][..]));
        let (label, cluster) = &first.stored[0];
        assert_eq!(
            (first.stored.len(), *label, cluster.copies.as_slice()),
            (1, DocId(1), &[(DocId(2), DocId(1))][..])
        );
        let kept = Matches { copies: cluster.copies.clone(), pairs: cluster.pairs.clone() };
        let second = change(&[DocId(2)], &[DocId(1)], &kept);
        assert_eq!(second.dead_texts, [DocId(1)]);
        assert_eq!(
            second.corrections.iter().map(|c| (c.0, c.1.is_some())).collect::<Vec<_>>(),
            [(DocId(5), false), (DocId(8), true),]
        );
        assert_eq!(
            second.labels,
            [(DocId(1), None), (DocId(2), None), (DocId(5), Some(DocId(5))), (DocId(8), Some(DocId(5))),]
        );
    }
}
