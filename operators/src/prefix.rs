//! The exact set-similarity join: every pair of matching sets shares one of the rarest features of each.
//!
//! Sources: Chaudhuri, Ganti, Kaushik, "A Primitive Operator for Similarity Joins in Data Cleaning", ICDE 2006 (the
//! prefix filter); Bayardo, Ma, Srikant, "Scaling Up All Pairs Similarity Search", WWW 2007 (rarest first, sizes).
//!
//! A set that must share `o` of its `n` features with any partner has at least one of them among any `n - o + 1`;
//! taken by the same order in all sets, the first common feature of two matching sets is in the prefix of both.
//! For containment only the smaller one has a prefix; its partner is looked for by all of its features.

use crate::record::{DocId, Pair};
use crate::sets::{Kind, Packed, Rule};
use crate::similarity::Overlap;
use crate::sketch::Sketch;

/// A set under one of its features, on its way to meet others under the same one.
///
/// The feature; the kind, size and whether the feature is in the set's prefix; the document.
pub type Posting = ((u64, u64), u64);

/// Which features are in the prefix of a set: those not after this one in the order of rarity.
type Last = (u8, u64);

/// A document that may have a partner.
#[derive(Debug, Default)]
pub struct Held {
    docs: Vec<(DocId, [Option<Last>; 2])>,
    ends: Vec<usize>,
    packed: Vec<u64>,
}

impl Held {
    /// Keeps a document that can have a partner, as far as the counts of features tell; says whether it can.
    pub fn add(&mut self, rule: &Rule, sketch: &Sketch, doc: DocId, sets: &crate::sets::Sets) -> bool {
        let start = self.packed.len();
        sets.pack(&mut self.packed, |feature| sketch.count(feature) > 1);
        let mut rarest = Vec::new();
        let lasts = [Kind::Short, Kind::Long].map(|kind| {
            let packed = Packed(&self.packed[start..]);
            let (overlap, least) = rule.measure(kind);
            let (size, features) = (packed.size(kind), packed.features(kind));
            // The features of the prefix that nobody else has are not kept.
            let nobodys = size - features.len();
            let prefix = (size + 1).saturating_sub(least.least_shared_of(size));
            if size == 0 || prefix <= nobodys {
                // Still, a smaller set may be contained in it.
                return (overlap == Overlap::Containment && !features.is_empty()).then_some((0, 0));
            }
            rarest.clear();
            rarest.extend(features.iter().map(|&feature| (sketch.count(feature), feature)));
            let (_, last, _) = rarest.select_nth_unstable(prefix - nobodys - 1);
            Some(*last)
        });
        let can = lasts.iter().any(Option::is_some);
        if can {
            self.docs.push((doc, lasts));
            self.ends.push(self.packed.len());
        } else {
            self.packed.truncate(start);
        }
        can
    }

    /// The documents and their sets, in the order in which they were added.
    pub fn docs(&self) -> impl Iterator<Item = (DocId, Packed<'_>)> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends).map(|(start, &end)| Packed(&self.packed[start..end]));
        self.docs.iter().map(|&(doc, _)| doc).zip(ranges)
    }

    /// Calls `emit` with the postings of all features that begin with the bits `round` of `1 << bits`.
    pub fn postings(
        &self,
        rule: &Rule,
        sketch: &Sketch,
        round: u64,
        bits: u32,
        mut emit: impl FnMut(Posting),
    ) {
        for ((doc, packed), (_, lasts)) in self.docs().zip(&self.docs) {
            for kind in [Kind::Short, Kind::Long] {
                let Some(last) = lasts[kind as usize] else { continue };
                let all = rule.measure(kind).0 == Overlap::Containment;
                let features = packed.features(kind);
                let start = features.partition_point(|feature| feature >> (64 - bits) < round);
                let here = features[start..].iter().take_while(|&feature| feature >> (64 - bits) == round);
                for &feature in here {
                    let in_prefix = (sketch.count(feature), feature) <= last;
                    if in_prefix || all {
                        let place =
                            (kind as u64) << 63 | (packed.size(kind) as u64) << 1 | u64::from(in_prefix);
                        emit(((feature, place), doc.0));
                    }
                }
            }
        }
    }
}

/// Emits every pair of documents that meet under a feature and may match by their sizes; a pair that meets
/// under several features is emitted as often. Reorders the postings.
pub fn candidates(rule: &Rule, postings: &mut [Posting], mut emit: impl FnMut(Pair)) {
    postings.sort_unstable();
    for same in postings.chunk_by(|a, b| a.0.0 == b.0.0 && a.0.1 >> 63 == b.0.1 >> 63) {
        let kind = if same[0].0.1 >> 63 == 0 { Kind::Short } else { Kind::Long };
        let (overlap, least) = rule.measure(kind);
        let size = |posting: &Posting| (posting.0.1 << 1 >> 2) as usize;
        let in_prefix = |posting: &Posting| posting.0.1 & 1 == 1;
        let mut start = 0;
        for (i, larger) in same.iter().enumerate() {
            let least_size = match overlap {
                Overlap::Jaccard => least.least_shared_of(size(larger)),
                Overlap::Containment => 0,
            };
            while size(&same[start]) < least_size {
                start += 1;
            }
            for smaller in &same[start..i] {
                // Of sets of one size either may be the one that is contained.
                let may = in_prefix(smaller) || size(smaller) == size(larger) && in_prefix(larger);
                if may && rule.compares(kind, size(smaller), size(larger)) {
                    emit(Pair::new(DocId(smaller.1), DocId(larger.1), 0));
                }
            }
        }
    }
}
