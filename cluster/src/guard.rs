//! Panics: our own end the process, those of other people's decoders on damaged input cost that input.

use std::cell::Cell;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Makes a panic of any thread end the process with exit code 1: the engine's other workers would wait for
/// the one that panicked for ever. Panics that are caught are not reported here.
pub fn exit_on_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        // A hook runs before anything is caught, so it must ask first.
        if !CAUGHT.get() {
            report(panic);
            let line = "error: this is a bug in dedup-job; nothing was committed";
            let _ = writeln!(io::stderr(), "{line}");
            std::process::exit(1);
        }
    }));
}

/// Says that a panic on this thread, from now on, is caught by whoever runs it.
pub(crate) fn panics_are_caught() {
    CAUGHT.set(true);
}

/// Calls a library that is known to panic on damaged input; a panic becomes its message.
///
/// What `call` has changed must not be used again after a panic.
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
    fn a_caught_panic_keeps_its_message() {
        assert_eq!(catch(|| CAUGHT.get()), Ok(true));
        assert_eq!(catch(|| panic!("page {}", 7)), Err::<(), _>("the decoder gave up: page 7".to_owned()));
        assert!(!CAUGHT.get());
    }
}
