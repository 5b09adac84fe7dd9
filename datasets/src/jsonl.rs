//! JSON lines: one object per line, plain or compressed.

use operators::DocBatch;

use crate::compression::{Compression, has_suffix};
use crate::lines::{Line, Lines};
use crate::part::PartWriter;
use crate::{Error, Fate, Format, Parts, Piece, Reader, Reading, Removal, Writer, encoding, json, reasons};

/// JSON lines: UTF-8, one object per line; also `.gz` and `.zst`.
///
/// Plain files split at newlines. Blank lines and a byte order mark are not records. Of a name that an
/// object holds twice the last value counts. The text must be a string (null is not one). The id is a
/// string, or a number as it is written; anything else counts as no id. What is not valid JSON, nested
/// deeper than 128, or longer than 1 GiB is a reject.
///
/// Kept lines are copied byte for byte; removed ones get `duplicate_of`, `similarity`, `cluster` and
/// `reason` as their last members. Both are compressed as the input was.
pub struct Jsonl;

/// The one value of [`Jsonl`].
pub static JSONL: Jsonl = Jsonl;

impl Format for Jsonl {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    /// By extension, or by `{"` at the beginning of the (decompressed) file.
    ///
    /// A `.zst` of another name is known only where 4 KiB hold a whole compressed block.
    fn recognises(&self, path: &str, head: &[u8]) -> bool {
        let (name, _) = Compression::named(path);
        if [".jsonl", ".ndjson", ".json"].iter().any(|suffix| has_suffix(name, suffix)) {
            return true;
        }
        match Compression::of(path, head) {
            Compression::None => begins_an_object(head),
            compression => begins_an_object(&compression.decode_head(head)),
        }
    }

    fn splits(&self, path: &str) -> bool {
        Compression::named(path).1 == Compression::None
    }

    fn open(&self, piece: &Piece, reading: &Reading) -> Result<Box<dyn Reader>, Error> {
        let objects = Objects { lines: Lines::open(piece)? };
        let path = piece.blob.path().to_owned();
        Ok(Box::new(JsonlReader { objects, reading: reading.clone(), path, place: String::new() }))
    }

    fn writer<'a>(&self, parts: &'a dyn Parts, _reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(JsonlWriter {
            kept: PartWriter::new(parts, "kept", ".jsonl"),
            removed: PartWriter::new(parts, "removed", ".jsonl"),
            members: Vec::new(),
        })
    }
}

fn begins_an_object(head: &[u8]) -> bool {
    let head = encoding::without_mark(head).trim_ascii_start();
    head.strip_prefix(b"{").is_some_and(|members| members.trim_ascii_start().starts_with(b"\""))
}

/// The lines that are records: the reader and the writer both go by these.
struct Objects {
    lines: Lines,
}

impl Objects {
    fn next(&mut self) -> Result<Option<Line<'_>>, Error> {
        while self.lines.advance()? {
            if !self.lines.line().bytes.trim_ascii_start().is_empty() {
                return Ok(Some(self.lines.line()));
            }
        }
        Ok(None)
    }
}

struct JsonlReader {
    objects: Objects,
    reading: Reading,
    path: String,
    /// The id of a line that has none.
    place: String,
}

impl Reader for JsonlReader {
    fn fill(&mut self, batch: &mut DocBatch) -> Result<bool, Error> {
        while !batch.full() {
            let Some(line) = self.objects.next()? else { return Ok(false) };
            match json::document(&line, &self.reading) {
                Ok((Some(id), text)) => batch.push(&id, &text),
                Ok((None, text)) => {
                    self.place.clear();
                    self.place.push_str(&self.path);
                    self.place.push(':');
                    self.place.push_str(&line.offset.to_string());
                    batch.push(&self.place, &text);
                }
                Err(reason) => batch.reject(&self.path, line.offset, reason, line.bytes),
            }
        }
        Ok(true)
    }
}

struct JsonlWriter<'a> {
    kept: PartWriter<'a>,
    removed: PartWriter<'a>,
    /// The members that the current line gets.
    members: Vec<u8>,
}

impl JsonlWriter<'_> {
    fn remove(&mut self, compression: Compression, line: &[u8], removal: &Removal) -> Result<bool, Error> {
        let object = line.trim_ascii_end();
        let Some(open) = object.strip_suffix(b"}") else { return Ok(false) };
        self.members.clear();
        self.members.push(b',');
        reasons::write_members(&mut self.members, removal).map_err(|e| Error::writing("removed", e))?;
        let rest = &line[open.len()..];
        self.removed.write(compression, &[open, &self.members, rest, missing_newline(line)])?;
        Ok(true)
    }
}

impl Writer for JsonlWriter<'_> {
    fn divide(&mut self, piece: &Piece, fates: &mut dyn Iterator<Item = Fate>) -> Result<(), Error> {
        let mut objects = Objects { lines: Lines::open(piece)? };
        let (path, compression) = (piece.blob.path(), objects.lines.compression());
        while let Some(line) = objects.next()? {
            let copied = match fates.next() {
                Some(Fate::Rejected) => true,
                Some(Fate::Kept) if line.whole => {
                    self.kept.write(compression, &[line.bytes, missing_newline(line.bytes)])?;
                    true
                }
                Some(Fate::Removed(removal)) if line.whole => {
                    self.remove(compression, line.bytes, &removal)?
                }
                _ => false,
            };
            if !copied {
                return Err(Error::changed(path));
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        self.kept.finish()?;
        self.removed.finish()
    }
}

/// What a last line lacks before another may follow it.
fn missing_newline(line: &[u8]) -> &'static [u8] {
    if line.ends_with(b"\n") { b"" } else { b"\n" }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;
    use crate::testing::{MemoryBlob, MemoryParts, Record, check_splits, corpus_file, divide, pieces, read};

    fn doc(id: &str, text: &str) -> Record {
        Record::Doc { id: id.to_owned(), text: text.to_owned() }
    }

    fn read_bytes(path: &str, bytes: &[u8]) -> (Vec<Record>, Option<Error>) {
        let blob = MemoryBlob::shared(path, bytes, 1000);
        read(&JSONL, &pieces(&blob, &[]), &Reading::default())
    }

    fn removal(id: &str) -> Removal {
        let (id, duplicate_of, cluster) = (id.to_owned(), "\"新\"".to_owned(), "c".to_owned());
        Removal { id, duplicate_of, similarity: Some(0.875), cluster, reason: "similar" }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(1));
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 1).unwrap()
    }

    fn unpacked(compression: Compression, bytes: Vec<u8>) -> Vec<u8> {
        let mut text = Vec::new();
        compression.decode(std::io::Cursor::new(bytes)).unwrap().read_to_end(&mut text).unwrap();
        text
    }

    /// Lines that no compressor makes small, so that they fill many blocks.
    fn many_lines() -> Vec<u8> {
        let mut random = 1u64;
        let mut lines = String::new();
        for id in 0..5000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            lines.push_str(&format!("{{\"id\":{id},\"text\":\"{random:x}{:x}\"}}\n", random.rotate_left(21)));
        }
        lines.into_bytes()
    }

    #[test]
    fn every_split_gives_every_line_once() {
        let file = "\u{feff}{\"id\":\"a\",\"text\":\"新\"}\r\n\r\n \t\n{\"text\":\"b\",\"id\":7}\n\n{bad\n{\"text\":\"c\"}";
        let kept = "{\"id\":\"a\",\"text\":\"新\"}\r\n{\"text\":\"b\",\"id\":7}\n{\"text\":\"c\"}\n";
        let records = check_splits(&JSONL, "/a.jsonl", file.as_bytes(), kept.as_bytes());
        assert_eq!(records[..2], [doc("a", "新"), doc("7", "b")]);
        assert!(
            matches!(&records[2], Record::Reject { offset: 54, reason } if reason.contains("at byte 1 of"))
        );
        assert_eq!(records[3..], [doc("/a.jsonl:59", "c")]);
    }

    #[test]
    fn any_mixture_of_lines_is_read_as_the_dumbest_reader_does() {
        let fragments =
            ["{\"id\":\"x\",\"text\":\"新闻\"}", "\n", "\n", "\r\n", " ", "{\"text\":\"\"}", "{", "\u{feff}"];
        let mut random = 7u64;
        for _ in 0..60 {
            let mut file = String::new();
            for _ in 0..12 {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                file.push_str(fragments[(random >> 33) as usize % fragments.len()]);
            }
            let lines = file.strip_prefix('\u{feff}').unwrap_or(&file).split('\n');
            let lines: Vec<&str> = lines.filter(|line| !line.trim_ascii().is_empty()).collect();
            let good = |line: &&&str| serde_json::from_str::<serde_json::Value>(line).is_ok();
            let kept: String = lines.iter().filter(good).map(|line| format!("{line}\n")).collect();
            assert_eq!(check_splits(&JSONL, "/a", file.as_bytes(), kept.as_bytes()).len(), lines.len());
        }
    }

    #[test]
    fn a_line_that_is_no_document_is_one_reject_with_its_reason() {
        let deep = format!("{{\"id\":1,\"text\":\"x\",\"m\":{}{}}}", "[".repeat(9999), "]".repeat(9999));
        for (line, reason) in [
            ("{\"text\":null}", "invalid type: null, expected a string in the field \"text\""),
            ("{\"text\":12}", "expected a string in the field \"text\""),
            ("{\"text\":[\"a\"]}", "expected a string in the field \"text\""),
            ("{\"id\":1}", "no field \"text\""),
            ("{\"id\":1,\"text\":\"x\",}", "trailing comma at byte 19 of the line"),
            ("{\"text\":\"a\"}{\"text\":\"b\"}", "trailing characters at byte 12 of the line"),
            ("{\"text\":\"a", "EOF while parsing a string"),
            ("{\"text\":\"a\tb\"}", "control character"),
            ("{\"text\":\"\\ud800\"}", "hex escape"),
            ("\"text\"", "not a JSON object"),
            ("[{\"text\":\"a\"}]", "not a JSON object"),
            ("\0\0", "not a JSON object"),
            (&deep, "nested deeper than 128"),
        ] {
            let file = format!("{line}\n{{\"id\":2,\"text\":\"good\"}}\n");
            let (records, failed) = read_bytes("/a.jsonl", file.as_bytes());
            assert!(failed.is_none());
            assert!(
                matches!(&records[0], Record::Reject { offset: 0, reason: r } if r.contains(reason)),
                "{line}: {records:?}"
            );
            assert_eq!(records[1..], [doc("2", "good")], "{line}");
        }
        let (records, _) = read_bytes("/a.jsonl", b"\n{\"text\":\"\xff\"}");
        let reason = "not UTF-8 at byte 9 of the line".to_owned();
        assert_eq!(records, [Record::Reject { offset: 1, reason }]);
    }

    #[test]
    fn brackets_in_a_text_are_not_depth() {
        let text = "[哈哈]\\\"{".repeat(500);
        let (records, _) = read_bytes("/a", format!("{{\"id\":\"a\",\"text\":\"{text}\"}}").as_bytes());
        assert_eq!(records, [doc("a", &text.replace('\\', ""))]);
    }

    #[test]
    fn an_id_is_a_string_or_a_number_as_it_is_written() {
        let file = r#"{"id":18446744073709551617,"text":"a"}
{"id":-1.50,"text":"b"}
{"id":"\u65b0\n","text":"c"}
{"id":null,"text":"d"}
{"id":{"x":1},"text":"e"}
{"id":"first","id":"last","text":"f","text":"\u65b0"}"#;
        let (records, _) = read_bytes("/d/a.jsonl", file.as_bytes());
        let expected = [
            doc("18446744073709551617", "a"),
            doc("-1.50", "b"),
            doc("新\n", "c"),
            doc("/d/a.jsonl:92", "d"),
            doc("/d/a.jsonl:115", "e"),
            doc("last", "新"),
        ];
        assert_eq!(records, expected);
    }

    #[test]
    fn without_the_id_field_that_was_asked_for_a_line_is_a_reject() {
        let blob = MemoryBlob::shared("/a", b"{\"id\":1,\"t\":\"x\"}\n{\"no\":2,\"t\":\"y\"}", 9);
        let reading = Reading { id: Some("no".into()), text: Some("t".into()), ..Reading::default() };
        let (records, _) = read(&JSONL, &pieces(&blob, &[]), &reading);
        assert!(matches!(&records[0], Record::Reject { reason, .. } if reason.contains("\"no\"")));
        assert_eq!(records[1], doc("2", "y"));
    }

    #[test]
    fn a_removed_line_says_why_in_its_last_members() {
        let file = b"{\"id\":\"a\",\"text\":\"x\"}\n{\"id\":\"b\",\"text\":\"y\",\"n\":{}} \r\n{\"id\":\"c\",\"text\":\"z\"}";
        let blob = MemoryBlob::shared("/a.jsonl", file, 9);
        let pieces = pieces(&blob, &[]);
        let (records, _) = read(&JSONL, &pieces, &Reading::default());
        let fate = |id: &str| if id == "a" { Fate::Kept } else { Fate::Removed(removal(id)) };
        let (parts, _) = divide(&JSONL, &pieces, &records, fate);
        assert_eq!(parts.text("kept/0.jsonl"), "{\"id\":\"a\",\"text\":\"x\"}\n");
        let members = r#","duplicate_of":"\"新\"","similarity":0.875,"cluster":"c","reason":"similar"}"#;
        let b = format!("{{\"id\":\"b\",\"text\":\"y\",\"n\":{{}}{members} \r\n");
        let c = format!("{{\"id\":\"c\",\"text\":\"z\"{members}\n");
        assert_eq!(parts.text("removed/0.jsonl"), b + &c);
    }

    #[test]
    fn compressed_files_of_several_members_are_one_piece() {
        let lines = many_lines();
        let (first, second) = lines.split_at(70_001); // within a line
        let (plain, _) = read_bytes("/a.jsonl", &lines);
        assert_eq!(plain.len(), 5000);
        for (path, bytes) in [
            ("/a.jsonl.gz", [gzip(first), gzip(second)].concat()),
            ("/a.json.zst", [zstd(first), zstd(second)].concat()),
            ("/gzip-by-magic", gzip(&lines)),
            ("/zstd-by-magic", zstd(&lines)),
        ] {
            let blob = MemoryBlob::shared(path, &bytes, 999);
            for cuts in [&[][..], &[1], &[5000, 5001]] {
                let pieces = pieces(&blob, cuts);
                let (records, failed) = read(&JSONL, &pieces, &Reading::default());
                assert!(failed.is_none(), "{failed:?}");
                assert!(records == plain, "{path} differs");
                let (parts, failed) = divide(&JSONL, &pieces, &records, |_| Fate::Kept);
                assert!(failed.is_none(), "{failed:?}");
                let compression = Compression::of(path, &bytes);
                let kept = parts.bytes(&format!("kept/0.jsonl{}", compression.suffix()));
                assert!(unpacked(compression, kept) == lines, "{path} differs");
            }
        }
    }

    #[test]
    fn damage_costs_what_lies_behind_it_and_nothing_before() {
        let lines = many_lines();
        let (plain, _) = read_bytes("/a.jsonl", &lines);
        for (path, bytes) in [("/a.jsonl.gz", gzip(&lines)), ("/a.jsonl.zst", zstd(&lines))] {
            let mut least = 0;
            for length in [1, 100, bytes.len() / 2, bytes.len() - 200, bytes.len() - 1] {
                let blob = MemoryBlob::shared(path, &bytes[..length], 999);
                let pieces = pieces(&blob, &[]);
                let (records, failed) = read(&JSONL, &pieces, &Reading::default());
                assert!(failed.is_some_and(|error| error.is_data()), "{path} cut to {length}");
                assert!(records.len() >= least && plain.starts_with(&records), "{path} cut to {length}");
                least = records.len();
                let (parts, failed) = divide(&JSONL, &pieces, &records, |_| Fate::Kept);
                assert!(failed.is_some_and(|error| error.is_data()), "{path} cut to {length}");
                if let Some(name) = parts.names().first() {
                    let kept = unpacked(Compression::of(path, &bytes), parts.bytes(name));
                    assert!(
                        lines.starts_with(&kept) && kept.iter().filter(|&&b| b == b'\n').count() == least
                    );
                }
            }
            assert!(least > 1000, "{path}: only {least} documents before the damage");
        }
    }

    #[test]
    fn bytes_behind_the_last_member_are_not_passed_over_in_silence() {
        let mut bytes = gzip(b"{\"id\":1,\"text\":\"a\"}\n");
        bytes.extend_from_slice(b"GARBAGE");
        let (records, failed) = read_bytes("/a.jsonl.gz", &bytes);
        assert_eq!(records, [doc("1", "a")]);
        assert!(failed.is_some_and(|error| error.is_data()));
    }

    #[test]
    fn a_new_part_begins_where_the_compression_changes() {
        let line = b"{\"id\":1,\"text\":\"a\"}";
        let parts = MemoryParts::default();
        let mut writer = JSONL.writer(&parts, &Reading::default());
        for (path, bytes) in
            [("/a.jsonl", &line[..]), ("/b.jsonl", line), ("/c.gz", &gzip(line)), ("/d.jsonl", line)]
        {
            let blob = MemoryBlob::shared(path, bytes, 9);
            writer.divide(&pieces(&blob, &[])[0], &mut std::iter::once(Fate::Kept)).unwrap();
        }
        writer.finish().unwrap();
        assert_eq!(parts.names(), ["kept/0.jsonl", "kept/0.jsonl.gz", "kept/1.jsonl"]);
        assert_eq!(parts.text("kept/0.jsonl").lines().count(), 2);
    }

    #[test]
    fn a_file_that_changed_between_the_readings_is_no_rejected_record() {
        let blob = MemoryBlob::shared("/a", b"{\"text\":\"a\"}\n{\"text\":\"b\"}", 9);
        let parts = MemoryParts::default();
        let mut writer = JSONL.writer(&parts, &Reading::default());
        let error = writer.divide(&pieces(&blob, &[])[0], &mut std::iter::once(Fate::Kept)).unwrap_err();
        assert!(!error.is_data());
    }

    #[test]
    fn utf_16_is_refused_by_name() {
        let bytes: Vec<u8> = "\u{feff}{\"text\":\"a\"}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let (records, failed) = read_bytes("/a.jsonl", &bytes);
        assert!(records.is_empty());
        assert!(failed.unwrap().to_string().contains("UTF-16"));
    }

    #[test]
    fn files_are_recognised_by_name_or_content() {
        let text = b" \n{ \"text\": \"a\"}\n";
        for (path, head) in [
            ("/a.JSONL", &b""[..]),
            ("/a.ndjson.gz", b""),
            ("/a.json.zst", b""),
            ("/part-00000", text),
            ("/part-00000.gz", &gzip(text)),
            ("/part-00000", &gzip(&many_lines())[..4096]),
            ("/part-00000", &zstd(text)),
        ] {
            assert!(JSONL.recognises(path, head), "{path}");
        }
        for (path, head) in
            [("/a.txt", &b"{curly}"[..]), ("/a.gz", &gzip(b"text")), ("/a.gz", b"{\"text\":1}")]
        {
            assert!(!JSONL.recognises(path, head), "{path}");
        }
        assert!(JSONL.splits("/a.json") && !JSONL.splits("/a.json.GZ") && !JSONL.splits("/a.zst"));
    }

    #[test]
    fn shared_broken_files_give_their_known_counts() {
        for (name, docs, rejects, damaged) in [
            ("bom_crlf_nonl.jsonl", 5, 0, false),
            ("deep_nest.jsonl", 2, 1, false),
            ("gz_trailing_garbage.jsonl.gz", 10, 0, true),
            ("mixed_bad_lines.jsonl", 33, 21, false),
            ("multi_member.jsonl.gz", 20, 0, false),
            ("single_line_50MB.jsonl.gz", 3, 0, false),
            ("truncated.jsonl.gz", 1965, 0, true),
            ("u2028_in_text.jsonl", 4, 0, false),
            ("utf16le.jsonl", 0, 0, true),
        ] {
            let Some(bytes) = corpus_file(&format!("hostile/jsonl/{name}")) else { return };
            let (records, failed) = read_bytes(name, &bytes);
            let found = records.iter().filter(|record| matches!(record, Record::Doc { .. })).count();
            assert_eq!((found, records.len() - found, failed.is_some()), (docs, rejects, damaged), "{name}");
        }
    }
}
