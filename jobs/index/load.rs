//! Reads the documents of a corpus in order, and prepares them on all workers.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::{Context, Result, bail};
use operators::DocBatch;

use super::args::CorpusArgs;
use runtime::Common;
use runtime::cli::exit::WrongUse;
use runtime::corpus::input::Input;
use runtime::corpus::splits::SplitReader;
use runtime::output::rejects::Rejects;
use runtime::progress::{Progress, Stage};

/// Number of batches that wait for a worker, and of results that wait for the caller, for each worker.
const WAITING: usize = 2;

/// Opens the corpus that a tool is for.
///
/// # Errors
/// Those of [`InputOptions::open`](runtime::corpus::input::InputOptions::open), and [`WrongUse`] when a file belongs to a nightly
/// state, whose bytes are no documents.
pub(super) fn open_corpus(common: &Common, corpus: &CorpusArgs) -> Result<Input> {
    let mut input = corpus.input.open(&corpus.inputs, common.workers())?;
    input.reading.priority.clone_from(&corpus.priority_field);
    let of_state = input.plan.numbered().map(|(_, split)| split.uri()).find(|uri| is_of_state(uri));
    if let Some(uri) = of_state {
        bail!(WrongUse(format!(
            "\"{uri}\" belongs to a nightly state, which is no corpus: index build INDEX STATE makes an index of a state alone"
        )));
    }
    Ok(input)
}

/// Whether a file is a run of a nightly state by its name, such as `runs/00000007/texts-0.run`.
fn is_of_state(uri: &str) -> bool {
    let mut names = uri.rsplit('/');
    let (file, version, runs) = (names.next(), names.next(), names.next());
    let is_version =
        version.is_some_and(|name| name.len() == 8 && name.bytes().all(|byte| byte.is_ascii_digit()));
    runs == Some("runs") && is_version && file.is_some_and(|name| name.ends_with(".run"))
}

/// Reads the documents of an input, calls `prepare` with each batch on one of the workers, and `each` with what it
/// returns, in the order of the documents. Returns the rejected records.
///
/// ```text
/// reader    batch 0   batch 1   batch 2   batch 3
/// worker    0         1         0         1
/// caller    0         1         2         3
/// ```
///
/// Each worker begins with a clone of `worker`. Memory: four batches a worker.
///
/// # Errors
/// Those of reading, of `prepare` and of `each`.
pub(super) fn each_batch<W: Clone + Send, T: Send>(
    input: &Input,
    progress: &Progress,
    worker: &W,
    prepare: impl Fn(&mut W, DocBatch) -> Result<T> + Sync,
    mut each: impl FnMut(T) -> Result<()>,
) -> Result<Rejects> {
    thread::scope(|scope| {
        let (mut batches, mut results) = (Vec::new(), Vec::new());
        for _ in 0..input.workers.max(1) {
            let (to_worker, of_reader) = sync_channel(WAITING);
            let (to_caller, of_worker) = sync_channel(WAITING);
            let prepare = &prepare;
            let worker = worker.clone();
            scope.spawn(move || run_worker(worker, of_reader, to_caller, prepare));
            batches.push(to_worker);
            results.push(of_worker);
        }
        let reader = scope.spawn(|| read(input, progress, batches));
        let mut failed = None;
        for result in results.iter().cycle() {
            // The worker whose turn it is ends when there are no more batches.
            let Ok(result) = result.recv() else { break };
            if let Err(error) = result.and_then(&mut each) {
                failed = Some(error);
                break;
            }
        }
        // Workers and reader end when nobody takes what they send.
        drop(results);
        let read = reader.join().ok().context("the thread that reads the input has ended");
        match failed {
            Some(error) => Err(error),
            None => read?,
        }
    })
}

fn run_worker<W, T>(
    mut worker: W,
    batches: Receiver<DocBatch>,
    results: SyncSender<Result<T>>,
    prepare: impl Fn(&mut W, DocBatch) -> Result<T>,
) {
    for batch in batches {
        if results.send(prepare(&mut worker, batch)).is_err() {
            return;
        }
    }
}

/// Reads all splits, and sends the batches to the workers in turn. Returns the rejected records.
///
/// # Errors
/// Those of reading, and an error when records were rejected and none was read.
fn read(input: &Input, progress: &Progress, batches: Vec<SyncSender<DocBatch>>) -> Result<Rejects> {
    let at = progress.worker_at(0, Stage::Read);
    let mut rejects = Rejects::default();
    let mut docs = 0u64;
    let mut turn = 0;
    for (number, split) in input.plan.numbered() {
        let read = at.split(number, split.uri(), || {
            let mut reader = SplitReader::new(number, split, &input.reading, &at);
            while let Some(mut batch) = reader.next_batch()? {
                batch.take_rejects().iter().for_each(|reject| rejects.add(reject));
                docs += batch.docs().len() as u64;
                if batches[turn].send(batch).is_err() {
                    return Ok(false);
                }
                turn = (turn + 1) % batches.len();
            }
            Ok(true)
        })?;
        if !read {
            break;
        }
    }
    if docs == 0
        && let Some(first) = rejects.first_in_words(&input.plan, &input.reading)
    {
        bail!("every record was rejected ({}); the first: {first}", rejects.faults());
    }
    Ok(rejects)
}
