//! The exact set-similarity join: every pair of matching sets shares one of the rarest features of each.
//!
//! Sources: Chaudhuri, Ganti, Kaushik, "A Primitive Operator for Similarity Joins in Data Cleaning", ICDE 2006 (the
//! prefix filter); Bayardo, Ma, Srikant, "Scaling Up All Pairs Similarity Search", WWW 2007 (rarest first, sizes).
//!
//! A set that must share `o` of its `n` features with any partner has at least one of them among any `n - o + 1`;
//! taken by the same order in all sets, the first common feature of two matching sets is in the prefix of both.
//! How many it must share may depend on whether it is the smaller or the larger one of the two.

use crate::odd_sketch::OddSketches;
use crate::record::{DocId, Pair};
use crate::sets::{Kind, Rule, Sets};
use crate::similarity::Overlap;
use crate::sketch::Sketch;
use crate::{Error, Scratch, Spool};

/// A set under one of its features, on its way to meet others under the same one.
///
/// The feature; the kind, the size and whether the feature is not in its prefix as the smaller set; the document. In
/// this order, whoever may be the smaller set of a pair comes before the larger one.
pub type Posting = ((u64, u64), u64);

/// Of a document that is alone, so many more counts may be looked up than would tell.
const COUNTED_AT_ONCE: usize = 64;

/// The last feature of a prefix in the order of rarity.
type Last = (u8, u64);

/// The documents that may have a partner, with what tells which ones.
pub(crate) struct Held {
    /// Of each document its [`OddSketches`], and for each kind of set: how many features are in its prefix as the smaller
    /// set of a pair, in that as the larger one only, and these.
    spool: Spool,
    /// A buffer.
    numbers: Vec<u64>,
}

impl Held {
    /// Of no document yet.
    pub fn new(scratch: &Scratch) -> Self {
        Held { spool: Spool::new(scratch), numbers: Vec::new() }
    }

    /// Keeps a document that can have a partner, as far as the counts of features tell. `sets`: as they were counted, not
    /// sorted yet.
    pub fn add(&mut self, rule: &Rule, sketch: &Sketch, doc: DocId, sets: &mut Sets) {
        let kinds = [Kind::Short, Kind::Long];
        if kinds.iter().all(|&kind| alone(rule, sketch, kind, sets.of(kind))) {
            return;
        }
        sets.sort();
        // The features that another document has, with their counts.
        let counted = kinds.map(|kind| {
            let counts = sets.of(kind).iter().map(|&feature| (sketch.count(feature), feature));
            counts.filter(|&(count, _)| count > 1).collect::<Vec<_>>()
        });
        self.numbers.clear();
        let sizes = kinds.map(|kind| sets.of(kind).len());
        let features = counted.each_ref().map(|counted| counted.iter().map(|&(_, feature)| feature));
        let [short, long] = features;
        OddSketches::append([(sizes[0], short), (sizes[1], long)], &mut self.numbers);
        let mut any = false;
        for ((kind, size), mut counted) in kinds.into_iter().zip(sizes).zip(counted) {
            let (overlap, least) = rule.measure(kind);
            // The features of a prefix that nobody else has are not kept.
            let nobodys = size - counted.len();
            let mut last = |shared: usize| match (size + 1).saturating_sub(shared + nobodys) {
                rest if rest > 0 => *counted.select_nth_unstable(rest - 1).1,
                _ => Last::default(),
            };
            let larger = last(least.least_shared_of_larger(overlap, size));
            let smaller = match overlap {
                Overlap::Jaccard => larger,
                Overlap::Revision => last(least.least_shared_of_smaller(size)),
            };
            counted.retain(|&place| place <= larger);
            let (both, other): (Vec<Last>, Vec<Last>) = counted.iter().partition(|&&place| place <= smaller);
            self.numbers.extend([both.len() as u64, other.len() as u64]);
            self.numbers.extend(both.into_iter().chain(other).map(|(_, feature)| feature));
            any |= !counted.is_empty();
        }
        if any {
            self.spool.push(doc, &self.numbers);
        }
    }

    /// The documents and the sketches of their sets, in the order in which they were added.
    pub fn scan(&self, mut each: impl FnMut(DocId, OddSketches) -> Result<(), Error>) -> Result<(), Error> {
        self.spool.scan(|doc, numbers| each(doc, OddSketches::split(numbers).0))
    }

    /// Calls `emit` with the postings of all features that begin with the bits `round` of `1 << bits`.
    pub fn postings(&self, round: u64, bits: u32, mut emit: impl FnMut(Posting)) -> Result<(), Error> {
        let round_of = |feature: u64| feature.checked_shr(64 - bits).unwrap_or(0);
        self.spool.scan(|doc, numbers| {
            let (sketches, mut rest) = OddSketches::split(numbers);
            for kind in [Kind::Short, Kind::Long] {
                let [both, other, features @ ..] = rest else { break };
                let (both, features) = features.split_at(*both as usize);
                let (other, after) = features.split_at(*other as usize);
                rest = after;
                let set = (kind as u64) << 63 | (sketches.size(kind) as u64) << 1;
                for (features, set) in [(both, set), (other, set | 1)] {
                    let here = features.iter().filter(|&&feature| round_of(feature) == round);
                    here.for_each(|&feature| emit(((feature, set), doc.0)));
                }
            }
            Ok(())
        })
    }
}

/// Whether too many features of a set were counted once. Those occur once in it too, so the set without repeated
/// features, which may share fewer of them, has as many that are its own.
fn alone(rule: &Rule, sketch: &Sketch, kind: Kind, features: &[u64]) -> bool {
    let (overlap, least) = rule.measure(kind);
    let Some(mut most_own) =
        features.len().checked_sub(least.least_shared_of_larger(overlap, features.len()))
    else {
        return true;
    };
    // Counts of a whole part are fetched at once, without a branch between them.
    features.chunks(COUNTED_AT_ONCE).any(|part| {
        let own = part.iter().filter(|&&feature| sketch.count(feature) == 1).count();
        let too_many = own > most_own;
        most_own = most_own.saturating_sub(own);
        too_many
    })
}

/// Emits every pair of documents that meet under a feature and may match by their sizes: once, or twice if their sets
/// are of one size. Reorders the postings. Returns how often two met.
///
/// Cost: sorting the postings, and 2 ns for each time that a pair meets; 24 bytes for each posting, of which there may
/// be 2³² at once: 200 GB.
pub fn candidates(rule: &Rule, postings: &mut [Posting], mut emit: impl FnMut(Pair)) -> u64 {
    postings.sort_unstable();
    // For each posting, where those of the same feature and kind end.
    let mut ends = Vec::with_capacity(postings.len());
    for same in postings.chunk_by(|a, b| (a.0.0, kind_of(a)) == (b.0.0, kind_of(b))) {
        ends.resize(ends.len() + same.len(), (ends.len() + same.len()) as u32);
    }
    let mut by_doc: Vec<(u64, u32)> = postings.iter().map(|posting| posting.1).zip(0..).collect();
    by_doc.sort_unstable();
    let by_doc = || by_doc.chunk_by(|a, b| a.0 == b.0).zip(0_u32..);
    // For each posting its document, counted from 0 on.
    let mut numbers = vec![0; postings.len()];
    by_doc().for_each(|(of_doc, number)| of_doc.iter().for_each(|&(_, at)| numbers[at as usize] = number));
    // For each document, the one that met it last.
    let mut met = vec![u32::MAX; by_doc().count()];
    let mut compared = 0;
    for (of_doc, number) in by_doc() {
        for &(doc, at) in of_doc {
            let posting = &postings[at as usize];
            if !may_be_smaller(posting) {
                continue;
            }
            let (kind, size) = (kind_of(posting), size_of(posting));
            let (overlap, least) = rule.measure(kind);
            let largest = least.largest_partner(overlap, size);
            let others = at as usize + 1..ends[at as usize] as usize;
            for (&other, posting) in numbers[others.clone()].iter().zip(&postings[others]) {
                if size_of(posting) > largest {
                    break;
                }
                compared += 1;
                if met[other as usize] != number && rule.compares(kind, size, size_of(posting)) {
                    met[other as usize] = number;
                    emit(Pair::new(DocId(doc), DocId(posting.1), 0));
                }
            }
        }
    }
    compared
}

/// Whether its feature is in its prefix as the smaller set of a pair.
fn may_be_smaller(posting: &Posting) -> bool {
    posting.0.1 & 1 == 0
}

fn kind_of(posting: &Posting) -> Kind {
    if posting.0.1 >> 63 == 0 { Kind::Short } else { Kind::Long }
}

/// Of the document's set.
fn size_of(posting: &Posting) -> usize {
    (posting.0.1 << 1 >> 2) as usize
}
