//! The trait by which documents of earlier nights take part in a search.

use anyhow::Result;
use operators::flow::{GatheredClusters, MatchedDocs, RecordScan, WantedDocs};
use operators::hash::Identity;
use operators::search::KeyedSearch;
use operators::search::crowds::place::Rank;
use operators::search::map_records::StoredText;
use operators::{DocId, Merit, Pair, Record, Sorted};
use timely::worker::Worker;

use super::corpus_search::CorpusSearch;
use super::links::{FoundLinks, IdenticalDocs};
use super::mapped::Mapped;

/// Documents of earlier nights in the search of one worker. They come before those of the input, and no split of the input
/// has them. [`NoEarlier`] adds nothing, and `nightly` implements the trait by a state.
///
/// | place | functions |
/// |---|---|
/// | all: who is earlier, has stayed, and comes last | `has`, `has_stayed`, `is_withdrawn` |
/// | collapse: a new document may have the text of an earlier one | `texts_of_identities`, `collapsed` |
/// | join: new keys meet those of earlier texts | `records`, `meet`, `end_passes`, `candidates` |
/// | texts: candidates are compared | `texts` |
/// | stored: what is known of the texts that are touched, and who must be searched for again | `add_stored`, `may_reverse_decisions`, `asks_again` |
/// | names: clusters name their documents | `name` |
///
/// All workers call all functions in the same order. `collapsed`, `candidates`, `add_stored` and `asks_again` exchange documents, so
/// an implementation does that whatever its worker has. `may_reverse_decisions` is the same on all workers.
pub(crate) trait Earlier {
    /// Whether a document is of an earlier night.
    fn has(&self, _doc: DocId) -> bool {
        false
    }

    /// Whether a document is of an earlier night and stayed in it. Two such documents do not match.
    fn has_stayed(&self, _doc: DocId) -> bool {
        false
    }

    /// Whether a document is withdrawn.
    fn is_withdrawn(&self, _doc: DocId) -> bool {
        false
    }

    /// Returns the lookup of the earlier document that stands for a text. Identities are looked up in order.
    fn texts_of_identities(&self) -> impl FnMut(Identity) -> Result<Option<DocId>> {
        |_| Ok(None)
    }

    /// Takes the documents of this worker that are identical to an earlier one, before anything else is searched for.
    fn collapsed(&mut self, _worker: &mut Worker, _mapped: &Mapped, _copies: &IdenticalDocs) -> Result<()> {
        Ok(())
    }

    /// Calls `each` with the records of earlier texts that take part in the search like new ones. `section`: the section of the map
    /// output in which a new text has them.
    fn records<R: Record>(
        &self,
        _worker: &mut Worker,
        _section: usize,
        _each: impl FnMut(&mut Worker, R),
    ) -> Result<()> {
        Ok(())
    }

    /// Lets the records of this worker meet the keys of earlier texts, in one pass. Passes come in order. `scan`: gives the
    /// records of new texts.
    fn meet<S: KeyedSearch>(
        &mut self,
        _worker: &mut Worker,
        _search: &S,
        _pass: (u64, &S::Pass),
        _scan: RecordScan<'_, S::Record, anyhow::Error>,
    ) -> Result<()> {
        Ok(())
    }

    /// Ends the passes.
    fn end_passes<S: KeyedSearch>(&mut self, _search: &S) -> Result<()> {
        Ok(())
    }

    /// Adds the candidates that have met to those of new documents. Returns `None`, on all workers, if the join must be made
    /// anew because further earlier texts take part.
    fn candidates(
        &mut self,
        _worker: &mut Worker,
        _mapped: &Mapped,
        pairs: Sorted<Pair>,
    ) -> Result<Option<Sorted<Pair>>> {
        Ok(Some(pairs))
    }

    /// Gives the earlier texts that this worker has to read to `each`, in order, each with the parts that want it. `noted`: whether
    /// the merit of a text is wanted, too, and the text itself though no part wants it.
    fn texts(
        &self,
        _worker: &mut Worker,
        _wanted: &mut WantedDocs,
        _noted: impl Fn(DocId) -> bool,
        _each: impl FnMut(&mut Worker, StoredText, &[u64]),
    ) -> Result<()> {
        Ok(())
    }

    /// Adds what is known of the earlier texts that the links of any worker touch.
    fn add_stored(&mut self, _worker: &mut Worker, _links: &mut FoundLinks) -> Result<()> {
        Ok(())
    }

    /// Whether what earlier nights have decided may change, so that [`Earlier::asks_again`] must know the clusters.
    fn may_reverse_decisions(&self) -> bool {
        false
    }

    /// Whether further earlier texts take part, because they went for one that does not stay any more, so that the join must be
    /// made anew. `clusters`: those of the matches so far.
    fn asks_again(
        &mut self,
        _worker: &mut Worker,
        _mapped: &Mapped,
        _clusters: GatheredClusters,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Names the earlier documents that match another one and that this worker has to read. `name`: the name by the document and
    /// its id.
    fn name(
        &self,
        _worker: &mut Worker,
        _matched: &mut MatchedDocs,
        _name: impl for<'a> Fn(DocId, &'a str) -> &'a str,
    ) -> Result<()> {
        Ok(())
    }
}

/// Returns the place of a document in keep order, where those that are withdrawn come behind all others.
pub(super) fn live_rank(
    search: &CorpusSearch,
    earlier: &impl Earlier,
    doc: DocId,
    merit: &dyn Fn() -> Merit,
) -> Rank {
    if earlier.is_withdrawn(doc) { (u64::MAX, DocId(u64::MAX)) } else { search.rank(doc, merit) }
}

/// No documents of earlier nights.
pub(crate) struct NoEarlier;

impl Earlier for NoEarlier {}
