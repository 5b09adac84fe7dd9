//! The page of a comparison: the tables of `report.rs`, and charts of them.

use anyhow::Result;

use super::distances::{ChangedReport, DistanceReport};
use super::measured::MethodReport;
use super::report::{BlockReport, SizeReport};
use runtime::cli::terminal::grouped;
use runtime::report::chart::{Axis, Chart};
use runtime::report::parts::{PagePart, PageTable, page_of_parts};

impl BlockReport {
    /// Returns the page.
    pub fn page(&self) -> Result<String> {
        let mut parts = Vec::new();
        if !self.input.is_empty() {
            parts.push(methods_table("Methods on the input".to_owned(), &self.input));
            parts.push(saved_of_input(&self.input));
        }
        parts.push(self.distances_table());
        parts.push(self.figure_4());
        for SizeReport { text_bytes, methods } in &self.sizes {
            let insertions = self.insertions;
            let caption = format!(
                "Texts of {} bytes, each with a copy in which {insertions} pieces were inserted",
                grouped(*text_bytes)
            );
            parts.push(methods_table(caption, methods));
        }
        let saved = "Figure 5: bytes saved, percent";
        parts.push(self.by_size(saved, |method| Some(method.percent_saved)));
        parts.push(self.by_size("Figure 6: precision, percent", |method| method.precision));
        parts.push(self.by_size("Recall, percent", |method| method.recall));
        page_of_parts("Block methods, by what they save", &parts)
    }

    fn distances_table(&self) -> PagePart {
        let row = |row: &DistanceReport| {
            let (mean, deviation) = (row.mean, row.standard_deviation);
            let counts = [row.sentences.to_string(), row.shared.to_string(), row.bits.to_string()];
            let measured = [mean, deviation, row.percent_similar].map(|value| format!("{value:.1}"));
            counts.into_iter().chain(measured).collect()
        };
        PagePart::Table(PageTable {
            caption: "Distances of fingerprints of paragraphs".to_owned(),
            head: vec!["sentences", "shared", "bits", "mean", "standard deviation", "% similar"],
            rows: self.distances.iter().map(row).collect(),
        })
    }

    /// Draws figure 4 for the longest strings.
    fn figure_4(&self) -> PagePart {
        let longest = self.changed_strings.iter().map(|row| row.sentences).max().unwrap_or(0);
        let line = |name: &str, of: &dyn Fn(&ChangedReport) -> f64| {
            let rows = self.changed_strings.iter().filter(|row| row.sentences == longest);
            (name.to_owned(), rows.map(|row| (row.changed as f64, of(row))).collect())
        };
        let caption = format!(
            "Figure 4: similarity of a string of {longest} sentences and the same with changed characters, percent."
        );
        let chart = Chart::Lines {
            title: String::new(),
            x: Axis::linear("changed characters"),
            y: Axis::linear("percent"),
            lines: vec![
                line("MD5", &|row| row.percent_by_hash),
                line("SimHash, 128 bits", &|row| row.percent_by_simhash[0]),
                line("SimHash, 160 bits", &|row| row.percent_by_simhash[1]),
            ],
        };
        PagePart::Figure(caption, chart)
    }

    /// Draws a value of each method for each size. A value that is not known has no bar.
    fn by_size(&self, caption: &str, value: fn(&MethodReport) -> Option<f64>) -> PagePart {
        let methods = self.sizes.first().map_or(&[][..], |size| &size.methods);
        let group = |size: &SizeReport| {
            let values = size.methods.iter().map(|method| value(method).unwrap_or(0.0));
            (format!("{} bytes", grouped(size.text_bytes)), values.collect())
        };
        let chart = Chart::Bars {
            title: String::new(),
            y: Axis::linear("percent"),
            series: methods.iter().map(|method| method.method.clone()).collect(),
            groups: self.sizes.iter().map(group).collect(),
        };
        PagePart::Figure(format!("{caption}, by size of the texts."), chart)
    }
}

/// Draws what each method saves of the input.
fn saved_of_input(methods: &[MethodReport]) -> PagePart {
    let group = |method: &MethodReport| {
        let MethodReport { percent_saved, percent_saved_with_index, percent_saved_with_zstd, .. } = method;
        (method.method.clone(), vec![*percent_saved, *percent_saved_with_index, *percent_saved_with_zstd])
    };
    let chart = Chart::Bars {
        title: String::new(),
        y: Axis::linear("percent"),
        series: ["blocks", "with index", "with zstd"].map(str::to_owned).to_vec(),
        groups: methods.iter().map(group).collect(),
    };
    PagePart::Figure("Bytes of the input that each method saves, percent.".to_owned(), chart)
}

fn methods_table(caption: String, methods: &[MethodReport]) -> PagePart {
    let row = |row: &MethodReport| {
        let bytes = [row.bytes_in, row.bytes_out, row.bytes_with_index, row.bytes_with_zstd];
        let saved = [row.percent_saved, row.percent_saved_with_index, row.percent_saved_with_zstd];
        let score = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{share:.1}"));
        let mut cells = vec![row.method.clone()];
        cells.extend(bytes.map(grouped));
        cells.extend(saved.map(|percent| format!("{percent:.2}")));
        cells.push(format!("{:.1}", row.mb_per_second));
        cells.extend([score(row.precision), score(row.recall)]);
        cells
    };
    let head = vec![
        "method",
        "bytes in",
        "bytes out",
        "with index",
        "with zstd",
        "saved %",
        "index %",
        "zstd %",
        "MB/s",
        "precision %",
        "recall %",
    ];
    PagePart::Table(PageTable { caption, head, rows: methods.iter().map(row).collect() })
}
