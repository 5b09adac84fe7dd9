//! What the map stage keeps, in memory.

use std::sync::Arc;

use operators::Record;
use operators::method::map_records::{Mapper, records};
use timely::worker::Worker;

use super::{SPLITS, batch};

/// The sections that a mapper makes of each split.
#[derive(Clone)]
pub struct Mapped(Arc<Vec<Vec<Vec<u8>>>>);

impl Mapped {
    pub fn of(texts: &[String], mapper: &impl Mapper) -> Self {
        let of_split = |split| {
            let (mut mapper, mut sections) = (mapper.clone(), vec![Vec::new(); mapper.sections()]);
            batch(texts, split).docs().for_each(|doc| mapper.map(&doc, &mut sections));
            sections
        };
        Mapped(Arc::new((0..SPLITS).map(of_split).collect()))
    }

    /// One section of a worker's splits.
    pub fn sections(&self, worker: &Worker, section: usize) -> Vec<&[u8]> {
        let mine = self.0.iter().skip(worker.index()).step_by(worker.peers());
        mine.map(|sections| &*sections[section]).collect()
    }

    pub fn rows<R: Record>(&self, worker: &Worker, section: usize) -> Vec<R> {
        self.sections(worker, section).into_iter().flat_map(records).collect()
    }
}
