//! The matches of documents, arranged by document.

use differential_dataflow::VecCollection;
use differential_dataflow::consolidation::consolidate;
use differential_dataflow::operators::arrange::TraceAgent;
use differential_dataflow::operators::arrange::arrangement::arrange_core;
use differential_dataflow::trace::implementations::{ValBatcher, ValSpine};
use differential_dataflow::trace::{BatchCursor, Cursor, Navigable, TraceReader};
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::probe::Handle;
use timely::progress::frontier::AntichainRef;
use timely::worker::Worker;

use super::rows::{NearRow, ViewTime};

/// Ties by document, each under both of its documents.
type Ties = TraceAgent<ValSpine<u32, NearRow, ViewTime, i32>>;
/// Rows with their multiplicities, which sum up to a positive number for a row that is there.
pub(super) type TieRows<'s> = VecCollection<'s, ViewTime, (u32, NearRow), i32>;

/// Notes that a tie of a document comes or goes, and how often.
pub(super) type NoteTie = Box<dyn Fn(u32, NearRow, i32)>;

/// The matches of documents, which the engine keeps.
pub(super) struct ArrangedMatches {
    ties: Ties,
    probe: Handle<ViewTime>,
}

impl ArrangedMatches {
    /// Arranges rows at the first worker, which decides. `note`: is told of the rows that come and go.
    pub fn new(rows: TieRows<'_>, note: Option<NoteTie>) -> Self {
        type Batches = ValBatcher<u32, NearRow, ViewTime, i32>;
        let to_first = Exchange::new(|_: &((u32, NearRow), ViewTime, i32)| 0);
        let arranged = arrange_core(rows.inner, to_first, "matches", Batches::new);
        let ties = arranged.trace.clone();
        let probe = match note {
            None => arranged.stream.probe().0,
            Some(note) => {
                let noted = arranged.as_collection(|doc: &u32, row: &NearRow| (*doc, *row));
                noted.inspect(move |((doc, row), _, count)| note(*doc, *row, *count)).inner.probe().0
            }
        };
        ArrangedMatches { ties, probe }
    }

    /// Waits until all rows before a time are arranged.
    pub fn wait(&mut self, worker: &mut Worker, time: ViewTime) {
        // Later lookups see these rows with this time at the latest.
        let made = [time.saturating_sub(1)];
        self.ties.set_logical_compaction(AntichainRef::new(&made));
        self.ties.set_physical_compaction(AntichainRef::new(&made));
        while self.probe.less_than(&time) {
            worker.step();
        }
    }

    /// Takes part until all workers have ended their inputs.
    pub fn end(self, worker: &mut Worker) {
        drop(self.ties);
        while !self.probe.done() {
            worker.step();
        }
    }

    /// Begins to read the ties as they are now.
    pub fn reader(&self) -> TieReader {
        let mut batches = Vec::new();
        self.ties
            .map_spans(|span| batches.extend(span.inner.iter().map(|batch| (batch.clone(), batch.cursor()))));
        TieReader { batches, last: 0 }
    }
}

/// Reads the ties of one document after another.
pub(super) struct TieReader {
    batches: Vec<(<Ties as TraceReader>::Batch, BatchCursor<Ties>)>,
    /// Document that was asked for last, at which the cursors are.
    last: u32,
}

impl TieReader {
    /// Reads the ties of a document, in order. `more`: rows of it that are not arranged yet.
    ///
    /// Cost: a search in each batch of the arrangement, which are about the logarithm of the number of rows, and the rows.
    pub fn read(&mut self, doc: u32, more: &[(NearRow, i32)]) -> Vec<NearRow> {
        self.read_while(doc, more, |_| true)
    }

    /// Reads the first ties of a document, as long as they are wanted.
    pub fn read_while(
        &mut self,
        doc: u32,
        more: &[(NearRow, i32)],
        is_wanted: impl Fn(NearRow) -> bool,
    ) -> Vec<NearRow> {
        let mut rows: Vec<(NearRow, i32)> = more.iter().filter(|(row, _)| is_wanted(*row)).copied().collect();
        for (batch, cursor) in &mut self.batches {
            if doc < self.last {
                cursor.rewind_keys(batch);
            }
            cursor.seek_key(batch, &doc);
            if cursor.get_key(batch) != Some(&doc) {
                continue;
            }
            cursor.rewind_vals(batch);
            while let Some(&row) = cursor.get_val(batch).filter(|row| is_wanted(**row)) {
                cursor.map_times(batch, |_, count| rows.push((row, *count)));
                cursor.step_val(batch);
            }
        }
        self.last = doc;
        consolidate(&mut rows);
        rows.into_iter().filter(|(_, count)| *count > 0).map(|(row, _)| row).collect()
    }

    /// Returns the documents that have ties, in order.
    pub fn docs(&mut self) -> Vec<u32> {
        let mut docs = Vec::new();
        for (batch, cursor) in &mut self.batches {
            cursor.rewind_keys(batch);
            while let Some(&doc) = cursor.get_key(batch) {
                docs.push(doc);
                cursor.step_key(batch);
            }
            cursor.rewind_keys(batch);
        }
        self.last = 0;
        docs.sort_unstable();
        docs.dedup();
        docs
    }
}
