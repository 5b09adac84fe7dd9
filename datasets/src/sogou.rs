//! SogouCS and SogouCA: news pages of Sogou Labs, one pseudo-XML element per page.

use std::borrow::Cow;

use operators::{DocBatch, Reject};

use crate::compression::Compression;
use crate::lines::{Extended, Lines};
use crate::part::{Kind, PartWriter};
use crate::reasons::Reasons;
use crate::{Error, Fate, Format, Parts, Piece, Reader, Reading, Writer, encoding};

/// The format of SogouCS, in GB18030 or another encoding:
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
/// four bytes, as is the fourth. A root `<docs>` and blank lines may lie outside of documents; they are not copied. Any
/// other text between two documents, before the first or behind the last is one reject, so that no document is lost in
/// silence where its `<doc>` is damaged.
///
/// Published by Sogou Labs: SogouCS at <http://www.sogou.com/labs/resource/cs.php>, SogouCA, which has the same
/// format, at <http://www.sogou.com/labs/resource/ca.php>.
pub struct SogouCs;

/// The one value of [`SogouCs`].
pub static SOGOUCS: SogouCs = SogouCs;

impl Format for SogouCs {
    fn name(&self) -> &'static str {
        "sogoucs"
    }

    /// By its first line: `<doc>`, or `<docs>` and then `<doc>`.
    fn recognises(&self, _path: &str, head: &[u8]) -> bool {
        let head = encoding::head(head);
        let mut lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let mut first = lines.next();
        if first == Some(b"<docs>") {
            first = lines.next();
        }
        first == Some(b"<doc>")
    }

    fn splits(&self, path: &str) -> bool {
        Compression::named(path).1 == Compression::None
    }

    fn open(&self, piece: &Piece, reading: &Reading) -> Result<Box<dyn Reader>, Error> {
        let elements = Elements::open(piece, reading)?;
        Ok(Box::new(SogouReader { elements, reading: reading.clone(), buffer: Vec::new() }))
    }

    fn writer<'a>(&self, parts: &'a dyn Parts, reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(SogouWriter {
            kept: PartWriter::new(parts, "kept", ".dat"),
            removed: PartWriter::new(parts, "removed", ".dat"),
            reasons: Reasons::new(parts),
            reading: reading.clone(),
        })
    }

    fn line_numbers(
        &self,
        file: &Piece,
        reading: &Reading,
        offsets: &mut dyn Iterator<Item = u64>,
    ) -> Result<Option<Vec<u64>>, Error> {
        Lines::open(file, reading)?.numbers(offsets).map(Some)
    }
}

/// The documents of a piece as bytes: the reader and the writer both go by these. Holds one document.
struct Elements {
    lines: Lines,
    end: u64,
    /// Whether the next line is known to lie outside of any document: at the file's beginning and behind a `</doc>`, but
    /// not at the beginning of a piece.
    outside: bool,
    /// Whether the line that `lines` gave last begins a document that was not given yet.
    opened: bool,
    /// What is no document, or is not held.
    fault: Option<Fault>,
}

/// Where a record lies that is not to be read, how it begins, and why.
struct Fault {
    offset: u64,
    head: Vec<u8>,
    reason: String,
}

struct Element<'a> {
    /// Of its first byte.
    offset: u64,
    bytes: &'a [u8],
    /// Why it is not to be read; then `bytes` is how it begins.
    fault: Option<&'a str>,
}

impl Elements {
    fn open(piece: &Piece, reading: &Reading) -> Result<Self, Error> {
        let lines = Lines::open_past(piece, reading)?;
        let end = if lines.compression() == Compression::None { piece.end } else { u64::MAX };
        Ok(Elements { lines, end, outside: piece.start == 0, opened: false, fault: None })
    }

    /// Errors: as in [`Lines::advance`].
    fn next(&mut self) -> Result<Option<Element<'_>>, Error> {
        self.fault = None;
        let found = self.find_opening()?;
        if self.fault.is_none() {
            if !found {
                return Ok(None);
            }
            self.opened = false;
            self.find_end()?;
        }
        let line = self.lines.line();
        Ok(Some(match &self.fault {
            Some(Fault { offset, head, reason }) => {
                Element { offset: *offset, bytes: head, fault: Some(reason) }
            }
            None => Element { offset: line.offset, bytes: line.bytes, fault: None },
        }))
    }

    /// Goes on to the line that begins the next document: whether that is of this piece.
    ///
    /// What lies between a document and the next belongs to the first, what lies before all of them to the file's first
    /// piece, wherever the pieces are cut.
    fn find_opening(&mut self) -> Result<bool, Error> {
        while !self.opened {
            if !self.lines.advance()? || self.lines.line().offset >= self.end && !self.outside {
                return Ok(false);
            }
            let line = self.tag(0);
            let tag = line.trim_ascii();
            let opened = tag == b"<doc>";
            if self.outside && self.fault.is_none() && !opened && !matches!(tag, b"" | b"<docs>" | b"</docs>")
            {
                self.fault = Some(self.fault("text outside of any <doc>".to_owned()));
            }
            self.opened = opened;
        }
        self.outside = false;
        Ok(self.lines.line().offset < self.end)
    }

    fn fault(&self, reason: String) -> Fault {
        let line = self.lines.line();
        let head = &line.bytes[..line.bytes.len().min(Reject::HEAD_BYTES)];
        Fault { offset: line.offset, head: head.to_vec(), reason }
    }

    /// Joins the other lines of the document to its first.
    fn find_end(&mut self) -> Result<(), Error> {
        loop {
            let before = self.lines.line().bytes.len();
            match self.lines.extend()? {
                Extended::Longer => {}
                // Damage takes the document that it cuts with it.
                Extended::AtEnd => return self.lines.damage(),
                Extended::TooLong => return self.pass_long(),
            }
            let tag = self.tag(before);
            if tag.trim_ascii() == b"<doc>" {
                self.lines.cut(before);
                return Ok(());
            }
            if tag.trim_ascii_end().ends_with(b"</doc>") {
                self.outside = true;
                return Ok(());
            }
        }
    }

    /// Passes the rest of a document that is not held.
    fn pass_long(&mut self) -> Result<(), Error> {
        self.fault = Some(self.fault(self.lines.too_long()));
        while self.lines.advance()? {
            let tag = self.tag(0);
            let (opens, closes) = (tag.trim_ascii() == b"<doc>", tag.trim_ascii_end().ends_with(b"</doc>"));
            if opens || closes {
                (self.opened, self.outside) = (opens, closes);
                break;
            }
        }
        Ok(())
    }

    /// The end of what `lines` gave last, from there on, as ASCII.
    fn tag(&self, from: usize) -> Cow<'_, [u8]> {
        self.lines.charset().ascii(&self.lines.line().bytes[from..])
    }
}

/// The offset in a document of what is wrong with it, and the reason.
type Wrong = (usize, Cow<'static, str>);

/// Its id and its text.
type Document<'t> = Result<(&'t str, Cow<'t, str>), Wrong>;

fn document(text: &str) -> Document<'_> {
    let docno = field(text, "<docno>", "</docno>")?.map_or("", |(docno, _)| docno.trim());
    if docno.is_empty() {
        return Err((0, "the document has no <docno>".into()));
    }
    let title = field(text, "<contenttitle>", "</contenttitle>")?.map_or("", |(title, _)| title.trim());
    let content = field(text, "<content>", "</content>")?;
    let (content, rest) = content.ok_or((0, "the document has no <content>".into()))?;
    // Where the newline between them is damaged, the next document would be lost in silence.
    if find(rest, "<docno>").is_some() {
        return Err((0, "the document has two <docno>".into()));
    }
    let text = if title.is_empty() { content.into() } else { format!("{title}\n{content}").into() };
    Ok((docno, text))
}

/// What stands between the first `open` and the first `close` after it, and what comes then.
fn field<'t>(text: &'t str, open: &str, close: &str) -> Result<Option<(&'t str, &'t str)>, Wrong> {
    let Some(at) = find(text, open) else { return Ok(None) };
    let value = &text[at + open.len()..];
    match find(value, close) {
        Some(end) => Ok(Some((&value[..end], &value[end + close.len()..]))),
        None => Err((0, format!("{open} is not closed").into())),
    }
}

fn find(text: &str, tag: &str) -> Option<usize> {
    memchr::memmem::find(text.as_bytes(), tag.as_bytes())
}

struct SogouReader {
    elements: Elements,
    reading: Reading,
    /// For documents that must be decoded.
    buffer: Vec<u8>,
}

impl Reader for SogouReader {
    fn fill(&mut self, batch: &mut DocBatch) -> Result<bool, Error> {
        let path = self.elements.lines.path().to_owned();
        let charset = self.elements.lines.charset();
        while !batch.full() {
            let Some(element) = self.elements.next()? else { return Ok(false) };
            if let Some(reason) = element.fault {
                batch.reject(&path, element.offset, reason, element.bytes);
                continue;
            }
            let decoded = charset.decode(element.bytes, self.reading.bad_text, &mut self.buffer);
            let decoded = decoded.map_err(|illegal| (illegal.offset, illegal.reason.into()));
            match decoded.and_then(|(text, replaced)| Ok((document(text)?, replaced))) {
                Ok(((docno, text), replaced)) => batch.push_decoded(docno, &text, replaced),
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
    reading: Reading,
}

impl Writer for SogouWriter<'_> {
    fn divide(&mut self, piece: &Piece, fates: &mut dyn Iterator<Item = Fate>) -> Result<(), Error> {
        let mut elements = Elements::open(piece, &self.reading)?;
        let charset = elements.lines.charset();
        let kind = Kind::of(elements.lines.compression(), charset, b"");
        while let Some(element) = elements.next()? {
            let newline = charset.missing_newline(element.bytes);
            match fates.next() {
                Some(Fate::Rejected) => {}
                Some(Fate::Kept) if element.fault.is_none() => {
                    self.kept.write(&kind, &[element.bytes, newline])?;
                }
                Some(Fate::Removed(removal)) if element.fault.is_none() => {
                    self.removed.write(&kind, &[element.bytes, newline])?;
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
    use crate::testing::{MemoryBlob, Record, check_splits, corpus_file, divide, mutants, pieces, read};

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
        let text = Record::Reject { offset: 0, reason: "text outside of any <doc>".to_owned() };
        let expected = [doc("1", "标题\n内容 a & b"), doc("2", ""), text, doc("3", "只有内容")];
        // Where the text between the documents lies depends on the encoding.
        let check_splits = |file: &[u8], kept: &[u8]| {
            let mut records = check_splits(&SOGOUCS, "/a.dat", file, kept);
            if let Some(Record::Reject { offset, .. }) = records.get_mut(2) {
                assert!(file[*offset as usize..].starts_with(b"between"));
                *offset = 0;
            }
            records
        };
        let kept = pages.concat();
        assert_eq!(check_splits(file.as_bytes(), kept.as_bytes()), expected);
        let encode = |text: &str| encoding_rs::GB18030.encode(text).0.into_owned();
        assert_eq!(check_splits(&encode(&file), &encode(&kept)), expected);
        let windows = |text: &str| encode(&text.replace('\n', "\r\n"));
        assert_eq!(check_splits(&windows(&file), &windows(&kept)), expected);
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
    fn every_encoding_is_read_and_written_as_it_was() {
        let file = format!("<docs>\n{}\n{}</docs>\n", page("1", "标题", "内容"), page("2", "", "\u{0a0a}讯"));
        let kept = page("1", "标题", "内容") + &page("2", "", "\u{0a0a}讯");
        let encode = |text: &str| {
            let text = format!("\u{feff}{text}");
            text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>()
        };
        let expected = [doc("1", "标题\n内容"), doc("2", "\u{0a0a}讯")];
        assert_eq!(check_splits(&SOGOUCS, "/a.dat", &encode(&file), &encode(&kept)), expected);
        assert!(SOGOUCS.recognises("/a.dat", &encode(&file)[..200]));
    }

    #[test]
    fn a_document_longer_than_a_record_may_be_is_one_reject() {
        let file = [page("1", "", "a"), page("2", "", &"长\n".repeat(1000)), page("3", "", "c")].concat();
        let blob = MemoryBlob::shared("/a", file.as_bytes(), 100);
        let reading = Reading { max_record_bytes: 1000, ..Reading::default() };
        for cuts in [&[][..], &[300], &[2000, 3000]] {
            let (records, failed) = read(&SOGOUCS, &pieces(&blob, cuts), &reading);
            assert!(failed.is_none());
            let offset = page("1", "", "a").len() as u64;
            let reason = "longer than the 1000 bytes that a record may have".to_owned();
            assert_eq!(records, [doc("1", "a"), Record::Reject { offset, reason }, doc("3", "c")]);
        }
    }

    #[test]
    fn damage_costs_the_document_that_it_hits() {
        let pages: Vec<String> =
            (0..40).map(|id| page(&id.to_string(), "标题", &format!("第{id}条"))).collect();
        let file = encoding_rs::GB18030.encode(&pages.concat()).0.into_owned();
        let encoded = |page: &String| encoding_rs::GB18030.encode(page).0.len();
        let mut ends = Vec::new();
        pages.iter().for_each(|page| ends.push(ends.last().unwrap_or(&0) + encoded(page)));
        let records_of = |bytes: &[u8]| {
            let blob = MemoryBlob::shared("/a", bytes, 1000);
            let (records, failed) = read(&SOGOUCS, &pieces(&blob, &[]), &Reading::default());
            assert!(failed.is_none());
            records
        };
        let whole = records_of(&file);
        assert_eq!(whole.len(), 40);
        for (mutant, damage) in mutants(&file, 2000) {
            let records = records_of(&mutant);
            let docs: Vec<_> = records.iter().filter(|record| matches!(record, Record::Doc { .. })).collect();
            assert!(docs.len() <= 40, "{} documents", docs.len());
            // A damaged end of a document may take the next one with it.
            let hit = ends.partition_point(|&end| end <= damage.start);
            let last = if damage.len() > 1 { 40 } else { hit + 1 };
            for (number, record) in whole.iter().enumerate().filter(|(n, _)| *n < hit || *n > last) {
                assert!(docs.contains(&record), "document {number} is lost by damage at {damage:?}");
            }
            // A cut may fall between two documents, and then nothing is seen to be missing.
            let silent = docs.len() < 40 && docs.len() == records.len();
            assert!(damage.len() > 1 || !silent, "a document is lost in silence by damage at {damage:?}");
        }
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
