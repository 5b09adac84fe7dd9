//! The view that a job has of its processes.

use std::io;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use timely::WorkerConfig;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::communication::{Hooks, WorkerGuards};
use timely::worker::Worker;

use super::control::Control;
use super::data::Data;
use super::membership::{Limits, Membership};
use super::start;
use crate::{Error, panics};

/// The processes of a job, seen from one of them.
///
/// All processes take the same steps: each calls `run`, `gather`, `broadcast` and `all_reduce` in the same
/// order. When another process fails, `on_lost` ends this one. If `on_lost` returns, every call that waits for
/// that process returns an error. A `Group` that is dropped without [`Group::leave`] counts as lost at the
/// others.
///
/// For example, three processes that add up the numbers 5, 7 and 1 with `all_reduce(number, sum)`:
///
/// ```text
/// process 1 sends 7 to process 0 and waits
/// process 2 sends 1 to process 0 and waits
/// process 0 calls sum([5, 7, 1]), in the order of the processes
/// process 0 sends 13 to processes 1 and 2
/// all_reduce returns 13 in all three
/// ```
pub struct Group {
    workers: usize,
    /// The other processes. `None` if this process is alone.
    others: Option<Others>,
}

/// Connections to the other processes.
struct Others {
    control: Arc<Control>,
    /// Connections by index of process, until the engine takes them.
    data: Mutex<Option<Vec<Option<Data>>>>,
}

impl Group {
    /// Returns a group of one process with `workers` threads.
    pub fn alone(workers: usize) -> Group {
        Group { workers, others: None }
    }

    /// Connects to the other processes. When it returns, all are connected, and no port is open any more.
    ///
    /// `job`: hash of everything that must be the same in every process. `token`: secret of the processes of
    /// this user, which may be empty on loopback. `on_lost`: called at most once, from another thread, with
    /// the line that says why the job cannot go on because of another process. It must show that line and end
    /// this process.
    ///
    /// # Errors
    /// [`Error::Processes`] when a process does not come in time or comes with another `job`, when the own
    /// address cannot be used, or when it is not loopback and the token is empty.
    pub fn join(
        membership: Membership,
        job: [u8; 32],
        token: &[u8],
        limits: Limits,
        on_lost: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Result<Group, Error> {
        let workers = membership.workers;
        if membership.index >= membership.addresses.len() {
            let index = membership.index;
            let processes = membership.addresses.len();
            return Err(Error::Processes { reason: format!("process {index} is not one of {processes}") });
        }
        if membership.addresses.len() == 1 {
            return Ok(Group::alone(workers));
        }
        let control = Arc::new(Control::new(membership, limits, on_lost));
        match start::rendezvous(&control, job, token) {
            Ok(data) => {
                let data = Mutex::new(Some(data));
                Ok(Group { workers, others: Some(Others { control, data }) })
            }
            Err(reason) => {
                control.fail(&reason);
                control.close();
                Err(Error::Processes { reason })
            }
        }
    }

    /// Returns the index of this process.
    pub fn index(&self) -> usize {
        self.others.as_ref().map_or(0, |others| others.control.membership.index)
    }

    /// Returns the number of processes.
    pub fn processes(&self) -> usize {
        self.others.as_ref().map_or(1, |others| others.control.membership.addresses.len())
    }

    /// Returns the number of threads of this process.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Returns the number of threads of all processes.
    pub fn all_workers(&self) -> usize {
        self.workers * self.processes()
    }

    /// Tells the other processes about a panic of this one before it ends, and reports an engine thread whose
    /// connection broke as a lost connection. Call this once, after [`exit_on_panic`](crate::exit_on_panic).
    pub fn report_panics(&self) {
        if let Some(others) = &self.others {
            panics::report_panics(Arc::clone(&others.control));
        }
    }

    /// Runs `work` on the workers of all processes, and returns the results of this process in the order of
    /// its workers when they are done. With several processes, this works once.
    ///
    /// The first error of this process ends the wait. The other workers may be waiting for the one that
    /// failed, so they are left running, and the caller is expected to call [`fail`](Group::fail) and to
    /// end the process.
    pub fn run<T, E>(
        &self,
        work: impl Fn(&mut Worker) -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Vec<T>, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let first = self.index() * self.workers;
        let (sender, results) = mpsc::channel();
        let guards = self.start(move |worker| {
            let result = work(worker);
            // After the failure of another worker nobody receives the result.
            let _ = sender.send((worker.index() - first, result));
        })?;
        let mut done: Vec<Option<T>> = (0..self.workers).map(|_| None).collect();
        for (index, result) in results.iter().take(self.workers) {
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

    fn start(&self, work: impl Fn(&mut Worker) + Send + Sync + 'static) -> Result<WorkerGuards<()>, Error> {
        let failed = |message| Error::Io {
            path: "workers".to_owned(),
            action: "start",
            source: io::Error::other(message),
        };
        let Some(others) = &self.others else {
            return timely::execute(timely::Config::process(self.workers), work).map_err(failed);
        };
        let sockets = others.data.lock().take();
        let sockets = sockets.ok_or_else(|| failed("they ran before".to_owned()))?;
        let hooks = Hooks::default();
        let threads =
            ProcessBuilder::new_typed_vector(self.workers, hooks.refill.clone(), hooks.spill.clone());
        let (builders, comms) =
            initialize_networking_from_sockets(threads, sockets, self.index(), self.workers, hooks)
                .map_err(|error| failed(error.to_string()))?;
        let builders = builders.into_iter().map(AllocatorBuilder::Tcp).collect();
        let guards = timely::execute::execute_from(builders, Box::new(comms), WorkerConfig::default(), work);
        guards.map_err(failed)
    }

    /// Gathers the bytes of every process at process 0, in the order of the processes. The others get `None`.
    ///
    /// # Errors
    /// When the job cannot go on.
    pub fn gather(&self, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let Some(Others { control, .. }) = &self.others else { return Ok(Some(vec![mine])) };
        if self.index() > 0 {
            control.send(0, mine.into());
            return Ok(None);
        }
        let theirs = (1..self.processes()).map(|from| control.take(from));
        std::iter::once(Ok(mine)).chain(theirs).collect::<Result<_, _>>().map(Some)
    }

    /// Broadcasts bytes from process 0, the only one that gives `Some`, to all.
    ///
    /// # Errors
    /// When the job cannot go on.
    pub fn broadcast(&self, of_first: Option<Vec<u8>>) -> Result<Vec<u8>, Error> {
        match (&self.others, of_first) {
            (Some(others), None) => others.control.take(0),
            (None, None) => Err(nothing()),
            (None, Some(bytes)) => Ok(bytes),
            (Some(_), Some(bytes)) => {
                self.send_all(bytes.clone().into());
                Ok(bytes)
            }
        }
    }

    fn send_all(&self, bytes: Bytes) {
        if let Some(Others { control, .. }) = &self.others {
            (1..self.processes()).for_each(|to| control.send(to, bytes.clone()));
        }
    }

    /// Merges the values of all processes, in their order, at process 0, and returns the result in all of
    /// them (an all-reduce). A process that is alone encodes nothing.
    ///
    /// # Errors
    /// That of `merge` at process 0; elsewhere when the job cannot go on.
    pub fn all_reduce<T, U, E>(&self, mine: T, merge: impl FnOnce(Vec<T>) -> Result<U, E>) -> Result<U, E>
    where
        T: Serialize + DeserializeOwned,
        U: Serialize + DeserializeOwned,
        E: From<Error>,
    {
        let Some(all) = self.bring(mine)? else { return Ok(self.receive()?) };
        let merged = merge(all)?;
        if self.others.is_some() {
            self.send_all(encode(&merged)?.into());
        }
        Ok(merged)
    }

    /// Gathers a value of every process at process 0, in their order. The others get `None`.
    fn bring<T: Serialize + DeserializeOwned>(&self, mine: T) -> Result<Option<Vec<T>>, Error> {
        let Some(Others { control, .. }) = &self.others else { return Ok(Some(vec![mine])) };
        if self.index() > 0 {
            control.send(0, encode(&mine)?.into());
            return Ok(None);
        }
        let theirs = (1..self.processes()).map(|from| decode(&control.take(from)?));
        std::iter::once(Ok(mine)).chain(theirs).collect::<Result<_, _>>().map(Some)
    }

    /// Receives a value that process 0 has sent.
    fn receive<U: DeserializeOwned>(&self) -> Result<U, Error> {
        decode(&self.broadcast(None)?)
    }

    /// Tells the others that this process gives up, and why, so that they end. Returns when they were told,
    /// or after a second.
    pub fn fail(&self, reason: &str) {
        if let Some(others) = &self.others {
            others.control.fail(reason);
        }
    }

    /// Declares that process 0, the caller, has everything that it needs from the others. From here on it
    /// ends well without them, but they still end when it fails.
    pub fn settle(&self) {
        if let Some(others) = &self.others {
            others.control.settle();
        }
    }

    /// Ends well, together with all processes: each waits for the others. At process 0, returns a line for
    /// each process that has ended since it settled, with the reason.
    ///
    /// # Errors
    /// When one of them fails before it calls this.
    pub fn leave(&self) -> Result<Vec<String>, Error> {
        let Some(others) = &self.others else { return Ok(Vec::new()) };
        let gone = others.control.leave()?;
        others.data.lock().take().into_iter().flatten().flatten().for_each(|data| data.close());
        Ok(gone)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(others) = &self.others {
            others.control.close();
            others.data.lock().take().into_iter().flatten().flatten().for_each(|data| data.cut());
        }
    }
}

fn encode(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    postcard::to_stdvec(value).map_err(|error| codec("encode", &error))
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    postcard::from_bytes(bytes).map_err(|error| codec("decode", &error))
}

fn nothing() -> Error {
    Error::Processes { reason: "process 0 has nothing to tell".to_owned() }
}

fn codec(action: &str, error: &postcard::Error) -> Error {
    Error::Processes { reason: format!("could not {action} what the processes say to each other: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_workers() {
        let squares = Group::alone(3).run(|worker| Ok::<_, Error>(worker.index() * worker.index()));
        assert_eq!(squares.unwrap(), [0, 1, 4]);
    }

    #[test]
    fn one_failing_worker_fails_the_run_without_waiting_for_the_others() {
        let result: Result<Vec<()>, Error> = Group::alone(3).run(|worker| {
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
