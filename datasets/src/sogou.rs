//! SogouCS and SogouCA: news pages of Sogou Labs, one pseudo-XML element per page.

use std::borrow::Cow;

use operators::{DocBatch, Reject};

use crate::compression::Compression;
use crate::lines::{Lines, MAX_BYTES};
use crate::part::PartWriter;
use crate::reasons::Reasons;
use crate::{Error, Fate, Format, Parts, Piece, Reader, Reading, Writer, encoding};

/// The format of SogouCS, in GB18030 or UTF-8, decided for each document:
/// ```text
/// <doc>
/// <url>http://…</url>
/// <docno>98590b972ad2f0ea-34913306c0bb3300</docno>
/// <contenttitle>…</contenttitle>
/// <content>…</content>
/// </doc>
/// ```
/// The id is `docno`; the text is the title, a newline and the content, or the content alone where the
/// title is empty or missing. It is no XML: `&` stands for itself, and nothing is unescaped. The url is
/// not used, but it must be text too.
///
/// A document begins at a line that is `<doc>` and ends with `</doc>`, or where the next begins if that
/// is missing. The file splits at such lines: no byte of `<`, `>`, `/` or the newline can be the later
/// byte of a character of GB18030, whose second bytes are 0x40 and above, and 0x30–0x39 in those of
/// four bytes, as is the fourth. What lies outside documents, such as a root `<docs>`, is not copied.
///
/// Published by Sogou Labs, <http://www.sogou.com/labs/resource/cs.php>.
pub struct SogouCs;

/// The one value of [`SogouCs`].
pub static SOGOUCS: SogouCs = SogouCs;

impl Format for SogouCs {
    fn name(&self) -> &'static str {
        "sogoucs"
    }

    /// By its first line: `<doc>`, or `<docs>` and then `<doc>`.
    fn recognises(&self, _path: &str, head: &[u8]) -> bool {
        let mut lines = encoding::without_mark(head).split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let mut first = lines.next();
        if first == Some(b"<docs>") {
            first = lines.next();
        }
        first == Some(b"<doc>")
    }

    fn splits(&self, path: &str) -> bool {
        Compression::named(path).1 == Compression::None
    }

    fn open(&self, piece: &Piece, _reading: &Reading) -> Result<Box<dyn Reader>, Error> {
        Ok(Box::new(SogouReader(Elements::open(piece)?)))
    }

    fn writer<'a>(&self, parts: &'a dyn Parts, _reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(SogouWriter {
            kept: PartWriter::new(parts, "kept", ".dat"),
            removed: PartWriter::new(parts, "removed", ".dat"),
            reasons: Reasons::new(parts),
        })
    }
}

/// The documents of a piece as bytes: the reader and the writer both go by these. Holds one document.
struct Elements {
    lines: Lines,
    end: u64,
    /// The line that ended the document before its `</doc>`, and where it lies.
    next_opening: Option<(u64, Vec<u8>)>,
    bytes: Vec<u8>,
}

struct Element<'a> {
    /// Of its `<doc>` line.
    offset: u64,
    bytes: &'a [u8],
    /// `false`: it is longer than is held, and `bytes` is how it begins.
    whole: bool,
}

impl Elements {
    fn open(piece: &Piece) -> Result<Self, Error> {
        let lines = Lines::open_past(piece)?;
        let end = if lines.compression() == Compression::None { piece.end } else { u64::MAX };
        Ok(Elements { lines, end, next_opening: None, bytes: Vec::new() })
    }

    fn next(&mut self) -> Result<Option<Element<'_>>, Error> {
        self.bytes.clear();
        self.bytes.shrink_to(1 << 20);
        let Some(offset) = self.find_opening()? else { return Ok(None) };
        if offset >= self.end {
            return Ok(None);
        }
        let mut whole = true;
        while let Some(line) = self.lines.next()? {
            let tag = line.bytes.trim_ascii();
            if tag == b"<doc>" {
                self.next_opening = Some((line.offset, line.bytes.to_vec()));
                break;
            }
            if !line.whole || self.bytes.len() + line.bytes.len() > MAX_BYTES {
                whole = false;
                self.bytes.truncate(Reject::HEAD_BYTES);
            }
            if whole {
                self.bytes.extend_from_slice(line.bytes);
            }
            if tag.ends_with(b"</doc>") {
                break;
            }
        }
        Ok(Some(Element { offset, bytes: &self.bytes, whole }))
    }

    /// Puts the next `<doc>` line into `bytes` and says where it lies.
    fn find_opening(&mut self) -> Result<Option<u64>, Error> {
        if let Some((offset, line)) = self.next_opening.take() {
            self.bytes = line;
            return Ok(Some(offset));
        }
        while let Some(line) = self.lines.next()? {
            if line.offset >= self.end {
                break;
            }
            if line.bytes.trim_ascii() == b"<doc>" {
                self.bytes.extend_from_slice(line.bytes);
                return Ok(Some(line.offset));
            }
        }
        Ok(None)
    }
}

/// Its id and its text; else the offset in it of what is wrong, and the reason.
fn document(element: &Element) -> Result<(String, String), (usize, Cow<'static, str>)> {
    if !element.whole {
        return Err((0, "the document is longer than 1 GiB".into()));
    }
    let text = encoding::decode(element.bytes).map_err(|illegal| (illegal.offset, illegal.reason.into()))?;
    let docno = field(&text, "docno")?.unwrap_or_default().trim();
    if docno.is_empty() {
        return Err((0, "the document has no <docno>".into()));
    }
    let title = field(&text, "contenttitle")?.unwrap_or_default().trim();
    let content = field(&text, "content")?.ok_or((0, "the document has no <content>".into()))?;
    let text = if title.is_empty() { content.to_owned() } else { format!("{title}\n{content}") };
    Ok((docno.to_owned(), text))
}

/// What stands between the first `<name>` and the first `</name>` after it.
fn field<'t>(text: &'t str, name: &str) -> Result<Option<&'t str>, (usize, Cow<'static, str>)> {
    let Some((_, after)) = text.split_once(&format!("<{name}>")) else { return Ok(None) };
    match after.split_once(&format!("</{name}>")) {
        Some((value, _)) => Ok(Some(value)),
        None => Err((0, format!("<{name}> is not closed").into())),
    }
}

struct SogouReader(Elements);

impl Reader for SogouReader {
    fn fill(&mut self, batch: &mut DocBatch) -> Result<bool, Error> {
        let path = self.0.lines.path().to_owned();
        while !batch.full() {
            let Some(element) = self.0.next()? else { return Ok(false) };
            match document(&element) {
                Ok((docno, text)) => batch.push(&docno, &text),
                Err((at, reason)) => {
                    batch.reject(&path, element.offset + at as u64, reason, element.bytes);
                }
            }
        }
        Ok(true)
    }
}

struct SogouWriter<'a> {
    kept: PartWriter<'a>,
    removed: PartWriter<'a>,
    reasons: Reasons<'a>,
}

impl Writer for SogouWriter<'_> {
    fn divide(&mut self, piece: &Piece, fates: &mut dyn Iterator<Item = Fate>) -> Result<(), Error> {
        let mut elements = Elements::open(piece)?;
        let compression = elements.lines.compression();
        while let Some(element) = elements.next()? {
            let newline: &[u8] = if element.bytes.ends_with(b"\n") { b"" } else { b"\n" };
            match fates.next() {
                Some(Fate::Rejected) => {}
                Some(Fate::Kept) if element.whole => {
                    self.kept.write(compression, &[element.bytes, newline])?;
                }
                Some(Fate::Removed(removal)) if element.whole => {
                    self.removed.write(compression, &[element.bytes, newline])?;
                    self.reasons.write(&removal)?;
                }
                _ => return Err(Error::changed(piece.blob.path())),
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        self.kept.finish()?;
        self.removed.finish()?;
        self.reasons.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Removal;
    use crate::testing::{MemoryBlob, Record, check_splits, corpus_file, divide, pieces, read};

    fn page(docno: &str, title: &str, content: &str) -> String {
        format!(
            "<doc>\n<url>http://x/</url>\n<docno>{docno}</docno>\n<contenttitle>{title}</contenttitle>\n\
             <content>{content}</content>\n</doc>\n"
        )
    }

    fn doc(id: &str, text: &str) -> Record {
        Record::Doc { id: id.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn every_split_gives_every_document_once_in_both_encodings() {
        let pages = [page("1", "标题", "内容 a & b"), page("2", "", ""), page("3", "", "只有内容")];
        let file = format!("<docs>\r\n{}\n{}between\n{}</docs>\n", pages[0], pages[1], pages[2]);
        let expected = [doc("1", "标题\n内容 a & b"), doc("2", ""), doc("3", "只有内容")];
        let kept = pages.concat();
        assert_eq!(check_splits(&SOGOUCS, "/a.dat", file.as_bytes(), kept.as_bytes()), expected);
        let encode = |text: &str| encoding_rs::GB18030.encode(text).0.into_owned();
        assert_eq!(check_splits(&SOGOUCS, "/a.dat", &encode(&file), &encode(&kept)), expected);
        let windows = |text: &str| encode(&text.replace('\n', "\r\n"));
        assert_eq!(check_splits(&SOGOUCS, "/a.dat", &windows(&file), &windows(&kept)), expected);
    }

    #[test]
    fn a_broken_document_costs_itself_alone() {
        let unclosed = "<doc>\n<docno>2</docno>\n<content>never closed\n";
        let nameless = "<doc>\n<content>x</content>\n</doc>\n";
        let no_end = "<doc>\n<docno>4</docno>\n<content>four</content>\n";
        let cut = "<doc>\n<docno>6</docno>\n<content>six</content>\n</d";
        let (first, fifth) = (page("1", "t", "one"), page("5", "", "five"));
        let file = [&first, unclosed, nameless, no_end, &fifth, cut].concat();
        let kept = [&first, no_end, &fifth, cut, "\n"].concat();
        let records = check_splits(&SOGOUCS, "/a", file.as_bytes(), kept.as_bytes());
        let reject = |before: &[&str], reason: &str| Record::Reject {
            offset: before.concat().len() as u64,
            reason: reason.to_owned(),
        };
        let expected = [
            doc("1", "t\none"),
            reject(&[&first], "<content> is not closed"),
            reject(&[&first, unclosed], "the document has no <docno>"),
            doc("4", "four"),
            doc("5", "five"),
            doc("6", "six"),
        ];
        assert_eq!(records, expected);
    }

    #[test]
    fn an_illegal_byte_is_named_by_its_offset_in_the_file() {
        let mut file = [page("1", "", "一"), page("2", "", "xx")].concat().into_bytes();
        let at = file.len() - "x</content>\n</doc>\n".len();
        file[at] = 0xff;
        let blob = MemoryBlob::shared("/a", &file, 9);
        let (records, _) = read(&SOGOUCS, &pieces(&blob, &[]), &Reading::default());
        assert!(matches!(&records[1], Record::Reject { offset, .. } if *offset == at as u64), "{records:?}");
    }

    #[test]
    fn removed_documents_are_copied_with_their_reasons_beside_them() {
        let file = [page("1", "", "a"), page("2", "", "b"), page("3", "", "c")].concat();
        let blob = MemoryBlob::shared("/a", file.as_bytes(), 9);
        let pieces = pieces(&blob, &[20, 100]);
        let (records, _) = read(&SOGOUCS, &pieces, &Reading::default());
        let (parts, _) = divide(&SOGOUCS, &pieces, &records, |id| match id {
            "2" => Fate::Kept,
            id => Fate::Removed(Removal {
                id: id.to_owned(),
                duplicate_of: "2".to_owned(),
                similarity: None,
                cluster: "1".to_owned(),
                reason: "similar",
            }),
        });
        assert_eq!(parts.text("kept/0.dat"), page("2", "", "b"));
        assert_eq!(parts.text("removed/0.dat"), page("1", "", "a") + &page("3", "", "c"));
        let reasons = parts.text("removed/0.reasons.jsonl");
        let ids: Vec<&str> = reasons.lines().filter_map(|line| line.get(..9)).collect();
        assert_eq!(ids, ["{\"id\":\"1\"", "{\"id\":\"3\""]);
    }

    #[test]
    fn files_are_recognised_by_their_first_line() {
        for head in ["<doc>\n<url>", "\u{feff}<doc>\r\n", "<docs>\r\n<doc>\r\n"] {
            assert!(SOGOUCS.recognises("/a.txt", head.as_bytes()), "{head}");
        }
        for head in ["", "<document>\n", "<docs>\n<page>", "text <doc>"] {
            assert!(!SOGOUCS.recognises("/a.dat", head.as_bytes()), "{head}");
        }
    }

    #[test]
    fn shared_corpora_give_their_known_counts() {
        for (name, docs, rejects) in [
            ("corpora/news_sohusite_xml.smarty.dat", 200, 0),
            ("corpora/SogouCS.mini.txt", 10, 0),
            ("hostile/text/sogou_broken.xml", 4, 1),
        ] {
            let Some(bytes) = corpus_file(name) else { return };
            assert!(SOGOUCS.recognises(name, &bytes[..bytes.len().min(4096)]));
            let blob = MemoryBlob::shared(name, &bytes, 4096);
            let whole = read(&SOGOUCS, &pieces(&blob, &[]), &Reading::default()).0;
            let found = whole.iter().filter(|record| matches!(record, Record::Doc { .. })).count();
            assert_eq!((found, whole.len() - found), (docs, rejects), "{name}: {whole:?}");
            let cuts: Vec<u64> = (1..64).map(|i| blob.bytes() * i / 64).collect();
            assert!(read(&SOGOUCS, &pieces(&blob, &cuts), &Reading::default()).0 == whole, "{name} differs");
        }
    }
}
