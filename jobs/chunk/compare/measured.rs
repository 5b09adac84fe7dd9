//! Measures a block method: what it keeps of texts, what it finds, and how fast.

use std::io::{self, Write};
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use operators::blocks::{BlockSpec, DuplicateScore};
use serde::Serialize;
use zstd::stream::write::Encoder;

/// Binary logarithm of the window of Zstandard: 128 MiB, which is what `zstd --long` takes.
const WINDOW_LOG: u32 = 27;

/// Texts that are added to one store.
pub(super) struct MeasuredCorpus<'a> {
    pub texts: Vec<&'a str>,
    /// For each text the ranges, in bytes, that repeat earlier text. The list is empty if they are not known.
    pub duplicates: Vec<Vec<Range<usize>>>,
}

impl<'a> MeasuredCorpus<'a> {
    /// Makes a corpus whose duplicates are not known.
    pub fn of_texts(texts: &'a [String]) -> Self {
        MeasuredCorpus { texts: texts.iter().map(String::as_str).collect(), duplicates: Vec::new() }
    }
}

/// Measurements of a method on one or several corpora. Each corpus has a store of its own, and the numbers are sums.
#[derive(Debug, Default, Serialize)]
pub(super) struct MethodReport {
    pub method: String,
    /// Bytes of the texts, in UTF-8.
    pub bytes_in: u64,
    /// Bytes of the kept data.
    pub bytes_out: u64,
    /// The same with 40 bytes for each block in the index and 8 for each reference.
    pub bytes_with_index: u64,
    /// Bytes of data, references and lengths of blocks, compressed together.
    pub bytes_with_zstd: u64,
    pub blocks: u64,
    pub references: u64,
    /// Percentages of the bytes in that are saved, for the three numbers of bytes above.
    pub percent_saved: f64,
    pub percent_saved_with_index: f64,
    pub percent_saved_with_zstd: f64,
    /// Millions of bytes cut, compared and kept in a second, without compression.
    pub mb_per_second: f64,
    /// Percentage of the bytes taken for equal or similar that are duplicates; `None` if no duplicates are known.
    pub precision: Option<f64>,
    /// Percentage of the duplicate bytes that are left out; `None` if no duplicates are known.
    pub recall: Option<f64>,
}

/// Measures methods one after the other.
///
/// # Errors
/// When Zstandard fails, or a spec was not parsed.
pub(super) fn measure_all(
    specs: &[BlockSpec],
    corpora: &[MeasuredCorpus],
    level: i32,
) -> Result<Vec<MethodReport>> {
    specs.iter().map(|spec| measure(spec, corpora, level)).collect()
}

fn measure(spec: &BlockSpec, corpora: &[MeasuredCorpus], level: i32) -> Result<MethodReport> {
    let mut report = MethodReport { method: spec.to_string(), ..MethodReport::default() };
    let mut score = DuplicateScore::default();
    let mut spent = Duration::ZERO;
    for corpus in corpora {
        let mut store = spec.open()?;
        let start = Instant::now();
        let found: Vec<_> = corpus.texts.iter().map(|text| store.add(text)).collect();
        spent += start.elapsed();
        for ((text, found), duplicates) in corpus.texts.iter().zip(&found).zip(&corpus.duplicates) {
            score.add(text.len(), found, duplicates);
        }
        let ledger = store.ledger();
        report.bytes_in += ledger.bytes_in();
        report.bytes_out += ledger.data_bytes();
        report.bytes_with_index += ledger.bytes_with_index();
        report.bytes_with_zstd += compressed_bytes(&ledger.restorable(), level)?;
        report.blocks += ledger.blocks();
        report.references += ledger.references();
    }
    let bytes_in = report.bytes_in.max(1) as f64;
    let saved = |bytes_out: u64| 100.0 * (report.bytes_in as f64 - bytes_out as f64) / bytes_in;
    report.percent_saved = saved(report.bytes_out);
    report.percent_saved_with_index = saved(report.bytes_with_index);
    report.percent_saved_with_zstd = saved(report.bytes_with_zstd);
    report.mb_per_second = report.bytes_in as f64 / 1e6 / spent.as_secs_f64().max(1e-9);
    if score.duplicates > 0 {
        report.precision = score.precision().map(|share| 100.0 * share);
        report.recall = score.recall().map(|share| 100.0 * share);
    }
    Ok(report)
}

/// Returns the length of these bytes, compressed in one frame that finds repetitions at long distances.
fn compressed_bytes(bytes: &[u8], level: i32) -> Result<u64> {
    let compress = || -> io::Result<u64> {
        let mut encoder = Encoder::new(CountedBytes(0), level)?;
        encoder.long_distance_matching(true)?;
        encoder.window_log(WINDOW_LOG)?;
        encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
        encoder.write_all(bytes)?;
        Ok(encoder.finish()?.0)
    };
    compress().context("could not compress the kept data")
}

/// Counts the bytes that are written to it.
struct CountedBytes(u64);

impl Write for CountedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_a_method_add_up() {
        let texts = ["一。二。".repeat(100), "一。三。".repeat(100)];
        let known =
            MeasuredCorpus { duplicates: vec![vec![], vec![0..6]], ..MeasuredCorpus::of_texts(&texts) };
        let specs = [BlockSpec::parse("sentence").unwrap()];
        let report = &measure_all(&specs, &[known], 1).unwrap()[0];
        assert_eq!((report.bytes_in, report.bytes_out, report.blocks, report.references), (2400, 18, 3, 400));
        assert_eq!((report.percent_saved, report.recall), (99.25, Some(100.0)));
        assert_eq!(report.bytes_with_index, 18 + 120 + 3200);
        assert!(report.percent_saved_with_index < 0.0 && report.bytes_with_zstd < 200, "{report:?}");
        let unknown = &measure_all(&specs, &[MeasuredCorpus::of_texts(&texts)], 1).unwrap()[0];
        assert_eq!((unknown.precision, unknown.recall), (None, None));
    }
}
