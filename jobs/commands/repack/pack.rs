//! `pack`: copies many small files into a few large ones.

use std::env;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use cluster::{Blob, Stores};
use datasets::{Container, Content, Error, FORMATS, PackWriter, Piece, Reading};
use operators::{DocBatch, Reject};

use super::pack_options::{PackOptions, PackedRecord, has_records};
use super::{PackFormat, Repack, RepackCounters, RepackUnit};
use runtime::Common;
use runtime::cli::configuration::Configuration;
use runtime::cli::exit::WrongUse;
use runtime::cli::values::{output_and_inputs, paths};
use runtime::corpus::input_files::InputFiles;
use runtime::corpus::plan::{HEAD_BYTES, Plan};
use runtime::corpus::run::Run;
use runtime::corpus::split::Split;
use runtime::corpus::splits::{self, SplitReader};
use runtime::corpus::unopened_piece::UnopenedPiece;
use runtime::corpus::whole_file::WholeFile;
use runtime::output::rejects::SplitRejectsWriter;
use runtime::output::{OutputArgs, OutputFolder, OutputJob};
use runtime::progress::{Progress, Stage, StageTimer};

/// Format of one text a file, whatever the files are called.
const TEXTS: &str = "tancorp";
/// Number of files that each worker waits for at once.
const READERS: usize = 8;
/// Length of the longest file that is read ahead.
const SMALL_BYTES: u64 = 1 << 20;

/// Pack many small files, or the documents of a corpus, into a few large files
///
/// OUTPUT/packed gets SequenceFiles or Parquet with a record for each file: its text, and as its name its
/// path below the input. If all files have records of their own (SogouCS, JSON lines and arrays, CSV, Parquet, SequenceFile, WARC), there is
/// a record for each document instead: its id and its text. `dedup` reads them, and `unpack` makes files of them again, if the ids
/// can be names of files.
/// With --bytes every file comes back as it was. Without it, a file that was not UTF-8, or began with a byte order mark, comes back
/// as plain UTF-8.
#[derive(clap::Args)]
#[command(override_usage = "dedup-job pack [OPTIONS] <INPUT>... <OUTPUT>")]
pub struct Args {
    /// Files, folders, globs or comma lists of them, local, on HDFS or in an object store; the last one is
    /// the output folder
    #[arg(required = true, num_args = 1.., value_name = "INPUT> <OUTPUT", value_parser = paths())]
    paths: Vec<String>,
    #[command(flatten)]
    options: PackOptions,
    /// Stop with exit code 4 before anything is committed if more files than this are rejected
    #[arg(long, value_name = "N")]
    max_rejects: Option<u64>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the job; returns 0, or 3 if files were rejected.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    let (output, inputs) = output_and_inputs(&args.paths)?;
    let options = &args.options;
    if options.to == PackFormat::Parquet && options.codec.is_some() {
        bail!(WrongUse("--codec is for SequenceFiles; Parquet has zstd".to_owned()));
    }
    let container = options.to.container(options.codec);
    let content = if options.bytes { Content::Bytes } else { Content::Text };
    let reading = Reading {
        id: options.id_field.clone(),
        text: options.text_field.clone(),
        encoding: options.encoding,
        bad_text: options.on_bad_text.into(),
        max_record_bytes: options.max_record_bytes as usize,
        ..Reading::default()
    };
    let start = Instant::now();
    let stores = Stores::new();
    let found = InputFiles::find(&stores, &[], inputs)?;
    let records = PackedRecord::of_files(&found.files, options)?;
    let (format, unit) = match records {
        PackedRecord::File => (Some(TEXTS), RepackUnit::FilesPacked),
        PackedRecord::Document => (options.format.as_deref(), RepackUnit::DocumentsPacked),
    };
    let plan = Plan::of_files(found, format, Some(options.part_size), &env::temp_dir())?;
    let job = OutputJob::alone(
        (common, &stores, start),
        Run::alone(plan, reading, common.workers(), &Arc::default()),
        Stage::Pack.name(),
        (output, &args.output),
        serde_json::to_value(Configuration::here(options, common.workers(), inputs)?)?,
    );
    let repack = Repack { job: &job, max_rejects: args.max_rejects, stage: Stage::Pack, unit };
    let warned = AtomicBool::new(false);
    repack.run(|folder, at, number, split, rejects| {
        let Run { reading, progress, .. } = &job.run;
        let packing = Packing { container, content, reading, folder, at, progress, warned: &warned };
        match records {
            PackedRecord::File => packing.files(number, split, rejects),
            PackedRecord::Document => packing.documents(number, split, rejects),
        }
    })
}

struct Packing<'a> {
    container: Container,
    content: Content,
    reading: &'a Reading,
    folder: &'a OutputFolder,
    at: &'a StageTimer<'a>,
    progress: &'a Progress,
    /// Whether the user was told of a file with several documents.
    warned: &'a AtomicBool,
}

impl Packing<'_> {
    /// Begins the file of one split.
    fn writer(&self, number: u32, split: &Split) -> Result<Box<dyn PackWriter>> {
        let name = format!("packed/part-{number:05}{}", self.container.extension());
        let output = self.folder.file(&name)?;
        Ok(self.container.create(output, self.content, &seed(split))?)
    }

    /// Packs the documents of one split into one file.
    fn documents(
        &self,
        number: u32,
        split: &Split,
        rejects: &mut SplitRejectsWriter,
    ) -> Result<RepackCounters> {
        let mut writer = self.writer(number, split)?;
        let mut copied = RepackCounters::default();
        let mut reader = SplitReader::new(number, split, self.reading, self.at);
        while let Some(mut batch) = reader.next_batch()? {
            rejects.take(&mut batch)?;
            copied.replaced += batch.replaced();
            for doc in batch.docs() {
                copied.records += 1;
                copied.bytes += doc.text.len() as u64;
                writer.append(doc.id, doc.text.as_bytes())?;
            }
        }
        if let Some(missing) = reader.without_field().filter(|_| copied.records == 0) {
            // A field that no record has is misspelt, or the files are none of documents.
            let error = anyhow!(Error::Field(missing));
            return Err(error.context("the documents could not be read; --records file packs whole files"));
        }
        writer.finish()?;
        Ok(copied)
    }

    /// Packs the files of one split into one file, even where all of them are rejected.
    fn files(&self, number: u32, split: &Split, rejects: &mut SplitRejectsWriter) -> Result<RepackCounters> {
        let mut writer = self.writer(number, split)?;
        let mut copied = RepackCounters::default();
        let mut next = 0;
        read_ahead(split, |unopened, piece, ahead| {
            let mut batch = DocBatch::new(number, next);
            let before = copied.bytes;
            self.file(split, &piece, ahead, &mut batch, writer.as_mut(), &mut copied)?;
            next = batch.next_record();
            rejects.take(&mut batch)?;
            self.at.read(1, copied.bytes - before);
            self.at.done(unopened.bytes());
            Ok(())
        })?;
        writer.finish()?;
        Ok(copied)
    }

    /// Packs one file, or rejects it.
    fn file(
        &self,
        split: &Split,
        piece: &Piece,
        ahead: Option<WholeFile>,
        batch: &mut DocBatch,
        writer: &mut dyn PackWriter,
        copied: &mut RepackCounters,
    ) -> Result<()> {
        let file = match ahead {
            Some(file) => file,
            None => read_whole(&*piece.blob, self.reading.max_record_bytes)?,
        };
        if piece.blob.bytes() > self.reading.max_record_bytes as u64 {
            let reason = format!("the file is longer than {} bytes", self.reading.max_record_bytes);
            batch.reject(piece.blob.path(), 0, reason, &file.bytes);
            return Ok(());
        }
        let mut append = |name: &str, bytes: &[u8]| {
            copied.records += 1;
            copied.bytes += bytes.len() as u64;
            writer.append(name, bytes)
        };
        self.warn_of_records(piece, &file.bytes);
        if self.content == Content::Bytes {
            return Ok(append(&piece.name, &file.bytes)?);
        }
        let file = Arc::new(file);
        let text = Piece { blob: file.clone(), ..piece.clone() };
        let mut reader = split.format.open(&text, self.reading)?;
        if let Err(error) = reader.fill(batch) {
            splits::end(error, Some(batch))?;
        }
        for doc in batch.docs() {
            append(doc.id, doc.text.as_bytes())?;
            copied.recoded += u64::from(doc.text.as_bytes() != file.bytes);
        }
        copied.replaced += batch.replaced();
        Ok(())
    }
}

impl Packing<'_> {
    /// Tells the user of the first file that has several documents and becomes one record.
    fn warn_of_records(&self, piece: &Piece, bytes: &[u8]) {
        let path = piece.blob.path();
        let head = &bytes[..bytes.len().min(HEAD_BYTES)];
        let recognised = || FORMATS.iter().find(|format| format.recognises(path, head));
        let warns = self.content == Content::Text
            && !self.warned.load(Ordering::Relaxed)
            && recognised().is_some_and(|format| has_records(*format));
        if warns && !self.warned.swap(true, Ordering::Relaxed) {
            self.progress.warn(&format!(
                "\"{path}\" has records of its own and becomes one: --records document packs its documents"
            ));
        }
    }
}

/// Opens the files of a split and hands them on in their order. Several small ones are read at once, since
/// most of the time goes into waiting for the store, file by file.
///
/// Memory: [`READERS`] times a few times [`SMALL_BYTES`].
fn read_ahead(
    split: &Split,
    mut each: impl FnMut(&UnopenedPiece, Piece, Option<WholeFile>) -> Result<()>,
) -> Result<()> {
    let readers = READERS.min(split.pieces.len());
    thread::scope(|scope| {
        let read = |unopened: &UnopenedPiece| {
            let piece = unopened.open()?;
            let small = piece.blob.bytes() <= SMALL_BYTES;
            let file = small.then(|| read_whole(&*piece.blob, SMALL_BYTES as usize)).transpose()?;
            Ok::<_, cluster::Error>((piece, file))
        };
        let mut lanes = Vec::new();
        for reader in 0..readers {
            let (sender, files) = mpsc::sync_channel(4);
            let mut pieces = split.pieces.iter().skip(reader).step_by(readers);
            // After an error nobody receives any more.
            scope.spawn(move || pieces.all(|unopened| sender.send(read(unopened)).is_ok()));
            lanes.push(files);
        }
        for (unopened, lane) in split.pieces.iter().zip((0..readers).cycle()) {
            let (piece, file) = lanes[lane].recv().map_err(|_| anyhow!("a reading thread panicked"))??;
            each(unopened, piece, file)?;
        }
        Ok(())
    })
}

/// Returns a text that depends on what the part will hold.
fn seed(split: &Split) -> String {
    let names = split.pieces.iter().map(|piece| format!("{} {}\n", piece.bytes(), piece.name()));
    names.collect()
}

/// Reads a file; only its beginning if it is longer than `most` bytes.
///
/// It is read from the store only once, and its text is compared with its bytes.
fn read_whole(blob: &dyn Blob, most: usize) -> Result<WholeFile, cluster::Error> {
    let bytes = blob.bytes();
    let wanted = if bytes > most as u64 { Reject::HEAD_BYTES } else { bytes as usize };
    let mut file = WholeFile { path: blob.path().to_owned(), bytes: vec![0; wanted] };
    let read = blob.read_full_at(0, &mut file.bytes)?;
    file.bytes.truncate(read);
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_are_read_ahead_in_their_order_until_one_cannot_be_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = |i: usize| folder.path().join(format!("{i:03}"));
        for i in 0..200 {
            // Some files are too large to be read ahead.
            let bytes = if i % 50 == 7 { SMALL_BYTES as usize + 1 } else { i };
            fs::write(path(i), vec![b'x'; bytes]).unwrap();
        }
        let inputs = [folder.path().to_str().unwrap().to_owned()];
        let plan =
            Plan::new(&Stores::new(), &[], &inputs, Some(TEXTS), Some(1 << 30), folder.path()).unwrap();
        let mut names = Vec::new();
        let mut read = || {
            names.clear();
            let result = read_ahead(&plan.splits[0], |_, piece, file| {
                assert_eq!(file.is_some(), piece.blob.bytes() <= SMALL_BYTES);
                assert!(file.is_none_or(|file| file.bytes.len() as u64 == piece.blob.bytes()));
                names.push(piece.name);
                Ok(())
            });
            (result.map_err(|error| error.to_string()), names.clone())
        };
        let all: Vec<String> = (0..200).map(|i| format!("{i:03}")).collect();
        assert_eq!(read(), (Ok(()), all.clone()));
        fs::remove_file(path(150)).unwrap();
        let (result, names) = read();
        assert!(result.unwrap_err().contains("/150") && names == all[..150]);
    }
}
