//! Prepares the join of the search by prefixes: makes the counts of all features, by which the rarest of each set are found.

use std::sync::Arc;

use anyhow::{Context, Result};
use operators::Counting;
use operators::flow::{LookupMarks, PrefixJoin, sum};
use operators::sets::Sets;
use timely::worker::Worker;

use super::links::IdenticalDocs;
use super::mapped::{CountersOfWorker, Mapped};

/// Collects the prefixes of sets. The texts in the map output are read twice: to count the
/// features of the first documents, and to find the rarest of each. If the rule needs marks of the
/// features that are looked up, they are read once more in between.
pub(super) fn join_prefixes(
    worker: &mut Worker,
    mapped: &Mapped,
    copies: &IdenticalDocs,
) -> Result<PrefixJoin> {
    let (search, rule) = (&mapped.search, &mapped.search.method.rule);
    let counters = mapped.counters.of_worker();
    let CountersOfWorker { features: counts, lookups } =
        counters.context("there are more workers than there should be")?;
    let mut sets = Sets::default();
    let mut counting = Counting::new(Arc::clone(&counts), &search.spill);
    mapped.first_texts(worker, copies, |text| {
        rule.unsorted(text.text, &mut sets);
        counting.add(sets.features());
    })?;
    counting.finish();
    sum(worker, &counts, search.run.group.workers());

    let mut join = PrefixJoin::new(rule.clone(), search.sides, &search.spill);
    let marks = match lookups {
        None => None,
        Some(lookups) => {
            let mut counting = Counting::new(Arc::clone(&lookups), &search.spill);
            mapped.first_texts(worker, copies, |text| {
                rule.unsorted(text.text, &mut sets);
                join.lookups(&counts, text.doc, &sets, |mark| counting.add([mark].into_iter()));
            })?;
            counting.finish();
            sum(worker, &lookups, search.run.group.workers());
            Some(LookupMarks::new(lookups, search.sides))
        }
    };
    mapped.first_texts(worker, copies, |text| {
        rule.unsorted(text.text, &mut sets);
        join.add(&counts, marks.as_ref(), text.doc, &sets);
    })?;
    Ok(join)
}
