//! The report of a comparison: tables for people, and JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use operators::classify::Measure;
use serde::Serialize;
use serde_json::Value;

use super::testing::Tested;
use super::training::Label;
use runtime::cli::terminal::grouped;
use runtime::output::summary::{InputCounters, InputEntry, write_plain_counters};
use runtime::output::{JobSummary, rejected_words};
use runtime::progress::StageRow;
use runtime::progress::usage::ResourceUsage;

/// Report of a run. It is written to `_SUCCESS`; its tables are printed.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub version: &'static str,
    pub configuration: Value,
    pub counters: CompareCounters,
    pub measures: Vec<MeasureReport>,
    /// CPU time of making the fingerprints of all test documents from their features.
    pub fingerprint_cpu_milliseconds: f64,
    pub classes: Vec<ClassReport>,
    pub process: ResourceUsage,
    pub seconds: BTreeMap<&'static str, f64>,
    pub stages: Vec<StageRow>,
    pub input: Vec<InputEntry>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct CompareCounters {
    #[serde(flatten)]
    pub input: InputCounters,
    pub records_read: u64,
    pub text_bytes: u64,
    /// Number of documents whose illegal bytes were read as U+FFFD.
    pub replaced: u64,
    pub training: u64,
    pub tested: u64,
    pub unlabelled: u64,
    pub rejected: u64,
    /// Number of different features of the training documents.
    pub features: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct MeasureReport {
    pub measure: &'static str,
    /// Number of test documents that got their own label.
    pub correct: u64,
    /// Their share of all test documents.
    pub accuracy: f64,
    /// CPU time of finding the nearest class of all test documents.
    pub cpu_milliseconds: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct ClassReport {
    pub label: String,
    pub training: u64,
    pub tested: u64,
    /// Number of test documents of this class that got this label, by measure.
    pub correct: BTreeMap<&'static str, u64>,
}

/// Returns the rows of both tables.
pub(super) fn tables(
    labels: &[Label],
    measures: &[Measure],
    tested: &Tested,
) -> (Vec<MeasureReport>, Vec<ClassReport>) {
    let mut classes: Vec<_> = labels
        .iter()
        .map(|Label { name, training }| ClassReport {
            label: name.clone(),
            training: *training,
            tested: 0,
            correct: measures.iter().map(|measure| (measure.name(), 0)).collect(),
        })
        .collect();
    for row in &tested.rows {
        let class = &mut classes[row.label as usize];
        class.tested += 1;
        for measure in measures {
            let correct = row.nearest[*measure as usize] == Some(row.label);
            *class.correct.entry(measure.name()).or_default() += u64::from(correct);
        }
    }
    let measure = |measure: &Measure| {
        let correct = classes.iter().map(|class| class.correct[measure.name()]).sum();
        MeasureReport {
            measure: measure.name(),
            correct,
            accuracy: correct as f64 / tested.rows.len() as f64,
            cpu_milliseconds: milliseconds(tested.measures[*measure as usize]),
        }
    };
    (measures.iter().map(measure).collect(), classes)
}

/// Returns a time in milliseconds, exact to the microsecond.
pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}

/// Writes both tables. Labels come last in their lines, since some characters are two columns wide.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tested = self.counters.tested;
        writeln!(f, "{:>8} {:>9}  {:>12}  measure", "accuracy", "correct", "CPU ms")?;
        for MeasureReport { measure, correct, accuracy, cpu_milliseconds } in &self.measures {
            writeln!(f, "{:>7.2}% {correct:>9}  {cpu_milliseconds:>12.3}  {measure}", 100.0 * accuracy)?;
        }
        let made = self.fingerprint_cpu_milliseconds;
        writeln!(f, "of {tested} test documents, whose fingerprints took another {made:.3} CPU ms\n")?;
        write!(f, "{:>9} {:>9}", "training", "test")?;
        self.measures.iter().try_for_each(|measure| write!(f, " {:>11}", measure.measure))?;
        write!(f, "  class")?;
        for class in &self.classes {
            write!(f, "\n{:>9} {:>9}", class.training, class.tested)?;
            self.measures
                .iter()
                .try_for_each(|measure| write!(f, " {:>11}", class.correct[measure.measure]))?;
            write!(f, "  {}", cluster::one_line(&class.label))?;
        }
        Ok(())
    }
}

impl JobSummary for CompareCounters {
    fn done(&self, rejects: &str) -> String {
        let [tested, training] = [self.tested, self.training].map(grouped);
        let rejected = rejected_words(self.rejected, rejects);
        format!("{tested} documents tested against {training} others{rejected}")
    }
}

impl fmt::Display for CompareCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = [
            ("Input files", self.input.input_files),
            ("Input bytes", self.input.input_bytes),
            ("Records read", self.records_read),
            ("Documents with illegal bytes replaced", self.replaced),
            ("Training documents", self.training),
            ("Test documents", self.tested),
            ("Documents without a label", self.unlabelled),
            ("Rejected", self.rejected),
            ("Different features", self.features),
        ];
        write_plain_counters(f, &values)
    }
}
