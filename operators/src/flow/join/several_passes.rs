//! Passes of a join that are made by one exchange.
//!
//! Each exchange costs every worker messages to every other one, which with many workers is more than what the records of a small
//! input cost, or those of the crowd of a round.

use std::cell::RefCell;
use std::mem;
use std::rc::Rc;

use timely::worker::Worker;

use super::candidates::CandidateJoin;
use crate::flow::exchange::buffer::ExchangeBuffer;
use crate::flow::exchange::channel::Channel;
use crate::flow::exchange::shuffle::{RecordSink, round_of};
use crate::search::CandidateSearch;
use crate::{Error, hash};

/// Bytes of the records of all workers that are exchanged at once. Small inputs and the crowds of rounds make several passes
/// by one exchange.
const AT_ONCE_BYTES: u64 = 16 << 20;

/// Gives the records that this worker has to send in the pass with a number, the same each time that it is called.
pub type PassScan<'a, R, E> = &'a mut dyn FnMut(&mut Worker, usize, RecordSink<'_, R>) -> Result<(), E>;

/// Records that have arrived, by the number of their pass.
struct ByPass<R>(Vec<Vec<R>>);

impl<R> Default for ByPass<R> {
    fn default() -> Self {
        ByPass(Vec::new())
    }
}

impl<R> Extend<(u64, R)> for ByPass<R> {
    fn extend<I: IntoIterator<Item = (u64, R)>>(&mut self, records: I) {
        records.into_iter().for_each(|(number, record)| self.0[number as usize].push(record));
    }
}

impl<S: CandidateSearch> CandidateJoin<S> {
    /// Returns how many passes may be made by one exchange, if in each pass all workers together have this number of records.
    pub fn at_once(&self, worker: &Worker, records: u64) -> usize {
        let several =
            self.of_records.budget().is_none() && !(S::PAIRWISE && self.skew().counts_rows(worker, None));
        let bytes = records.max(1).saturating_mul(size_of::<(u64, S::Record)>() as u64);
        if several { (AT_ONCE_BYTES / bytes).max(1) as usize } else { 1 }
    }

    /// Makes some passes over the records of all workers, by one exchange if there are several: each exchange costs every worker
    /// messages to every other one. `scan`: gives the records of the pass with a number, which counts from 0 in `passes`. The caller
    /// makes no more at once than [`CandidateJoin::at_once`] says.
    ///
    /// # Errors
    /// Those of [`CandidateJoin::pass`].
    pub fn passes_at_once<E: From<Error>>(
        &mut self,
        worker: &mut Worker,
        passes: &[S::Pass],
        scan: PassScan<'_, S::Record, E>,
    ) -> Result<(), E> {
        if let [pass] = passes {
            return self.pass(worker, pass, &mut |worker, each| scan(worker, 0, each));
        }
        let of_passes = passes.to_vec();
        let key = move |(number, record): &(u64, S::Record)| {
            hash::spread(S::key(&of_passes[*number as usize], record) ^ number)
        };
        let arrived = Rc::new(RefCell::new(ByPass(vec![Vec::new(); passes.len()])));
        let mut way = Channel::<_, ExchangeBuffer<_>>::new(
            worker,
            "Key",
            key,
            round_of::<(u64, S::Record)>(None),
            &arrived,
        );
        for number in 0..passes.len() {
            scan(worker, number, &mut |worker, record| way.send(worker, (number as u64, record)))?;
        }
        way.close(worker);
        for (pass, records) in passes.iter().zip(&mut arrived.take().0) {
            self.load.add(self.search.candidates(pass, records, &mut self.found));
            self.loads.push(mem::take(&mut self.load));
        }
        Ok(self.found.check()?)
    }
}
