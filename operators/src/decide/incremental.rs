//! Decisions about clusters that change: documents come in, and withdrawn documents give back what they had
//! suppressed.
//!
//! A kept state remembers of each text that goes the text for which it goes, and of each further document of a text that text. When
//! a night adds or withdraws documents, what it touches is decided anew: who stays, which earlier decisions have changed, and what
//! is to be stored. Nothing else of the state is read.
//!
//! ```text
//! stored    document 2 has text 1, text 5 goes for 1, text 8 stays
//! matches   1-5, and 5-8, which is not stored
//! 1 goes    text 1 lives on in document 2, so 5 still goes for it
//! 2 goes    text 1 is dead: 5 asks again, finds 8, and stays; 8 goes for 5
//! ```
//!
//! A *text* is named by the first document that ever had it, even after that document was withdrawn.

use std::collections::{HashMap, HashSet};

use crate::decide::{Matches, Member, Reason, Removed, Resolve, survivors};
use crate::record::Sides;
use crate::record::{DocId, Pair};
use crate::sets::similarity::Similarity;

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

/// The text above a document, as a state stores it: the text that the document has, or the text for which its own text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// That text.
    pub text: DocId,
    /// How far the two are apart; `None` if the document has that text.
    pub apart: Option<(u32, Option<Similarity>)>,
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
    /// The parent of each document and text, in order; `None` if it has none.
    pub parents: Vec<(DocId, Option<Parent>)>,
    /// Texts that a document has which is not withdrawn, in order.
    pub living_texts: Vec<DocId>,
    /// Texts of which every document is withdrawn, in order.
    pub dead_texts: Vec<DocId>,
}

/// Texts of the state that a change moves, so that others must ask again.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MovedTexts {
    /// Texts that go, that no document has any more, or that come later in keep order, in order: those that went for one of them
    /// ask again.
    pub unseated: Vec<DocId>,
    /// Texts that come earlier in keep order, in order: one that went asks again.
    pub risen: Vec<DocId>,
}

impl CorpusChange<'_> {
    /// Whether earlier decisions may change.
    pub fn may_reverse_decisions(&self) -> bool {
        self.reorders || !self.going.is_empty()
    }

    /// Returns the old texts of some matches that a change moves. `matches`, `rank`: as for [`CorpusChange::decide`]. A text whose
    /// only document is withdrawn may be in no match; it is unseated, too.
    ///
    /// **Who must ask.** A state knows who stays and for whom each other one goes, and no other match. Let those that ask be the new
    /// texts, those that went for an unseated one, and those that went and have risen; and let their matches with each other and
    /// with all that stayed be known. If no further text must ask, the greedy decision by the known matches equals the decision by
    /// all matches. Two texts that stay do not match, since both stayed before or one of them has asked. Each text that goes has an
    /// earlier match that stays: one that is known, or the one that it had before and that is not unseated.
    pub fn moved<K: Ord + Copy>(&self, matches: &Matches, rank: impl Fn(DocId) -> K) -> MovedTexts {
        let going = |doc: DocId| is_in(self.going, doc);
        let gone_before = |doc: DocId| is_in(self.gone_before, doc);
        let texts = TextClasses::new(matches, |doc| gone_before(doc) || going(doc));
        let members = survivors(&texts.live(matches), Resolve::Greedy, Sides::default(), &rank);
        let goes = members
            .iter()
            .filter(|member| matches!(member.removed, Some(Removed { tie: Reason::Similar(_), .. })));
        let goes: HashSet<DocId> = goes.map(|member| member.doc).collect();
        let mut best: HashMap<DocId, [Option<K>; 2]> = HashMap::new();
        let firsts = texts.firsts.iter().map(|&(text, _)| (text, text));
        let copies = matches.copies.iter().copied().filter(|(doc, text)| doc != text);
        for (doc, text) in firsts.chain(copies).filter(|(_, text)| self.is_old(*text)) {
            let of_text = best.entry(text).or_default();
            let was = self.is_old(doc) && !gone_before(doc);
            let is = !gone_before(doc) && !going(doc);
            for (best, counts) in of_text.iter_mut().zip([was, is]) {
                *best = (*best).into_iter().chain(counts.then(|| rank(doc))).min();
            }
        }
        let mut moved = MovedTexts::default();
        for (&text, &[was, is]) in &best {
            if is.is_none() || is > was || texts.first(text).is_some_and(|first| goes.contains(&first)) {
                moved.unseated.push(text);
            }
            if is.is_some() && is < was {
                moved.risen.push(text);
            }
        }
        moved.unseated.sort_unstable();
        moved.risen.sort_unstable();
        moved
    }

    /// Decides some clusters anew. `matches`: all that is stored about them and all matches of new documents,
    /// copies by their text and pairs by texts. `went`: old texts, each with the text for which it went before the change; none
    /// need be there if no earlier decision may change. `rank`: the keep order, in which the least rank comes first.
    ///
    /// Cost: sorting the matches.
    pub fn decide<K: Ord + Copy>(
        &self,
        matches: &Matches,
        went: &HashMap<DocId, DocId>,
        rank: impl Fn(DocId) -> K,
    ) -> ChangedClusters {
        let old = Matches {
            copies: matches.copies.iter().copied().filter(|(doc, _)| self.is_old(*doc)).collect(),
            pairs: matches.pairs.iter().copied().filter(|(pair, _)| self.is_old(pair.high)).collect(),
        };
        let gone = |doc: DocId| is_in(self.gone_before, doc) || is_in(self.going, doc);
        let texts = TextClasses::new(matches, gone);
        let live = texts.live(matches);
        let mut members = survivors(&live, Resolve::Greedy, Sides::default(), &rank);
        let corrections = match self.may_reverse_decisions() {
            true => {
                self.go_as_before(&mut members, matches, went, &rank);
                let before = TextClasses::new(&old, |doc| is_in(self.gone_before, doc)).live(&old);
                let before = survivors(&before, Resolve::Greedy, Sides::default(), &rank);
                self.corrections(&before, &members)
            }
            false => Vec::new(),
        };
        let parents = texts.parents(matches, &members);
        ChangedClusters {
            live,
            members,
            corrections,
            parents,
            living_texts: texts.having(true),
            dead_texts: texts.having(false),
        }
    }

    /// Lets each text that goes still go for the same text as before, if neither of the two is moved. Such a text may have asked
    /// nevertheless, since who stays is known only in the end. Whether it has depends on the order in which matches are found, and
    /// so on the number of workers.
    fn go_as_before<K: Ord + Copy>(
        &self,
        members: &mut [Member],
        matches: &Matches,
        went: &HashMap<DocId, DocId>,
        rank: impl Fn(DocId) -> K,
    ) {
        let moved = self.moved(matches, rank);
        let texts: HashMap<DocId, DocId> = matches.copies.iter().copied().collect();
        let text_of = |doc: DocId| texts.get(&doc).copied().unwrap_or(doc);
        let ties = matches.pairs.iter().flat_map(|&(pair, similarity)| {
            [(pair.low, pair.high), (pair.high, pair.low)]
                .into_iter()
                .filter(|(text, above)| went.get(text) == Some(above))
                .filter(|(text, above)| !is_in(&moved.risen, *text) && !is_in(&moved.unseated, *above))
                .map(move |(text, above)| (text, (above, similarity)))
        });
        let ties: HashMap<DocId, (DocId, Option<Similarity>)> = ties.collect();
        let staying = members.iter().filter(|member| member.removed.is_none());
        let staying: HashMap<DocId, DocId> =
            staying.map(|member| (text_of(member.doc), member.doc)).collect();
        for member in members {
            let Some(Removed { duplicate_of, tie: Reason::Similar(similarity) }) = &mut member.removed else {
                continue;
            };
            let tie = ties.get(&text_of(member.doc));
            if let Some((stays, of_tie)) = tie.and_then(|(above, of_tie)| Some((staying.get(above)?, of_tie)))
            {
                (*duplicate_of, *similarity) = (*stays, *of_tie);
            }
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

/// Texts of some matches, some of whose documents are withdrawn.
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

    /// Returns the texts that have a live document, or those that have none.
    fn having(&self, live: bool) -> Vec<DocId> {
        self.firsts.iter().filter(|(_, first)| first.is_some() == live).map(|&(text, _)| text).collect()
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

    /// Returns the parent of each document and text of some matches, in order. `members`: what was decided of the live ones.
    fn parents(&self, matches: &Matches, members: &[Member]) -> Vec<(DocId, Option<Parent>)> {
        let texts: HashMap<DocId, DocId> = matches.copies.iter().copied().collect();
        let text_of = |doc: DocId| texts.get(&doc).copied().unwrap_or(doc);
        let distances = matches.pairs.iter().filter(|(pair, _)| pair.distance > 0);
        let distances: HashMap<_, u32> =
            distances.map(|(pair, _)| ((pair.low, pair.high), pair.distance)).collect();
        let apart = |one: DocId, other: DocId| {
            let Pair { low, high, .. } = Pair::new(one, other, 0);
            distances.get(&(low, high)).copied().unwrap_or(0)
        };
        // A text goes if its documents go for a document of another one.
        let mut goes: HashMap<DocId, Parent> = HashMap::new();
        for member in members {
            let Some(Removed { duplicate_of, tie: Reason::Similar(similarity) }) = member.removed else {
                continue;
            };
            let text = text_of(member.doc);
            let above = text_of(duplicate_of);
            goes.insert(text, Parent { text: above, apart: Some((apart(text, above), similarity)) });
        }
        let of_texts = self.firsts.iter().map(|&(text, _)| (text, goes.get(&text).copied()));
        let of_copies = matches
            .copies
            .iter()
            .filter(|(doc, text)| doc != text)
            .map(|&(doc, text)| (doc, Some(Parent { text, apart: None }).filter(|_| !(self.gone)(doc))));
        let mut parents: Vec<_> = of_texts.chain(of_copies).collect();
        parents.sort_unstable_by_key(|of| of.0);
        parents
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::NearPair;

    #[test]
    fn a_withdrawn_document_gives_back_what_it_suppressed() {
        let near = Some(Similarity::ratio(9, 10));
        let copies = vec![(DocId(2), DocId(1))];
        let pair = |one, other| (Pair::new(DocId(one), DocId(other), 3), near);
        let change = |going: &[DocId], gone_before: &[DocId], pairs: &[NearPair]| {
            let change = CorpusChange { first_new: DocId(9), gone_before, going, reorders: false };
            let matches = Matches { copies: copies.clone(), pairs: pairs.to_vec() };
            change.decide(&matches, &HashMap::new(), |doc| doc)
        };
        let goes_for = |text| Some(Parent { text: DocId(text), apart: Some((3, near)) });
        let first = change(&[DocId(1)], &[], &[pair(1, 5)]);
        assert_eq!(first.corrections, [(DocId(2), None)]);
        assert_eq!((first.living_texts, first.dead_texts), (vec![DocId(1), DocId(5)], vec![]));
        let of_copy = Some(Parent { text: DocId(1), apart: None });
        assert_eq!(first.parents, [(DocId(1), None), (DocId(2), of_copy), (DocId(5), goes_for(1))]);
        let second = change(&[DocId(2)], &[DocId(1)], &[pair(1, 5), pair(5, 8)]);
        assert_eq!(second.dead_texts, [DocId(1)]);
        let corrections = second.corrections.iter().map(|c| (c.0, c.1.is_some()));
        assert_eq!(corrections.collect::<Vec<_>>(), [(DocId(5), false), (DocId(8), true)]);
        let none = [1, 2, 5].map(|doc| (DocId(doc), None));
        assert_eq!(second.parents, [&none[..], &[(DocId(8), goes_for(5))]].concat());
    }
}
