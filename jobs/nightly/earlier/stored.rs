//! Lookups of what a state knows about earlier documents: their texts, which are compared, what is stored about them, and their names, as far as
//! new or withdrawn documents touch them.

use anyhow::{Context, Result};
use operators::flow::{MatchedDocs, WantedDocs, reader_of, reads, shuffle};
use operators::search::map_records::StoredText;
use operators::{DocId, Merit};
use timely::worker::Worker;

use crate::state::{EarlierDocs, StateTable, found, merit_of, number_of};
use batch::pipeline::{FoundLinks, IdenticalDocs};

/// Gives the texts of earlier documents that a worker has to read, and that are wanted, to `each`, in order. `noted`: documents
/// whose merits are wanted, too.
pub(super) fn texts(
    worker: &mut Worker,
    docs: &EarlierDocs,
    wanted: &mut WantedDocs,
    noted: impl Fn(DocId) -> bool,
    mut each: impl FnMut(&mut Worker, StoredText, &[u64]),
) -> Result<()> {
    let (mut texts, mut documents) = (docs.cursor(StateTable::Texts), docs.cursor(StateTable::Documents));
    for split in splits(docs, worker) {
        while let Some(doc) = wanted.next_of(split)? {
            let noted = noted(doc);
            let Some(parts) = wanted.of(doc)?.filter(|parts| noted || !parts.is_empty()) else {
                continue;
            };
            let row = found(&mut texts, &[number_of(doc)])?;
            let row = row.with_context(|| format!("the state lacks the text {}", number_of(doc)))?;
            let merit = match noted {
                true => found(&mut documents, &[number_of(doc)])?.map(|row| merit_of(&row)),
                false => None,
            };
            let merit = merit.unwrap_or_default();
            let text = str::from_utf8(row.bytes)?;
            each(worker, StoredText { doc, id: "", merit, text }, parts);
        }
    }
    Ok(())
}

/// Adds what is stored of some earlier texts and of those of withdrawn documents: who has them, and the match with the text for
/// which one goes. `touched`: earlier texts on any worker.
pub(super) fn add(
    worker: &mut Worker,
    docs: &EarlierDocs,
    mut touched: Vec<DocId>,
    links: &mut FoundLinks,
) -> Result<()> {
    let mut parents = docs.cursor(StateTable::Parents);
    for doc in docs.going().iter().copied().filter(|&doc| reads(worker, doc)) {
        touched.push(EarlierDocs::text_of_doc(&mut parents, doc)?);
    }
    let mut texts = at_readers(worker, "Touched", touched);
    let mut parents = docs.cursor(StateTable::Parents);
    let mut above = Vec::new();
    for &text in &texts {
        above.extend(EarlierDocs::goes_for(&mut parents, text)?.map(|above| (above, text)));
    }
    above.sort_unstable();
    let mut members = docs.cursor(StateTable::Members);
    for &(above, text) in &above {
        let (pair, similarity) = EarlierDocs::tie(&mut members, above, text)?;
        links.add(pair, similarity);
    }
    texts.extend(at_readers(worker, "Above", above.into_iter().map(|(above, _)| above).collect()));
    texts.sort_unstable();
    texts.dedup();
    let mut members = docs.cursor(StateTable::Members);
    for text in texts {
        let copies = EarlierDocs::copies(&mut members, text)?;
        links.add_copies(IdenticalDocs(copies.into_iter().map(|doc| (doc, text)).collect()));
    }
    Ok(())
}

/// Names the earlier documents that match another one and that a worker has to read. `name`: the name by the document and its id.
pub(super) fn name(
    worker: &mut Worker,
    docs: &EarlierDocs,
    matched: &mut MatchedDocs,
    name: impl for<'a> Fn(DocId, &'a str) -> &'a str,
) -> Result<()> {
    let mut documents = docs.cursor(StateTable::Documents);
    for split in splits(docs, worker) {
        while let Some(doc) = matched.next_of(split)? {
            // The name of a withdrawn document may be erased, and nobody asks for it.
            let row = found(&mut documents, &[number_of(doc)])?;
            let (merit, id) = row.map_or((Merit::default(), &b""[..]), |row| (merit_of(&row), row.bytes));
            matched.name(worker, doc, name(doc, str::from_utf8(id)?), merit)?;
        }
    }
    Ok(())
}

/// Returns the splits of the state whose documents a worker has to read.
fn splits(docs: &EarlierDocs, worker: &Worker) -> impl Iterator<Item = u32> + use<> {
    (0..docs.first_split()).skip(worker.index()).step_by(worker.peers())
}

/// Sends documents to the workers that read them, and returns those that arrive, each once and in order.
pub(super) fn at_readers(worker: &mut Worker, name: &str, docs: Vec<DocId>) -> Vec<DocId> {
    let mut arrived = shuffle(worker, name, docs, |doc: &DocId| reader_of(*doc));
    arrived.sort_unstable();
    arrived.dedup();
    arrived
}
