//! What-ifs: the documents of a topic that would stay with another threshold or keep order, kept true with the view of the topic.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, Instant};

use operators::flow::{ViewChange, WhatIf};
use operators::{DocId, Similarity};

use super::topic_view::TopicView;
use crate::view::CleanSet;
use nightly::Policy;

/// Largest number of what-ifs of a server at a time.
pub(super) const MOST_WHAT_IFS: usize = 4;
/// Time after which a what-if ends that nobody has asked for.
const IDLE: Duration = Duration::from_secs(600);
/// About how many bytes the decisions of a what-if take for each match of the topic (docs/benchmarks/2026-11-30-view.txt).
pub(super) const WHAT_IF_MATCH_BYTES: u64 = 30;

/// Rule of a what-if, which a client asks for.
pub(super) struct WhatIfRule {
    /// Matches of which the similarity is less are passed over; `None` if none is.
    pub least: Option<Similarity>,
    /// Which of two matching documents stays.
    pub policy: Policy,
}

/// The decisions of a what-if, as requests see them.
pub(super) struct SeenWhatIf {
    pub rule: WhatIfRule,
    pub set: CleanSet,
    /// Documents that go, and would stay.
    pub would_stay: HashSet<DocId>,
    /// Documents that stay, and would go.
    pub would_go: HashSet<DocId>,
    pub asked: Instant,
}

/// Changes of the decisions of some what-ifs, by their numbers.
pub(super) type WhatIfChanges = BTreeMap<u64, Vec<ViewChange>>;

/// The what-ifs of a topic, by their numbers.
#[derive(Default)]
pub(super) struct WhatIfs(BTreeMap<u64, WhatIf>);

impl WhatIfs {
    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Begins one, and returns what it decides.
    pub fn begin(&mut self, view: &mut TopicView, number: u64, rule: &WhatIfRule) -> Vec<ViewChange> {
        let (what_if, changes) = view.what_if(rule.least, &rule.policy);
        self.0.insert(number, what_if);
        changes
    }

    /// Returns the changes of their decisions since the last call, once the view is decided.
    pub fn commit(&mut self, view: &TopicView) -> WhatIfChanges {
        self.0.iter_mut().map(|(number, what_if)| (*number, view.follow(what_if))).collect()
    }

    /// Ends those that are not wanted, and frees their memory.
    pub fn retain(&mut self, is_wanted: impl Fn(u64) -> bool) {
        self.0.retain(|number, _| is_wanted(*number));
    }
}

impl SeenWhatIf {
    /// Makes one that decides as the view does.
    pub fn new(rule: WhatIfRule) -> Self {
        let (would_stay, would_go) = Default::default();
        SeenWhatIf { rule, set: CleanSet::default(), would_stay, would_go, asked: Instant::now() }
    }

    /// Whether nobody has asked for it for long.
    pub fn is_idle(&self) -> bool {
        self.asked.elapsed() > IDLE
    }

    /// Takes over changes. `view`: the decisions of the view, which have changed about `of_view`.
    pub fn take(
        &mut self,
        changes: &[ViewChange],
        view: &CleanSet,
        of_view: impl IntoIterator<Item = DocId>,
    ) {
        for change in changes {
            self.set.decide(change.doc, change.after);
        }
        let changed: BTreeSet<DocId> = changes.iter().map(|change| change.doc).chain(of_view).collect();
        for doc in changed {
            let goes = view.removed(doc).is_some();
            let would_go = self.set.removed(doc).is_some();
            for (docs, is_one) in
                [(&mut self.would_stay, goes && !would_go), (&mut self.would_go, would_go && !goes)]
            {
                match is_one {
                    true => docs.insert(doc),
                    false => docs.remove(&doc),
                };
            }
        }
        self.set.documents = view.documents;
    }
}
