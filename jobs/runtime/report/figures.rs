//! Figures of what a run has counted.

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

use super::chart::{Axis, Chart};
use crate::output::summary::RemovedShare;

/// A chart on the page.
#[derive(Serialize)]
pub(super) struct ReportFigure {
    pub title: &'static str,
    /// A sentence about the chart, for those who do not see it.
    pub said: String,
    pub svg: String,
}

/// Draws the figures of a summary. `threshold`: the least similarity of a match, in hundredths.
pub(super) fn figures(
    summary: &Value,
    threshold: Option<u64>,
    by_length: &[RemovedShare],
) -> Result<Vec<ReportFigure>> {
    let figures = [
        similarities(summary, threshold)?,
        cluster_sizes(summary)?,
        removed_by_length(by_length)?,
        last_nights(summary)?,
    ];
    Ok(figures.into_iter().flatten().collect())
}

/// Draws the similarities of the pairs; `None` if none is known.
fn similarities(summary: &Value, threshold: Option<u64>) -> Result<Option<ReportFigure>> {
    let similarity = numbers(&summary["pairs_by_similarity"]);
    if similarity.is_empty() {
        return Ok(None);
    }
    let most = similarity.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0.0, |most| most.0);
    Ok(Some(ReportFigure {
        title: "Similarity of the pairs that match",
        said: format!(
            "Histogram of the similarity of {} pairs that are not identical; {:.2} is the commonest",
            similarity.iter().map(|bar| bar.1).sum::<f64>(),
            most / 100.0
        ),
        svg: Chart::Columns {
            title: String::new(),
            x: Axis::linear("similarity"),
            y: Axis::linear("pairs"),
            columns: similarity.iter().map(|&(hundredth, count)| (hundredth / 100.0, count)).collect(),
            width: 0.01,
            mark: threshold.map(|threshold| threshold as f64 / 100.0),
        }
        .svg()?,
    }))
}

/// Draws the sizes of the clusters; `None` if there is no cluster.
fn cluster_sizes(summary: &Value) -> Result<Option<ReportFigure>> {
    let sizes = numbers(&summary["cluster_sizes"]);
    if sizes.is_empty() {
        return Ok(None);
    }
    let largest = sizes.last().map_or(0.0, |size| size.0);
    Ok(Some(ReportFigure {
        title: "Sizes of the clusters",
        said: format!(
            "Number of clusters of each size, both axes logarithmic; the largest has {largest} documents"
        ),
        svg: Chart::Lines {
            title: String::new(),
            x: Axis::logarithmic("documents of a cluster"),
            y: Axis::logarithmic("clusters"),
            lines: vec![("clusters".to_owned(), sizes)],
        }
        .svg()?,
    }))
}

/// Draws the shares of removed documents by length; `None` if none is removed.
fn removed_by_length(by_length: &[RemovedShare]) -> Result<Option<ReportFigure>> {
    if by_length.iter().all(|share| share.removed == 0) {
        return Ok(None);
    }
    let percent = |share: &RemovedShare| 100.0 * share.removed as f64 / share.documents.max(1) as f64;
    let groups = by_length.iter().map(|share| (share.name.clone(), vec![percent(share)]));
    Ok(Some(ReportFigure {
        title: "Removed, by length",
        said: "Share of the documents of each length that were removed; the table below has the numbers"
            .to_owned(),
        svg: Chart::Bars {
            title: String::new(),
            y: Axis::linear("percent removed"),
            series: vec!["removed".to_owned()],
            groups: groups.collect(),
        }
        .svg()?,
    }))
}

/// Draws what the last nights have kept and removed; `None` if there are not several.
fn last_nights(summary: &Value) -> Result<Option<ReportFigure>> {
    let nights = summary["state"]["nights"].as_array().map_or(&[][..], Vec::as_slice);
    if nights.len() <= 1 {
        return Ok(None);
    }
    let line = |name: &str| {
        let counts = (1..)
            .zip(nights)
            .map(|(night, counts): (u32, _)| (f64::from(night), counts[name].as_f64().unwrap_or(0.0)));
        (name.to_owned(), counts.collect())
    };
    Ok(Some(ReportFigure {
        title: "Documents of the last nights",
        said: format!("Kept and removed documents of {} nights, of which this one is the last", nights.len()),
        svg: Chart::Lines {
            title: String::new(),
            x: Axis::linear("night"),
            y: Axis::linear("documents"),
            lines: vec![line("kept"), line("removed")],
        }
        .svg()?,
    }))
}

/// Returns the numbers of an object whose keys are numbers, in their order.
fn numbers(object: &Value) -> Vec<(f64, f64)> {
    let entries = object.as_object().into_iter().flatten();
    let mut numbers: Vec<(f64, f64)> =
        entries.filter_map(|(key, value)| Some((key.parse().ok()?, value.as_f64()?))).collect();
    numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
    numbers
}
