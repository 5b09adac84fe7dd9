//! Documents of earlier nights in a search: their texts are compared, their clusters are loaded, and their names are
//! looked up, as far as new or withdrawn documents touch them.

use anyhow::{Context, Result};
use operators::flow::{FoundMatches, MatchedDocs, WantedDocs, shuffle};
use operators::{DocId, Merit};
use timely::worker::Worker;

use super::corpus_search::CorpusSearch;
use crate::state::{EarlierDocs, NightState, StateTable, found, merit_of, number_of};

impl CorpusSearch {
    /// Gives the texts of earlier documents that this worker has to read, and that are wanted, to `each`, in
    /// order.
    pub(super) fn earlier_texts(
        &self,
        worker: &mut Worker,
        wanted: &mut WantedDocs,
        mut each: impl FnMut(&mut Worker, DocId, &[u64], &str),
    ) -> Result<()> {
        let Some(docs) = self.earlier_docs() else { return Ok(()) };
        let mut texts = docs.cursor(StateTable::Texts);
        for split in splits(docs, worker) {
            while let Some(doc) = wanted.next_of(split)? {
                let Some(parts) = wanted.of(doc)?.filter(|parts| !parts.is_empty()) else { continue };
                let row = found(&mut texts, &[number_of(doc)])?;
                let row = row.with_context(|| format!("the state lacks the text {}", number_of(doc)))?;
                each(worker, doc, parts, str::from_utf8(row.bytes)?);
            }
        }
        Ok(())
    }

    /// Returns a holder of the matches to be found. With a state it opens no exchange yet, since there are others
    /// until the clusters are known that the matches touch.
    pub(super) fn open_matches(&self, worker: &mut Worker) -> FoundMatches {
        match self.night {
            Some(_) => FoundMatches::held(&self.spill),
            None => FoundMatches::new(worker, &self.spill),
        }
    }

    /// Whether a document is of an earlier night.
    pub(super) fn is_earlier(&self, doc: DocId) -> bool {
        self.earlier_docs().is_some_and(|docs| doc.split() < docs.first_split())
    }

    /// Adds all matches of the clusters of some earlier documents, and of those that are withdrawn. `touched`: the
    /// documents, on any worker.
    pub(super) fn add_earlier_clusters(
        &self,
        worker: &mut Worker,
        mut touched: Vec<DocId>,
        matches: &mut FoundMatches,
    ) -> Result<()> {
        let Some(docs) = self.earlier_docs() else { return Ok(()) };
        let (index, peers) = (worker.index(), worker.peers());
        touched.retain(|&doc| self.is_earlier(doc));
        let withdrawn = docs.going().iter().copied();
        touched.extend(withdrawn.filter(|doc| doc.split() as usize % peers == index));
        let mut labels = docs.cursor(StateTable::Labels);
        let mut named = Vec::new();
        for doc in met(worker, "Touched", touched) {
            named.extend(EarlierDocs::label(&mut labels, doc)?);
        }
        let mut clusters = docs.cursor(StateTable::Clusters);
        let labels = met(worker, "Labels", named);
        matches.open(worker)?;
        for label in labels {
            let cluster = EarlierDocs::cluster(&mut clusters, label)?;
            cluster.copies.into_iter().for_each(|(doc, text)| matches.add_copy(worker, doc, text));
            cluster
                .pairs
                .into_iter()
                .for_each(|(pair, similarity)| matches.add_pair(worker, pair, similarity));
        }
        Ok(())
    }

    /// Names the earlier documents that match another one and that this worker has to read.
    pub(super) fn name_earlier(&self, worker: &mut Worker, matched: &mut MatchedDocs) -> Result<()> {
        let Some(docs) = self.earlier_docs() else { return Ok(()) };
        let mut documents = docs.cursor(StateTable::Documents);
        for split in splits(docs, worker) {
            while let Some(doc) = matched.next_of(split)? {
                // The name of a withdrawn document may be erased, and nobody asks for it.
                let row = found(&mut documents, &[number_of(doc)])?;
                let (merit, id) = row.map_or((Merit::default(), &b""[..]), |row| (merit_of(&row), row.bytes));
                matched.name(worker, doc, str::from_utf8(id)?, merit)?;
            }
        }
        Ok(())
    }

    pub(super) fn earlier_docs(&self) -> Option<&EarlierDocs> {
        self.night.as_ref().map(|NightState { docs, .. }| docs.as_ref())
    }
}

/// Returns the splits of the state whose documents a worker has to read.
fn splits(docs: &EarlierDocs, worker: &Worker) -> impl Iterator<Item = u32> + use<> {
    (0..docs.first_split()).skip(worker.index()).step_by(worker.peers())
}

/// Sends documents to the workers that read them, and returns those that arrive, each once and in order.
fn met(worker: &mut Worker, name: &str, docs: Vec<DocId>) -> Vec<DocId> {
    let mut arrived = shuffle(worker, name, docs, |doc: &DocId| u64::from(doc.split()));
    arrived.sort_unstable();
    arrived.dedup();
    arrived
}
