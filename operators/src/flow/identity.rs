//! Identical texts become one document, before anything is known of them but their text.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use timely::worker::Worker;
use xxhash_rust::xxh3::xxh3_128;

use super::map::{Found, collapse};
use super::owner;
use super::shuffle::{Shuffle, shuffle};
use crate::hash;
use crate::record::DocId;

/// 128 bits of a cleaned text.
type Identity = (u64, u64);

/// Which texts were seen, by one worker or by all of a process: 16 bytes each.
pub struct Seen(Vec<Mutex<HashSet<Identity>>>);

/// Workers that look at once rarely look at the same part.
const PARTS: usize = 64;

impl Default for Seen {
    fn default() -> Self {
        Seen((0..PARTS).map(|_| Mutex::default()).collect())
    }
}

impl Seen {
    fn first(&self, identity: Identity) -> bool {
        let part = &self.0[identity.1 as usize % PARTS];
        part.lock().unwrap_or_else(PoisonError::into_inner).insert(identity)
    }

    fn forget(&self) {
        self.0.iter().for_each(|part| *part.lock().unwrap_or_else(PoisonError::into_inner) = HashSet::new());
    }
}

/// Finds identical texts. Holds up to 56 bytes for each document, on some worker.
pub struct Identities {
    seen: Arc<Seen>,
    shuffle: Shuffle<(Identity, (u64, u64))>,
}

/// Which documents are identical.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Collapsed {
    /// How many different texts this worker counted.
    pub distinct: u64,
    /// Documents that are identical to an earlier one, and the first of them: each on some worker.
    pub copies: Vec<(DocId, DocId)>,
    /// Those of them that this worker reads, sorted.
    pub later: Vec<DocId>,
}

impl Identities {
    /// With no text yet. `seen`: that of all workers, or its own.
    pub fn new(worker: &mut Worker, seen: Arc<Seen>) -> Self {
        let shuffle =
            Shuffle::new(worker, "Identity", |(identity, _): &(Identity, _)| hash::spread(identity.0));
        Identities { seen, shuffle }
    }

    /// Adds a document; says whether its text was not seen before.
    pub fn add(&mut self, doc: DocId, text: &str) -> bool {
        let hash = xxh3_128(text.as_bytes());
        let identity = (hash as u64, (hash >> 64) as u64);
        self.shuffle.send((identity, (0, doc.0)));
        self.seen.first(identity)
    }

    /// Ends a round of adding.
    pub fn round(&mut self, worker: &mut Worker) {
        self.shuffle.round(worker);
    }

    /// Waits for all workers.
    pub fn finish(self, worker: &mut Worker) -> Collapsed {
        let arrived = self.shuffle.finish(worker);
        self.seen.forget();
        let Found { rows, copies } = collapse(arrived);
        let later = copies.iter().map(|(doc, _)| doc.0);
        let later = shuffle(worker, "Copy", later, |&doc: &u64| owner(DocId(doc)));
        let mut later: Vec<DocId> = later.into_iter().map(DocId).collect();
        later.sort_unstable();
        Collapsed { distinct: rows.len() as u64, copies, later }
    }
}
