//! The join of new documents with those that a state remembers: each new key is looked up among the kept ones.

use anyhow::Result;
use cluster::runs::{MergedRuns, RunCursor};
use operators::flow::{RecordScan, RecordSink};
use operators::search::kept::KeptSearch;
use operators::sets::small_sketch::SmallSketch;
use operators::{DocId, ExternalSort, MergeCursor, Pair, SpillBudget};
use timely::worker::Worker;

use crate::state::{EarlierDocs, StateTable, doc_of, number_of};

/// Number of holders that share the budget: the keys of a pass, and the pairs of all passes.
const HOLDERS: usize = 2;

/// A pair of a text of the state and a new document, the distance of their fingerprints, and the sketch of the new
/// one.
type KeptPair = (DocId, (DocId, (u64, u64)));
/// The kept key of a new document, the document, and its sketch.
type NewKey = (u128, (DocId, u64));

/// Candidate pairs of new documents of this worker and texts of a state.
///
/// In each pass the new keys are sorted, and a cursor goes through the kept keys of each run, so a night reads only the blocks
/// that its keys fall into. Two new documents are no matter of this join.
///
/// ```text
/// new keys    17:c  92:d         kept keys   11:a  17:a  17:b  40:b
/// pairs       a-c  b-c           read        the blocks with 17 and 92
/// ```
///
/// Cost: for each new key a seek and the kept keys that it meets; for each different pair a seek among the
/// sketches. Memory: 32 bytes a key of a pass and a pair, or the budget.
pub(super) struct EarlierJoin<'a> {
    docs: &'a EarlierDocs,
    /// A cursor in each run of kept keys. They are not merged, since a key leads to many rows of large states.
    keys: Vec<RunCursor>,
    pairs: ExternalSort<KeptPair>,
    of_holder: SpillBudget,
}

impl<'a> EarlierJoin<'a> {
    /// Begins without pairs.
    pub fn new(docs: &'a EarlierDocs, spill: &SpillBudget) -> Self {
        let of_holder = spill.shared_by(HOLDERS);
        let pairs = ExternalSort::new(&of_holder).once();
        EarlierJoin { docs, keys: docs.cursors(StateTable::Keys), pairs, of_holder }
    }

    /// Finds the kept keys that meet the keys of new records in one pass. Passes must be made in order. `number`:
    /// that of the pass. `scan`: gives the records of this worker.
    pub fn pass<S: KeptSearch>(
        &mut self,
        worker: &mut Worker,
        search: &S,
        (number, pass): (u64, &S::Pass),
        scan: RecordScan<'_, S::Record, anyhow::Error>,
    ) -> Result<()> {
        let mut new = ExternalSort::new(&self.of_holder).once();
        let mut sink = |_: &mut Worker, record: S::Record| {
            new.push((S::kept_key(pass, &record), (S::doc(&record), S::sketch(&record).bits())));
        };
        let sink: RecordSink<S::Record> = &mut sink;
        scan(worker, sink)?;
        let rest = u128::MAX.checked_shr(S::key_bits(pass)).unwrap_or(0);
        // Kept keys that meet the new keys with the same first bits.
        let (mut met, mut of): (Vec<(u128, DocId)>, Option<u128>) = (Vec::new(), None);
        let mut new = MergeCursor::new(new.finish()?);
        while let Some((key, (doc, sketch))) = new.next_if(|_: &NewKey| true)? {
            let first = key & !rest;
            if of != Some(first) {
                of = Some(first);
                met.clear();
                for run in &mut self.keys {
                    meet(run, number, (first, first | rest), &mut met)?;
                }
            }
            for &(other, text) in met.iter().filter(|(_, text)| !self.docs.is_dead(*text)) {
                if let Some(distance) = search.distance(key, other) {
                    self.pairs.push((text, (doc, (u64::from(distance), sketch))));
                }
            }
        }
        Ok(self.pairs.check()?)
    }

    /// Gives each pair that may match to `each`, once. A pair is dropped if the sketches of its sets show that it
    /// cannot match.
    pub fn finish<S: KeptSearch>(&mut self, search: &S, mut each: impl FnMut(Pair)) -> Result<()> {
        let pairs = std::mem::replace(&mut self.pairs, ExternalSort::new(&SpillBudget::unused()));
        let mut sketches = self.docs.cursor(StateTable::Sketches);
        let mut pairs = MergeCursor::new(pairs.finish()?);
        let mut last = None;
        while let Some((text, (doc, (distance, sketch)))) = pairs.next_if(|_| true)? {
            if last != Some((text, doc))
                && may_match(&mut sketches, search, text, SmallSketch::of_bits(sketch))?
            {
                last = Some((text, doc));
                each(Pair::new(text, doc, distance as u32));
            }
        }
        Ok(())
    }
}

/// Adds the kept keys of a pass from the first to the last to `met`, each with its text.
fn meet(run: &mut RunCursor, pass: u64, keys: (u128, u128), met: &mut Vec<(u128, DocId)>) -> Result<()> {
    let [first, last] = [keys.0, keys.1].map(|key| [pass, (key >> 64) as u64, key as u64]);
    run.seek(&first)?;
    let last = [last[0], last[1], last[2], u64::MAX];
    let (high, low, text) = (1, 2, 3);
    run.read_to(&last, [high, low, text], |row| {
        met.push((u128::from(row.word(0)) << 64 | u128::from(row.word(1)), doc_of(row.word(2))));
        true
    })?;
    Ok(())
}

/// Whether the sketches of a text of the state do not rule a match out.
fn may_match<S: KeptSearch>(
    sketches: &mut MergedRuns,
    search: &S,
    text: DocId,
    sketch: SmallSketch,
) -> Result<bool> {
    let Some(sieve) = search.sieve() else { return Ok(true) };
    sketches.seek(&[number_of(text)])?;
    let row = sketches.peek_row()?.filter(|row| row.words[0] == number_of(text));
    Ok(row.is_none_or(|row| sieve.may_match(sketch, sketch.of_the_same_kind([row.words[1], row.words[2]]))))
}
