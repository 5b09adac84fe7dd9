//! The second reading: gives each test document a label by each measure.

use std::time::Duration;

use anyhow::Result;
use cluster::Group;
use datasets::{MissingField, Reading};
use operators::classify::{Measure, counts, simhash};
use operators::text::Cleaner;
use operators::text::features::Features;

use super::training::Trained;
use crate::corpus::plan::Plan;
use crate::corpus::split::Split;
use crate::corpus::splits::{self, SplitReader};
use crate::output::map_output::MapOutputs;
use crate::output::rejects::{Rejects, SplitRejectsWriter};
use crate::progress::{Progress, Stage, StageTimer, thread_cpu};

/// Second reading of a planned corpus.
pub(super) struct Testing<'a> {
    pub plan: &'a Plan,
    pub reading: &'a Reading,
    pub trained: &'a Trained,
    pub features: &'a Features,
    pub cleaner: &'a Cleaner,
    pub progress: &'a Progress,
    /// Map outputs that the rejects are written to.
    pub outputs: &'a MapOutputs,
}

/// Result of the test documents.
#[derive(Debug, Default)]
pub(super) struct Tested {
    /// Labels of the test documents, in the order of the corpus.
    pub rows: Vec<Labelled>,
    /// Test documents whose id cannot be read.
    pub rejects: Rejects,
    /// First file without the field of the id.
    pub without_field: Option<MissingField>,
    /// CPU time of finding the nearest class of all test documents, by measure in the order of
    /// [`Measure::ALL`].
    pub measures: [Duration; Measure::ALL.len()],
    /// CPU time of making the fingerprints of all test documents from their counts.
    pub fingerprints: Duration,
}

/// Test document, the number of its label, and the numbers of its labels by each measure.
#[derive(Debug)]
pub(super) struct Labelled {
    pub id: String,
    pub label: u32,
    pub nearest: [Option<u32>; Measure::ALL.len()],
}

impl Testing<'_> {
    /// Reads the splits with test documents again, on `workers` threads.
    ///
    /// Memory: some 100 bytes for each test document; the features of one batch for each thread.
    pub fn run(&self, workers: usize) -> Result<Tested> {
        let stage = (self.progress, Stage::Compare);
        let mut all = Tested::default();
        for tested in splits::each_split(self.plan, &Group::alone(workers), stage, |at, number, split| {
            self.split(at, number, split)
        })? {
            all.rows.extend(tested.rows);
            all.rejects.join(tested.rejects);
            all.without_field = all.without_field.or(tested.without_field);
            all.measures.iter_mut().zip(tested.measures).for_each(|(all, spent)| *all += spent);
            all.fingerprints += tested.fingerprints;
        }
        Ok(all)
    }

    fn split(&self, at: &StageTimer, number: u32, split: &Split) -> Result<Tested> {
        let mut tested = Tested::default();
        let tests = &self.trained.tests;
        let start = tests.partition_point(|(doc, _)| doc.split() < number);
        let tests = &tests[start..tests.partition_point(|(doc, _)| doc.split() <= number)];
        if tests.is_empty() {
            return Ok(tested);
        }
        let label = |doc| tests.binary_search_by_key(&doc, |test| test.0).ok().map(|at| tests[at].1);
        let mut cleaner = self.cleaner.clone();
        let classes = &self.trained.classes;
        let mut rejects = SplitRejectsWriter::new(self.outputs, number);
        let mut reader = SplitReader::new(number, split, self.reading, at);
        while let Some(mut batch) = reader.next()? {
            let unread = batch.take_rejects();
            unread
                .iter()
                .filter(|reject| label(reject.doc).is_some())
                .try_for_each(|reject| rejects.push(reject))?;
            let docs: Vec<_> = batch.docs().filter_map(|doc| Some((doc, label(doc.doc)?))).collect();
            let all: Vec<_> =
                docs.iter().map(|(doc, _)| counts(self.features, cleaner.clean(doc.text))).collect();
            // Clocks are read once for all documents of a batch: reading one takes longer than comparing
            // fingerprints.
            let mut last = thread_cpu();
            let mut lap = || {
                let now = thread_cpu();
                now.saturating_sub(std::mem::replace(&mut last, now))
            };
            let fingerprints: Vec<_> = all.iter().map(|counts| simhash(counts)).collect();
            tested.fingerprints += lap();
            let vectors: Vec<_> =
                all.iter().zip(fingerprints).map(|(counts, print)| classes.vector(counts, print)).collect();
            let mut nearest = vec![[None; Measure::ALL.len()]; docs.len()];
            lap();
            for (at, (measure, spent)) in Measure::ALL.into_iter().zip(&mut tested.measures).enumerate() {
                for (vector, nearest) in vectors.iter().zip(&mut nearest) {
                    nearest[at] = classes.nearest(measure, vector);
                }
                *spent += lap();
            }
            let rows = docs.iter().zip(nearest);
            tested.rows.extend(rows.map(|(&(doc, label), nearest)| Labelled {
                id: doc.id.to_owned(),
                label,
                nearest,
            }));
        }
        tested.without_field = reader.without_field();
        tested.rejects = rejects.finish()?;
        Ok(tested)
    }
}
