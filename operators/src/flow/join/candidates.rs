//! The join: runs a candidate search on all workers, pass by pass.

use std::mem;

use timely::worker::Worker;

use super::reader_crowd::ReaderCrowd;
use crate::flow::exchange::shuffle::{RecordScan, RecordSink, SortingShuffle, shuffle_into};
use crate::flow::exchange::sum::total;
use crate::flow::reader_of;
use crate::flow::skew::heavy::{Heavy, Skew};
use crate::flow::skew::pair_grid::in_tiles;
use crate::record::{DocId, Pair};
use crate::search::crowds::place::KeepPlace;
use crate::search::crowds::{Ask, Asks, PairSink, pair_of};
use crate::search::{CandidateSearch, PassLoad};
use crate::spill::memory_plan;
use crate::spill::merge::MergeCursor;
use crate::{Error, ExternalSort, Sorted, SpillBudget, Spool, hash};

/// Number of times that the records of a heavy key are divided by the keys of narrower passes before they
/// meet in tiles. The number is small because each division sends a record once per narrower pass.
const SPLITS: u32 = 2;

/// Result of a search on one worker.
pub struct Candidates {
    /// Candidate pairs, each on one worker, once: on the worker that reads the earlier document, if the caller of
    /// [`CandidateJoin::finish`] wants it so and no key is crowded. Those of [`PrefixJoin`](crate::flow::PrefixJoin) may be on any
    /// worker.
    pub pairs: Sorted<Pair>,
    /// Load of this worker in each pass.
    pub loads: Vec<PassLoad>,
    /// The documents with crowded keys, and those that they have met and did not ask, in order, each with the first document
    /// of its family. They are on the workers that read them. `None` if every pair was asked for.
    pub crowd: Option<Vec<(DocId, DocId)>>,
    /// The documents of the crowd that did not ask every earlier document that may match, in order.
    pub cut: Vec<DocId>,
}

impl Candidates {
    /// Returns no candidates, from a search that makes no pass.
    pub fn none() -> Self {
        Candidates { pairs: Sorted::InMemory(Vec::new()), loads: Vec::new(), crowd: None, cut: Vec::new() }
    }
}

/// Returns the place of a document of this worker, unless it takes no part in a round.
pub type PlaceOf<'a> = dyn Fn(DocId) -> Option<KeepPlace> + 'a;

/// A candidate search on all workers.
///
/// In each pass, records are exchanged by the hash of their key, and the search reduces the records that
/// arrive to candidate pairs. The records of *heavy* keys, which are too many for one worker by the bounds of
/// `skew`, are divided by narrower passes if the search has any, and else meet in tiles on all workers
/// (`in_tiles`); two records may meet in several tiles, and their pair belongs to one of them.
/// A pair that was found in several passes is kept once.
///
/// ```text
/// worker 0 reads   (3, a) (4, b) (4, c)
/// worker 1 reads   (3, d) (4, e)
/// worker 0 gets    (4, b) (4, c) (4, e)    if the hash of key 4 is even
/// worker 1 gets    (3, a) (3, d)           if the hash of key 3 is odd
/// if key 4 is heavy, then b, c and e go to the tiles of their pairs, on both workers
/// ```
///
/// Memory without a budget: the records of a pass that arrive, if there are several workers those that this
/// worker sends as well, 24 bytes for each pair, and 6 MiB for those that were found last. With a budget, that budget:
/// records beyond it are sorted by key on disk, and are given to the search some keys at a time.
pub struct CandidateJoin<S: CandidateSearch> {
    pub(super) search: S,
    skew: Skew,
    /// Budget of the records of a pass.
    pub(super) of_records: SpillBudget,
    /// Budget of one holder.
    of_holder: SpillBudget,
    /// Buffers for the records that this worker sends and for those that arrive, which are used again in the
    /// next pass.
    sent: Vec<S::Record>,
    arrived: Vec<S::Record>,
    pub(super) found: PairSink,
    pub(super) load: PassLoad,
    pub(super) loads: Vec<PassLoad>,
}

impl<S: CandidateSearch> CandidateJoin<S> {
    /// Makes a join without pairs.
    pub fn new(search: S, skew: Skew, spill: &SpillBudget) -> Self {
        let of_holder = spill.shared_by(memory_plan::JOIN);
        let found = PairSink::new(search.passes().len(), &of_holder);
        CandidateJoin {
            search,
            skew,
            of_records: spill.shared_by(memory_plan::JOIN / memory_plan::JOIN_RECORDS),
            found,
            of_holder,
            sent: Vec::new(),
            arrived: Vec::new(),
            load: PassLoad::default(),
            loads: Vec::new(),
        }
    }

    /// Asks for these pairs.
    pub fn asking(self, asks: Asks) -> Self {
        CandidateJoin { found: self.found.asking(asks), ..self }
    }

    /// Returns the passes of the search. The caller must make each of them, in this order.
    pub fn passes(&self) -> Vec<S::Pass> {
        self.search.passes()
    }

    /// Makes a pass over the records of all workers.
    ///
    /// # Errors
    /// Those of `scan`, and of records that are spilled to disk.
    pub fn pass<E: From<Error>>(
        &mut self,
        worker: &mut Worker,
        pass: &S::Pass,
        scan: RecordScan<'_, S::Record, E>,
    ) -> Result<(), E> {
        // Records are scanned up to three times if keys may be heavy, so they are held if memory is unlimited.
        if S::PAIRWISE && self.of_records.budget().is_none() && self.skew().counts_rows(worker, None) {
            let mut sent = mem::take(&mut self.sent);
            sent.clear();
            scan(worker, &mut |_, record| sent.push(record))?;
            let mut again = |worker: &mut Worker, each: RecordSink<S::Record>| {
                sent.iter().for_each(|record| each(worker, *record));
                Ok::<(), E>(())
            };
            self.exchange(worker, pass, &mut again, SPLITS)?;
            self.sent = sent;
        } else {
            self.exchange(worker, pass, scan, SPLITS)?;
        }
        self.loads.push(mem::take(&mut self.load));
        Ok(self.found.check()?)
    }

    /// Returns the bounds above which a key is heavy. The records of a crowded key are hardly compared, so they need only be spread if
    /// they do not fit.
    pub(super) fn skew(&self) -> Skew {
        match self.found.asks() {
            Asks::Nearest | Asks::Staying if S::CROWDED_KEYS => Skew { least_rows: u64::MAX, ..self.skew },
            _ => self.skew,
        }
    }

    /// Brings the records of each key together. `splits`: number of times that the records of heavy keys may
    /// still be divided by narrower passes.
    fn exchange<E: From<Error>>(
        &mut self,
        worker: &mut Worker,
        pass: &S::Pass,
        scan: RecordScan<'_, S::Record, E>,
        splits: u32,
    ) -> Result<(), E> {
        let of_pass = pass.clone();
        let key = move |record: &S::Record| hash::spread(S::key(&of_pass, record));
        // A record arrives in a tile with its key and the tile's number, and is then copied without them.
        let record_bytes = size_of::<((u64, u64), S::Record)>();
        let fit =
            self.of_records.budget().map(|bytes| (bytes / memory_plan::RECORDS_OF_KEY / record_bytes) as u64);
        let heavy = match S::PAIRWISE {
            true => self.skew().heavy(worker, fit, |worker, counters| {
                scan(worker, &mut |_, record| counters.add(key(&record)))
            })?,
            false => Heavy::default(),
        };
        self.load.largest_bucket = self.load.largest_bucket.max(heavy.largest);
        let mut light = |worker: &mut Worker, each: RecordSink<S::Record>| {
            scan(worker, &mut |worker, record| {
                if !heavy.has(key(&record)) {
                    each(worker, record);
                }
            })
        };
        match self.of_records.budget() {
            None => self.reduce_in_memory(worker, pass, &mut light)?,
            Some(bytes) => self.reduce_sorted(worker, pass, bytes, &mut light)?,
        }
        if heavy.none() {
            return Ok(());
        }
        let mut scan = |worker: &mut Worker, each: RecordSink<S::Record>| {
            scan(worker, &mut |worker, record| {
                if heavy.has(key(&record)) {
                    each(worker, record);
                }
            })
        };
        if let Some(narrower) = self.search.narrower(pass).filter(|_| splits > 0) {
            let mut records = Spool::new(&self.of_holder);
            scan(worker, &mut |_, record| records.push(S::doc(&record), &[record]))?;
            let mut again = |worker: &mut Worker, each: RecordSink<S::Record>| {
                records.scan(|_, record| {
                    each(worker, record[0]);
                    Ok::<(), E>(())
                })
            };
            return narrower.iter().try_for_each(|pass| self.exchange(worker, pass, &mut again, splits - 1));
        }
        let rows = |record: &S::Record| heavy.rows(key(record));
        let spill = self.of_records.clone();
        in_tiles(worker, &spill, (rows, fit), &mut scan, (&key, S::doc), |records, belongs| {
            self.found.take_those(Some(belongs));
            self.load.add(self.search.candidates(pass, records, &mut self.found));
        })?;
        self.found.take_those(None);
        Ok(())
    }

    /// Exchanges records, and reduces all that arrive at once.
    fn reduce_in_memory<E: From<Error>>(
        &mut self,
        worker: &mut Worker,
        pass: &S::Pass,
        scan: RecordScan<'_, S::Record, E>,
    ) -> Result<(), E> {
        let of_pass = pass.clone();
        let key = move |record: &S::Record| hash::spread(S::key(&of_pass, record));
        let mut arrived = mem::take(&mut self.arrived);
        shuffle_into(worker, "Key", scan, key, &mut arrived)?;
        self.load.add(self.search.candidates(pass, &mut arrived, &mut self.found));
        self.arrived = arrived;
        Ok(())
    }

    /// Exchanges records, and reduces those that arrive in the order of their keys, some keys at a time.
    /// `bytes`: the budget of the records.
    fn reduce_sorted<E: From<Error>>(
        &mut self,
        worker: &mut Worker,
        pass: &S::Pass,
        bytes: usize,
        scan: RecordScan<'_, S::Record, E>,
    ) -> Result<(), E> {
        let to = |(key, _): &(u64, S::Record)| hash::spread(*key);
        let mut shuffle = SortingShuffle::new(worker, "Key", to, ExternalSort::new(&self.of_records));
        scan(worker, &mut |worker, record| shuffle.send(worker, (S::key(pass, &record), record)))?;
        let mut arrived = shuffle.finish(worker)?;
        let at_once = bytes / memory_plan::RECORDS_AT_ONCE / size_of::<(u64, S::Record)>();
        let mut records = Vec::new();
        arrived.each_group(
            at_once,
            |a, b| a.0 == b.0,
            |some| {
                records.clear();
                records.extend(some.iter().map(|(_, record)| *record));
                self.load.add(self.search.candidates(pass, &mut records, &mut self.found));
            },
        )?;
        Ok(())
    }

    /// Adds a candidate pair that was found elsewhere.
    pub fn add(&mut self, pair: Pair) {
        self.found.add(pair);
    }

    /// Sends each pair to the worker that reads the document `to` of it, and returns the pairs that arrive. If keys are crowded and
    /// not every pair is asked for, sends it to the one that reads the later document.
    ///
    /// # Errors
    /// Those of pairs that are spilled to disk.
    pub fn finish(self, worker: &mut Worker, to: fn(&Pair) -> DocId) -> Result<Candidates, Error> {
        if total(worker, self.found.crowd.docs.len()) > 0 {
            return self.finish_round(worker, &|_| None);
        }
        let CandidateJoin { found, of_holder, loads, .. } = self;
        let arrived = ExternalSort::new(&of_holder).once();
        let mut sent = SortingShuffle::new(worker, "Pair", move |pair: &Pair| reader_of(to(pair)), arrived);
        found.pairs.finish()?.drain(|ask| sent.send(worker, pair_of(ask)))?;
        Ok(Candidates { pairs: sent.finish(worker)?, loads, crowd: None, cut: Vec::new() })
    }

    /// Sends each pair to the worker that reads the document that comes later in keep order, and returns those that are asked for.
    /// `place`: returns the place of a document of this worker, if it is known.
    ///
    /// # Errors
    /// Those of pairs that are spilled to disk.
    pub fn finish_round(self, worker: &mut Worker, place: &PlaceOf) -> Result<Candidates, Error> {
        let CandidateJoin { found, of_holder, loads, .. } = self;
        let asks = found.asks();
        let PairSink { pairs, crowd, .. } = found;
        let arrived = ExternalSort::new(&of_holder).once();
        let mut sent = SortingShuffle::new(worker, "Ask", |ask: &Ask| reader_of(ask.0), arrived);
        pairs.finish()?.drain(|ask| sent.send(worker, ask))?;
        let mut sent = MergeCursor::new(sent.finish(worker)?);
        let mut crowd = ReaderCrowd::new(worker, crowd);
        let mut pairs = ExternalSort::new(&of_holder);
        let mut of_asker = Vec::new();
        while let Some(asker) = sent.peek()?.map(|ask| ask.0) {
            of_asker.clear();
            while let Some(ask) = sent.next_if(|ask| ask.0 == asker)? {
                of_asker.push(ask);
            }
            let of_crowd = crowd.has(asker);
            let most = if of_crowd { asks.most(place(asker).unwrap_or_default()) } else { usize::MAX };
            let (asked, rest) = of_asker.split_at(most.min(of_asker.len()));
            pairs.extend(asked.iter().copied().map(pair_of));
            if !rest.is_empty() {
                crowd.cut_short(asker, rest.iter().map(|(_, (_, leader))| *leader));
            }
        }
        let (crowd, cut) = crowd.finish(worker);
        Ok(Candidates { pairs: pairs.finish()?, loads, crowd, cut })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Secret;
    use crate::search::bands::{BandRecord, BandSearch};
    use crate::search::{SearchContext, SearchInputs};
    use crate::sets::Rule;
    use crate::sets::minhash::MinHash;
    use crate::sets::similarity::Overlap;
    use crate::sets::small_sketch::SmallSketch;
    use crate::text::features::Features;

    /// Returns the pairs that each worker finds, and the number of pairs that it compares. `sharing` records
    /// have one key, and each two of as many others have a key of their own.
    fn found(workers: usize, budget: Option<usize>, sharing: u64) -> Vec<(Vec<Pair>, u64)> {
        let work = move |worker: &mut Worker| {
            let (index, peers) = (worker.index(), worker.peers());
            let key = |i: u64| if i < sharing { 7 } else { hash::spread(i / 2) };
            let record = |i: u64| (key(i), (DocId(i), SmallSketch::default()));
            let spill = SpillBudget::new(&std::env::temp_dir(), budget);
            let rule = Rule::new(Features::Chars(2), Overlap::Jaccard, "0.8".parse().unwrap());
            let inputs = SearchInputs::of_texts(Secret::of_words([0, 0]));
            let context = SearchContext { rule: &rule, verified: true, inputs };
            let search = BandSearch::new(MinHash::new(1, 1, 0), &context);
            let mut join = CandidateJoin::new(search, Skew::default(), &spill);
            let mut scan = |worker: &mut Worker, each: RecordSink<BandRecord>| {
                (0..2 * sharing).skip(index).step_by(peers).for_each(|i| each(worker, record(i)));
                Ok::<(), Error>(())
            };
            join.pass(worker, &0, &mut scan).unwrap();
            let Candidates { mut pairs, loads, .. } = join.finish(worker, |pair| pair.low).unwrap();
            let mut all = Vec::new();
            pairs.each(|pair| all.push(pair)).unwrap();
            (all, loads[0].compared)
        };
        let guards = timely::execute(timely::Config::process(workers), work).unwrap();
        guards.join().into_iter().map(Result::unwrap).collect()
    }

    #[test]
    fn records_of_one_key_meet_once_each_and_evenly() {
        const SHARING: u64 = 3_000;
        for (workers, budget) in
            [(1, None), (2, None), (4, None), (8, None), (1, Some(40_000)), (4, Some(40_000))]
        {
            let found = found(workers, budget, SHARING);
            let mut pairs: Vec<Pair> = found.iter().flat_map(|(pairs, _)| pairs.iter().copied()).collect();
            let count = pairs.len() as u64;
            pairs.sort_unstable();
            pairs.dedup();
            assert_eq!((pairs.len() as u64, count), (count, SHARING * (SHARING - 1) / 2 + SHARING / 2));
            let (most, sum) =
                found.iter().fold((0, 0), |(most, sum), &(_, compared)| (most.max(compared), sum + compared));
            assert!(most * workers as u64 <= 2 * sum, "{most} of {sum} on one of {workers} workers");
        }
    }
}
