//! Pages of tables and figures, which `eval`, `chunk compare` and `reproduce` write.

use anyhow::Result;
use minijinja::context;
use serde::Serialize;

use super::chart::Chart;
use super::template::fill;

/// A part of a page.
pub enum PagePart {
    /// A chart with its caption.
    Figure(String, Chart),
    /// A table with its caption.
    Table(PageTable),
    /// A paragraph. Words between grave accents are code.
    Text(String),
}

/// A table with a caption. The first cell of each row names the row.
#[derive(Clone, Serialize)]
pub struct PageTable {
    /// Caption above the table.
    pub caption: String,
    /// Names of the columns, the first of which is that of the names of the rows.
    pub head: Vec<&'static str>,
    /// Cells of each row as texts, one for each column.
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
pub fn page_of_parts<'a>(title: &str, parts: impl IntoIterator<Item = &'a PagePart>) -> Result<String> {
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
