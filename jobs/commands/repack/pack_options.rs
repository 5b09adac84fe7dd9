//! The options of `pack`, and what becomes a record.

use anyhow::Result;
use cluster::InputFile;
use datasets::{Codec, Encoding, FileHead, Format, UNKNOWN};
use serde::Serialize;

use super::PackFormat;
use runtime::cli::configuration::{optional_text, text};
use runtime::cli::values::{OnBadText, record_size, size};
use runtime::corpus::plan::{recognise, recognised};

/// Options that decide what is packed.
#[derive(Clone, clap::Args, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct PackOptions {
    /// Format that the files are packed into
    #[arg(long, value_name = "FORMAT", default_value = "sequencefile")]
    pub to: PackFormat,
    /// Kind of the records to write [default: each document if all files have records of their own, else each file]
    #[arg(long, value_name = "WHAT")]
    pub records: Option<PackedRecord>,
    /// Format of the input, for documents; recognised by name and content by default
    #[arg(long)]
    pub format: Option<String>,
    /// Field that holds a document's id [default: id where there is one, else file and position]
    #[arg(long, value_name = "FIELD")]
    pub id_field: Option<String>,
    /// Field that holds a document's text [default: text]
    #[arg(long, value_name = "FIELD")]
    pub text_field: Option<String>,
    /// Codec of SequenceFiles: default, gzip, bzip2, snappy, lz4 or zstd
    ///
    /// Every Hadoop reads the default codec; for zstd it needs its native library.
    #[arg(long, value_name = "CODEC")]
    #[serde(with = "optional_text")]
    pub codec: Option<Codec>,
    /// Pack the bytes of each file, whether they are text or not
    ///
    /// They become BytesWritable, or a binary column.
    #[arg(long, conflicts_with_all = ["encoding", "on_bad_text", "records", "format"])]
    pub bytes: bool,
    /// Approximate number of bytes of files in one packed file, before compression
    ///
    /// Each packed file is written by one worker, so more of them keep more workers busy. Which files it
    /// holds depends only on the names and sizes of the files.
    #[arg(long, value_name = "SIZE", default_value = "128M", value_parser = size)]
    #[serde(with = "text")]
    pub part_size: u64,
    /// Encoding of the files: utf-8, gb18030, gbk, big5, utf-16le, utf-16be, shift_jis, euc-jp,
    /// euc-kr, windows-1251, windows-1252 or koi8-r
    ///
    /// By default the encoding is recognised, file by file.
    #[arg(long, value_name = "NAME")]
    #[serde(with = "optional_text")]
    pub encoding: Option<Encoding>,
    /// Treatment of a file with bytes that its encoding does not allow
    #[arg(long, value_name = "HOW", default_value = "reject")]
    pub on_bad_text: OnBadText,
    /// Reject files that are longer than this
    #[arg(long, value_name = "SIZE", default_value = "128M", value_parser = record_size)]
    #[serde(with = "text")]
    pub max_record_bytes: u64,
}

/// Unit of the input that becomes one packed record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PackedRecord {
    /// Each file, whole
    File,
    /// Each document that the format of a file has
    Document,
}

impl PackedRecord {
    /// Returns what becomes a record of these files, by their formats. Cost: looks at the first file, and at all files if that one has
    /// records of its own.
    pub fn of_files(files: &[InputFile], options: &PackOptions) -> Result<Self> {
        if let Some(records) = options.records {
            return Ok(records);
        }
        let first = || files.first().map(recognised).transpose();
        let documents = !options.bytes
            && (options.format.is_some()
                || first()?.flatten().is_some_and(has_records)
                    && recognise(files)?.into_iter().all(has_records)
                    && !hold_an_object(files)?);
        Ok(if documents { PackedRecord::Document } else { PackedRecord::File })
    }
}

/// Whether one of the files is called `.json` and may hold one object on several lines, which is a document by itself. Cost: reads the first
/// bytes of files that are called so.
fn hold_an_object(files: &[InputFile]) -> Result<bool> {
    let mut head = vec![0; FileHead::BYTES];
    for file in files.iter().filter(|file| file.path.to_ascii_lowercase().ends_with(".json")) {
        let length = file.open(None)?.read_full_at(0, &mut head)?;
        let text = FileHead::of(&file.path, &head[..length]).text;
        if !text.trim_start().starts_with('[') {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether files of a format hold records, so that a file is not a document by itself.
pub(super) fn has_records(format: &dyn Format) -> bool {
    !format.file_is_record() && format.name() != UNKNOWN.name()
}
