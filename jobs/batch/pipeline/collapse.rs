//! Collapses identical documents by their identities: the first of them stands for all.

use anyhow::Result;
use operators::flow::collapse as collapse_identities;
use operators::search::map_records::records;
use operators::{ExternalSort, memory_plan};
use timely::worker::Worker;

use super::earlier::Earlier;
use super::links::IdenticalDocs;
use super::mapped::Mapped;

/// Finds the documents of this worker that are identical to an earlier one, by their identities, which are the first section
/// of the map output.
pub(super) fn collapse(worker: &mut Worker, mapped: &Mapped, earlier: &dyn Earlier) -> Result<IdenticalDocs> {
    let budget = mapped.search.spill.shared_by(memory_plan::COLLAPSE);
    let mut identities = ExternalSort::new(&budget);
    mapped.section(worker, 0, |_, frame| identities.extend(records(frame)))?;
    Ok(IdenticalDocs(collapse_identities(worker, identities, &budget, earlier.texts_of_identities())?))
}
