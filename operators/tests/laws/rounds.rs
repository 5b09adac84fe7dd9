//! The law of rounds: those who stay when crowds ask round by round are those who stay when all pairs are compared, whatever
//! documents match.

use std::collections::{BTreeMap, BTreeSet};

use operators::flow::{CandidateJoin, Candidates, Skew};
use operators::hash::Secret;
use operators::search::bands::BandSearch;
use operators::search::bits::{BitSearch, FingerprintDesign, SimHash, Weights};
use operators::search::crowds::Asks;
use operators::search::crowds::place::{KeepPlace, Rank};
use operators::search::crowds::placed::{BucketSearch, PlacedSearch};
use operators::search::{SearchContext, SearchInputs};
use operators::sets::Rule;
use operators::sets::minhash::MinHash;
use operators::sets::small_sketch::SmallSketch;
use operators::text::document_frequencies::Statistics;
use operators::text::features::Features;
use operators::{
    DocId, Matches, Overlap, Pair, Resolve, Row, Sides, Similarity, SpillBudget, hash, survivors,
};
use proptest::prelude::*;
use timely::worker::Worker;

use crate::{budgets, doc, joined, listed, on_workers, sides, spill};

const BANDS: u32 = 3;

/// The searches that the law is held to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meeting {
    /// By random keys of bands.
    Bands,
    /// By fingerprints of 16 bits that differ in few bits, cut into so many blocks more than needed.
    Blocks { distance: u32, more: u32 },
}

/// Documents that share keys, a keep order, and which of those that share a key match.
#[derive(Clone, Debug)]
struct Corpus {
    docs: usize,
    meeting: Meeting,
    /// Number of different keys of each band, and the largest one of fingerprints that all others are near.
    keys: u64,
    seed: u64,
    /// Thousandths of the pairs that match.
    matching: u64,
    /// Whether the first document stays, and not any other.
    in_order: bool,
    sides: Sides,
}

impl Corpus {
    /// Returns a number below `below` that depends on a document and `of`.
    fn random(&self, doc: usize, of: u64, below: u64) -> u64 {
        hash::spread(self.seed ^ (doc as u64) << 8 ^ of) % below
    }

    /// Returns the fingerprint of a document, which is one of at most three or differs from it in a bit or two. So some documents
    /// meet many that do not meet each other.
    fn fingerprint(&self, doc: usize) -> u64 {
        let centre = hash::spread(self.seed ^ self.random(doc, 0, self.keys.min(3)));
        (centre ^ 1 << self.random(doc, 1, 16) ^ 1 << self.random(doc, 2, 16)) & 0xffff
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

    /// Returns the candidates of a round among some documents, those of crowds, and those that did not ask all. All documents take
    /// part in the first round.
    fn round(
        &self,
        asks: Asks,
        places: Option<BTreeMap<DocId, KeepPlace>>,
        workers: usize,
        budget: Option<usize>,
    ) -> (Vec<Pair>, BTreeSet<DocId>, BTreeSet<DocId>) {
        let corpus = self.clone();
        let spill = spill(budget);
        let found = on_workers(workers, move |worker| {
            let rule = Rule::new(Features::Chars(2), Overlap::Jaccard, "0.8".parse().unwrap());
            let inputs = SearchInputs { sides: corpus.sides, ..SearchInputs::of_texts(Secret::random()) };
            let round = Round { corpus: &corpus, rule: &rule, asks, places: places.as_ref(), spill: &spill };
            let Candidates { pairs, crowd, cut, .. } = match corpus.meeting {
                Meeting::Bands => {
                    let context = SearchContext { rule: &rule, verified: true, inputs };
                    let search = BandSearch::new(MinHash::new(BANDS, 1, 0), &context);
                    let key = |at, band: &u32| hash::spread(corpus.random(at, (*band).into(), corpus.keys));
                    let record = |band: &u32, at| (key(at, band), (doc(at), SmallSketch::default()));
                    round.run(worker, search, record)
                }
                Meeting::Blocks { distance, more } => {
                    let blocks = distance + more;
                    let weights = Weights::Tf;
                    let design = FingerprintDesign { bits: 16, distance, blocks, weights };
                    let simhash = SimHash::<u64>::new(design, Features::Chars(2), &Statistics::default());
                    let context = SearchContext { rule: &rule, verified: false, inputs };
                    let search = BitSearch::new(simhash, &context);
                    let fingerprint = |at| corpus.fingerprint(at);
                    round.run(worker, search, |_, at| Row {
                        fingerprint: fingerprint(at),
                        doc: doc(at),
                        sketch: 0,
                    })
                }
            };
            (
                listed(pairs),
                (crowd.unwrap_or_default().into_iter().map(|(doc, _)| doc).collect::<Vec<_>>(), cut),
            )
        });
        let (pairs, crowds): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let (crowds, cuts): (Vec<_>, Vec<_>) = crowds.into_iter().unzip();
        (pairs.concat(), crowds.into_iter().flatten().collect(), cuts.into_iter().flatten().collect())
    }
}

/// A round of one worker.
struct Round<'a> {
    corpus: &'a Corpus,
    rule: &'a Rule,
    asks: Asks,
    places: Option<&'a BTreeMap<DocId, KeepPlace>>,
    spill: &'a SpillBudget,
}

impl Round<'_> {
    fn run<S: BucketSearch>(
        &self,
        worker: &mut Worker,
        search: S,
        record: impl Fn(&S::Pass, usize) -> S::Record,
    ) -> Candidates {
        let Round { corpus, rule, asks, places, spill } = *self;
        let mine: Vec<usize> = (worker.index()..corpus.docs).step_by(worker.peers()).collect();
        match places {
            None => {
                let join = CandidateJoin::new(search, Skew::default(), spill).asking(asks);
                joined(worker, join, None, |pass| mine.iter().map(|&at| record(pass, at)).collect())
            }
            Some(places) => {
                let search = PlacedSearch::new(search, rule);
                let join = CandidateJoin::new(search, Skew::default(), spill).asking(asks);
                let place = |doc: DocId| places.get(&doc).copied();
                let placed = |pass: &S::Pass, at| Some((place(doc(at))?, record(pass, at)));
                joined(worker, join, Some(&place), |pass| {
                    mine.iter().filter_map(|&at| placed(pass, at)).collect()
                })
            }
        }
    }
}

/// The last round, in which those that go are compared with all that stay before them, and with nobody else.
struct LastRound<'a> {
    corpus: &'a Corpus,
    crowd: &'a BTreeSet<DocId>,
    staying: &'a BTreeSet<DocId>,
    compared: &'a BTreeSet<Pair>,
}

impl LastRound<'_> {
    /// Returns a document that stays and for which `doc` goes, as far as is known.
    fn goes_for(&self, doc: DocId) -> Option<DocId> {
        let of_pair = |pair: &&Pair| (pair.low == doc || pair.high == doc) && self.corpus.matches(pair);
        let mut matching = self.compared.iter().filter(of_pair).flat_map(|pair| [pair.low, pair.high]);
        matching.rfind(|leader| self.staying.contains(leader))
    }

    fn place(&self, doc: DocId) -> KeepPlace {
        let rank = |doc| self.corpus.rank(doc);
        let mut place = KeepPlace { rank: rank(doc), ..KeepPlace::default() };
        if !self.staying.contains(&doc) {
            place.goes(Similarity::LEAST, self.goes_for(doc).map_or(place.rank, rank));
        }
        place
    }

    /// Whether the round is to compare a pair.
    fn decides(&self, pair: &Pair) -> bool {
        let LastRound { corpus, crowd, staying, .. } = self;
        let (one, other) = (staying.contains(&pair.low), staying.contains(&pair.high));
        let (stays, goes) = if one { (pair.low, pair.high) } else { (pair.high, pair.low) };
        let is_reference = corpus.sides.is_reference(stays);
        let before = is_reference || corpus.rank(stays) < corpus.rank(goes);
        let known = !is_reference && self.goes_for(goes) == Some(stays);
        one != other && before && !known && crowd.contains(&stays) && crowd.contains(&goes)
    }
}

/// Searches by blocks somewhat more often than by bands.
fn meetings() -> impl Strategy<Value = Meeting> {
    let blocks = (0..4u32, 1..3u32).prop_map(|(distance, more)| Meeting::Blocks { distance, more });
    prop_oneof![2 => Just(Meeting::Bands), 3 => blocks]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn those_who_stay_by_rounds_are_those_who_stay_by_all_pairs(
        docs in 2usize..260,
        meeting in meetings(),
        keys in prop::sample::select(vec![1u64, 2, 3, 9, 40]),
        seed in any::<u64>(),
        matching in prop::sample::select(vec![0u64, 3, 8, 15, 30, 200, 900, 1000]),
        in_order in any::<bool>(),
        hasty in any::<bool>(),
        workers in 1usize..5,
        budget in budgets(),
        sides in sides(),
    ) {
        let corpus = Corpus { docs, meeting, keys, seed, matching, in_order, sides };
        let (all, none, cut) = corpus.round(Asks::All, None, workers, budget);
        prop_assert!(none.is_empty() && cut.is_empty());
        let expected = corpus.staying(all.iter().copied().filter(|pair| corpus.matches(pair)));

        let (asked, crowd, _) = corpus.round(Asks::Nearest, None, workers, budget);
        let mut compared: BTreeSet<Pair> = asked.into_iter().collect();
        // Of each of two families the first in keep order take part first.
        let is_of_first = |doc: &DocId| doc.0.is_multiple_of(7);
        let mut order: Vec<DocId> = crowd.iter().copied().collect();
        order.sort_by_key(|doc| corpus.rank(*doc));
        let mut before = [0; 2];
        order.sort_by_cached_key(|doc| {
            let of_family = &mut before[usize::from(is_of_first(doc))];
            *of_family += 1;
            *of_family
        });
        let mut places: BTreeMap<DocId, KeepPlace> = BTreeMap::new();
        let mut taking_part = 0;
        let mut admit = |places: &mut BTreeMap<DocId, KeepPlace>, more: usize| {
            let joining = order.iter().skip(taking_part).take(more);
            places.extend(joining.map(|&doc| (doc, KeepPlace { rank: corpus.rank(doc), tries: 1, ..KeepPlace::default() })));
            taking_part += more;
            taking_part < order.len()
        };
        let mut waiting = admit(&mut places, 5);
        let matching_ones = |compared: &BTreeSet<Pair>| -> BTreeSet<Pair> {
            compared.iter().copied().filter(|pair| corpus.matches(pair)).collect()
        };
        let staying = loop {
            let matches = matching_ones(&compared);
            let staying = corpus.staying(matches.iter().copied());
            for (doc, place) in &mut places {
                place.gone = None;
                if !staying.contains(doc) {
                    place.goes(Similarity::LEAST, Rank::default());
                }
            }
            let stay = |(doc, place): (&DocId, &KeepPlace)| staying.contains(doc).then_some((*doc, *place));
            let (asked, _, cut) = corpus.round(Asks::Nearest, Some(places.iter().filter_map(stay).collect()), workers, budget);
            compared.extend(asked);
            let in_vain = hasty && matching_ones(&compared).len() - matches.len() <= cut.len();
            for (doc, place) in places.iter_mut().filter(|(doc, _)| staying.contains(doc)) {
                place.took_part(!cut.contains(doc), in_vain);
            }
            if waiting && cut.len() <= places.len() / 4 {
                waiting = admit(&mut places, 20);
            } else if cut.is_empty() && matching_ones(&compared) == matches {
                break staying;
            }
        };
        prop_assert_eq!(&staying, &expected);
        prop_assert!(compared.len() <= all.len());
        if matching == 1000 && !hasty && meeting == Meeting::Bands && crowd.len() == docs && sides == Sides::default() {
            prop_assert!(compared.len() <= 16 * docs, "{} pairs of {docs} documents", compared.len());
        }

        if !crowd.is_empty() {
            let last = LastRound { corpus: &corpus, crowd: &crowd, staying: &staying, compared: &compared };
            let places = crowd.iter().map(|doc| (*doc, last.place(*doc))).collect();
            let (named, _, _) = corpus.round(Asks::Staying, Some(places), workers, budget);
            let named: BTreeSet<Pair> = named.into_iter().collect();
            prop_assert_eq!(named, all.into_iter().filter(|pair| last.decides(pair)).collect());
        }
    }
}
