//! The view of a topic as requests see it.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use operators::flow::ViewChange;
use parking_lot::RwLock;
use serde::Serialize;
use tokio::sync::watch;

use super::what_ifs::{SeenWhatIf, WhatIfChanges};
use crate::view::CleanSet;

/// Number of bytes of changes that are kept for those who read the feed.
const FEED_BYTES: usize = 16 << 20;

/// The view of a topic, which requests read and the thread of the views writes.
pub(super) struct TopicState {
    pub seen: RwLock<SeenView>,
    /// Number of the last version that is there, and 0 while there is none.
    version: watch::Sender<u64>,
}

/// A version of a view.
#[derive(Default)]
pub(super) struct SeenView {
    pub progress: ViewProgress,
    pub version: u64,
    /// Number behind the last document of this version.
    pub end: u64,
    pub set: CleanSet,
    /// Number of documents that may have matches which were not looked at, because too many resemble them.
    pub cut: u64,
    /// Number of documents of which those matches alone are known that decide.
    pub led: u64,
    /// What-ifs that clients want, by their numbers.
    pub what_ifs: BTreeMap<u64, SeenWhatIf>,
    /// Number of groups of changes that are not in this version yet.
    pub behind: usize,
    feed: VecDeque<FeedLine>,
    feed_bytes: usize,
    /// The feed has all changes behind this version.
    pub feed_from: u64,
}

/// Progress of a view.
#[derive(Clone, Default)]
pub(super) enum ViewProgress {
    /// It has been asked for, and no document has been read yet.
    #[default]
    Begun,
    /// Its documents are being read. The two are the next number that is read, and the number behind the last one.
    Building(u64, u64),
    /// It is there, and follows the changes.
    Ready,
    /// It has ended.
    Ended(ViewEnd),
}

/// The end of a view.
#[derive(Clone)]
pub(super) struct ViewEnd {
    /// Reason.
    pub why: String,
    /// Time from which on the view is begun anew for whoever asks.
    pub until: Instant,
}

/// A version that becomes seen.
pub(super) struct NewVersion<'v> {
    pub version: u64,
    /// Number behind the last document of this version.
    pub end: u64,
    /// Whether it has all that readers see.
    pub is_last: bool,
    pub documents: u64,
    /// As those of [`SeenView`].
    pub cut: u64,
    pub led: u64,
    /// Changes of decisions.
    pub changes: &'v [ViewChange],
    pub what_ifs: &'v WhatIfChanges,
    /// Its lines of the feed; `None` if the feed begins with this version.
    pub lines: Option<Vec<String>>,
}

/// A change, as a line of JSON.
struct FeedLine {
    version: u64,
    line: String,
}

/// A change of the clean set.
#[derive(Serialize)]
pub(super) struct FeedChange<'i> {
    pub version: u64,
    pub id: &'i str,
    /// Number of the document, by which those with one id are told apart.
    pub number: u64,
    /// `kept`, `removed`, `restored` or `deleted`.
    pub change: &'static str,
    /// Id of the document that stays in the place of a removed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_of: Option<&'i str>,
}

impl TopicState {
    pub fn new() -> Self {
        TopicState { seen: RwLock::default(), version: watch::Sender::new(0) }
    }

    /// Returns what tells of each new version.
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Whether the view has ended, so that whoever asks next begins it anew.
    pub fn has_ended(&self) -> bool {
        matches!(&self.seen.read().progress, ViewProgress::Ended(end) if end.until <= Instant::now())
    }

    /// Says how far the view is.
    pub fn note(&self, progress: ViewProgress) {
        self.seen.write().progress = progress;
    }

    /// Ends the view. Whoever asks before some time is over gets the reason, and does not begin it anew.
    pub fn end(&self, why: String, time: Duration) {
        {
            let seen = &mut *self.seen.write();
            seen.what_ifs.clear();
            seen.progress = ViewProgress::Ended(ViewEnd { why, until: Instant::now() + time });
        }
        // Those who wait for a version look again.
        self.version.send_modify(|_| {});
    }

    /// Makes a version seen, which has all changes that readers see.
    pub fn publish(&self, new: NewVersion) {
        let seen = &mut *self.seen.write();
        for change in new.changes {
            seen.set.decide(change.doc, change.after);
        }
        seen.set.documents = new.documents;
        (seen.version, seen.end, seen.cut, seen.led) = (new.version, new.end, new.cut, new.led);
        if new.is_last {
            (seen.progress, seen.behind) = (ViewProgress::Ready, 0);
        }
        for (number, what_if) in &mut seen.what_ifs {
            let changes = new.what_ifs.get(number).map_or(&[][..], |changes| changes);
            what_if.take(changes, &seen.set, new.changes.iter().map(|change| change.doc));
        }
        match new.lines {
            None => seen.begin_feed(new.version),
            Some(lines) => seen.keep(new.version, lines),
        }
        self.version.send_replace(new.version);
    }
}

impl SeenView {
    /// Returns some lines of changes behind a version, and the version that they lead to; `None` if the feed does not have all changes
    /// behind it any more. `most`: the number of lines, unless one version has more.
    pub fn lines_since(&self, since: u64, most: usize) -> Option<(String, u64)> {
        if since < self.feed_from {
            return None;
        }
        let begin = self.feed.partition_point(|line| line.version <= since);
        let most = (begin + most).min(self.feed.len());
        let version = self.feed.range(begin..most).next_back().map_or(since, |line| line.version);
        // A version is never cut in two, so that the next lines begin behind it.
        let end = self.feed.partition_point(|line| line.version <= version);
        Some((self.feed.range(begin..end).map(|line| line.line.as_str()).collect(), version))
    }

    /// Returns the number of bytes of the changes that are kept.
    pub fn feed_bytes(&self) -> u64 {
        (self.feed_bytes + self.feed.len() * size_of::<FeedLine>()) as u64
    }

    fn begin_feed(&mut self, version: u64) {
        self.feed.clear();
        (self.feed_from, self.feed_bytes) = (version, 0);
    }

    fn keep(&mut self, version: u64, lines: Vec<String>) {
        for line in lines {
            self.feed_bytes += line.len();
            self.feed.push_back(FeedLine { version, line });
        }
        while self.feed_bytes > FEED_BYTES
            && let Some(oldest) =
                self.feed.front().map(|line| line.version).filter(|oldest| *oldest < version)
        {
            let end = self.feed.partition_point(|line| line.version <= oldest);
            self.feed_bytes -= self.feed.drain(..end).map(|line| line.line.len()).sum::<usize>();
            self.feed_from = oldest;
        }
    }
}
