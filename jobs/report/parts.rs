//! Pages of tables and figures, which `eval`, `chunk compare` and `reproduce` write.

use anyhow::Result;
use minijinja::context;
use serde::Serialize;

use super::chart::Chart;
use super::template::fill;

/// A part of a page.
pub(crate) enum PagePart {
    /// A chart with its caption.
    Figure(String, Chart),
    Table(PageTable),
    /// A paragraph. Words between grave accents are code.
    Text(String),
}

/// A table with a caption. The first cell of each row names the row.
#[derive(Clone, Serialize)]
pub(crate) struct PageTable {
    pub caption: String,
    pub head: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
}

/// A part as the template shows it.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum ShownPart<'a> {
    Figure { said: &'a str, svg: String },
    Table(&'a PageTable),
    Text(&'a str),
}

/// Returns a page of these parts, as HTML that needs no other file.
pub(crate) fn page_of_parts<'a>(
    title: &str,
    parts: impl IntoIterator<Item = &'a PagePart>,
) -> Result<String> {
    let shown = |part: &'a PagePart| {
        Ok(match part {
            PagePart::Figure(caption, chart) => ShownPart::Figure { said: caption, svg: chart.svg()? },
            PagePart::Table(table) => ShownPart::Table(table),
            PagePart::Text(text) => ShownPart::Text(text),
        })
    };
    let parts = parts.into_iter().map(shown).collect::<Result<Vec<_>>>()?;
    fill("parts.html", context! { title, parts })
}
