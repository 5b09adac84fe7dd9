//! A tree of folders with one text file per document, such as TanCorp.

use operators::DocBatch;

use super::tree::{TreeWriter, read_file};
use crate::text::charset::Charset;
use crate::text::compression::has_suffix;
use crate::text::detect::is_binary;
use crate::{Cuts, Error, Format, Parts, Piece, Reader, Reading, RecognisedEncoding, Writer};

/// Category folders with one `.txt` or Markdown file per document, such as `Art/0001.txt`: the layout of TanCorp.
///
/// The id is the file's path below the input; the text is the whole file. The encoding is UTF-8, GB18030
/// (with GBK and GB2312), Big5, or UTF-16 with a byte order mark; it is recognised for each file, or named. A
/// file is a reject if it has illegal bytes, is too long, or is no text (more than 1 byte in 20 is a control
/// character). An empty file is a document without text. Files are copied whole, to the same path below
/// `kept` or `removed`.
///
/// TanCorp: Songbo Tan et al., "A novel refinement approach for text categorization", CIKM 2005; published as
/// TanCorpV1.0 by the authors at <http://www.searchforum.org.cn/tansongbo/corpus.htm>.
pub struct TanCorp;

/// The one value of [`TanCorp`].
pub static TANCORP: TanCorp = TanCorp;

impl Format for TanCorp {
    fn name(&self) -> &'static str {
        "tancorp"
    }

    /// Recognises by the extension alone, `.txt` or that of Markdown, so this format comes after those that look at the contents.
    fn recognises(&self, path: &str, _head: &[u8]) -> bool {
        [".txt", ".md", ".markdown"].iter().any(|suffix| has_suffix(path, suffix))
    }

    fn file_is_record(&self) -> bool {
        true
    }

    fn cuts(&self, _path: &str) -> Cuts {
        Cuts::Nowhere
    }

    fn open(&self, piece: &Piece, reading: &Reading) -> Result<Box<dyn Reader>, Error> {
        Ok(Box::new(FileReader { piece: piece.clone(), reading: reading.clone(), recognised: None }))
    }

    fn writer<'a>(&self, parts: &'a dyn Parts, reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(TreeWriter::new(parts, reading))
    }
}

/// Reader of the one document of a piece that begins where its file does.
struct FileReader {
    piece: Piece,
    reading: Reading,
    /// Encoding of the file, if it was recognised and the user should know.
    recognised: Option<RecognisedEncoding>,
}

impl Reader for FileReader {
    fn fill(&mut self, batch: &mut DocBatch) -> Result<bool, Error> {
        if self.piece.start > 0 {
            return Ok(false);
        }
        let (blob, path) = (&self.piece.blob, self.piece.blob.path());
        let most = self.reading.max_record_bytes;
        let (bytes, too_long) = read_file(blob, most)?;
        if too_long {
            let reason = format!("longer than the {most} bytes that a record may have");
            batch.reject(path, 0, reason, &bytes);
            return Ok(false);
        }
        let charset = Charset::of(&bytes, true, self.reading.encoding);
        self.recognised = charset.recognised(path);
        let text = &bytes[charset.mark_bytes()..];
        if charset.unit() == 1 && is_binary(text) {
            batch.reject(path, 0, "binary: more than 1 byte in 20 is a control character", &bytes);
            return Ok(false);
        }
        match charset.decode(text, self.reading.bad_text, &mut Vec::new()) {
            Ok((text, replaced)) => batch.push_decoded(&self.piece.name, text, replaced),
            Err(illegal) => {
                let offset = charset.mark_bytes() + illegal.offset;
                batch.reject(path, offset as u64, illegal.reason, &bytes);
            }
        }
        Ok(false)
    }

    fn recognised(&self) -> Option<RecognisedEncoding> {
        self.recognised.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MemoryBlob, Record, check_splits, corpus_files, divide, doc, pieces, read};
    use crate::{Fate, Removal};

    #[test]
    fn a_file_is_one_document_however_it_is_cut() {
        let text = "新华社北京电\r\n国家统计局";
        let gbk = encoding_rs::GBK.encode(text).0;
        let marked = format!("\u{feff}{text}");
        for bytes in [text.as_bytes(), &gbk, marked.as_bytes()] {
            assert_eq!(check_splits(&TANCORP, "/Art/1.txt", bytes, bytes), [doc("Art/1.txt", text)]);
        }
        let blob = MemoryBlob::shared("/Art/2.txt", b"", 9);
        assert_eq!(read(&TANCORP, &pieces(&blob, &[]), &Reading::default()).0, [doc("Art/2.txt", "")]);
    }

    #[test]
    fn files_are_copied_below_kept_and_removed_under_their_own_names() {
        let files = ["/Art/1.txt", "/Art/2.txt", "/Law/1.txt"].map(|path| {
            let bytes: &[u8] = if path == "/Art/2.txt" { b"ab\xff" } else { b"\xd0\xc2" };
            pieces(&MemoryBlob::shared(path, bytes, 9), &[]).remove(0)
        });
        let (records, _) = read(&TANCORP, &files, &Reading::default());
        assert!(matches!(&records[1], Record::Reject { offset: 2, .. }));
        let (parts, failed) = divide(&TANCORP, &files, &records, |id| match id {
            "Art/1.txt" => Fate::Kept,
            id => Fate::Removed(Removal {
                id: id.to_owned(),
                duplicate_of: "Art/1.txt".to_owned(),
                similarity: Some(1.0),
                cluster: "Art/1.txt".to_owned(),
                reason: "identical".into(),
            }),
        });
        assert!(failed.is_none());
        assert_eq!(parts.names(), ["kept/Art/1.txt", "removed/Law/1.txt", "removed/_reasons/0.jsonl"]);
        assert_eq!(parts.bytes("removed/Law/1.txt"), b"\xd0\xc2");
        assert!(parts.text("removed/_reasons/0.jsonl").starts_with("{\"id\":\"Law/1.txt\""));
    }

    #[test]
    fn the_shared_category_tree_gives_its_970_files_less_38_with_illegal_bytes() {
        let Some(files) = corpus_files("corpora/category-tree") else { return };
        let mut documents = 0;
        for (name, bytes) in &files {
            let blob = MemoryBlob::shared(name, bytes, 1 << 16);
            let (records, failed) = read(&TANCORP, &pieces(&blob, &[]), &Reading::default());
            assert!(failed.is_none() && records.len() == 1, "{name}");
            documents += usize::from(matches!(records[0], Record::Doc { .. }));
        }
        assert_eq!((files.len(), documents), (970, 932));
    }
}
