//! Counts the removed documents by the length of their texts and by the file that they came from.

use std::collections::BTreeMap;

use anyhow::Result;
use cluster::Group;
use operators::DocId;
use serde::Serialize;

use crate::corpus::input::Input;
use crate::corpus::splits::{self, SplitReader};
use crate::progress::{Progress, Stage};

/// Ends of the classes of lengths, in characters.
const LENGTHS: [u64; 6] = [20, 50, 140, 500, 2_000, 10_000];
/// Number of files that are told apart: those with most documents.
const FILES: usize = 20;

/// Documents read and removed, of each class.
#[derive(Debug, Serialize)]
pub(super) struct RemovedShares {
    pub by_length: Vec<RemovedShare>,
    pub by_file: Vec<RemovedShare>,
    /// Number of files beyond those that are listed.
    pub more_files: usize,
}

/// A class of documents.
#[derive(Debug, Serialize)]
pub(super) struct RemovedShare {
    pub name: String,
    pub documents: u64,
    pub removed: u64,
    pub percent: f64,
}

/// Numbers of documents and of removed ones.
type DocCounts = (u64, u64);

impl RemovedShares {
    /// Reads the input and counts. `removed`: whether the document at a place was.
    pub fn count(input: &Input, progress: &Progress, removed: impl Fn(DocId) -> bool + Sync) -> Result<Self> {
        let counted = splits::each_split(
            &input.plan,
            &Group::alone(input.workers),
            (progress, Stage::Read),
            |at, number, split| {
                let mut counts = ([DocCounts::default(); LENGTHS.len() + 1], DocCounts::default());
                let mut reader = SplitReader::new(number, split, &input.reading, at);
                while let Some(batch) = reader.next()? {
                    for doc in batch.docs() {
                        let chars = doc.text.chars().count() as u64;
                        let class = LENGTHS.partition_point(|end| *end <= chars);
                        let gone = u64::from(removed(doc.doc));
                        for count in [&mut counts.0[class], &mut counts.1] {
                            *count = (count.0 + 1, count.1 + gone);
                        }
                    }
                }
                Ok((split.uri().to_owned(), counts))
            },
        )?;
        let (mut lengths, mut files) =
            ([DocCounts::default(); LENGTHS.len() + 1], BTreeMap::<String, DocCounts>::new());
        let add = |sum: &mut DocCounts, count: DocCounts| *sum = (sum.0 + count.0, sum.1 + count.1);
        for (file, (of_lengths, of_file)) in counted {
            lengths.iter_mut().zip(of_lengths).for_each(|(sum, count)| add(sum, count));
            add(files.entry(file).or_default(), of_file);
        }
        let name = |class: usize| match class {
            0 => format!("under {}", LENGTHS[0]),
            last if last == LENGTHS.len() => format!("{} and more", LENGTHS[last - 1]),
            class => format!("{} to {}", LENGTHS[class - 1], LENGTHS[class] - 1),
        };
        let by_length =
            lengths.iter().enumerate().map(|(class, counts)| RemovedShare::new(name(class), *counts));
        let mut by_file: Vec<_> =
            files.into_iter().map(|(file, counts)| RemovedShare::new(file, counts)).collect();
        by_file.sort_by(|a, b| b.documents.cmp(&a.documents).then(a.name.cmp(&b.name)));
        let more_files = by_file.len().saturating_sub(FILES);
        by_file.truncate(FILES);
        Ok(RemovedShares {
            by_length: by_length.filter(|row| row.documents > 0).collect(),
            by_file,
            more_files,
        })
    }
}

impl RemovedShare {
    fn new(name: String, (documents, removed): DocCounts) -> Self {
        RemovedShare { name, documents, removed, percent: 100.0 * removed as f64 / documents.max(1) as f64 }
    }
}
