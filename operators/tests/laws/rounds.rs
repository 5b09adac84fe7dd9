//! The law of rounds: those who stay when crowds ask round by round are those who stay when all pairs are compared, whatever
//! documents match.

use std::collections::{BTreeMap, BTreeSet};

use operators::flow::{CandidateJoin, Candidates, Skew};
use operators::search::bands::{BandRecord, BandSearch};
use operators::search::crowds::{Asks, Rank};
use operators::search::ranked::RankedSearch;
use operators::sets::Rule;
use operators::sets::minhash::MinHash;
use operators::sets::small_sketch::SmallSketch;
use operators::text::features::Features;
use operators::{DocId, Matches, Overlap, Pair, Resolve, Sides, hash, survivors};
use proptest::prelude::*;

use crate::{budgets, doc, joined, listed, on_workers, sides, spill};

const BANDS: u32 = 3;

/// Documents that share keys, a keep order, and which of those that share a key match.
#[derive(Clone, Debug)]
struct Corpus {
    docs: usize,
    /// Number of different keys of each band.
    keys: u64,
    seed: u64,
    /// Thousandths of the pairs that match.
    matching: u64,
    /// Whether the first document stays, and not any other.
    in_order: bool,
    sides: Sides,
}

impl Corpus {
    fn records(&self) -> Vec<[BandRecord; BANDS as usize]> {
        let key = |at: usize, band: u64| hash::spread(self.seed ^ (at as u64) << 8 ^ band) % self.keys;
        let record = |at| [0, 1, 2].map(|band| (key(at, band), (doc(at), SmallSketch::default())));
        (0..self.docs).map(record).collect()
    }

    fn rank(&self, doc: DocId) -> Rank {
        (if self.in_order { 0 } else { hash::spread(doc.0 ^ self.seed) % 7 }, doc)
    }

    fn matches(&self, pair: &Pair) -> bool {
        hash::spread(pair.low.0 ^ hash::spread(pair.high.0 ^ self.seed)) % 1000 < self.matching
    }

    /// Returns the documents that stay of those with these matches.
    fn staying(&self, pairs: impl IntoIterator<Item = Pair>) -> BTreeSet<DocId> {
        let pairs = pairs.into_iter().map(|pair| (pair, None)).collect();
        let matches = Matches { copies: Vec::new(), pairs };
        let members = survivors(&matches, Resolve::Greedy, self.sides, |doc| self.rank(doc));
        let gone: BTreeSet<DocId> =
            members.into_iter().filter(|member| member.removed.is_some()).map(|member| member.doc).collect();
        (0..self.docs).map(doc).filter(|doc| !gone.contains(doc)).collect()
    }

    /// Returns the candidates of a round among some documents, and those of crowds: all documents in the first round.
    fn round(
        &self,
        asks: Asks,
        ranks: Option<BTreeMap<DocId, Rank>>,
        workers: usize,
        budget: Option<usize>,
    ) -> (Vec<Pair>, BTreeSet<DocId>) {
        let (records, sides, spill) = (self.records(), self.sides, spill(budget));
        let found = on_workers(workers, move |worker| {
            let mine: Vec<_> = records.iter().skip(worker.index()).step_by(worker.peers()).copied().collect();
            let rule = Rule::new(Features::Chars(2), Overlap::Jaccard, "0.8".parse().unwrap());
            let search = BandSearch::new(MinHash::new(BANDS, 1, 0), &rule).between(sides);
            let of_band = |band: u32| mine.iter().map(move |records| records[band as usize]);
            let Candidates { pairs, crowd, .. } = match &ranks {
                None => {
                    let join = CandidateJoin::new(search, Skew::default(), &spill).asking(asks);
                    joined(worker, join, |&band| of_band(band).collect())
                }
                Some(ranks) => {
                    let join = CandidateJoin::new(RankedSearch(search), Skew::default(), &spill).asking(asks);
                    let ranked = |record: BandRecord| Some((*ranks.get(&record.1.0)?, record));
                    joined(worker, join, |&band| of_band(band).filter_map(ranked).collect())
                }
            };
            (listed(pairs), crowd.unwrap_or_default())
        });
        let (pairs, crowds): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        (pairs.concat(), crowds.into_iter().flatten().collect())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(25))]

    #[test]
    fn those_who_stay_by_rounds_are_those_who_stay_by_all_pairs(
        docs in 2usize..260,
        keys in prop::sample::select(vec![1u64, 2, 3, 9, 40]),
        seed in any::<u64>(),
        matching in prop::sample::select(vec![0u64, 3, 30, 200, 900, 1000]),
        in_order in any::<bool>(),
        workers in 1usize..5,
        budget in budgets(),
        sides in sides(),
    ) {
        let corpus = Corpus { docs, keys, seed, matching, in_order, sides };
        let (all, none) = corpus.round(Asks::All, None, workers, budget);
        prop_assert!(none.is_empty());
        let expected = corpus.staying(all.iter().copied().filter(|pair| corpus.matches(pair)));

        let first = if in_order { 1 } else { 0 };
        let (asked, crowd) = corpus.round(Asks::First(first), None, workers, budget);
        let mut compared: BTreeSet<Pair> = asked.into_iter().collect();
        let mut most = 1;
        let mut staying = corpus.staying(compared.iter().copied().filter(|pair| corpus.matches(pair)));
        while !crowd.is_empty() {
            let ranks = staying.intersection(&crowd).map(|&doc| (doc, corpus.rank(doc))).collect();
            let (asked, cut) = corpus.round(Asks::First(most), Some(ranks), workers, budget);
            let before = compared.len();
            compared.extend(asked);
            let next = corpus.staying(compared.iter().copied().filter(|pair| corpus.matches(pair)));
            if cut.is_empty() && (compared.len() == before || next == staying) {
                break;
            }
            (staying, most) = (next, 2 * most);
        }
        prop_assert_eq!(staying, expected);
        prop_assert!(compared.len() <= all.len());
        if matching == 1000 && crowd.len() == docs && sides == Sides::default() {
            prop_assert!(compared.len() <= 3 * 8 * docs, "{} pairs of {docs} documents", compared.len());
        }
    }
}
