//! The second reading: gives each test document a label by each measure.

use std::time::Duration;

use anyhow::Result;
use cluster::Group;
use datasets::{MissingField, Reading};
use operators::DocId;
use operators::classify::{Counts, Measure, counts, simhash};
use operators::text::Cleaner;
use operators::text::features::Features;
use serde::{Deserialize, Serialize};

use super::training::Trained;
use runtime::corpus::plan::Plan;
use runtime::corpus::split::Split;
use runtime::corpus::splits::{self, SplitReader};
use runtime::output::map_output::MapOutputs;
use runtime::output::rejects::{Rejects, SplitRejectsWriter};
use runtime::progress::{Progress, Stage, StageTimer, thread_cpu};

/// Number of features of the documents of a split that are held before they are compared: 16 MiB.
const HELD_FEATURES: usize = 1 << 20;

/// A test document with its counts: its position, its id, the number of its label.
type HeldTest = (DocId, String, u32, Counts);

/// Second reading of a planned corpus.
pub(super) struct Testing<'a> {
    pub plan: &'a Plan,
    pub reading: &'a Reading,
    pub trained: &'a Trained,
    pub features: &'a Features,
    pub cleaner: &'a Cleaner,
    /// Measures that are taken.
    pub measures: &'a [Measure],
    /// Whether each document gets the label of the last class, as the pseudo-code of the paper says.
    pub literal: bool,
    pub progress: &'a Progress,
    /// Map outputs that the rejects are written to.
    pub outputs: &'a MapOutputs,
}

/// Result of the test documents.
#[derive(Debug, Default, Deserialize, Serialize)]
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

/// Test document, the number of its label, and the numbers of its labels by each measure that was taken.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Labelled {
    /// Position in the corpus.
    pub place: DocId,
    pub id: String,
    pub label: u32,
    pub nearest: [Option<u32>; Measure::ALL.len()],
}

impl Testing<'_> {
    /// Reads the splits of this process with test documents again.
    ///
    /// Memory: some 100 bytes for each test document, and 16 MiB of features for each thread.
    pub fn run(&self, group: &Group) -> Result<Tested> {
        let stage = (self.progress, Stage::Compare);
        let tested =
            splits::each_split(self.plan, group, stage, |at, number, split| self.split(at, number, split))?;
        Ok(Tested::join(tested))
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
        let mut held = Vec::new();
        let mut features = 0;
        let mut rejects = SplitRejectsWriter::new(self.outputs, number);
        let mut reader = SplitReader::new(number, split, self.reading, at);
        while let Some(mut batch) = reader.next_batch()? {
            let unread = batch.take_rejects();
            unread
                .iter()
                .filter(|reject| label(reject.doc).is_some())
                .try_for_each(|reject| rejects.push(reject))?;
            for (doc, label) in batch.docs().filter_map(|doc| Some((doc, label(doc.doc)?))) {
                let counts = counts(self.features, cleaner.clean(doc.text));
                features += counts.len();
                held.push((doc.doc, doc.id.to_owned(), label, counts));
            }
            if features > HELD_FEATURES {
                self.compare(&held, &mut tested);
                held.clear();
                features = 0;
            }
        }
        self.compare(&held, &mut tested);
        tested.without_field = reader.without_field();
        tested.rejects = rejects.finish()?;
        Ok(tested)
    }

    /// Compares documents with the classes. Clocks are read once for all of them: reading one takes longer than comparing
    /// fingerprints, and a corpus of small files has few documents in a batch.
    fn compare(&self, held: &[HeldTest], tested: &mut Tested) {
        let classes = &self.trained.classes;
        let mut last = thread_cpu();
        let mut lap = || {
            let now = thread_cpu();
            now.saturating_sub(std::mem::replace(&mut last, now))
        };
        let fingerprints: Vec<_> = held.iter().map(|(.., counts)| simhash(counts)).collect();
        tested.fingerprints += lap();
        let of_docs = held.iter().zip(fingerprints);
        let vectors: Vec<_> = of_docs.map(|((.., counts), print)| classes.vector(counts, print)).collect();
        let mut nearest = vec![[None; Measure::ALL.len()]; held.len()];
        lap();
        for &measure in self.measures {
            for (vector, nearest) in vectors.iter().zip(&mut nearest) {
                nearest[measure as usize] = classes.nearest(measure, vector);
            }
            tested.measures[measure as usize] += lap();
        }
        if self.literal {
            nearest.fill([classes.last(); Measure::ALL.len()]);
        }
        let rows = held.iter().zip(nearest);
        tested.rows.extend(rows.map(|((place, id, label, _), nearest)| Labelled {
            place: *place,
            id: id.clone(),
            label: *label,
            nearest,
        }));
    }
}

impl Tested {
    /// Joins the results of several splits or processes.
    pub fn join(parts: impl IntoIterator<Item = Tested>) -> Self {
        let mut all = Tested::default();
        for tested in parts {
            all.rows.extend(tested.rows);
            all.rejects.join(tested.rejects);
            all.without_field = all.without_field.or(tested.without_field);
            all.measures.iter_mut().zip(tested.measures).for_each(|(all, spent)| *all += spent);
            all.fingerprints += tested.fingerprints;
        }
        all.rows.sort_by_key(|row| row.place);
        all
    }
}
