//! This format reads the articles that WikiExtractor writes.

use std::borrow::Cow;
use std::ops::Range;

use quick_xml::events::Event;

use super::element_format::{ElementDocument, ElementFormat, ElementKind, Elements};
use crate::Reading;
use crate::parts::cut_text::without;

/// WikiExtractor's own format, in files without an extension:
/// ```text
/// <doc id="12" url="https://zh.wikipedia.org/wiki?curid=12" title="数学">
/// 数学
///
/// 数学是...
/// </doc>
/// ```
/// The id is the attribute `id`, or `url` where that is named as the field of the id. The text is all between the two lines, as it
/// stands; the title is its first line. With `--json` WikiExtractor writes JSON lines, which are read as such.
///
/// Source: <https://github.com/attardi/wikiextractor>, the description of its output.
pub(crate) static WIKIEXTRACTOR: ElementFormat = ElementFormat {
    name: "wikiextractor",
    extension: ".txt",
    cuts_texts: true,
    recognises: |lines| lines.next().is_some_and(opens),
    open: |piece, reading| Elements::open(piece, reading, &ARTICLE),
};

static ARTICLE: ElementKind = ElementKind {
    name: "doc",
    opens,
    closes: b"</doc>",
    is_outside: <[u8]>::is_empty,
    document,
    without: article_without,
};

fn opens(line: &[u8]) -> bool {
    line.starts_with(b"<doc id=") && line.ends_with(b">")
}

fn document<'t>(article: &'t str, reading: &Reading) -> ElementDocument<'t> {
    let name = if matches!(reading.id(), ("url", true)) { "url" } else { "id" };
    let id = attribute(article, name).filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| (0, format!("the line <doc> has no {name}").into()))?;
    let text = text_of(article).ok_or((0, "the document has no </doc>".into()))?;
    Ok((id.into(), text.into()))
}

/// Returns an attribute of the first line. A title may hold quotation marks that end it too early; it is the last attribute.
fn attribute(article: &str, name: &str) -> Option<String> {
    let line = article.lines().next()?.trim();
    let Ok(Event::Start(tag)) = quick_xml::Reader::from_str(line).read_event() else { return None };
    let mut attributes = tag.attributes();
    let mut known = attributes.with_checks(false).map_while(Result::ok);
    let value = known.find(|attribute| attribute.key.as_ref() == name.as_bytes())?.value;
    let value: Cow<str> = String::from_utf8_lossy(&value);
    Some(quick_xml::escape::unescape(&value).map_or_else(|_| value.to_string(), Cow::into_owned))
}

/// Returns what stands between the first line and the closing one.
fn text_of(article: &str) -> Option<&str> {
    let (_, rest) = article.split_once('\n')?;
    Some(rest[..rest.rfind("</doc>")?].trim_end_matches(['\r', '\n']))
}

fn article_without(article: &str, cuts: &[Range<usize>]) -> Option<String> {
    let text = text_of(article)?;
    let start = text.as_ptr() as usize - article.as_ptr() as usize;
    let end = start + text.len();
    Some([&article[..start], &without(text, cuts)?, &article[end..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Record, check_splits, doc, read_file};

    #[test]
    fn every_split_gives_every_article_once() {
        let first = "<doc id=\"12\" url=\"https://x/?a=1&amp;b=2\" title=\"\"Heroes\"\">\nHeroes\n\na < b\n\n</doc>\n";
        let second = "<doc id=\"13\" url=\"https://x/13\" title=\"数学\">\n数学\n</doc>\n";
        let file = [first, "\n", second].concat();
        let expected = [doc("12", "Heroes\n\na < b"), doc("13", "数学")];
        let kept = [first, second].concat();
        assert_eq!(check_splits(&WIKIEXTRACTOR, "/AA/wiki_00", file.as_bytes(), kept.as_bytes()), expected);
        let by_url = Reading { id: Some("url".to_owned()), ..Reading::default() };
        let records = read_file(&WIKIEXTRACTOR, "/AA/wiki_00", file.as_bytes(), &by_url);
        assert_eq!(records[0], doc("https://x/?a=1&b=2", "Heroes\n\na < b"));
    }

    #[test]
    fn damage_costs_the_article_that_it_hits() {
        let file =
            "<doc id=\"1\" title=\"a\">\na\n<doc id=\"2\">\nb\n</doc>\nloose\n<doc id=\"\">\nc\n</doc>\n";
        let records = read_file(&WIKIEXTRACTOR, "/wiki_00", file.as_bytes(), &Reading::default());
        let said = |record: &Record| match record {
            Record::Doc { id, .. } => id.clone(),
            Record::Reject { reason, .. } => reason.clone(),
        };
        let found: Vec<String> = records.iter().map(said).collect();
        let rejects = ["the document has no </doc>", "text outside of any <doc>", "the line <doc> has no id"];
        assert_eq!(found, [rejects[0], "2", rejects[1], rejects[2]]);
    }

    #[test]
    fn parts_of_a_text_are_cut_out_of_its_article() {
        let article = "<doc id=\"1\">\nabcdef\n</doc>";
        let cut = article_without(article, &[1..3, 5..6]);
        assert_eq!(cut.as_deref(), Some("<doc id=\"1\">\nade\n</doc>"));
        assert!(opens(b"<doc id=\"1\">") && !opens(b"<doc>"));
    }
}
