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
//! the pair, so a set has a prefix for each of the two roles.
//!
//! Sources: Chaudhuri, Ganti, Kaushik, "A Primitive Operator for Similarity Joins in Data Cleaning", ICDE
//! 2006 (the prefix filter); Bayardo, Ma, Srikant, "Scaling Up All Pairs Similarity Search", WWW 2007 (rarest
//! features first, bounds on sizes).

use super::{CandidateSearch, PassLoad};
use crate::record::{DocId, Pair, Record};
use crate::sets::feature_counts::FeatureCounts;
use crate::sets::odd_sketch::{self, Sketched};
use crate::sets::{Rule, SetKind, Sets};
use crate::{Error, SpillBudget, Spool};

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
/// Number of features whose counts are looked up at once. For a document without partner, up to this many
/// more than necessary are looked up.
const COUNTED_AT_ONCE: usize = 64;

/// Distance of candidates of which both sketches were folded, so that their whole sketches tell more. That of
/// others is 0.
pub(crate) const FOLDED: u32 = 1;

/// A feature that another document has, preceded by its approximate rank by frequency, the rarest lowest.
type Ranked = (u8, u64);

/// Documents that may have a partner, with the prefixes and sketches of their sets.
///
/// Memory: see [`Spool`]; 48 bytes for each document, 8 for each feature of its prefix, and a bit or two for
/// each other feature.
pub(crate) struct PrefixIndex {
    /// For each document, and for each kind of its sets that can have a partner: the `set` of its postings;
    /// how many of its features were sketched; how many are in its prefix as the smaller set of a pair; how
    /// many are in its prefix as the larger one only; the sketch; the features of the prefixes.
    spool: Spool<u64>,
    /// Number of features in all prefixes.
    pub in_prefixes: u64,
    /// Number of those features, for each of [`SKETCH_WORDS`], whose set is separated from random sets by a
    /// sketch of that length.
    pub separated: [u64; SKETCH_WORDS.len()],
    /// Buffers that are used again for each document.
    numbers: Vec<u64>,
    shared: Vec<Ranked>,
}

impl PrefixIndex {
    /// Makes an index without documents.
    pub fn new(spill: &SpillBudget) -> Self {
        let spool = Spool::new(spill);
        PrefixIndex {
            spool,
            in_prefixes: 0,
            separated: [0; SKETCH_WORDS.len()],
            numbers: Vec::new(),
            shared: Vec::new(),
        }
    }

    /// Keeps a document, if it can have a partner by the counts of its features. `sets`: as they were
    /// counted, not sorted.
    pub fn add(&mut self, rule: &Rule, sketch: &FeatureCounts, doc: DocId, sets: &Sets) {
        self.numbers.clear();
        for kind in [SetKind::Short, SetKind::Long] {
            let (overlap, least) = rule.measure(kind);
            let shared = &mut self.shared;
            let own = own(rule, sketch, kind, sets.of(kind), shared).unwrap_or(0);
            shared.sort_unstable_by_key(|&(_, feature)| feature);
            shared.dedup();
            let size = own + shared.len();
            // The rarest features of a prefix are those that no other document has, which are not kept.
            let in_prefix = |shared: usize| (size + 1).saturating_sub(shared + own);
            let larger = in_prefix(least.least_shared_of_larger(overlap, size));
            let smaller = in_prefix(least.least_shared_of_smaller(overlap, size));
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
            for (separated, words) in self.separated.iter_mut().zip(SKETCH_WORDS) {
                *separated += in_prefix * u64::from(odd_sketch::separates(shared.len(), enough, words));
            }
        }
        if !self.numbers.is_empty() {
            self.spool.push(doc, &self.numbers);
        }
    }

    /// Calls `emit` with the postings of a pass.
    pub fn postings<const WORDS: usize>(
        &self,
        pass: u64,
        mut emit: impl FnMut(Posting<WORDS>),
    ) -> Result<(), Error> {
        self.spool.scan(|doc, numbers| {
            for IndexedSet { set, sketched, sketch: full, both, other } in indexed_sets(numbers) {
                let mut sketch = [0; WORDS];
                odd_sketch::fold(full, &mut sketch[..full.len().min(WORDS)]);
                for (features, set) in [(both, set), (other, set | 1)] {
                    let here = features.iter().filter(|&&feature| pass_of(feature) == pass);
                    here.for_each(|&feature| emit(Posting { feature, set, doc, sketched, sketch }));
                }
            }
            Ok(())
        })
    }

    /// Calls `emit` with each document and the whole sketches of its sets, as [`whole_sketches_may_match`]
    /// reads them.
    pub fn sketches(&self, mut emit: impl FnMut(DocId, &[u64]) -> Result<(), Error>) -> Result<(), Error> {
        let mut sketches = Vec::new();
        self.spool.scan(|doc, numbers| {
            sketches.clear();
            for IndexedSet { set, sketched, sketch, .. } in indexed_sets(numbers) {
                sketches.extend([set, sketched, 0, 0]);
                sketches.extend(sketch);
            }
            emit(doc, &sketches)
        })
    }
}

/// A set of a document in a [`PrefixIndex`].
struct IndexedSet<'a> {
    set: u64,
    sketched: u64,
    sketch: &'a [u64],
    /// Features in its prefix as the smaller set of a pair.
    both: &'a [u64],
    /// Features that are in its prefix as the larger set only.
    other: &'a [u64],
}

/// Returns the sets of a document, as [`PrefixIndex`] keeps them.
fn indexed_sets(mut rest: &[u64]) -> impl Iterator<Item = IndexedSet<'_>> {
    std::iter::from_fn(move || {
        let [set, sketched, both, other, after @ ..] = rest else { return None };
        let (sketch, features) = after.split_at(odd_sketch::length(*sketched as usize));
        let (both, features) = features.split_at(*both as usize);
        let (other, after) = features.split_at(*other as usize);
        rest = after;
        Some(IndexedSet { set: *set, sketched: *sketched, sketch, both, other })
    })
}

/// Whether two documents may match by the whole sketches of their sets.
pub(crate) fn whole_sketches_may_match(rule: &Rule, a: &[u64], b: &[u64]) -> bool {
    indexed_sets(a).any(|a| {
        indexed_sets(b).any(|b| {
            let (kind, sizes) = (kind_of(a.set), [a.set, b.set].map(size_of_set));
            kind == kind_of(b.set)
                && rule.compares(kind, sizes[0], sizes[1])
                && rule.may_match(kind, a.sketched(), b.sketched())
        })
    })
}

impl<'a> IndexedSet<'a> {
    fn sketched(&self) -> Sketched<'a> {
        Sketched { size: size_of_set(self.set), features: self.sketched as usize, sketch: self.sketch }
    }
}

/// Returns the kind of a set in a posting.
fn kind_of(set: u64) -> SetKind {
    if set >> 63 == 0 { SetKind::Short } else { SetKind::Long }
}

/// Returns the number of features of a set in a posting.
fn size_of_set(set: u64) -> usize {
    (set << 1 >> 2) as usize
}

/// Returns how many features of a set no other document has, and replaces `shared` by the others. Returns
/// `None`, and leaves `shared` empty, if the set has so many features of its own that it has no partner.
///
/// `features` may contain repeated features. A feature of its own occurs in it once, so the set without
/// repetitions, which may share fewer features, has as many of its own.
fn own(
    rule: &Rule,
    sketch: &FeatureCounts,
    kind: SetKind,
    features: &[u64],
    shared: &mut Vec<Ranked>,
) -> Option<usize> {
    let (overlap, least) = rule.measure(kind);
    shared.clear();
    let most_own = features.len().checked_sub(least.least_shared_of_larger(overlap, features.len()))?;
    let mut own = 0;
    for part in features.chunks(COUNTED_AT_ONCE) {
        // The counts of a whole part are fetched at once, without a branch between them.
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

/// Returns the pass of a feature.
fn pass_of(feature: u64) -> u64 {
    feature >> (64 - PASS_BITS)
}

/// The search by prefixes, with `WORDS` words of sketch in a posting.
///
/// A candidate is a pair of documents that meet under a feature and may match by their sizes and sketches.
pub(crate) struct PrefixSearch<const WORDS: usize> {
    pub rule: Rule,
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
    fn candidates(
        &mut self,
        _pass: &u64,
        postings: &mut [Posting<WORDS>],
        mut emit: impl FnMut(Pair),
    ) -> PassLoad {
        let rule = &self.rule;
        postings.sort_unstable();
        let same = postings.chunk_by(|a, b| a.feature == b.feature).map(|same| same.len() as u64);
        let largest_bucket = same.max().unwrap_or(0);
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
                        let folded = posting.folded() && other.folded();
                        emit(Pair::new(posting.doc, other.doc, u32::from(folded) * FOLDED));
                    }
                }
            }
        }
        PassLoad { records: postings.len() as u64, largest_bucket, compared }
    }
}

impl<const WORDS: usize> Posting<WORDS> {
    /// Whether the feature is in the prefix of the set as the smaller one of a pair.
    fn may_be_smaller(&self) -> bool {
        self.set & 1 == 0
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
        let (size, features) = (self.size(), self.sketched as usize);
        Sketched { size, features, sketch: &self.sketch[..odd_sketch::length(features).min(WORDS)] }
    }
}
