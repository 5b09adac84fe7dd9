//! The options of `chunk export` that decide its result.

use datasets::{Codec, Encoding};
use serde::Serialize;

use runtime::cli::configuration::{optional_text, text};
use runtime::cli::values::OnBadText;
#[cfg(feature = "cli")]
use runtime::cli::values::{paths, record_size, size};

/// Options that decide what is exported.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(rename_all = "kebab-case")]
pub(super) struct ExportOptions {
    /// `latest`, or the beginning of the name of a snapshot
    #[cfg_attr(
        feature = "cli",
        arg(long, value_name = "NAME", default_value = "latest", conflicts_with = "all")
    )]
    pub snapshot: String,
    /// Export all snapshots, the oldest first; the name of a snapshot and a slash come before the name of each file
    #[cfg_attr(feature = "cli", arg(long))]
    pub all: bool,
    /// Export only this file, or the files below this folder; may be given several times
    #[cfg_attr(feature = "cli", arg(long = "name", value_name = "NAME", value_parser = paths()))]
    pub names: Vec<String>,
    /// Format of the corpus
    #[cfg_attr(feature = "cli", arg(long, value_name = "FORMAT", default_value = "jsonl"))]
    pub to: ExportFormat,
    /// Codec of SequenceFiles: default, gzip, bzip2, snappy, lz4 or zstd
    #[cfg_attr(feature = "cli", arg(long, value_name = "CODEC"))]
    #[serde(with = "optional_text")]
    pub codec: Option<Codec>,
    /// Approximate number of bytes of files whose texts are in one part
    ///
    /// Each part is written by one worker, so more of them keep more workers busy. Which files it holds depends only on
    /// the names and sizes of the files.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", default_value = "16M", value_parser = size))]
    #[serde(with = "text")]
    pub part_size: u64,
    /// Encoding of files of text: utf-8, gb18030, gbk, big5, utf-16le, utf-16be, shift_jis, euc-jp,
    /// euc-kr, windows-1251, windows-1252 or koi8-r
    ///
    /// By default the encoding is recognised, file by file.
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME"))]
    #[serde(with = "optional_text")]
    pub encoding: Option<Encoding>,
    /// Treatment of a file with bytes that its encoding does not allow
    #[cfg_attr(feature = "cli", arg(long, value_name = "HOW", default_value = "reject"))]
    pub on_bad_text: OnBadText,
    /// Reject files that are longer than this, and documents whose text is
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", default_value = "128M", value_parser = record_size))]
    #[serde(with = "text")]
    pub max_record_bytes: u64,
}

/// Format of an exported corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub(super) enum ExportFormat {
    /// JSON lines with the members id and text.
    Jsonl,
    /// The columns id and text, zstd.
    Parquet,
    /// Keys and values of the class Text, block-compressed.
    #[cfg_attr(feature = "cli", value(name = "sequencefile"))]
    SequenceFile,
}
