//! The exact set-similarity join: finds candidate pairs without missing any match, by a prefix filter.
//!
//! A set that must share `o` of its `n` features with any matching partner has at least one common feature
//! among any `n - o + 1` of its own. All sets take the `n - o + 1` rarest, by the same order: their *prefix*.
//! The first common feature of two matching sets is then in the prefix of both, so sets that share no feature
//! of their prefixes cannot match and never meet.
//!
//! Example with Jaccard similarity 0.6, where a set of 5 features must share 3 of them and has a prefix of 3.
//! Features are named in order of rarity.
//!
//! ```text
//! A = a b c d e    prefix a b c
//! B = b c d e f    prefix b c d    meets A under b and c: 4 of 6 features shared, a match
//! C = d f g h i    prefix d f g    meets B under d: 2 of 8 features shared, a candidate but no match
//! A and C share d, which is not in the prefix of A: they never meet
//! ```
//!
//! The number of features that a set must share may depend on whether it is the smaller or the larger one of
//! the pair, so a set has a prefix for each of the two roles. `texts.rs` stores the texts, `index.rs` finds the prefixes,
//! and here the documents meet.
//!
//! Sources: Chaudhuri, Ganti, Kaushik, "A Primitive Operator for Similarity Joins in Data Cleaning", ICDE
//! 2006 (the prefix filter); Bayardo, Ma, Srikant, "Scaling Up All Pairs Similarity Search", WWW 2007 (rarest
//! features first, bounds on sizes).

pub(crate) mod index;
mod texts;

pub use self::texts::PrefixTexts;

use super::candidate_search::{CandidateSearch, PassLoad};
use super::crowds::met_before::ComparedAs;
use super::crowds::placed::{BucketSearch, PlacedRecord, TakeRecords, each_equal};
use super::crowds::{Asks, PairSink};
use crate::record::Sides;
use crate::record::{DocId, Pair, Record};
use crate::sets::odd_sketch::{self, Sketched};
use crate::sets::{Rule, SetKind};

/// Entry of a set in the list of one of its features, with `WORDS` words of the sketch of the set.
///
/// Postings are ordered so that, under one feature, a set that may be the smaller one of a pair comes before
/// the larger one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Posting<const WORDS: usize> {
    feature: u64,
    /// Kind and size of the set, and in the last bit whether the feature is outside its prefix as the smaller
    /// set.
    set: u64,
    doc: DocId,
    /// Number of its features that were sketched.
    sketched: u64,
    sketch: [u64; WORDS],
}

impl<const WORDS: usize> Record for Posting<WORDS> {
    const BYTES: usize = 4 * u64::BYTES + <[u64; WORDS]>::BYTES;

    fn write(&self, to: &mut [u8]) {
        let Posting { feature, set, doc, sketched, sketch } = *self;
        ((feature, set), ((doc, sketched), sketch)).write(to);
    }

    fn read(from: &[u8]) -> Self {
        let ((feature, set), ((doc, sketched), sketch)) = Record::read(from);
        Posting { feature, set, doc, sketched, sketch }
    }
}

/// Number of leading bits of a feature that choose the pass of its postings. With 5 bits there are 32 passes, so
/// only a 32nd of the postings is in memory or on disk at once.
const PASS_BITS: u32 = 5;
/// Numbers of words of a sketch that a posting may have.
pub(crate) const SKETCH_WORDS: [usize; 3] = [4, 8, 16];
/// Distance of candidates of which both sketches were folded, so that their whole sketches tell more. That of
/// others is 0.
pub(crate) const FOLDED: u32 = 1;

/// Returns the kind of a set in a posting.
fn kind_of(set: u64) -> SetKind {
    if set >> 63 == 0 { SetKind::Short } else { SetKind::Long }
}

/// Returns the number of features of a set in a posting.
fn size_of_set(set: u64) -> usize {
    (set << 1 >> 2) as usize
}

/// Returns the pass of a feature.
fn pass_of(feature: u64) -> u64 {
    feature >> (64 - PASS_BITS)
}

/// The search by prefixes, with `WORDS` words of sketch in a posting.
///
/// A candidate is a pair of documents that meet under a feature and may match by their sizes and sketches.
pub(crate) struct PrefixSearch<const WORDS: usize> {
    pub rule: Rule,
    pub sides: Sides,
}

impl<const WORDS: usize> CandidateSearch for PrefixSearch<WORDS> {
    type Record = Posting<WORDS>;
    /// The first [`PASS_BITS`] bits of a feature.
    type Pass = u64;

    fn passes(&self) -> Vec<u64> {
        (0..1 << PASS_BITS).collect()
    }

    fn key(_pass: &u64, posting: &Posting<WORDS>) -> u64 {
        posting.feature
    }

    fn doc(posting: &Posting<WORDS>) -> DocId {
        posting.doc
    }

    /// Cost: 5 ns for each time that a pair meets.
    fn candidates(&mut self, _pass: &u64, postings: &mut [Posting<WORDS>], found: &mut PairSink) -> PassLoad {
        postings.sort_unstable();
        let same = postings.chunk_by(|a, b| a.feature == b.feature).map(|same| same.len() as u64);
        let largest_bucket = same.max().unwrap_or(0);
        let records = postings.len() as u64;
        let mut compared = 0;
        for same in postings.chunk_by_mut(|a, b| (a.feature, a.kind()) == (b.feature, b.kind())) {
            if found.asks() != Asks::All {
                compared += found.meet(self.sides, same, Self::doc, |one, other| self.may_match(one, other));
                continue;
            }
            let reference = self.sides.part(same, |posting| posting.doc);
            let (reference, input) = same.split_at(reference);
            compared += self.meet(input, reference, found) + self.meet(reference, input, found);
            if self.sides.within() {
                compared += self.meet(input, input, found);
            }
        }
        PassLoad { records, largest_bucket, compared }
    }
}

impl<const WORDS: usize> BucketSearch for PrefixSearch<WORDS> {
    fn each_bucket(
        &self,
        _pass: &u64,
        postings: &mut [PlacedRecord<Posting<WORDS>>],
        each: TakeRecords<Posting<WORDS>>,
    ) {
        let of_bucket = |posting: &Posting<WORDS>| (posting.feature, posting.kind() as u64);
        each_equal(postings, self.sides, Self::doc, of_bucket, each);
    }

    fn may_match(&self, one: &Posting<WORDS>, other: &Posting<WORDS>) -> Option<u32> {
        let (smaller, larger) = if one.place() < other.place() { (one, other) } else { (other, one) };
        let reaches = smaller.may_be_smaller() && larger.size() <= self.largest_partner(smaller);
        reaches.then(|| self.may_be_larger(smaller, larger)).flatten()
    }

    fn compared_as(posting: &Posting<WORDS>) -> ComparedAs {
        (posting.doc, posting.set)
    }

    fn sides(&self) -> Sides {
        self.sides
    }
}

impl<const WORDS: usize> PrefixSearch<WORDS> {
    /// Finds each pair of a set in `ones` that may be the smaller one with one of `others` after it that may match
    /// it. Returns the number of pairs compared. Both lists are of one feature and kind, and sorted.
    fn meet(&self, ones: &[Posting<WORDS>], others: &[Posting<WORDS>], found: &mut PairSink) -> u64 {
        let (mut compared, mut after) = (0, 0);
        for posting in ones.iter().filter(|posting| posting.may_be_smaller()) {
            let largest = self.largest_partner(posting);
            after += others[after..].iter().take_while(|other| other.place() <= posting.place()).count();
            for other in others[after..].iter().take_while(|other| other.size() <= largest) {
                compared += 1;
                if let Some(distance) = self.may_be_larger(posting, other) {
                    found.add(Pair::new(posting.doc, other.doc, distance));
                }
            }
        }
        compared
    }

    /// Returns the size of the largest set that may match one as the smaller of the two.
    fn largest_partner(&self, smaller: &Posting<WORDS>) -> usize {
        let (overlap, least) = self.rule.measure(smaller.kind());
        least.largest_partner(overlap, smaller.size())
    }

    /// Returns the distance of a candidate, unless the sketches of the two sets show that they cannot match.
    fn may_be_larger(&self, smaller: &Posting<WORDS>, larger: &Posting<WORDS>) -> Option<u32> {
        let kind = smaller.kind();
        let may_match = self.rule.compares(kind, smaller.size(), larger.size())
            && self.rule.may_match(kind, smaller.set(), larger.set());
        may_match.then(|| u32::from(smaller.folded() && larger.folded()) * FOLDED)
    }
}

impl<const WORDS: usize> Posting<WORDS> {
    /// Whether the feature is in the prefix of the set as the smaller one of a pair.
    fn may_be_smaller(&self) -> bool {
        self.set & 1 == 0
    }

    /// Returns the place of the posting among those of its feature and kind.
    fn place(&self) -> (u64, DocId) {
        (self.set, self.doc)
    }

    fn kind(&self) -> SetKind {
        kind_of(self.set)
    }

    /// Returns the number of features of the document's set.
    fn size(&self) -> usize {
        size_of_set(self.set)
    }

    /// Whether the whole sketch of the set is longer than the one here.
    fn folded(&self) -> bool {
        odd_sketch::length(self.sketched as usize) > WORDS
    }

    fn set(&self) -> Sketched<'_> {
        let size = self.size();
        let features = self.sketched as usize;
        Sketched { size, features, sketch: &self.sketch[..odd_sketch::length(features).min(WORDS)] }
    }
}
