//! The formats of packed files, and the writers that they begin with.

use super::packed::{Content, PackWriter};
use crate::formats::{jsonl, parquet, sequence_file};
use crate::{Codec, Error, PartOutput};

/// Format of a packed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// SequenceFile, block-compressed, with keys of the class Text.
    SequenceFile(Codec),
    /// Parquet with the columns `id` and `text`, compressed with zstd.
    Parquet,
    /// JSON lines with the members `id` and `text`. They can only hold text, and `unpack` does not read them.
    JsonLines,
}

impl Container {
    /// Returns the extension of such files.
    pub fn extension(self) -> &'static str {
        match self {
            Container::SequenceFile(_) => ".seq",
            Container::Parquet => ".parquet",
            Container::JsonLines => ".jsonl",
        }
    }

    /// Begins a packed file. The same `seed` gives the same bytes. A seed should depend on the files that
    /// will be packed, because it determines the sync marker of a SequenceFile, which must not occur in a
    /// packed file.
    pub fn create(
        self,
        output: Box<dyn PartOutput>,
        content: Content,
        seed: &str,
    ) -> Result<Box<dyn PackWriter>, Error> {
        Ok(match self {
            Container::SequenceFile(codec) => {
                Box::new(sequence_file::SequencePacker::create(output, content, codec, seed)?)
            }
            Container::Parquet => Box::new(parquet::ParquetPacker::create(output, content)?),
            Container::JsonLines => Box::new(jsonl::JsonPacker::new(output)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cluster::Blob;

    use super::*;
    use crate::Packed;
    use crate::testing::{MemoryBlob, MemoryParts, Record, mutants, pieces, read};
    use crate::{FORMATS, Format, Parts, Piece, Reading};

    const ALL: [Container; 3] =
        [Container::SequenceFile(Codec::Zlib), Container::SequenceFile(Codec::Gzip), Container::Parquet];

    fn format(container: Container) -> &'static dyn Format {
        let head: &[u8] = if container == Container::Parquet { b"PAR1" } else { b"SEQ\x06" };
        *FORMATS.iter().find(|format| format.recognises("/x", head)).unwrap()
    }

    fn packed(container: Container, content: Content, files: &[(String, Vec<u8>)]) -> Vec<u8> {
        let parts = MemoryParts::default();
        let output = parts.named("packed", "x").unwrap();
        let mut writer = container.create(output, content, "seed").unwrap();
        for (name, bytes) in files {
            writer.append(name, bytes).unwrap();
        }
        writer.finish().unwrap();
        parts.bytes("packed/x")
    }

    /// Returns all files of all pieces, and the number of lost records.
    fn unpacked(container: Container, pieces: &[Piece]) -> (Vec<(String, Vec<u8>)>, usize) {
        let mut files = Vec::new();
        let mut lost = 0;
        for piece in pieces {
            let mut reader = match format(container).unpack(piece, &Reading::default()) {
                Ok(reader) => reader.unwrap(),
                Err(error) => {
                    assert!(!matches!(error, Error::Store(_)), "{error}");
                    lost += 1;
                    continue;
                }
            };
            loop {
                match reader.next() {
                    Ok(None) => break,
                    Ok(Some(Packed::File { name, bytes, .. })) => {
                        files.push((name.to_owned(), bytes.to_vec()));
                    }
                    Ok(Some(Packed::Lost { .. })) => lost += 1,
                    Err(error) => {
                        assert!(error.is_data(), "{error}");
                        lost += 1;
                        break;
                    }
                }
            }
        }
        (files, lost)
    }

    fn blob(bytes: &[u8]) -> Arc<dyn Blob> {
        MemoryBlob::shared("/x", bytes, 1 << 16)
    }

    fn some_files(count: usize) -> Vec<(String, Vec<u8>)> {
        let text = |i: usize| format!("第{i}个文件\r\n").repeat(i % 40).into_bytes();
        (0..count).map(|i| (format!("文/{}-{i}\n.txt", ["a", "-b"][i % 2]), text(i))).collect()
    }

    #[test]
    fn what_is_packed_is_unpacked_however_it_is_cut_and_read_as_documents() {
        let files = some_files(3_000);
        for container in ALL {
            for content in [Content::Text, Content::Bytes] {
                let bytes = packed(container, content, &files);
                assert_eq!(bytes, packed(container, content, &files));
                let blob = blob(&bytes);
                let length = bytes.len() as u64;
                for count in [1, 7, 64] {
                    let cuts: Vec<u64> = (1..count).map(|i| length * i / count).collect();
                    assert!(unpacked(container, &pieces(&blob, &cuts)) == (files.clone(), 0));
                }
                let (records, failed) = read(format(container), &pieces(&blob, &[]), &Reading::default());
                assert!(failed.is_none());
                let documents: Vec<Record> = files
                    .iter()
                    .map(|(name, bytes)| Record::Doc {
                        id: name.clone(),
                        text: String::from_utf8(bytes.clone()).unwrap(),
                    })
                    .collect();
                assert!(records == documents, "{container:?} {content:?}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_and_empty_files_come_back_as_they_were() {
        let all: Vec<u8> = (0..=255).collect();
        let files = [
            ("", &b""[..]),
            ("a", b""),
            ("b", &all),
            ("c", b"\xef\xbb\xbfx"),
            ("d", &b"\xff".repeat(70_000)),
        ]
        .map(|(name, bytes)| (name.to_owned(), bytes.to_vec()));
        for container in ALL {
            let blob = blob(&packed(container, Content::Bytes, &files));
            assert!(unpacked(container, &pieces(&blob, &[])) == (files.to_vec(), 0), "{container:?}");
        }
        let nothing = packed(Container::Parquet, Content::Text, &[]);
        assert_eq!(unpacked(Container::Parquet, &pieces(&blob(&nothing), &[])), (Vec::new(), 0));
    }

    #[test]
    fn a_packed_sequence_file_in_another_does_not_end_its_records() {
        let container = Container::SequenceFile(Codec::Zlib);
        let inner = packed(container, Content::Bytes, &some_files(500));
        let parts = MemoryParts::default();
        let output = parts.named("packed", "y").unwrap();
        let mut writer = container.create(output, Content::Bytes, "another seed").unwrap();
        for name in ["a", "b"] {
            writer.append(name, &inner).unwrap();
        }
        writer.finish().unwrap();
        let outer = parts.bytes("packed/y");
        // A packed file without files is a header with its sync marker.
        let header = packed(container, Content::Bytes, &[]).len();
        assert_ne!(inner[..header], outer[..header], "one sync marker for both");
        let files = [("a", inner.clone()), ("b", inner)].map(|(name, bytes)| (name.to_owned(), bytes));
        assert!(unpacked(container, &pieces(&blob(&outer), &[1_000, 2_000])) == (files.to_vec(), 0));
    }

    #[test]
    fn damage_never_panics_and_a_file_that_comes_out_of_blocks_is_one_that_went_in() {
        let files = some_files(40);
        for container in [Container::SequenceFile(Codec::Zlib), Container::Parquet] {
            let bytes = packed(container, Content::Bytes, &files);
            for (mutant, damaged) in mutants(&bytes, 2_000) {
                let (found, _lost) = unpacked(container, &pieces(&blob(&mutant), &[]));
                assert!(found.len() <= files.len(), "{container:?} damaged at {damaged:?}");
                // zlib has a checksum; the pages of this Parquet have none.
                let sound = container == Container::Parquet || found.iter().all(|file| files.contains(file));
                assert!(sound, "other files of {container:?} damaged at {damaged:?}");
            }
        }
    }

    #[test]
    fn other_formats_hold_no_files() {
        let jsonl = FORMATS.iter().find(|format| format.name() == "jsonl").unwrap();
        let blob = blob(b"{}\n");
        assert!(jsonl.unpack(&pieces(&blob, &[])[0], &Reading::default()).unwrap().is_none());
    }
}
