//! Documents that must be read again, and the parts that want their features.

use timely::worker::Worker;

use crate::flow::exchange::shuffle::SortingShuffle;
use crate::flow::reader_of;
use crate::record::DocId;
use crate::spill::merge::MergeCursor;
use crate::{Error, ExternalSort, SpillBudget};

/// Documents of this worker that must be read again, each with the parts of the pairs in which its features
/// are wanted.
///
/// They must be asked for in the order of the corpus. Memory: 16 bytes for each document and part, or a
/// holder's budget.
pub struct WantedDocs {
    needs: MergeCursor<(u64, u64)>,
    /// Buffer for the result of [`WantedDocs::of`].
    parts: Vec<u64>,
}

/// Number that stands for no part: nobody wants the features of the document.
const NOBODY: u64 = u64::MAX;

impl WantedDocs {
    /// Tells every worker which of its documents are wanted by which part, and which are to be named.
    pub(crate) fn exchange(
        worker: &mut Worker,
        mut wanted: ExternalSort<(u64, u64)>,
        named: impl Iterator<Item = DocId>,
        spill: &SpillBudget,
    ) -> Result<Self, Error> {
        wanted.extend(named.map(|doc| (doc.0, NOBODY)));
        let arrived = ExternalSort::new(spill).once();
        let mut shuffle =
            SortingShuffle::new(worker, "Need", |need: &(u64, u64)| reader_of(DocId(need.0)), arrived);
        wanted.finish()?.each(|need| shuffle.send(worker, need))?;
        Ok(WantedDocs { needs: MergeCursor::new(shuffle.finish(worker)?), parts: Vec::new() })
    }

    /// Returns the parts that want the features of a document, or `None` if the document is not needed at
    /// all. Documents must be asked for in the order of the corpus.
    pub fn of(&mut self, doc: DocId) -> Result<Option<&[u64]>, Error> {
        self.parts.clear();
        while self.needs.next_if(|need| need.0 < doc.0)?.is_some() {}
        let mut any = false;
        while let Some((_, part)) = self.needs.next_if(|need| need.0 == doc.0)? {
            any = true;
            self.parts.extend(Some(part).filter(|&part| part != NOBODY));
        }
        Ok(any.then_some(&self.parts))
    }

    /// Returns the next document of the split that is needed. Splits must be asked for in the order of the
    /// corpus, together with documents.
    pub fn next_of(&mut self, split: u32) -> Result<Option<DocId>, Error> {
        while self.needs.next_if(|need| DocId(need.0).split() < split)?.is_some() {}
        Ok(self.needs.peek()?.map(|need| DocId(need.0)).filter(|doc| doc.split() == split))
    }
}
