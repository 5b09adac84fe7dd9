//! Progress of a running job, and how people see it: a line on stderr, a table at the end, metrics and events
//! in files.
//!
//! Each worker counts for itself (`stage_timer.rs`) into the counts of its process (`counts.rs`); a thread of
//! its own looks at the counts (`watch.rs`). `warnings.rs` shows the warnings of all crates. This room uses `cli`; `corpus`, `output`
//! and the jobs use it. The reasons are in docs/design/seeing.md.

mod counts;
mod events;
mod metrics;
mod metrics_server;
mod options;
mod stage;
mod stage_timer;
mod stages;
mod stragglers;
mod termination;
pub mod usage;
mod warnings;
mod watch;

pub use self::counts::Progress;
pub use self::events::Watched;
pub use self::metrics::{MetricsText, labels};
pub use self::metrics_server::MetricsPage;
pub use self::options::ProgressOptions;
pub use self::stage::Stage;
pub use self::stage_timer::{StageTimer, thread_cpu};
pub(crate) use self::stages::StageTable;
pub use self::stages::{StageRow, StageTotals, merge, seconds};
pub use self::termination::Termination;
pub(crate) use self::warnings::show_warnings;
pub use self::watch::Watch;
