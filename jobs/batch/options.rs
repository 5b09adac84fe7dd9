//! The options of `dedup` that decide its result.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};
use datasets::{Format, Reading, UNKNOWN};
use operators::method::Spec;
use operators::{Resolve, Sides, Similarity};
use serde::{Deserialize, Serialize};

use super::keep::{Keep, KeepOrder};
use super::write::WriteOptions;
use runtime::cli::configuration::{optional_text, text};
use runtime::cli::exit::WrongUse;
#[cfg(feature = "cli")]
use runtime::cli::headings::{INPUT, METHOD, OUTPUT, STAYS};
#[cfg(feature = "cli")]
use runtime::cli::values::paths;
use runtime::corpus::input::InputOptions;
use runtime::corpus::plan::Plan;
use runtime::corpus::split::Split;
use runtime::output::tables::PairsOf;

/// Options that decide the result of a run, as they are parsed and as `_SUCCESS` records them.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(rename_all = "kebab-case")]
pub struct DedupOptions {
    /// Take fingerprints that were made elsewhere in the place of texts, such as those of the job fingerprint
    ///
    /// The text of a record is a number then, decimal or 0x and hexadecimal digits: a LongWritable, or by default the field fingerprint.
    /// The method is simhash, whose hamming, bits and blocks count, and pairs within the distance match.
    #[cfg_attr(feature = "cli", arg(help_heading = INPUT, hide_short_help = true, long))]
    #[serde(skip)]
    pub from_fingerprints: bool,
    /// Method and parameters, such as auto, jaccard:0.8 or simhash:hamming=6,features=char:5
    #[cfg_attr(feature = "cli", arg(help_heading = METHOD, long, value_name = "SPEC", default_value = "auto", long_help = method_help()))]
    #[serde(with = "text")]
    pub method: Spec,
    /// Compare the features of every candidate pair: jaccard:T, or none
    ///
    /// The default is jaccard:0.8 for approximate methods. The splits that hold a candidate are read once
    /// more, with or without verification.
    #[cfg_attr(feature = "cli", arg(help_heading = METHOD, hide_short_help = true, long, value_name = "HOW"))]
    #[serde(with = "optional_text")]
    pub verify: Option<Verification>,
    /// Rule for the documents of a cluster that stay: greedy or components
    ///
    /// greedy removes a document only if it matches one that stays. components keeps one document of each
    /// cluster, so a chain of matches can remove a document that matches nothing that stays.
    #[cfg_attr(feature = "cli", arg(help_heading = STAYS, hide_short_help = true, long, value_name = "HOW", default_value_t))]
    #[serde(with = "text")]
    pub resolve: Resolve,
    /// Document that stays of two that match: first, longest or priority:FIELD
    ///
    /// first is the first of the corpus, longest the one with the most characters, and priority:FIELD the one with
    /// the greatest number in a field of its record. Of equal ones the first stays. With priority:FIELD, a record of
    /// the input without a finite number in the field is rejected, and formats without fields are refused; a
    /// reference needs no such field.
    #[cfg_attr(feature = "cli", arg(help_heading = STAYS, long, value_name = "WHICH", default_value = "first"))]
    #[serde(with = "text")]
    pub keep: Keep,
    /// Pairs to write: deciding (one for each removed document), firsts or all [default: deciding]
    ///
    /// deciding looks only for the matches that decide, and writes those of a removed document with the one that stays in its
    /// place; a cluster is a document that stays and those that go for it. firsts and all look for every match, of which
    /// a family of n near-equal documents has n × (n − 1) / 2; a cluster is a connected component then. Of identical documents
    /// firsts writes the pairs with the first one alone. The same documents stay in each case. --resolve components
    /// needs every match: with it, the default is firsts.
    #[cfg_attr(feature = "cli", arg(help_heading = OUTPUT, hide_short_help = true, long, value_name = "WHICH"))]
    #[cfg_attr(feature = "cli", arg(default_value = "deciding", hide_default_value = true))]
    #[cfg_attr(feature = "cli", arg(default_value_if("resolve", "components", "firsts")))]
    pub pairs: PairsOf,
    /// Options that decide which records the output has, and in which form.
    #[cfg_attr(feature = "cli", command(flatten))]
    #[serde(flatten)]
    pub write: WriteOptions,
    /// Reference: remove from the input what is in these files, folders, globs or comma lists of them, and leave
    /// them as they are
    ///
    /// Every document of the reference stays, and none is written; they are not compared with each other. The
    /// option takes one REF and may be given more than once. --format and the options for fields hold for the reference too.
    #[cfg_attr(feature = "cli", arg(help_heading = INPUT, long, value_name = "REF", value_parser = paths()))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<String>,
    /// Whether --against also removes from the input what the input itself has twice [default: yes]
    #[cfg_attr(feature = "cli", arg(help_heading = INPUT, hide_short_help = true, long, value_name = "WHETHER", requires = "against"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Within>,
    /// Leave lines that stand in at least N documents, such as navigation, out of the comparison
    ///
    /// Records stay whole. Lines are equal if they differ only in white space at their ends. A document of which no other
    /// line is left is compared whole. Choose N above the number of copies that one text has, or the text itself is left
    /// out. The input is read once more. OUTPUT/ignored-lines has the lines as hashes.
    #[cfg_attr(feature = "cli", arg(help_heading = METHOD, hide_short_help = true, long, value_name = "N"))]
    #[cfg_attr(feature = "cli", arg(value_parser = clap::value_parser!(u64).range(2..)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_lines: Option<u64>,
    /// Leave the lines out that an earlier run has left out, instead of counting: its output, or the file in it
    #[cfg_attr(feature = "cli", arg(help_heading = METHOD, hide_short_help = true, long, value_name = "PATH"))]
    #[cfg_attr(feature = "cli", arg(conflicts_with = "ignore_lines", value_parser = paths()))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_lines_of: Option<String>,
    /// Options by which the records of the input and of the reference are read.
    #[cfg_attr(feature = "cli", command(flatten))]
    #[serde(flatten)]
    pub input: InputOptions,
    /// Take the corpus statistics that weights=tfidf and rank5 need from an earlier run: its output, or the
    /// file in it
    ///
    /// By default the statistics are counted in the input. They are kept in OUTPUT/statistics either way.
    #[cfg_attr(feature = "cli", arg(help_heading = METHOD, hide_short_help = true, long, value_name = "PATH"))]
    pub statistics: Option<String>,
}

/// Refuses a method that takes texts as fingerprints, in a job that reads texts.
pub fn refuse_given(method: &Spec) -> Result<()> {
    if method.takes_fingerprints() {
        bail!(WrongUse(format!(
            "{method} takes fingerprints in the place of texts, as dedup and nightly alone can"
        )));
    }
    Ok(())
}

/// Returns the whole help of `--method`.
fn method_help() -> String {
    let first = "Method and parameters, such as auto, jaccard:0.8 or simhash:hamming=6,features=char:5";
    format!("{first}\n\n{}", Spec::help())
}

/// The options for ignored lines, in a job that has documents of earlier runs. It refuses them and says what to do.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct RefusedLines {
    #[cfg_attr(feature = "cli", arg(long, hide = true, value_parser = refuse_lines))]
    ignore_lines: Option<String>,
    #[cfg_attr(feature = "cli", arg(long, hide = true, value_parser = refuse_lines))]
    ignore_lines_of: Option<String>,
}

fn refuse_lines(_: &str) -> Result<String, String> {
    Err("states and indexes compare whole texts: take repeated lines out with \"chunk clean\" before, or compare by dedup, \
         with --against for the documents of an earlier output"
        .to_owned())
}

/// Whether two documents of the input may be a pair, where there is a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Within {
    /// A document also goes if it matches one of the input that stays.
    Yes,
    /// A document goes only if it matches one of the reference.
    No,
}

/// Verification of the pairs of an approximate method: the least Jaccard similarity of the features of a pair;
/// `None` if features are not compared.
#[derive(Clone, Copy, Debug)]
pub struct Verification(pub Option<Similarity>);

impl FromStr for Verification {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "none" => Ok(Verification(None)),
            Some(("jaccard", threshold)) => Ok(Verification(Some(threshold.parse()?))),
            _ => Err("expected jaccard:T or none".to_owned()),
        }
    }
}

impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(threshold) => write!(f, "jaccard:{threshold}"),
            None => f.write_str("none"),
        }
    }
}

impl Verification {
    /// Returns the verification if `--verify` is not given.
    pub fn default_of(method: &Spec) -> Self {
        Verification(method.approximate().then(|| Similarity::millionths(800_000)))
    }

    /// Returns what the user has given, or the default of the method.
    ///
    /// # Errors
    /// [`WrongUse`] if verification is asked for and the method measures similarity itself.
    pub fn of(method: &Spec, given: Option<Self>) -> Result<Self> {
        if given.is_some() && method.measures() {
            bail!(WrongUse(format!(
                "{method} compares the features of every pair itself: leave --verify out"
            )));
        }
        Ok(given.unwrap_or_else(|| Verification::default_of(method)))
    }
}

impl DedupOptions {
    /// Returns how the records of a plan are read.
    ///
    /// # Errors
    /// [`WrongUse`] if a field decides which documents stay, and the input has a file of a format without fields.
    pub fn reading(&self, plan: &Plan) -> Result<Reading> {
        let priority = self.keep.field().map(str::to_owned);
        // A file of an unknown format is a reject in any case.
        let lacks_fields =
            |split: &&Split| !split.format.has_fields() && split.format.name() != UNKNOWN.name();
        if let (Some(field), Some(split)) = (&priority, plan.input_splits().iter().find(lacks_fields)) {
            bail!(WrongUse(format!(
                "\"{}\" is of the format {}, whose records have no fields, so priority:{field} cannot decide which \
                 of them stay",
                split.uri(),
                split.format.name()
            )));
        }
        Ok(Reading { priority, numbers: self.method.takes_fingerprints(), ..self.input.reading()? })
    }

    /// Returns which pairs of documents of a plan are looked for.
    pub fn sides(&self, plan: &Plan) -> Sides {
        plan.sides(self.within != Some(Within::No))
    }

    /// Returns the keep order if only the matches that decide are wanted.
    pub fn leaders(&self) -> Option<KeepOrder> {
        (self.pairs == PairsOf::Deciding).then(|| self.keep.clone().order())
    }

    /// Whether lines are left out of the comparison.
    pub fn ignores_lines(&self) -> bool {
        self.ignore_lines.is_some() || self.ignore_lines_of.is_some()
    }

    /// Turns the method into one that takes fingerprints as they are, if the user wants it.
    ///
    /// # Errors
    /// [`WrongUse`] if the method has no fingerprints.
    pub fn take_fingerprints(&mut self) -> Result<()> {
        if !self.from_fingerprints {
            return Ok(());
        }
        if self.method == Spec::default() {
            self.method = "simhash".parse()?;
        }
        if !self.method.take_fingerprints() {
            bail!(WrongUse(format!(
                "--from-fingerprints is for --method simhash, and not for {}",
                self.method
            )));
        }
        self.input.text_field.get_or_insert_with(|| "fingerprint".to_owned());
        Ok(())
    }

    /// Fills in what the user left open.
    ///
    /// # Errors
    /// [`WrongUse`] if verification is asked for and the method measures similarity itself, if the method can let
    /// no reference stay, if it compares no part of a text, or if components are asked for without all matches.
    pub fn resolve(&mut self) -> Result<()> {
        if !self.against.is_empty() && self.method.deletes_as_it_compares() {
            bail!(WrongUse(format!(
                "{} deletes documents as it compares them, so it cannot compare against a reference: take another --method",
                self.method.name()
            )));
        }
        if self.ignores_lines() && self.method.name() == "exact" {
            bail!(WrongUse(
                "exact finds documents that are equal with all of their lines, so none can be ignored: take another --method"
                    .to_owned()
            ));
        }
        if self.resolve == Resolve::Components && self.pairs == PairsOf::Deciding {
            bail!(WrongUse("--resolve components needs every match: take --pairs firsts or all".to_owned()));
        }
        self.verify = Some(Verification::of(&self.method, self.verify)?);
        Ok(())
    }

    /// Whether matches have a least similarity, which could be raised.
    pub fn has_threshold(&self) -> bool {
        self.threshold().is_some() || !self.method.clone().thresholds().is_empty()
    }

    /// Returns the least similarity of a pair of matching fingerprints; `None` if pairs are not verified.
    pub fn threshold(&self) -> Option<Similarity> {
        self.verify.unwrap_or_else(|| Verification::default_of(&self.method)).0
    }
}
