//! The times at which the work for requests ends.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Longer times count as this one, since clocks cannot count up to every time that a user may ask for.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Returns the time that is `after` from now.
pub(super) fn time_after(after: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(after.min(LONGEST)).unwrap_or(now)
}

/// The end of the server, once it has been told to end.
#[derive(Clone, Default)]
pub(super) struct Closing(Arc<OnceLock<Instant>>);

impl Closing {
    /// Lets the work for all requests end after `grace`, or earlier if this was called before.
    pub fn begin(&self, grace: Duration) {
        self.0.get_or_init(|| time_after(grace));
    }

    /// Returns the time at which the work for all requests ends; `None` if the server is not ending.
    pub fn end(&self) -> Option<Instant> {
        self.0.get().copied()
    }
}

/// The time at which the work for a request ends, which is earlier if the server ends before.
#[derive(Clone)]
pub(super) struct Deadline {
    end: Instant,
    closing: Closing,
}

impl Deadline {
    /// Makes that of a request that may take so long from now on.
    pub fn after(time: Duration, closing: &Closing) -> Self {
        Deadline { end: time_after(time), closing: closing.clone() }
    }

    /// Returns the time as it is known now.
    pub fn end(&self) -> Instant {
        self.closing.end().map_or(self.end, |end| end.min(self.end))
    }

    /// Whether the time is over.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_time_is_possible_and_the_end_of_the_server_is_earlier() {
        let closing = Closing::default();
        let [none, some, most] = [0, 3600, u64::MAX].map(Duration::from_secs);
        assert!(Deadline::after(none, &closing).is_over());
        let deadlines = [some, most, Duration::MAX].map(|time| Deadline::after(time, &closing));
        assert!(deadlines.iter().all(|deadline| !deadline.is_over()));
        closing.begin(none);
        closing.begin(most);
        assert!(deadlines.iter().all(Deadline::is_over));
    }
}
