//! Handling of panics. A panic of our own code ends the process; a panic of a third-party decoder on damaged
//! input costs only that input.

use std::cell::Cell;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Arc;
use std::thread;

use crate::processes::Control;

thread_local! {
    /// Whether the code that runs on this thread catches its panics.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Installs a hook that ends the process with exit code 1 when any thread panics, because the engine's other
/// workers would wait for that thread for ever. The hook ignores panics that are caught.
pub fn exit_on_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        // A hook runs even for a panic that is caught later, so it checks first.
        if !CAUGHT.get() {
            report(panic);
            let line = "error: this is a bug in dedup-job; nothing was committed";
            let _ = writeln!(io::stderr(), "{line}");
            std::process::exit(1);
        }
    }));
}

/// Extends the panic hook: it first tells the other processes of the job about the panic. An engine thread
/// that panics because its connection broke instead waits for the process to end with a better reason.
pub(crate) fn report_panics(control: Arc<Control>) {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !CAUGHT.get() {
            let text = panic.payload_as_str().unwrap_or("no reason given");
            let name = thread::current().name().unwrap_or_default().to_owned();
            if let Some((peer, why)) = broken_connection(&name, text) {
                control.connection_lost(peer, why);
                loop {
                    thread::park();
                }
            }
            control.fail(&describe(panic, text));
        }
        report(panic);
    }));
}

/// Returns the process whose connection broke, and why, if this panic of this thread means that.
fn broken_connection<'a>(thread: &str, text: &'a str) -> Option<(usize, &'a str)> {
    let peer = thread.strip_prefix("timely:send-").or_else(|| thread.strip_prefix("timely:recv-"))?;
    let (_doing, why) = text.strip_prefix("timely communication error: ")?.split_once(": ")?;
    Some((peer.parse().ok()?, why))
}

fn describe(panic: &PanicHookInfo, text: &str) -> String {
    match panic.location() {
        Some(at) => format!("panicked at {}:{}: {text}", at.file(), at.line()),
        None => format!("panicked: {text}"),
    }
}

/// Declares that from now on every panic on this thread is caught by the code that runs it.
pub fn panics_are_caught() {
    CAUGHT.set(true);
}

/// Calls a library that is known to panic on damaged input, and returns the message of a panic as an error.
///
/// After a panic, values that `call` has changed must not be used again.
pub fn catch<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    let before = CAUGHT.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    CAUGHT.set(before);
    result.map_err(|payload| {
        let text = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(|text| &**text));
        format!("the decoder gave up: {}", text.unwrap_or("no reason given"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_engine_says_of_a_socket_is_a_broken_connection() {
        let text = "timely communication error: reading data: socket closed";
        assert_eq!(broken_connection("timely:recv-12", text), Some((12, "socket closed")));
        assert_eq!(broken_connection("timely:send-0", text), Some((0, "socket closed")));
        assert_eq!(broken_connection("timely:work-0", text), None);
        assert_eq!(broken_connection("timely:recv-12", "Clean shutdown followed by data."), None);
    }

    #[test]
    fn a_caught_panic_keeps_its_message() {
        assert_eq!(catch(|| CAUGHT.get()), Ok(true));
        assert_eq!(catch(|| panic!("page {}", 7)), Err::<(), _>("the decoder gave up: page 7".to_owned()));
        assert!(!CAUGHT.get());
    }
}
