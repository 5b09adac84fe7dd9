//! The trait by which documents of earlier nights take part in a search.

use anyhow::Result;
use operators::flow::{GatheredClusters, MatchedDocs, WantedDocs};
use operators::hash::Identity;
use operators::search::KeyedSearch;
use operators::search::crowds::place::Rank;
use operators::search::map_records::StoredText;
use operators::sets::small_sketch::{SketchSieve, SmallSketch};
use operators::{DocId, Merit, Pair, Sorted};
use timely::worker::Worker;

use super::corpus_search::CorpusSearch;
use super::links::{FoundLinks, IdenticalDocs};
use super::mapped::Mapped;

/// Returns the earlier document that stands for the text with an identity.
pub type IdentityLookup<'a> = Box<dyn FnMut(Identity) -> Result<Option<DocId>> + 'a>;
/// Takes the new keys of a pass.
pub type NewKeySink<'a> = &'a mut dyn FnMut(NewKey);

/// Key of a new text in one pass of a search, as a state would keep it.
#[derive(Clone, Copy)]
pub struct NewKey {
    /// The kept key: see [`KeyedSearch`].
    pub key: u128,
    /// The text.
    pub doc: DocId,
    /// Sketch of the set that the key stands for.
    pub sketch: SmallSketch,
}

impl NewKey {
    /// Makes the key of a record.
    pub(super) fn new<S: KeyedSearch>(pass: &S::Pass, record: &S::Record) -> Self {
        NewKey { key: S::kept_key(pass, record), doc: S::doc(record), sketch: S::sketch(record) }
    }
}

/// A pass of a search by keys, in which new texts meet earlier ones.
pub struct KeptPass<'a> {
    /// Number of the pass, from 0.
    pub number: u64,
    /// Section of the map output that has the records of the pass.
    pub section: usize,
    /// Number of first bits on which keys must agree to meet.
    pub key_bits: u32,
    /// Calls its second argument with the keys of records, which are given as the bytes of that section.
    pub keys: &'a dyn Fn(&[u8], NewKeySink),
    /// Returns the number of bits in which two keys that meet differ: see [`KeyedSearch::key_distance`].
    pub distance: &'a dyn Fn(u128, u128) -> Option<u32>,
}

/// Documents of earlier nights in the search of one worker. They come before those of the input, and no split of the input
/// has them. `NoEarlier` adds nothing, and `nightly` implements the trait by a state.
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
///
/// The pipeline takes a trait object and no type parameter, so that it is compiled once and not again for nights: for each search
/// it has much code, which more than one crate would hold.
pub trait Earlier {
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
    fn texts_of_identities(&self) -> IdentityLookup<'_> {
        Box::new(|_| Ok(None))
    }

    /// Takes the documents of this worker that are identical to an earlier one, before anything else is searched for.
    fn collapsed(&mut self, _worker: &mut Worker, _mapped: &Mapped, _copies: &IdenticalDocs) -> Result<()> {
        Ok(())
    }

    /// Calls `each` with the records of earlier texts that take part in the search like new ones, as bytes: some records at a time.
    /// `section`: the section of the map output in which a new text has them.
    fn records(
        &self,
        _worker: &mut Worker,
        _section: usize,
        _each: &mut dyn FnMut(&mut Worker, &[u8]),
    ) -> Result<()> {
        Ok(())
    }

    /// Lets the records of this worker meet the keys of earlier texts, in one pass. Passes come in order. `scan`: calls its argument
    /// with the keys of new texts.
    fn meet(
        &mut self,
        _worker: &mut Worker,
        _pass: &KeptPass,
        _scan: &mut dyn FnMut(&mut Worker, NewKeySink) -> Result<()>,
    ) -> Result<()> {
        Ok(())
    }

    /// Ends the passes. `sieve`: drops pairs by their sketches, if the search keeps any.
    fn end_passes(&mut self, _sieve: Option<&SketchSieve>) -> Result<()> {
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
        _noted: &dyn Fn(DocId) -> bool,
        _each: &mut dyn FnMut(&mut Worker, StoredText, &[u64]),
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
        _name: &dyn for<'a> Fn(DocId, &'a str) -> &'a str,
    ) -> Result<()> {
        Ok(())
    }
}

/// Returns the place of a document in keep order, where those that are withdrawn come behind all others.
pub(super) fn live_rank(
    search: &CorpusSearch,
    earlier: &dyn Earlier,
    doc: DocId,
    merit: &dyn Fn() -> Merit,
) -> Rank {
    if earlier.is_withdrawn(doc) { (u64::MAX, DocId(u64::MAX)) } else { search.rank(doc, merit) }
}

/// No documents of earlier nights.
pub(super) struct NoEarlier;

impl Earlier for NoEarlier {}
