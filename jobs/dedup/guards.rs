//! Guards: limits of what a run may remove. A run that would remove more stops before anything is written.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::{Result, bail};
use cluster::Group;
use datasets::Reading;
use operators::{DocId, Member};

use crate::cli::exit::{Guarded, WrongUse};
use crate::corpus::plan::Plan;
use crate::corpus::splits::{self, SplitReader};
use crate::output::map_output::MapOutputs;
use crate::progress::{Progress, Stage};

/// Options of the guards.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Guards {
    /// Stop with exit code 4 before anything is written if more documents than this would be removed: a
    /// number, or a share such as 30%
    #[arg(long, value_name = "LIMIT")]
    max_removed: Option<Limit>,
    /// The same for the documents of each value of a field, such as source:30%
    ///
    /// Documents without the field count as one more source. The input is read once more.
    #[arg(long, value_name = "FIELD:LIMIT")]
    max_removed_per_source: Option<SourceLimit>,
    /// Stop with exit code 4 before anything is written if a cluster has more documents than this
    #[arg(long, value_name = "N")]
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
#[derive(Default)]
struct SourceCounts {
    docs: u64,
    removed: u64,
}

impl Guards {
    /// Returns an error if the run would remove too many of its `docs` documents, or has too large a cluster.
    /// `members`: the members of clusters, ordered by cluster.
    pub fn check<'a>(&self, docs: u64, members: &[Member], name: impl Fn(DocId) -> &'a str) -> Result<()> {
        let clusters = members.chunk_by(|a, b| a.cluster == b.cluster);
        let largest = clusters.max_by_key(|cluster| (cluster.len(), Reverse(cluster[0].cluster)));
        let Some(largest) = largest else { return Ok(()) };
        let (size, first) = (largest.len() as u64, name(largest[0].cluster));
        if let Some(most) = self.max_cluster.filter(|&most| size > most) {
            bail!(Guarded(format!(
                "the cluster of \"{first}\" has {size} documents, more than --max-cluster {most}"
            )));
        }
        let removed = members.iter().filter(|member| member.removed.is_some()).count() as u64;
        if let Some(limit) = self.max_removed.as_ref().filter(|limit| !limit.allows(removed, docs)) {
            bail!(Guarded(format!(
                "{removed} of {docs} documents would be removed, more than --max-removed {}; the largest cluster \
                 is that of \"{first}\" with {size} documents",
                limit.text
            )));
        }
        Ok(())
    }

    /// Returns an error if the run would remove too many of its `docs` documents of one source. Reads the
    /// input once if there is such a guard.
    ///
    /// Memory: for each different value of the field, the value and some 50 bytes.
    pub fn check_sources(&self, docs: u64, members: &[Member], input: &SourceReading) -> Result<()> {
        let Some(guard) = &self.max_removed_per_source else { return Ok(()) };
        let mut removed: Vec<DocId> =
            members.iter().filter(|member| member.removed.is_some()).map(|member| member.doc).collect();
        removed.sort_unstable();
        let counted = input.counts(&guard.field, &removed)?;
        let mut sources = BTreeMap::<String, SourceCounts>::new();
        let (mut docs, mut gone) = (docs, removed.len() as u64);
        for (name, counted) in counted {
            docs = docs.saturating_sub(counted.docs);
            gone = gone.saturating_sub(counted.removed);
            let source = sources.entry(name).or_default();
            source.docs += counted.docs;
            source.removed += counted.removed;
        }
        if sources.is_empty() && docs > 0 {
            bail!(WrongUse(format!("--max-removed-per-source: no document has a field \"{}\"", guard.field)));
        }
        let named = sources.into_iter().map(|(name, source)| (format!("\"{name}\""), source));
        let without = (format!("no \"{}\"", guard.field), SourceCounts { docs, removed: gone });
        let over: Vec<_> =
            named.chain([without]).filter(|(_, s)| !guard.limit.allows(s.removed, s.docs)).collect();
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
                source.removed, source.docs, guard.field, guard.limit.text
            )))
        })
    }
}

/// How the input is read once more to count the documents of each source.
pub(crate) struct SourceReading<'a> {
    pub plan: &'a Plan,
    pub reading: &'a Reading,
    /// Map outputs of the run, which say what it has rejected.
    pub outputs: &'a MapOutputs,
    pub workers: usize,
    pub progress: &'a Progress,
}

impl SourceReading<'_> {
    /// Returns the counts of each source of each split. `field`: the field that names the source. `removed`:
    /// the documents that would be removed, sorted.
    fn counts(&self, field: &str, removed: &[DocId]) -> Result<impl Iterator<Item = (String, SourceCounts)>> {
        let reading = Reading { id: Some(field.to_owned()), ..self.reading.clone() };
        let counts = splits::each_split(
            self.plan,
            &Group::alone(self.workers),
            (self.progress, Stage::Resolve),
            |at, number, split| {
                let mut sources = BTreeMap::<String, SourceCounts>::new();
                if !split.format.has_fields() {
                    return Ok(sources);
                }
                // This reading asks for another field, so it may accept records that the run has rejected.
                let mut rejects = self.outputs.open_rejects(number)?;
                let mut reader = SplitReader::new(number, split, &reading, at);
                while let Some(batch) = reader.next()? {
                    for doc in batch.docs() {
                        if rejects.pass(doc.doc)? {
                            continue;
                        }
                        if !sources.contains_key(doc.id) {
                            sources.insert(doc.id.to_owned(), SourceCounts::default());
                        }
                        let Some(source) = sources.get_mut(doc.id) else { continue };
                        source.docs += 1;
                        source.removed += u64::from(removed.binary_search(&doc.doc).is_ok());
                    }
                }
                Ok(sources)
            },
        )?;
        Ok(counts.into_iter().flatten())
    }
}
