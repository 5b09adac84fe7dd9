//! Fuzzing of every parser with damaged copies of valid files and pure noise, for a given number of seconds.
//!
//! `cargo test -p dedup-datasets --test fuzz -- --seconds 600 --parser csv --seed 7`; the default is one
//! minute for all parsers together. Each parser begins with seed 0, or with that of `--from`, where an
//! earlier run ended (`scripts/fuzz` keeps count). Each input is read twice and divided once, as a whole and, where the
//! format can be cut, in two pieces, on a thread that is watched. A failure is printed with its parser and its seed, which reproduce the input; it then
//! becomes a named test of the format.
#![allow(clippy::unwrap_used, reason = "a harness whose files cannot be made should fail")]
#![allow(missing_docs, reason = "it is no library")]

mod files;
mod memory;
mod mutate;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use datasets::{BadText, Cuts, Error, Fate, Piece, Reading, Removal, SharedFile};
use operators::{DocBatch, SpillBudget};
use peak_alloc::PeakAlloc;

use self::files::{PARSERS, Parser};
use self::memory::{MemoryBlob, MemoryParts, piece};
use self::mutate::{mutant, random};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Bounds of a reading, small enough for small inputs to reach them.
const MAX_RECORD_BYTES: usize = 1 << 18;
const BLOCK_BYTES: usize = 2 << 20;
/// Memory that reading may allocate with these bounds, in bytes: buffers of blocks and records, and batches
/// of about 1 MiB.
const MOST_ALLOCATED: usize = 64 << 20;
/// Time limit of an input. An input that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(30);

struct Asked {
    seconds: u64,
    parser: Option<String>,
    seed: Option<u64>,
    from: u64,
}

fn main() -> ExitCode {
    let Some(asked) = asked() else { return ExitCode::SUCCESS };
    let parsers: Vec<&'static Parser> = PARSERS
        .iter()
        .filter(|parser| asked.parser.as_deref().is_none_or(|name| parser.name == name))
        .collect();
    assert!(!parsers.is_empty(), "the parsers are {:?}", PARSERS.iter().map(|p| p.name).collect::<Vec<_>>());
    // Expected panics of libraries are caught; the others are reported as failures.
    std::panic::set_hook(Box::new(|_| {}));
    let share = Duration::from_secs(asked.seconds) / parsers.len() as u32;
    let mut failed = false;
    for parser in parsers {
        match fuzz(parser, share, &asked) {
            Ok(inputs) => println!("{}: {inputs} inputs", parser.name),
            Err((seed, why)) => {
                println!("{}: FAILED with --parser {} --seed {seed}: {why}", parser.name, parser.name);
                failed = true;
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Parses the command line. Returns `None` if it requests tests of other names.
fn asked() -> Option<Asked> {
    let mut asked = Asked { seconds: 60, parser: None, seed: None, from: 0 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().expect("an option has a value");
        match argument.as_str() {
            "--seconds" => asked.seconds = value().parse().expect("seconds are a number"),
            "--parser" => asked.parser = Some(value()),
            "--seed" => asked.seed = Some(value().parse().expect("a seed is a number")),
            "--parsers" => {
                PARSERS.iter().for_each(|parser| println!("{}", parser.name));
                return None;
            }
            "--from" => asked.from = value().parse().expect("a seed is a number"),
            // The usual harness asks for the names of tests with this option.
            "--list" => return None,
            option if option.starts_with("--") => {}
            name if "fuzz".contains(name) => {}
            _ => return None,
        }
    }
    Some(asked)
}

/// Tries inputs until the time is over, and returns their number. With a seed, tries that one alone.
fn fuzz(parser: &'static Parser, time: Duration, asked: &Asked) -> Result<u64, (u64, String)> {
    let files: Arc<Vec<Vec<u8>>> = Arc::new((parser.files)());
    let start = Instant::now();
    let mut inputs = 0;
    while inputs == 0 || asked.seed.is_none() && start.elapsed() < time {
        let seed = asked.seed.unwrap_or(asked.from + inputs);
        let (done, outcome) = mpsc::channel();
        let files = Arc::clone(&files);
        let watched = move || {
            let result = catch_unwind(AssertUnwindSafe(|| one(parser, &files, seed)));
            let result = result.unwrap_or_else(|panic| {
                let text = panic.downcast_ref::<&str>().map(|said| (*said).to_owned());
                let said = panic.downcast_ref::<String>().cloned().or(text);
                Err(format!("panicked: {}", said.unwrap_or_default()))
            });
            // After the time limit nobody receives the result.
            let _late = done.send(result);
        };
        thread::Builder::new().stack_size(8 << 20).spawn(watched).unwrap();
        match outcome.recv_timeout(PATIENCE) {
            Ok(Ok(())) => inputs += 1,
            Ok(Err(why)) => return Err((seed, why)),
            Err(RecvTimeoutError::Timeout) => return Err((seed, format!("no end after {PATIENCE:?}"))),
            Err(RecvTimeoutError::Disconnected) => return Err((seed, "the thread ended".to_owned())),
        }
    }
    Ok(inputs)
}

/// Reads and divides the input of a seed.
fn one(parser: &Parser, files: &[Vec<u8>], seed: u64) -> Result<(), String> {
    let mut random = random(parser.name, seed);
    let input = (parser.finish)(mutant(&mut random, files), &mut random);
    let reading = Reading {
        bad_text: if random.below(2) == 0 { BadText::Reject } else { BadText::Replace },
        max_record_bytes: MAX_RECORD_BYTES,
        block_bytes: BLOCK_BYTES,
        ..Reading::default()
    };
    let piece = piece(MemoryBlob::shared(parser.path, &input, 1 << 16));
    ALLOCATED.reset_peak_usage();
    let before = ALLOCATED.current_usage();
    let first = read(parser, &piece, &reading)?;
    let second = read(parser, &piece, &reading)?;
    if first != second {
        return Err(format!("two readings differ: {} records and {}", first.0.len(), second.0.len()));
    }
    divide(parser, &piece, &reading, &first)?;
    if parser.format().cuts(parser.path) != Cuts::Nowhere {
        // Where a file is damaged, two pieces may give other records than the whole, but reader and writer agree.
        let cut = random.below(input.len() + 1) as u64;
        let whole = match parser.format().cuts(parser.path) {
            Cuts::Contents => {
                let shared = Arc::new(SharedFile::decompressed(&SpillBudget::unused()));
                Piece { end: u64::MAX, shared, ..piece.clone() }
            }
            _ => piece.clone(),
        };
        let low = Piece { end: cut, ..whole.clone() };
        let high = Piece { start: cut, ..whole };
        for piece in [low, high] {
            divide(parser, &piece, &reading, &read(parser, &piece, &reading)?)
                .map_err(|reason| format!("cut at {cut}: {reason}"))?;
        }
    }
    let held = size_of_val(&*first.0) + first.0.iter().map(|record| record.bytes()).sum::<usize>();
    let peak = ALLOCATED.peak_usage().saturating_sub(before + 3 * held);
    if peak > parser.most_allocated.unwrap_or(MOST_ALLOCATED) {
        return Err(format!("{} MiB allocated for an input of {} bytes", peak >> 20, input.len()));
    }
    Ok(())
}

#[derive(Debug, PartialEq)]
enum Record {
    Doc(String, u64),
    Reject(u64, String),
}

impl Record {
    fn bytes(&self) -> usize {
        let (Record::Doc(text, _) | Record::Reject(_, text)) = self;
        text.capacity()
    }
}

/// The records, and the error that ended them.
type Records = (Vec<Record>, Option<String>);

fn read(parser: &Parser, piece: &Piece, reading: &Reading) -> Result<Records, String> {
    let mut records = Vec::new();
    let mut reader = match parser.format().open(piece, reading) {
        Ok(reader) => reader,
        Err(error) if error.is_data() => return Ok((records, Some(error.to_string()))),
        Err(error) => return Err(format!("a store's error where there is none: {error}")),
    };
    let mut next = 0;
    loop {
        let mut batch = DocBatch::new(0, next);
        let more = reader.fill(&mut batch);
        let rejects = batch.take_rejects();
        let count = batch.docs().len() + rejects.len();
        if next + count as u64 != batch.next_record() {
            return Err(format!("{count} records, but {next} to {}", batch.next_record()));
        }
        next = batch.next_record();
        let mut rejects = rejects.into_iter().peekable();
        for doc in batch.docs() {
            while let Some(reject) = rejects.next_if(|reject| reject.doc < doc.doc) {
                records.push(Record::Reject(reject.offset, reject.reason));
            }
            records.push(Record::Doc(doc.id.to_owned(), operators::hash::bytes(doc.text.as_bytes())));
        }
        records.extend(rejects.map(|reject| Record::Reject(reject.offset, reject.reason)));
        match more {
            Ok(true) if count == 0 => return Err("a batch of nothing before the end".to_owned()),
            Ok(true) => {}
            Ok(false) => return Ok((records, None)),
            Err(error) if error.is_data() => return Ok((records, Some(error.to_string()))),
            Err(error) => return Err(format!("a store's error where there is none: {error}")),
        }
    }
}

/// Divides the piece. The writer must see the records that the reader saw, and end as it did.
fn divide(parser: &Parser, piece: &Piece, reading: &Reading, read: &Records) -> Result<(), String> {
    let (records, failed) = read;
    let parts = MemoryParts;
    let mut removed = false;
    let mut fates = records.iter().map(|record| match record {
        Record::Reject(..) => Fate::Rejected,
        Record::Doc(id, _) => {
            removed = !removed;
            let removal = || Removal {
                id: id.clone(),
                duplicate_of: "other".to_owned(),
                similarity: Some(0.9),
                cluster: "first".to_owned(),
                reason: "similar".into(),
            };
            if removed { Fate::Removed(removal()) } else { Fate::Kept }
        }
    });
    let mut writer = parser.format().writer(&parts, reading);
    let ended = match writer.divide(piece, &mut fates) {
        Ok(()) => None,
        Err(error) if error.is_data() => Some(error.to_string()),
        Err(error) => return Err(format!("could not be divided: {error:?}")),
    };
    let left = fates.count();
    if left > 0 || ended.is_some() != failed.is_some() {
        return Err(format!(
            "the reader ended with {failed:?}, the writer with {ended:?}, {left} records before"
        ));
    }
    writer.finish().map_err(|error: Error| format!("could not be finished: {error:?}"))
}
