//! This format reads dumps of MediaWiki, such as those of Wikipedia.

use std::borrow::Cow;

use super::element_format::{ElementDocument, ElementFormat, ElementKind, Elements, Wrong, field};
use crate::Reading;

/// A dump of pages, plain or compressed:
/// ```text
/// <mediawiki ...>
///   <page>
///     <title>数学</title>
///     <id>13</id>
///     <revision>
///       <text bytes="9" xml:space="preserve">'''数学'''是...</text>
///     </revision>
///   </page>
/// ```
/// The id is that of the page, or the title where `title` is named as the field of the id. The text is that of the last revision that the
/// page has, in the markup of the wiki. A page whose text is hidden is a document without text. What stands around the pages is not copied,
/// so a part has pages without a root.
///
/// Source: the schema of the export, <https://www.mediawiki.org/xml/export-0.11.xsd>.
pub(crate) static MEDIAWIKI: ElementFormat = ElementFormat {
    name: "mediawiki",
    extension: ".xml",
    cuts_texts: false,
    recognises: |lines| {
        let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"<?xml"));
        lines.next().is_some_and(|line| line.starts_with(b"<mediawiki") || line == b"<page>")
    },
    open: |piece, reading| Elements::open(piece, reading, &PAGE),
};

static PAGE: ElementKind = ElementKind {
    name: "page",
    opens: |line| line == b"<page>",
    closes: b"</page>",
    is_outside,
    document,
    without: |_, _| None,
};

/// Tags of the root, and of what describes the wiki before the pages. The other tags of a page are none of these, so a page whose first
/// line is damaged is noticed.
const OUTSIDE: [&str; 10] = [
    "?xml",
    "mediawiki",
    "siteinfo",
    "sitename",
    "dbname",
    "base",
    "generator",
    "case",
    "namespaces",
    "namespace",
];

fn is_outside(line: &[u8]) -> bool {
    let Some(tag) = line.strip_prefix(b"<") else { return line.is_empty() };
    let tag = tag.strip_prefix(b"/").unwrap_or(tag);
    let end = tag.iter().position(|byte| b" >/".contains(byte)).unwrap_or(tag.len());
    OUTSIDE.iter().any(|name| name.as_bytes() == &tag[..end])
}

fn document<'t>(page: &'t str, reading: &Reading) -> ElementDocument<'t> {
    let name = if matches!(reading.id(), ("title", true)) { "title" } else { "id" };
    let id = field(page, &format!("<{name}>"), &format!("</{name}>"))?.map_or("", |(id, _)| id.trim());
    if id.is_empty() {
        return Err((0, format!("the page has no <{name}>").into()));
    }
    let text = page.rfind("<text").map_or(Ok(""), |at| value(page, at))?;
    Ok((unescaped(page, id)?, unescaped(page, text)?))
}

/// Returns the contents of the element that begins at a place.
fn value(page: &str, at: usize) -> Result<&str, Wrong> {
    let (tag, rest) = page[at..].split_once('>').ok_or((at, "a tag is not closed".into()))?;
    if tag.ends_with('/') {
        return Ok("");
    }
    rest.split_once("</text>").map(|(text, _)| text).ok_or_else(|| (at, "<text> is not closed".into()))
}

fn unescaped<'t>(page: &str, value: &'t str) -> Result<Cow<'t, str>, Wrong> {
    // An empty text may be no part of the page.
    let at = (value.as_ptr() as usize).saturating_sub(page.as_ptr() as usize);
    quick_xml::escape::unescape(value).map_err(|error| (at, format!("the page is no XML: {error}").into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::testing::{Record, check_splits, doc, read_file};

    const HEAD: &str = "<mediawiki xmlns=\"http://www.mediawiki.org/xml/export-0.11/\" xml:lang=\"zh\">\n  \
                        <siteinfo>\n    <sitename>维基百科</sitename>\n  </siteinfo>\n";

    fn page(id: u64, title: &str, text: &str) -> String {
        format!(
            "  <page>\n    <title>{title}</title>\n    <ns>0</ns>\n    <id>{id}</id>\n    <revision>\n      \
             <id>9{id}</id>\n      {text}\n    </revision>\n  </page>\n"
        )
    }

    #[test]
    fn every_split_gives_every_page_once() {
        let escaped = "<text bytes=\"9\" xml:space=\"preserve\">'''数学'''\n&lt;ref&gt;\n是</text>";
        let pages = [
            page(1, "甲 &amp; 乙", escaped),
            page(2, "b", "<text bytes=\"0\" />"),
            page(3, "c", "<text>c</text>"),
        ];
        let file = [HEAD, &pages.concat(), "</mediawiki>\n"].concat();
        let text = "'''数学'''\n<ref>\n是";
        let records = check_splits(&MEDIAWIKI, "/zhwiki.xml", file.as_bytes(), pages.concat().as_bytes());
        assert_eq!(records, [doc("1", text), doc("2", ""), doc("3", "c")]);
        let by_title = Reading { id: Some("title".to_owned()), ..Reading::default() };
        assert_eq!(read_file(&MEDIAWIKI, "/a.xml", file.as_bytes(), &by_title)[0], doc("甲 & 乙", text));
        assert!(MEDIAWIKI.recognises("/a.xml", HEAD.as_bytes()));
        assert!(!MEDIAWIKI.recognises("/a.xml", b"<rss>\n"));
    }

    #[test]
    fn the_last_revision_counts_and_damage_costs_a_page() {
        let two = page(1, "a", "<text>old</text>\n    </revision>\n    <revision>\n      <text>new</text>");
        let lost = page(4, "d", "<text>d</text>").replacen("<page>", "<pag>", 1);
        let others = [page(2, "b", "<text>a &x; b</text>"), page(3, "c", "<text>c")].concat();
        let file = [HEAD, &two, "loose\n", &others, &lost].concat();
        let records = read_file(&MEDIAWIKI, "/a.xml", file.as_bytes(), &Reading::default());
        let said = |record: &Record| match record {
            Record::Doc { text, .. } => text.clone(),
            Record::Reject { reason, .. } => reason.clone(),
        };
        let found: Vec<String> = records.iter().map(said).collect();
        assert_eq!(found[..2], ["new", "text outside of any <page>"]);
        assert!(found[2].contains("no XML") && found[3].contains("<text> is not closed"), "{found:?}");
        assert_eq!(found[4..], ["text outside of any <page>"]);
    }
}
