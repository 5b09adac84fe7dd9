//! This format reads SogouCS and SogouCA: news pages of Sogou Labs, one pseudo-XML element for each page.

use std::ops::Range;

use super::element_format::{ElementDocument, ElementFormat, ElementKind, Elements, field, find};
use crate::Reading;
use crate::parts::cut_text::without;

/// The format of SogouCS, in GB18030 or another encoding:
/// ```text
/// <doc>
/// <url>http://...</url>
/// <docno>98590b972ad2f0ea-34913306c0bb3300</docno>
/// <contenttitle>...</contenttitle>
/// <content>...</content>
/// </doc>
/// ```
/// The id is `docno`, or the url where `url` is named as the field of the id. The text is the title, a
/// newline and the content, or the content alone where the title is empty or missing. The format is no XML:
/// `&` stands for itself, and nothing is unescaped. An unused url must be valid text too.
///
/// A root `<docs>` and blank lines may lie outside of documents; they are not copied.
///
/// Published by Sogou Labs: SogouCS at <http://www.sogou.com/labs/resource/cs.php>, SogouCA, which has the
/// same format, at <http://www.sogou.com/labs/resource/ca.php>.
pub(crate) static SOGOUCS: ElementFormat = ElementFormat {
    name: "sogoucs",
    extension: ".dat",
    cuts_texts: true,
    recognises: |lines| match lines.next() {
        // A root may come first.
        Some(b"<docs>") => lines.next() == Some(b"<doc>"),
        first => first == Some(b"<doc>"),
    },
    open: |piece, reading| Elements::open(piece, reading, &DOC),
};

static DOC: ElementKind = ElementKind {
    name: "doc",
    opens: |line| line == b"<doc>",
    closes: b"</doc>",
    is_outside: |line| matches!(line, b"" | b"<docs>" | b"</docs>"),
    document,
    without: document_without,
};

fn document<'t>(text: &'t str, reading: &Reading) -> ElementDocument<'t> {
    let docno = field(text, "<docno>", "</docno>")?.map_or("", |(docno, _)| docno.trim());
    if docno.is_empty() {
        return Err((0, "the document has no <docno>".into()));
    }
    let id = match reading.id() {
        ("url", true) => field(text, "<url>", "</url>")?.map_or("", |(url, _)| url.trim()),
        _ => docno,
    };
    if id.is_empty() {
        return Err((0, "the document has no <url>".into()));
    }
    let title = field(text, "<contenttitle>", "</contenttitle>")?.map_or("", |(title, _)| title.trim());
    let content = field(text, "<content>", "</content>")?;
    let (content, rest) = content.ok_or((0, "the document has no <content>".into()))?;
    // If the newline between two documents is damaged, the second one must not be lost in silence.
    if find(rest, "<docno>").is_some() {
        return Err((0, "the document has two <docno>".into()));
    }
    let text = if title.is_empty() { content.into() } else { format!("{title}\n{content}").into() };
    Ok((id.into(), text))
}

/// Returns a document without these ranges of its text, of which the title and the content each lose their part. The
/// newline between the two is in no element. `None` if the text has no such ranges.
fn document_without(document: &str, cuts: &[Range<usize>]) -> Option<String> {
    let value =
        |tag: [&str; 2]| field(document, tag[0], tag[1]).ok().flatten().map_or("", |(value, _)| value);
    let place = |value: &str| {
        let start = (value.as_ptr() as usize).saturating_sub(document.as_ptr() as usize);
        start..start + value.len()
    };
    let title = value(["<contenttitle>", "</contenttitle>"]).trim();
    let content = value(["<content>", "</content>"]);
    let begins = if title.is_empty() { 0 } else { title.len() + 1 };
    let within = |part: Range<usize>| -> Vec<_> {
        let clipped = cuts.iter().map(|cut| cut.start.max(part.start)..cut.end.min(part.end));
        clipped
            .filter(|cut| cut.start < cut.end)
            .map(|cut| cut.start - part.start..cut.end - part.start)
            .collect()
    };
    let mut parts = vec![(place(content), without(content, &within(begins..begins + content.len()))?)];
    if !title.is_empty() {
        parts.push((place(title), without(title, &within(0..title.len()))?));
    }
    parts.sort_by_key(|(place, _)| place.start);
    let mut whole = String::with_capacity(document.len());
    let mut end = 0;
    for (place, value) in parts {
        whole.push_str(document.get(end..place.start)?);
        whole.push_str(&value);
        end = place.end;
    }
    whole.push_str(document.get(end..)?);
    Some(whole)
}

#[cfg(test)]
mod tests;
