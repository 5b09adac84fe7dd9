//! Options by which a running job is watched: progress, metrics, events.

use super::metrics_server::MetricsPage;
use super::termination::Termination;
#[cfg(feature = "cli")]
use crate::cli::headings::WATCHING;
#[cfg(feature = "cli")]
use crate::cli::values::paths;

/// Way in which progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Show {
    /// A bar on a terminal, plain lines elsewhere.
    #[default]
    Auto,
    /// A line every few seconds.
    Plain,
    /// Nothing.
    None,
}

/// Options of what is shown of a running job.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct ProgressOptions {
    /// How progress is shown on stderr
    ///
    /// With `auto`, a terminal gets one line that renews itself. Elsewhere there is a line every few seconds,
    /// from the first process only.
    #[cfg_attr(feature = "cli", arg(help_heading = WATCHING, long, global = true, value_name = "HOW", default_value = "auto"))]
    pub progress: Show,
    /// Print nothing but errors, and why the exit code is not 0
    #[cfg_attr(feature = "cli", arg(help_heading = WATCHING, long, short, global = true))]
    pub quiet: bool,
    /// Also print how long each stage took, and how evenly the workers shared it
    #[cfg_attr(feature = "cli", arg(help_heading = WATCHING, long, short, global = true, conflicts_with = "quiet"))]
    pub verbose: bool,
    /// Keep the numbers of the running job in this file, for Prometheus
    ///
    /// The file is replaced in one step every 5 seconds and at the end, whether the job succeeds or fails.
    #[cfg_attr(feature = "cli", arg(help_heading = WATCHING, hide_short_help = true, long, global = true, value_name = "FILE", value_parser = paths()))]
    pub metrics_file: Option<String>,
    /// Append what happens to this file, as JSON lines
    ///
    /// An event is written when the job, a stage or a split begins or ends, when a worker is slow, and for
    /// each warning. Each has its time.
    #[cfg_attr(feature = "cli", arg(help_heading = WATCHING, hide_short_help = true, long, global = true, value_name = "FILE", value_parser = paths()))]
    pub events: Option<String>,
    /// Page that shows the metrics, if the job serves one.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub page: Option<MetricsPage>,
    /// Signal that ends the job.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub termination: Termination,
}

impl ProgressOptions {
    /// Returns an option whose file `is_input` is true of, and the file.
    pub fn input(&self, is_input: impl Fn(&str) -> bool) -> Option<(&'static str, &str)> {
        let files = [("--events", &self.events), ("--metrics-file", &self.metrics_file)];
        let mut files = files.into_iter().filter_map(|(option, file)| Some((option, file.as_deref()?)));
        files.find(|(_, file)| is_input(file))
    }

    /// Returns how the process of this number shows progress.
    pub(super) fn show(&self, process: usize) -> Show {
        match self.progress {
            _ if self.quiet => Show::None,
            Show::Auto if process > 0 => Show::None,
            show => show,
        }
    }
}
