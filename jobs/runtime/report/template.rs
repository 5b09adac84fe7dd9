//! The templates of pages, and the filters that they use.

use anyhow::{Context, Result};
use minijinja::{Environment, HtmlEscape, Value};
use serde::Serialize;

use crate::cli::terminal::grouped;

/// Fills in a template, as HTML that needs no other file. Whatever comes from `values` is escaped.
pub(super) fn fill(template: &str, values: impl Serialize) -> Result<String> {
    let mut templates = Environment::new();
    templates.set_trim_blocks(true);
    templates.set_lstrip_blocks(true);
    templates.add_filter("grouped", |number: f64| grouped(number.round() as u64));
    templates.add_filter("bytes", |bytes: f64| bytes_of(bytes));
    templates.add_filter("said", |text: &str| Value::from_safe_string(said(text)));
    templates.add_template("base.html", include_str!("base.html"))?;
    templates.add_template("page.html", include_str!("page.html"))?;
    templates.add_template("parts.html", include_str!("parts.html"))?;
    let page = templates.get_template(template)?.render(values);
    page.context("could not fill in the template of a page")
}

/// Writes a number of bytes for people.
fn bytes_of(bytes: f64) -> String {
    match bytes {
        1e9.. => format!("{:.2} GB", bytes / 1e9),
        1e6.. => format!("{:.1} MB", bytes / 1e6),
        1e3.. => format!("{:.1} KB", bytes / 1e3),
        _ => format!("{bytes:.0} bytes"),
    }
}

/// Writes a sentence as HTML. Words between grave accents are code.
fn said(text: &str) -> String {
    let pieces = text.split('`').enumerate().map(|(at, piece)| match at % 2 {
        1 => format!("<code>{}</code>", HtmlEscape(piece)),
        _ => HtmlEscape(piece).to_string(),
    });
    pieces.collect()
}
