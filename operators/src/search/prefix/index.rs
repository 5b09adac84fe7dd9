//! The documents of an exact join of sets: the prefixes of each set, and its sketch.

use std::sync::Arc;

use super::{Posting, SKETCH_WORDS, kind_of, pass_of, size_of_set};
use crate::hash::spread;
use crate::record::DocId;
use crate::record::Sides;
use crate::sets::feature_counts::FeatureCounts;
use crate::sets::odd_sketch::{self, Sketched};
use crate::sets::{Rule, SetKind, Sets};
use crate::{Error, SpillBudget, Spool};

/// Number of features whose counts are looked up at once. For a document without partner, up to this many
/// more than necessary are looked up.
const COUNTED_AT_ONCE: usize = 64;

/// A feature that another document has, preceded by its approximate rank by frequency, the rarest lowest.
type Ranked = (u8, u64);

/// Features by which the sets of all workers are looked up as the smaller set of a pair.
///
/// A measure such as containment bounds nothing of the larger set, which then has a posting for every feature by
/// which any document that it may be a pair with is looked up. Without these marks it would have a posting for each
/// feature that another document has.
///
/// Memory: that of the counters. Features that fall on one counter are marked together.
pub struct LookupMarks {
    counts: Arc<FeatureCounts>,
    sides: Sides,
}

impl LookupMarks {
    /// Makes the marks of the features that the index of prefixes looks up, once they are counted.
    pub fn new(counts: Arc<FeatureCounts>, sides: Sides) -> Self {
        LookupMarks { counts, sides }
    }

    /// Returns the mark of a feature by which a document is looked up. The sides have marks of their own.
    fn mark(sides: Sides, doc: DocId, feature: u64) -> u64 {
        if sides.is_reference(doc) { spread(feature) } else { feature }
    }

    /// Whether a document that may be a pair with `doc` is looked up by the feature.
    fn has(&self, doc: DocId, feature: u64) -> bool {
        let LookupMarks { counts, sides } = self;
        let (of_input, of_reference) = match sides.is_reference(doc) {
            true => (true, false),
            false => (sides.within(), sides.has_reference()),
        };
        of_input && counts.count(feature) > 0 || of_reference && counts.count(spread(feature)) > 0
    }
}

/// Prefixes of a set, of which only the features are held that another document has too.
struct Prefixes {
    /// Number of features of the set.
    size: usize,
    /// Last feature of its prefix as the smaller set of a pair.
    smaller: Ranked,
    /// The same as the larger set.
    larger: Ranked,
}

impl Prefixes {
    /// Finds the prefixes of a set. `features`: as they were counted, not sorted. `shared`: replaced by those that
    /// another document has; empty if the set has no partner.
    fn of(
        rule: &Rule,
        counts: &FeatureCounts,
        kind: SetKind,
        features: &[u64],
        shared: &mut Vec<Ranked>,
    ) -> Self {
        let (overlap, least) = rule.measure(kind);
        let own = own(rule, counts, kind, features, shared).unwrap_or(0);
        shared.sort_unstable_by_key(|&(_, feature)| feature);
        shared.dedup();
        let size = own + shared.len();
        // The rarest features of a prefix are those that no other document has, which are not kept.
        let in_prefix = |shared: usize| (size + 1).saturating_sub(shared + own);
        let larger = in_prefix(least.least_shared_of_larger(overlap, size));
        let smaller = in_prefix(least.least_shared_of_smaller(overlap, size));
        // Where the larger prefix is the whole set, only the smaller one must be ranked.
        let ranked = if larger < shared.len() { larger } else { smaller };
        counts.rank(shared, ranked);
        let mut last = |features: usize| match features {
            1.. => *shared.select_nth_unstable(features - 1).1,
            0 => Ranked::default(),
        };
        let [larger, smaller] = [last(larger), last(smaller)];
        Prefixes { size, smaller, larger }
    }
}

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

    /// Calls `each` with the marks of the features by which a document is looked up as the smaller set of a pair,
    /// for [`LookupMarks`].
    pub fn lookups(
        &mut self,
        rule: &Rule,
        counts: &FeatureCounts,
        (sides, doc): (Sides, DocId),
        sets: &Sets,
        mut each: impl FnMut(u64),
    ) {
        for kind in [SetKind::Short, SetKind::Long] {
            let Prefixes { smaller, .. } = Prefixes::of(rule, counts, kind, sets.of(kind), &mut self.shared);
            let features = self.shared.iter().filter(|&&place| place <= smaller);
            features.for_each(|&(_, feature)| each(LookupMarks::mark(sides, doc, feature)));
        }
    }

    /// Keeps a document, if it can have a partner by the counts of its features. `sets`: as they were
    /// counted, not sorted. `marks`: if there are any, other features than these are left out of the prefix as the
    /// larger set.
    pub fn add(
        &mut self,
        rule: &Rule,
        counts: &FeatureCounts,
        marks: Option<&LookupMarks>,
        doc: DocId,
        sets: &Sets,
    ) {
        self.numbers.clear();
        for kind in [SetKind::Short, SetKind::Long] {
            let (overlap, least) = rule.measure(kind);
            let shared = &mut self.shared;
            let Prefixes { size, smaller, larger } = Prefixes::of(rule, counts, kind, sets.of(kind), shared);
            let start = self.numbers.len();
            self.numbers.push((kind as u64) << 63 | (size as u64) << 1);
            self.numbers.extend([shared.len() as u64, 0, 0]);
            odd_sketch::append(shared.iter().map(|&(_, feature)| feature), &mut self.numbers);
            let before = self.numbers.len();
            let both = shared.iter().filter(|&&place| place <= smaller);
            self.numbers.extend(both.map(|&(_, feature)| feature));
            let between = self.numbers.len();
            let other = shared.iter().filter(|&&place| smaller < place && place <= larger);
            let wanted = other.filter(|(_, feature)| marks.is_none_or(|marks| marks.has(doc, *feature)));
            self.numbers.extend(wanted.map(|&(_, feature)| feature));
            let in_prefix = (self.numbers.len() - before) as u64;
            if in_prefix == 0 {
                self.numbers.truncate(start);
                continue;
            }
            self.numbers[start + 2] = (between - before) as u64;
            self.numbers[start + 3] = (self.numbers.len() - between) as u64;
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

    /// Returns an index of those documents alone that `keep` wants.
    pub fn among(&self, keep: impl Fn(DocId) -> bool, spill: &SpillBudget) -> Result<PrefixIndex, Error> {
        let PrefixIndex { in_prefixes, separated, .. } = *self;
        let mut kept = PrefixIndex { in_prefixes, separated, ..PrefixIndex::new(spill) };
        self.spool.scan(|doc, numbers| {
            if keep(doc) {
                kept.spool.push(doc, numbers);
            }
            Ok::<(), Error>(())
        })?;
        kept.spool.check()?;
        Ok(kept)
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
            let kind = kind_of(a.set);
            let sizes = [a.set, b.set].map(size_of_set);
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
