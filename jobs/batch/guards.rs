//! Guards: limits of what a run may remove. A run that would remove more stops before any record is written.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::{Result, bail};
use datasets::Reading;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::tally::Tally;
use super::verdicts::DecidedDocs;
use runtime::cli::exit::{Guarded, WrongUse};
#[cfg(feature = "cli")]
use runtime::cli::headings::STAYS;
use runtime::corpus::run::Run;
use runtime::corpus::splits::{self, SplitReader};
use runtime::output::map_output::MapOutputs;
use runtime::progress::Stage;

/// Options of the guards.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Guards {
    /// Stop with exit code 4 before anything is committed if more documents than this would be removed: a
    /// number, or a share such as 30%
    #[cfg_attr(feature = "cli", arg(help_heading = STAYS, long, value_name = "LIMIT"))]
    max_removed: Option<Limit>,
    /// The same for the documents of each value of a field, such as source:30%
    ///
    /// Documents without the field count as one more source. The input is read once more.
    #[cfg_attr(feature = "cli", arg(help_heading = STAYS, hide_short_help = true, long, value_name = "FIELD:LIMIT"))]
    max_removed_per_source: Option<SourceLimit>,
    /// Stop with exit code 4 before anything is committed if a cluster has more documents than this
    ///
    /// A cluster is a document that stays and those that go for it. In an output of dedup with --pairs firsts or all it is a
    /// connected component.
    #[cfg_attr(feature = "cli", arg(help_heading = STAYS, hide_short_help = true, long, value_name = "N"))]
    max_cluster: Option<u64>,
}

/// Limit of the number of removed documents, as the user wrote it.
#[derive(Clone, Debug)]
struct Limit {
    text: String,
    most: Most,
}

/// Value of a limit.
#[derive(Clone, Copy, Debug)]
enum Most {
    Documents(u64),
    /// Share, in millionths of a percent.
    Percent(u64),
}

impl Limit {
    /// Whether `removed` of `of` documents may be removed.
    fn allows(&self, removed: u64, of: u64) -> bool {
        match self.most {
            Most::Documents(most) => removed <= most,
            Most::Percent(most) => u128::from(removed) * 100_000_000 <= u128::from(most) * u128::from(of),
        }
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = |share: &str| {
            let share: Option<f64> = share.parse().ok().filter(|share| (0.0..=100.0).contains(share));
            share.map(|share| Most::Percent((share * 1e6).round() as u64))
        };
        let most = match text.strip_suffix('%') {
            Some(share) => percent(share),
            None => text.parse().ok().map(Most::Documents),
        };
        let most = most.ok_or("expected a number of documents or a share such as 30%")?;
        Ok(Limit { text: text.to_owned(), most })
    }
}

/// Limit for each value of a field.
#[derive(Clone, Debug)]
struct SourceLimit {
    field: String,
    limit: Limit,
}

impl FromStr for SourceLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.rsplit_once(':') {
            Some((field, limit)) if !field.is_empty() => {
                Ok(SourceLimit { field: field.to_owned(), limit: limit.parse()? })
            }
            _ => Err("expected a field and a limit, such as source:30%".to_owned()),
        }
    }
}

/// Numbers of documents of one source.
#[derive(Default, Deserialize, Serialize)]
struct SourceCounts {
    docs: u64,
    removed: u64,
}

impl Guards {
    /// Returns an error if the run would remove too many of its `docs` documents, or has too large a cluster.
    /// `tally`: the counts of all clusters.
    pub fn check(&self, docs: u64, tally: &Tally) -> Result<()> {
        let earlier = match tally.removed_earlier {
            0 => String::new(),
            earlier => format!(" and {earlier} of earlier nights"),
        };
        let mut largest = String::new();
        if let Some((size, _, first)) = tally.largest() {
            if let Some(most) = self.max_cluster.filter(|most| size > most) {
                bail!(Guarded(format!(
                    "the cluster of \"{first}\" has {size} documents, more than --max-cluster {most}"
                )));
            }
            largest = format!("; the largest cluster is that of \"{first}\" with {size} documents");
        }
        let removed = tally.to_remove();
        let all = tally.to_remove() + tally.removed_earlier;
        // A night that brings nothing removes earlier documents only for the sake of those that it gives back.
        let of = docs + tally.removed_earlier;
        if let Some(limit) = self.max_removed.as_ref().filter(|limit| docs > 0 && !limit.allows(all, of)) {
            bail!(Guarded(format!(
                "{removed} of {docs} documents{earlier} would be removed, more than --max-removed {}{largest}",
                limit.text
            )));
        }
        Ok(())
    }

    /// Returns an error if the run would remove too many documents of one source. Reads the input once if there
    /// is such a guard. Every process must call this. `known`: at process 0 the numbers of all documents and of
    /// those that would be removed. `decided`: what was decided about the splits of this process.
    ///
    /// Memory: for each different value of the field, the value and some 50 bytes.
    pub fn check_sources(
        &self,
        known: Option<(u64, u64)>,
        decided: &DecidedDocs,
        input: &SourceReading,
    ) -> Result<()> {
        let Some(guard) = &self.max_removed_per_source else { return Ok(()) };
        let counted = input.counts(&guard.field, decided)?;
        input.run.group.all_reduce(counted, |counted| guard.check(known.unwrap_or_default(), counted))
    }
}

impl SourceLimit {
    /// Returns an error if too many documents of one source would be removed. `docs`, `gone`: the numbers of all
    /// documents and of those that would be removed. `counted`: the counts of each process.
    fn check(&self, (docs, gone): (u64, u64), counted: Vec<BTreeMap<String, SourceCounts>>) -> Result<()> {
        let mut sources = BTreeMap::<String, SourceCounts>::new();
        counted.into_iter().for_each(|counted| add(&mut sources, counted));
        let docs = docs.saturating_sub(sources.values().map(|source| source.docs).sum());
        let gone = gone.saturating_sub(sources.values().map(|source| source.removed).sum());
        if sources.is_empty() && docs > 0 {
            bail!(WrongUse(format!("--max-removed-per-source: no document has a field \"{}\"", self.field)));
        }
        let named = sources.into_iter().map(|(name, source)| (format!("\"{name}\""), source));
        let without = (format!("no \"{}\"", self.field), SourceCounts { docs, removed: gone });
        let over: Vec<_> =
            named.chain([without]).filter(|(_, s)| !self.limit.allows(s.removed, s.docs)).collect();
        let others = match over.len() {
            0 => return Ok(()),
            1 => String::new(),
            2 => "; and so it is with another source".to_owned(),
            count => format!("; and so it is with {} other sources", count - 1),
        };
        let worst = over.iter().max_by_key(|(name, source)| (source.removed, Reverse(name)));
        worst.map_or(Ok(()), |(name, source)| {
            bail!(Guarded(format!(
                "of the source {name}, {} of {} documents would be removed, more than \
                 --max-removed-per-source {}:{}{others}",
                source.removed, source.docs, self.field, self.limit.text
            )))
        })
    }
}

fn add(all: &mut BTreeMap<String, SourceCounts>, more: BTreeMap<String, SourceCounts>) {
    for (name, more) in more {
        let source = all.entry(name).or_default();
        source.docs += more.docs;
        source.removed += more.removed;
    }
}

/// Reading of the input that counts the documents of each source.
pub struct SourceReading<'a> {
    /// Run whose input is read again.
    pub run: &'a Run,
    /// Map outputs of the run, which say what it has rejected.
    pub outputs: &'a MapOutputs,
}

impl SourceReading<'_> {
    /// Returns the counts of each source in the splits of this process. `field`: the field that names the
    /// source. `decided`: what was decided about the documents.
    fn counts(&self, field: &str, decided: &DecidedDocs) -> Result<BTreeMap<String, SourceCounts>> {
        let Run { group, plan, reading, progress } = self.run;
        let reading = Reading { id: Some(field.to_owned()), ..reading.clone() };
        let all = Mutex::new(BTreeMap::<String, SourceCounts>::new());
        splits::each_input_split(plan, group, (progress, Stage::Resolve), |at, number, split| {
            if !split.format.has_fields() {
                return Ok(());
            }
            // This reading asks for another field, so it may accept records that the run has rejected.
            let mut rejects = self.outputs.open_rejects(number)?;
            let mut decisions = decided.of_split(number)?;
            let mut sources = BTreeMap::<String, SourceCounts>::new();
            let mut reader = SplitReader::new(number, split, &reading, at);
            while let Some(batch) = reader.next_batch()? {
                for doc in batch.docs() {
                    if rejects.pass(doc.doc)? {
                        continue;
                    }
                    if !sources.contains_key(doc.id) {
                        sources.insert(doc.id.to_owned(), SourceCounts::default());
                    }
                    let Some(source) = sources.get_mut(doc.id) else { continue };
                    source.docs += 1;
                    source.removed += u64::from(
                        decisions.pass(doc.doc)?.is_some_and(|decision| decision.removal.is_some()),
                    );
                }
            }
            add(&mut all.lock(), sources);
            Ok(())
        })?;
        Ok(all.into_inner())
    }
}
