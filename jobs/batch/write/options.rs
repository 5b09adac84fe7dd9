//! Options of what is written of the records of a corpus, and how.

use anyhow::{Result, bail};
use datasets::{Format, UNKNOWN};
use serde::{Deserialize, Serialize};

use runtime::cli::exit::WrongUse;
#[cfg(feature = "cli")]
use runtime::cli::headings::OUTPUT;
use runtime::corpus::plan::Plan;
use runtime::corpus::split::Split;
use runtime::output::tables::TableFormat;

/// Options of what is written of the records, and how.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(rename_all = "kebab-case")]
pub struct WriteOptions {
    /// Write all but kept/ and removed/: what would go and why is in clusters/, pairs/ and the report
    #[cfg_attr(feature = "cli", arg(help_heading = OUTPUT, long))]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Write this alone in the place of records: kept/ and removed/ are tables of ids then
    #[cfg_attr(feature = "cli", arg(help_heading = OUTPUT, hide_short_help = true, long, value_name = "WHAT"))]
    #[cfg_attr(feature = "cli", arg(conflicts_with_all = ["dry_run", "annotate"]))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Only>,
    /// Write all records to annotated/, in the place of kept/ and removed/, each with what was decided about it
    ///
    /// The fields are duplicate_of, similarity, cluster, reason and keep; those that say nothing about a record are null, or empty in CSV.
    /// The input must have fields: JSON lines, CSV or Parquet.
    #[cfg_attr(feature = "cli", arg(help_heading = OUTPUT, hide_short_help = true, long, conflicts_with = "dry_run"))]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub annotate: bool,
    /// Also write rejected records to rejected/, as they are
    ///
    /// rejects/ has their places and the reasons in any case. Records that are damaged, or too long to be held, are there alone.
    #[cfg_attr(feature = "cli", arg(help_heading = OUTPUT, hide_short_help = true, long, conflicts_with_all = ["dry_run", "only"]))]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub write_rejected: bool,
    /// Format of the tables, which are pairs/ and clusters/, and those of --only ids
    #[cfg_attr(feature = "cli", arg(help_heading = OUTPUT, hide_short_help = true, long, value_name = "FORMAT"))]
    #[cfg_attr(feature = "cli", arg(default_value = "parquet"))]
    #[serde(default, skip_serializing_if = "TableFormat::is_parquet")]
    pub output_format: TableFormat,
}

/// Part of the records that is written alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Only {
    /// The ids.
    Ids,
}

impl WriteOptions {
    /// Checks that the records of a plan can be written so.
    ///
    /// # Errors
    /// [`WrongUse`] when records without fields would be annotated.
    pub fn check(&self, plan: &Plan) -> Result<()> {
        let lacks_fields =
            |split: &&Split| !split.format.adds_fields() && split.format.name() != UNKNOWN.name();
        let split = plan.input_splits().iter().find(lacks_fields);
        if let Some(split) = split.filter(|_| self.annotate) {
            bail!(WrongUse(format!(
                "\"{}\" is of the format {}, whose records have no place for more fields, so --annotate is not for it: clusters/ \
                 says the same, and --only ids lists which documents stay",
                split.uri(),
                split.format.name()
            )));
        }
        Ok(())
    }
}
