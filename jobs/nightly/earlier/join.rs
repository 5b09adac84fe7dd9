//! The join of new documents with those that a state remembers: each new key is looked up among the kept ones.

use std::sync::Arc;

use anyhow::Result;
use cluster::runs::{MergedRuns, RunCursor};
use foldhash::{HashMap, HashSet};
use operators::sets::small_sketch::{SketchSieve, SmallSketch};
use operators::{DocId, ExternalSort, MergeCursor, Pair, SpillBudget, memory_plan};
use timely::worker::Worker;

use super::asking::AskingTexts;
use crate::state::{EarlierDocs, StateTable, doc_of, number_of};
use batch::pipeline::{KeptPass, NewKey, NewKeySink};

/// Number of kept keys that a key meets from which on those of texts that go are left out at once, and number of new documents that
/// meet a text up to which all of these are compared with it.
const CROWDED: usize = 32;

/// A pair of a text of the state and a new document, the distance of their fingerprints, and the sketch of the new
/// one.
type KeptPair = (DocId, (DocId, (u64, u64)));
/// The kept key of a new document, the document, and its sketch.
type KeyRecord = (u128, (DocId, u64));

/// Candidate pairs of new documents of this worker, or texts that ask again, and texts of a state that stay.
///
/// In each pass the new keys are sorted, and a cursor goes through the kept keys of each run, so a night reads only the blocks
/// that its keys fall into. Two new documents are no matter of this join.
///
/// ```text
/// new keys    17:c  92:d         kept keys   11:a  17:a  17:b  40:b
/// pairs       a-c  b-c           read        the blocks with 17 and 92
/// ```
///
/// A key with very many kept ones meets mostly texts that go, so these are left out before they are pairs. A text that very many new
/// documents meet is *called*: it is to take part like a new one, and is no pair here.
///
/// Cost: for each new key a seek and the kept keys that it meets; for each different pair a seek among the
/// sketches and the parents. Memory: 32 bytes a key of a pass and a pair, or the budget; 16 bytes for each text of a key with very many.
pub(super) struct EarlierJoin {
    docs: Arc<EarlierDocs>,
    /// A cursor in each run of kept keys. They are not merged, since a key leads to many rows of large states.
    keys: Vec<RunCursor>,
    found: ExternalSort<KeptPair>,
    /// Candidates, once the join is finished.
    pub pairs: ExternalSort<Pair>,
    pub called: HashSet<DocId>,
    /// Whether texts of crowded keys go.
    goes: HashMap<DocId, bool>,
    of_holder: SpillBudget,
}

impl EarlierJoin {
    /// Begins without pairs.
    pub fn new(docs: &Arc<EarlierDocs>, spill: &SpillBudget) -> Self {
        let of_holder = spill.shared_by(memory_plan::STATE_JOIN);
        let found = ExternalSort::new(&of_holder).once();
        let pairs = ExternalSort::new(&of_holder).once();
        EarlierJoin {
            docs: Arc::clone(docs),
            keys: docs.cursors(StateTable::Keys),
            found,
            pairs,
            called: HashSet::default(),
            goes: HashMap::default(),
            of_holder,
        }
    }

    /// Finds the kept keys that meet the keys of new records in one pass. Passes must be made in order. `asking`: texts that take
    /// part, which this join leaves out. `scan`: gives the keys of this worker and of these.
    pub fn pass(
        &mut self,
        worker: &mut Worker,
        pass: &KeptPass,
        asking: &AskingTexts,
        scan: &mut dyn FnMut(&mut Worker, NewKeySink) -> Result<()>,
    ) -> Result<()> {
        let mut new = ExternalSort::new(&self.of_holder).once();
        scan(worker, &mut |NewKey { key, doc, sketch }| new.push((key, (doc, sketch.bits()))))?;
        let rest = u128::MAX.checked_shr(pass.key_bits).unwrap_or(0);
        // Kept keys that meet the new keys with the same first bits, each with its text and with how many new keys it is near.
        let (mut met, mut of): (Vec<(u128, DocId, usize)>, Option<u128>) = (Vec::new(), None);
        let mut new = MergeCursor::new(new.finish()?);
        while let Some((key, (doc, sketch))) = new.next_if(|_: &KeyRecord| true)? {
            let first = key & !rest;
            if of != Some(first) {
                of = Some(first);
                met.clear();
                for run in &mut self.keys {
                    meet(run, pass.number, (first, first | rest), &mut met)?;
                }
                met.retain(|(_, text, _)| {
                    !self.docs.is_dead(*text) && !asking.was_called(*text) && !self.called.contains(text)
                });
                if met.len() > CROWDED {
                    self.leave_out_those_that_go(&mut met)?;
                }
            }
            let mut calls = false;
            for (other, text, near) in &mut met {
                if let Some(distance) = (pass.distance)(key, *other) {
                    self.found.push((*text, (doc, (u64::from(distance), sketch))));
                    *near += 1;
                    calls |= *near > CROWDED;
                }
            }
            if calls {
                let called = met.extract_if(.., |(_, _, near)| *near > CROWDED);
                self.called.extend(called.map(|(_, text, _)| text));
            }
        }
        Ok(self.found.check()?)
    }

    fn leave_out_those_that_go(&mut self, met: &mut Vec<(u128, DocId, usize)>) -> Result<()> {
        let mut unknown: Vec<DocId> =
            met.iter().map(|(_, text, _)| *text).filter(|text| !self.goes.contains_key(text)).collect();
        unknown.sort_unstable();
        let mut parents = self.docs.cursor(StateTable::Parents);
        for text in unknown {
            self.goes.insert(text, EarlierDocs::goes_for(&mut parents, text)?.is_some());
        }
        met.retain(|(_, text, _)| !self.goes[text]);
        Ok(())
    }

    /// Makes candidates of what was found, each once. A pair is dropped if the sketches of its sets show that it cannot match, or if the
    /// text of the state goes. Texts that very many new documents meet are called instead.
    pub fn finish(&mut self, sieve: Option<&SketchSieve>) -> Result<()> {
        let found = std::mem::replace(&mut self.found, ExternalSort::new(&SpillBudget::unused()));
        let mut sketches = self.docs.cursor(StateTable::Sketches);
        let mut parents = self.docs.cursor(StateTable::Parents);
        let mut found = MergeCursor::new(found.finish()?);
        let mut of_text: Vec<Pair> = Vec::new();
        while let Some(text) = found.peek()?.map(|pair| pair.0) {
            let asks = !self.called.contains(&text) && EarlierDocs::goes_for(&mut parents, text)?.is_none();
            of_text.clear();
            let mut last = None;
            while let Some((_, (doc, (distance, sketch)))) = found.next_if(|pair| pair.0 == text)? {
                let fresh = asks && last != Some(doc) && of_text.len() <= CROWDED;
                last = Some(doc);
                if fresh && may_match(&mut sketches, sieve, text, SmallSketch::of_bits(sketch))? {
                    of_text.push(Pair::new(text, doc, distance as u32));
                }
            }
            match of_text.len() > CROWDED {
                true => _ = self.called.insert(text),
                false => self.pairs.extend(of_text.iter().copied()),
            }
        }
        Ok(())
    }
}

/// Adds the kept keys of a pass from the first to the last to `met`, each with its text.
fn meet(
    run: &mut RunCursor,
    pass: u64,
    keys: (u128, u128),
    met: &mut Vec<(u128, DocId, usize)>,
) -> Result<()> {
    let [first, last] = [keys.0, keys.1].map(|key| [pass, (key >> 64) as u64, key as u64]);
    run.seek(&first)?;
    let last = [last[0], last[1], last[2], u64::MAX];
    let (high, low, text) = (1, 2, 3);
    run.read_to(&last, [high, low, text], |row| {
        met.push((u128::from(row.word(0)) << 64 | u128::from(row.word(1)), doc_of(row.word(2)), 0));
        true
    })?;
    Ok(())
}

/// Whether the sketches of a text of the state do not rule a match out.
fn may_match(
    sketches: &mut MergedRuns,
    sieve: Option<&SketchSieve>,
    text: DocId,
    sketch: SmallSketch,
) -> Result<bool> {
    let Some(sieve) = sieve else { return Ok(true) };
    sketches.seek(&[number_of(text)])?;
    let row = sketches.peek_row()?.filter(|row| row.words[0] == number_of(text));
    Ok(row.is_none_or(|row| sieve.may_match(sketch, sketch.of_the_same_kind([row.words[1], row.words[2]]))))
}
