//! The tables of a comparison, for people and as JSON.

use std::fmt;

use operators::blocks::peng2017::THRESHOLD;
use serde::Serialize;

use super::distances::{ChangedReport, DistanceReport};
use super::measured::MethodReport;

/// Result of a comparison: measurements of an input, and the figures of the paper on its texts or on generated ones.
#[derive(Debug, Default, Serialize)]
pub(super) struct BlockReport {
    /// Measurements of each method on the input. Empty without an input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub input: Vec<MethodReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<DistanceReport>,
    /// Figure 4.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_strings: Vec<ChangedReport>,
    /// Number of insertions of figures 5 and 6.
    #[serde(skip_serializing_if = "is_zero")]
    pub insertions: usize,
    /// Figures 5 and 6.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizeReport>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Measurements of each method on texts of one size and their copies with disturbances.
#[derive(Debug, Serialize)]
pub(super) struct SizeReport {
    pub text_bytes: u64,
    pub methods: Vec<MethodReport>,
}

impl fmt::Display for BlockReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.input.is_empty() {
            write_methods(f, &self.input)?;
            writeln!(f)?;
        }
        writeln!(f, "Distances of fingerprints of paragraphs; below {THRESHOLD} is similar")?;
        writeln!(
            f,
            "{:>9} {:>7} {:>5} {:>6} {:>5} {:>10}",
            "sentences", "shared", "bits", "mean", "sd", "% similar"
        )?;
        for row in &self.distances {
            let DistanceReport { sentences, shared, bits, mean, standard_deviation, percent_similar } = row;
            writeln!(
                f,
                "{sentences:>9} {shared:>7} {bits:>5} {mean:>6.1} {standard_deviation:>5.1} {percent_similar:>10.1}"
            )?;
        }
        writeln!(f, "\nFigure 4: similarity in % of a string and the same with changed characters")?;
        writeln!(
            f,
            "{:>9} {:>7} {:>6} {:>11} {:>11}",
            "sentences", "changed", "MD5", "simhash 128", "simhash 160"
        )?;
        for ChangedReport { sentences, changed, percent_by_hash, percent_by_simhash: [by_md5, by_sha1] } in
            &self.changed_strings
        {
            writeln!(f, "{sentences:>9} {changed:>7} {percent_by_hash:>6.1} {by_md5:>11.1} {by_sha1:>11.1}")?;
        }
        for SizeReport { text_bytes, methods } in &self.sizes {
            writeln!(
                f,
                "\nFigures 5 and 6: texts of {text_bytes} bytes, each with a copy in which {} pieces were inserted",
                self.insertions
            )?;
            write_methods(f, methods)?;
        }
        Ok(())
    }
}

/// Writes a line for each method. Percentages are of the bytes in.
fn write_methods(f: &mut fmt::Formatter<'_>, methods: &[MethodReport]) -> fmt::Result {
    let has_score = methods.iter().any(|method| method.recall.is_some());
    write!(
        f,
        "{:17} {:>11} {:>11} {:>11} {:>11}",
        "method", "bytes in", "bytes out", "with index", "with zstd"
    )?;
    write!(f, " {:>7} {:>7} {:>7} {:>8}", "saved %", "index %", "zstd %", "MB/s")?;
    writeln!(f, "{}", if has_score { "  precision %  recall %" } else { "" })?;
    for row in methods {
        write!(f, "{:17} {:>11} {:>11}", row.method, row.bytes_in, row.bytes_out)?;
        write!(f, " {:>11} {:>11}", row.bytes_with_index, row.bytes_with_zstd)?;
        write!(f, " {:>7.2} {:>7.2}", row.percent_saved, row.percent_saved_with_index)?;
        write!(f, " {:>7.2} {:>8.1}", row.percent_saved_with_zstd, row.mb_per_second)?;
        if has_score {
            let percent = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{share:.1}"));
            write!(f, "  {:>11}  {:>8}", percent(row.precision), percent(row.recall))?;
        }
        writeln!(f)?;
    }
    Ok(())
}
