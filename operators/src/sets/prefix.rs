//! The exact set-similarity join: every pair of matching sets shares one of the rarest features of each.
//!
//! Sources: Chaudhuri, Ganti, Kaushik, "A Primitive Operator for Similarity Joins in Data Cleaning", ICDE 2006 (the
//! prefix filter); Bayardo, Ma, Srikant, "Scaling Up All Pairs Similarity Search", WWW 2007 (rarest first, sizes).
//!
//! A set that must share `o` of its `n` features with any partner has at least one of them among any `n - o + 1`;
//! taken by the same order in all sets, the first common feature of two matching sets is in the prefix of both.
//! How many it must share may depend on whether it is the smaller or the larger one of the two.

use super::feature_counts::Sketch;
use super::odd_sketch;
use super::odd_sketch::Sketched;
use super::{Kind, Rule, Sets};
use crate::record::{DocId, Pair, Record};
use crate::{Error, Scratch, Spool};

/// A set under one of its features, on its way to meet others under the same one, with `WORDS` numbers of its sketch.
///
/// In this order, whoever may be the smaller set of a pair comes before the larger one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Posting<const WORDS: usize> {
    pub feature: u64,
    /// The kind, the size, and whether the feature is not in its prefix as the smaller set.
    set: u64,
    pub doc: u64,
    /// How many of its features were sketched.
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

/// How many numbers of a sketch a posting may have.
pub(crate) const SKETCH_WORDS: [usize; 3] = [4, 8, 16];
/// Of a document that is alone, so many more counts may be looked up than would tell.
const COUNTED_AT_ONCE: usize = 64;

/// A feature that another document has, in the order of rarity, about.
type Ranked = (u8, u64);

/// The documents that may have a partner, with what tells which ones.
pub(crate) struct Held {
    /// Of each document for each kind of set that can have a partner: what a posting says of it, how many of its features were
    /// sketched, how many are in its prefix as the smaller set of a pair, and in that as the larger one only; the sketch, and
    /// the features of the prefixes.
    spool: Spool,
    /// Features in prefixes.
    pub in_prefixes: u64,
    /// Of these, in how many sets that a sketch tells from others, for each of [`SKETCH_WORDS`].
    pub told: [u64; SKETCH_WORDS.len()],
    /// Buffers.
    numbers: Vec<u64>,
    shared: Vec<Ranked>,
}

impl Held {
    /// Of no document yet.
    pub fn new(scratch: &Scratch) -> Self {
        let spool = Spool::new(scratch);
        Held { spool, in_prefixes: 0, told: [0; SKETCH_WORDS.len()], numbers: Vec::new(), shared: Vec::new() }
    }

    /// Keeps a document that can have a partner, as far as the counts of features tell. `sets`: as they were counted, not
    /// sorted.
    pub fn add(&mut self, rule: &Rule, sketch: &Sketch, doc: DocId, sets: &Sets) {
        self.numbers.clear();
        for kind in [Kind::Short, Kind::Long] {
            let (overlap, least) = rule.measure(kind);
            let shared = &mut self.shared;
            let own = own(rule, sketch, kind, sets.of(kind), shared).unwrap_or(0);
            shared.sort_unstable_by_key(|&(_, feature)| feature);
            shared.dedup();
            let size = own + shared.len();
            // The rarest of a prefix are its own, which are not kept.
            let in_prefix = |shared: usize| (size + 1).saturating_sub(shared + own);
            let larger = in_prefix(least.least_shared_of_larger(overlap, size));
            let smaller = in_prefix(least.least_shared_of_smaller(size));
            sketch.rank(shared, larger);
            let mut last = |features: usize| match features {
                1.. => *shared.select_nth_unstable(features - 1).1,
                0 => Ranked::default(),
            };
            let [larger, smaller] = [last(larger), last(smaller)];
            let both = shared.iter().filter(|&&place| place <= smaller);
            let other = shared.iter().filter(|&&place| smaller < place && place <= larger);
            let counts = [both.clone().count(), other.clone().count()];
            let in_prefix = (counts[0] + counts[1]) as u64;
            if in_prefix == 0 {
                continue;
            }
            self.numbers.push((kind as u64) << 63 | (size as u64) << 1);
            self.numbers.extend([shared.len(), counts[0], counts[1]].map(|number| number as u64));
            odd_sketch::append(shared.iter().map(|&(_, feature)| feature), &mut self.numbers);
            self.numbers.extend(both.chain(other).map(|&(_, feature)| feature));
            self.in_prefixes += in_prefix;
            let enough = least.least_shared(overlap, size, size);
            for (told, words) in self.told.iter_mut().zip(SKETCH_WORDS) {
                *told += in_prefix * u64::from(odd_sketch::tells(shared.len(), enough, words));
            }
        }
        if !self.numbers.is_empty() {
            self.spool.push(doc, &self.numbers);
        }
    }

    /// Calls `emit` with the postings of all features that begin with the bits `round` of `1 << bits`.
    pub fn postings<const WORDS: usize>(
        &self,
        round: u64,
        bits: u32,
        mut emit: impl FnMut(Posting<WORDS>),
    ) -> Result<(), Error> {
        let round_of = |feature: u64| feature >> (64 - bits);
        self.spool.scan(|doc, mut rest| {
            while let [set, sketched, both, other, after @ ..] = rest {
                let (full, features) = after.split_at(odd_sketch::length(*sketched as usize));
                let (both, features) = features.split_at(*both as usize);
                let (other, after) = features.split_at(*other as usize);
                rest = after;
                let mut sketch = [0; WORDS];
                odd_sketch::fold(full, &mut sketch[..full.len().min(WORDS)]);
                for (features, set) in [(both, *set), (other, set | 1)] {
                    let here = features.iter().filter(|&&feature| round_of(feature) == round);
                    here.for_each(|&feature| {
                        emit(Posting { feature, set, doc: doc.0, sketched: *sketched, sketch })
                    });
                }
            }
            Ok(())
        })
    }
}

/// How many features of a set nobody else has, and replaces `shared` by the others; `None`, and none, if it is alone: if too
/// many are its own. Those occur once in it too, so the set without repeated features, which may share fewer of them, has as
/// many that are its own.
fn own(
    rule: &Rule,
    sketch: &Sketch,
    kind: Kind,
    features: &[u64],
    shared: &mut Vec<Ranked>,
) -> Option<usize> {
    let (overlap, least) = rule.measure(kind);
    shared.clear();
    let most_own = features.len().checked_sub(least.least_shared_of_larger(overlap, features.len()))?;
    let mut own = 0;
    for part in features.chunks(COUNTED_AT_ONCE) {
        // Counts of a whole part are fetched at once, without a branch between them.
        let mut counts = [0; COUNTED_AT_ONCE];
        counts.iter_mut().zip(part).for_each(|(count, &feature)| *count = sketch.count(feature));
        let counted = counts.iter().copied().zip(part.iter().copied());
        own += counted.clone().filter(|&(count, _)| count <= 1).count();
        if own > most_own {
            shared.clear();
            return None;
        }
        shared.extend(counted.filter(|&(count, _)| count > 1));
    }
    Some(own)
}

/// Emits every pair of documents that meet under a feature and may match by their sizes and sketches, each time that they
/// meet. `postings`: sorted. Returns how often two met.
///
/// Cost: 5 ns for each time that a pair meets.
pub(crate) fn candidates<const WORDS: usize>(
    rule: &Rule,
    postings: &[Posting<WORDS>],
    mut emit: impl FnMut(Pair),
) -> u64 {
    let mut compared = 0;
    for same in postings.chunk_by(|a, b| (a.feature, a.kind()) == (b.feature, b.kind())) {
        let kind = same[0].kind();
        let (overlap, least) = rule.measure(kind);
        for (at, posting) in same.iter().enumerate().filter(|(_, posting)| posting.may_be_smaller()) {
            let smaller = posting.set();
            let largest = least.largest_partner(overlap, smaller.size);
            for other in same[at + 1..].iter().take_while(|other| other.size() <= largest) {
                compared += 1;
                if rule.compares(kind, smaller.size, other.size())
                    && rule.may_match(kind, smaller, other.set())
                {
                    emit(Pair::new(DocId(posting.doc), DocId(other.doc), 0));
                }
            }
        }
    }
    compared
}

impl<const WORDS: usize> Posting<WORDS> {
    /// Whether its feature is in its prefix as the smaller set of a pair.
    fn may_be_smaller(&self) -> bool {
        self.set & 1 == 0
    }

    fn kind(&self) -> Kind {
        if self.set >> 63 == 0 { Kind::Short } else { Kind::Long }
    }

    /// Of the document's set.
    fn size(&self) -> usize {
        (self.set << 1 >> 2) as usize
    }

    fn set(&self) -> Sketched<'_> {
        let (size, features) = (self.size(), self.sketched as usize);
        Sketched { size, features, sketch: &self.sketch[..odd_sketch::length(features).min(WORDS)] }
    }
}
