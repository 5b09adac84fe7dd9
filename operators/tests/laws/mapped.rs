//! The output of the map stage, in memory.

use std::sync::Arc;

use operators::Record;
use operators::search::TextSearch;
use operators::search::map_records::records;
use operators::text::Cleaner;

use super::{SPLITS, batch};

/// Sections that a search makes of each split.
#[derive(Clone)]
pub struct Mapped(Arc<Vec<Vec<Vec<u8>>>>);

impl Mapped {
    pub fn of(texts: &[String], cleaner: &Cleaner, search: &(impl TextSearch + Clone)) -> Self {
        let of_split = |split| {
            let (mut search, mut sections) = (search.clone(), vec![Vec::new(); search.sections()]);
            let mut cleaner = cleaner.clone();
            let batch = batch(texts, split);
            for doc in batch.docs() {
                search.map(&doc, cleaner.clean(doc.text).into(), &mut sections);
            }
            sections
        };
        Mapped(Arc::new((0..SPLITS).map(of_split).collect()))
    }

    /// Returns a section of the splits of worker `index` of `peers`.
    pub fn sections(&self, index: usize, peers: usize, section: usize) -> Vec<&[u8]> {
        let mine = self.0.iter().skip(index).step_by(peers);
        mine.map(|sections| &*sections[section]).collect()
    }

    /// Returns the records of such a section.
    pub fn records<R: Record>(&self, index: usize, peers: usize, section: usize) -> Vec<R> {
        self.sections(index, peers, section).into_iter().flat_map(records).collect()
    }
}
