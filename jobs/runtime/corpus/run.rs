//! A run over a corpus, as one process of the job sees it.

use std::sync::Arc;

use cluster::Group;
use datasets::Reading;

use super::plan::Plan;
use crate::progress::Progress;

/// The inputs that every stage of a run over a corpus needs. Clones share the group, the plan and the progress.
#[derive(Clone)]
pub struct Run {
    /// The processes of the job, of which this is one.
    pub group: Arc<Group>,
    /// Splits of the input and the reference, which are the same at all processes.
    pub plan: Arc<Plan>,
    /// Options by which records are read.
    pub reading: Reading,
    /// Counts of the workers of this process, for the user and the events.
    pub progress: Arc<Progress>,
}

impl Run {
    /// Makes the run of a process that is alone.
    pub fn alone(plan: Plan, reading: Reading, workers: usize, progress: &Arc<Progress>) -> Self {
        Run {
            group: Arc::new(Group::alone(workers)),
            plan: Arc::new(plan),
            reading,
            progress: Arc::clone(progress),
        }
    }
}
