//! The options of `chunk clean` that decide its result.

#[cfg(feature = "cli")]
use clap::builder::{PossibleValuesParser, TypedValueParser};
use operators::KeptUnit;
use operators::method::Spec;
use operators::text::units::Unit;
use serde::Serialize;

use runtime::cli::configuration::optional_text;
use runtime::corpus::input::InputOptions;

/// Options that decide the result of a run, as they are parsed and as `_SUCCESS` records them.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(rename_all = "kebab-case")]
pub(super) struct CleanOptions {
    /// Unit that is compared and cut: line, sentence or paragraph
    ///
    /// A line ends with a newline, a sentence with one of 。？！?! or a newline, a paragraph with an empty line. Units are
    /// equal if they differ only in white space at their ends.
    #[cfg_attr(feature = "cli", arg(long, value_name = "UNIT", default_value = "line", value_parser = units()))]
    pub unit: Unit,
    /// Never cut units with fewer characters than this, without white space at their ends
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value_t = 20))]
    pub min_chars: u32,
    /// Cut a unit only if it occurs at least so often in the corpus
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(2..)))]
    pub min_repeats: u64,
    /// Also cut units that are near an earlier one that stays: jaccard:T and its parameters, as for dedup --method
    ///
    /// A unit that is near counts as an occurrence of the one that stays. A changed character changes five features of
    /// char:5, so units of fewer than 100 characters want features=char:2 or char:3. The input is read once more.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SPEC", value_parser = near))]
    #[serde(with = "optional_text", skip_serializing_if = "Option::is_none")]
    pub near: Option<Spec>,
    /// Occurrence of a repeated unit that stays: the first of the corpus, or none
    #[cfg_attr(feature = "cli", arg(long, value_name = "WHICH", default_value = "first", value_parser = kept_units()))]
    pub keep: KeptUnit,
    #[cfg_attr(feature = "cli", command(flatten))]
    #[serde(flatten)]
    pub input: InputOptions,
}

#[cfg(feature = "cli")]
fn units() -> impl TypedValueParser<Value = Unit> {
    PossibleValuesParser::new(["line", "sentence", "paragraph"]).map(|name| match name.as_str() {
        "line" => Unit::Line,
        "sentence" => Unit::Sentence,
        _ => Unit::Paragraph,
    })
}

#[cfg(feature = "cli")]
fn kept_units() -> impl TypedValueParser<Value = KeptUnit> {
    PossibleValuesParser::new(["first", "none"]).map(|name| match name.as_str() {
        "first" => KeptUnit::First,
        _ => KeptUnit::None,
    })
}

/// Reads the method of `--near`. No other search finds all pairs and reads texts from nowhere but the map output.
fn near(text: &str) -> Result<Spec, String> {
    let spec: Spec = text.parse().map_err(|error: operators::Error| error.to_string())?;
    match spec.name() {
        "jaccard" => Ok(spec),
        name => Err(format!("units are compared by jaccard:T alone, not by {name}")),
    }
}
