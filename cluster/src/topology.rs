//! The workers of a job: threads of this process, joined by the engine.

use std::io;
use std::sync::mpsc;

use timely::worker::Worker;

use crate::Error;

/// Runs `work` on `count` workers and returns their results in the order of the workers.
///
/// The first error ends the wait: the others could be waiting for the worker that failed, so they are left
/// behind, and the caller is expected to end the process.
pub fn run<T, E>(
    count: usize,
    work: impl Fn(&mut Worker) -> Result<T, E> + Send + Sync + 'static,
) -> Result<Vec<T>, E>
where
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let (sender, results) = mpsc::channel();
    let guards = timely::execute(timely::Config::process(count), move |worker| {
        let result = work(worker);
        // Nobody listens once another worker has failed.
        let _ = sender.send((worker.index(), result));
    });
    let guards = guards.map_err(|message| Error::Io {
        path: "workers".to_owned(),
        action: "start",
        source: io::Error::other(message),
    })?;
    let mut done: Vec<Option<T>> = (0..count).map(|_| None).collect();
    for (index, result) in results.iter().take(count) {
        match result {
            Ok(result) => done[index] = Some(result),
            Err(error) => {
                std::mem::forget(guards);
                return Err(error);
            }
        }
    }
    drop(guards);
    Ok(done.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_workers() {
        let squares = run(3, |worker| Ok::<_, Error>(worker.index() * worker.index()));
        assert_eq!(squares.unwrap(), [0, 1, 4]);
    }

    #[test]
    fn one_failing_worker_fails_the_run_without_waiting_for_the_others() {
        let result: Result<Vec<()>, Error> = run(3, |worker| {
            if worker.index() == 1 {
                return Err(Error::NotFound { path: "x".to_owned() });
            }
            loop {
                worker.step_or_park(None);
            }
        });
        assert!(matches!(result, Err(Error::NotFound { .. })));
    }
}
