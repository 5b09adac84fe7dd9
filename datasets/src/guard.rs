//! Panics of other people's decoders on damaged files.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic on this thread will be caught and reported as a damaged file.
///
/// A panic hook runs before anything is caught, so a hook that ends the process must ask this first.
pub fn panic_is_caught() -> bool {
    GUARDED.get()
}

/// Calls a library that is known to panic on damaged input; a panic becomes its message.
///
/// What `call` has changed must not be used again after a panic.
pub(crate) fn catch<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    let before = GUARDED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    GUARDED.set(before);
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
    fn a_caught_panic_keeps_its_message_and_a_hook_can_tell_it() {
        assert_eq!(catch(panic_is_caught), Ok(true));
        assert_eq!(catch(|| panic!("page {}", 7)), Err::<(), _>("the decoder gave up: page 7".to_owned()));
        assert!(!panic_is_caught());
    }
}
