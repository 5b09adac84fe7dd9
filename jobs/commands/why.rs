//! `why`: says what happened to a document or a pair, and for which reason.

use anyhow::{Result, bail};
use cluster::{Stores, one_line};
use serde_json::json;

use super::pair_trace::trace;
use super::show::how_alike;
use crate::Common;
use crate::cli::exit::{Failure, WrongUse};
use crate::cli::terminal::print;
use crate::cli::values::paths;
use crate::corpus::input::InputDocument;
use crate::dedup::corpus_counts;
use crate::dedup::finished::{Finished, MemberRow, PairRow};
use crate::dedup::ignored_lines::CountedLines;

/// Number of pairs of a document that are listed.
const PAIRS: usize = 10;

/// Say why a document was removed or kept, or why two documents are a pair or none
///
/// For one id, this prints what happened to the document, the kept document that it duplicates, its cluster
/// and its pairs. For two ids, it prints their exact similarity, their fingerprints and whether they were
/// compared at all; the input is read again for that.
#[derive(clap::Args)]
pub struct Args {
    /// A finished output of dedup
    #[arg(value_parser = paths())]
    output: String,
    /// Id of a document
    id: String,
    /// Id of another document
    other: Option<String>,
}

/// Runs the job; returns 0.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    let finished = Finished::open(&Stores::new(), &args.output)?;
    let why = Why { common, finished, output: &args.output };
    let lines = match &args.other {
        None => why.document(&args.id)?,
        Some(other) => why.pair(&args.id, other)?,
    };
    print(lines.join("\n") + "\n")?;
    Ok(0)
}

struct Why<'a> {
    common: &'a Common,
    finished: Finished,
    output: &'a str,
}

impl Why<'_> {
    fn document(&self, id: &str) -> Result<Vec<String>> {
        let mut members = Vec::new();
        self.finished.members(|member| members.extend((member.id == id).then_some(member)))?;
        if members.is_empty() {
            let Some(document) = self.with_ids(&[id])?.pop() else { bail!(self.no_document(id)) };
            let id = one_line(id);
            return Ok(vec![match self.finished.is_reference(document.place) {
                true => format!(
                    "{id} is of the reference, and no pair names it; of identical documents of the reference the first \
                     stands for all"
                ),
                false => format!("{id} was kept: nothing that stays was found to match it"),
            }]);
        }
        let mut lines = Vec::new();
        for member in &members {
            lines.extend(self.member(member)?);
        }
        Ok(lines)
    }

    fn member(&self, member: &MemberRow) -> Result<Vec<String>> {
        let (mut size, mut kept, mut by_reference) = (0, 0, false);
        let removed_for = member.removed.as_ref().map(|removed| removed.0.as_str());
        self.finished.members(|other| {
            size += u64::from(other.cluster == member.cluster);
            kept += u64::from(other.cluster == member.cluster && other.removed.is_none());
            by_reference |= other.cluster == member.cluster
                && removed_for == Some(other.id.as_str())
                && self.finished.is_reference(other.place);
        })?;
        let (mut pairs, mut count) = (Vec::new(), 0);
        self.finished.pairs(|pair| {
            if pair.places.0 == member.place || pair.places.1 == member.place {
                count += 1;
                pairs.push(pair);
                // The most similar pairs stay; identical ones come first.
                pairs.sort_by_key(|pair: &PairRow| std::cmp::Reverse(pair.similarity));
                pairs.truncate(PAIRS);
            }
        })?;
        let id = one_line(&member.id);
        let mut lines = vec![match &member.removed {
            None if self.finished.is_reference(member.place) => {
                format!("{id} is of the reference, which stays")
            }
            None => format!("{id} was kept"),
            Some((of, similarity, reason)) => {
                let (of, stays) =
                    (one_line(of), if by_reference { "is of the reference" } else { "was kept" });
                let tie = match (reason.as_str(), similarity) {
                    ("identical", _) => format!("it is identical to {of}, which {stays}"),
                    ("chain", _) => {
                        format!(
                            "a chain of pairs ties it to {of}, which {stays}; the two were not found to match"
                        )
                    }
                    (_, None) => format!("its fingerprint matches that of {of}, which {stays}"),
                    (_, Some(similarity)) => {
                        format!("it is similar to {of}, which {stays}: similarity {similarity}")
                    }
                };
                format!("{id} was removed: {tie}")
            }
        }];
        lines.push(format!(
            "its cluster: {size} documents, of which {kept} {}; it is named after {}",
            if self.finished.has_reference() { "stay" } else { "kept" },
            one_line(&member.cluster)
        ));
        lines.push(format!("its pairs: {count}"));
        lines.extend(pairs.iter().map(|pair| format!("    {}", how_alike(pair))));
        Ok(lines)
    }

    fn pair(&self, id: &str, other: &str) -> Result<Vec<String>> {
        let documents = self.with_ids(&[id, other])?;
        let named = |id: &str| documents.iter().find(|document| document.id == id);
        let (Some(a), Some(b)) = (named(id), named(other)) else {
            let missing = if named(id).is_none() { id } else { other };
            bail!(self.no_document(missing));
        };
        let (a, b) = if a.place <= b.place { (a, b) } else { (b, a) };
        if a.place == b.place {
            bail!(WrongUse(format!("\"{}\" is one document", one_line(id))));
        }
        let mut row = None;
        self.finished
            .pairs(|pair| row = row.take().or((pair.places == (a.place, b.place)).then_some(pair)))?;
        let options = self.finished.options();
        let spec = &options.method;
        let lexicon = self.finished.lexicon()?;
        let statistics = corpus_counts::of_output(&Stores::new(), self.output, spec, &lexicon)?;
        let lines = options.ignores_lines().then(|| CountedLines::read(&Stores::new(), self.output));
        let ignored = lines.transpose()?.map(|lines| lines.ignored());
        let method = spec.method(&lexicon, &statistics, options.threshold())?;
        let compared = trace(method, ignored, &a.text, &b.text);
        let mut lines = vec![match (&row, compared.matches) {
            (Some(pair), _) => how_alike(pair),
            (None, false) => format!("{} and {} are no pair", one_line(&a.id), one_line(&b.id)),
            (None, true) if !self.finished.compares(a.place, b.place) => format!(
                "{} and {} match, but such pairs were not looked for: {}",
                one_line(&a.id),
                one_line(&b.id),
                if self.finished.is_reference(b.place) { "both are of the reference" } else { "--within no" }
            ),
            (None, true) => format!(
                "{} and {} match, but have no row: the pair did not decide, or one of them is identical to an earlier \
                 document, which has it",
                one_line(&a.id),
                one_line(&b.id)
            ),
        }];
        lines.push(format!("method: {spec}"));
        lines.extend(compared.steps);
        Ok(lines)
    }

    /// Reads the documents with these ids in the input.
    fn with_ids(&self, ids: &[&str]) -> Result<Vec<InputDocument>> {
        let input = self.finished.input(self.common.workers())?;
        let asked = json!({"output": self.output, "ids": ids});
        let (watch, progress) = input.watch(&self.common.progress, "why", &asked)?;
        watch.end(input.with_ids(ids, &progress))
    }

    fn no_document(&self, id: &str) -> Failure {
        WrongUse(format!("the input of \"{}\" has no document called \"{id}\"", self.output))
    }
}
