//! `why`: says what happened to a document or a pair, and for which reason.

use anyhow::{Result, bail};
use cluster::{Stores, one_line};
use serde_json::json;

use super::pair_trace::trace;
use super::show::how_alike;
use batch::corpus_counts;
use batch::finished::{Finished, MemberRow, PairRow};
use batch::ignored_lines::CountedLines;
use runtime::Common;
use runtime::cli::exit::{Failure, WrongUse};
use runtime::cli::terminal::print;
use runtime::cli::values::paths;
use runtime::corpus::input::InputDocument;

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
    /// Id of another document, which may be the same id where two documents have it
    other: Option<String>,
    /// File of the document, or the end of its path, where documents of several files have its id; given twice, the second is
    /// of the other document
    #[arg(long, value_name = "FILE")]
    file: Vec<String>,
}

/// Runs the job; returns 0.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    let stores = Stores::new();
    let finished = Finished::open(&stores, &args.output);
    if finished.is_err() && Finished::open(&stores, &args.id).is_ok() {
        bail!(WrongUse(format!("the output comes before the id: why {} {}", args.id, args.output)));
    }
    let finished = finished?;
    if args.file.len() > 1 + usize::from(args.other.is_some()) {
        bail!(WrongUse("--file is given once for each id".to_owned()));
    }
    let why = Why { common, finished, output: &args.output };
    let (file, other_file) = (args.file.first(), args.file.get(1));
    let document = AskedDocument { id: &args.id, file: file.map(String::as_str) };
    let lines = match &args.other {
        None => why.document(&document)?,
        Some(other) => {
            why.pair(&document, &AskedDocument { id: other, file: other_file.map(String::as_str) })?
        }
    };
    print(lines.join("\n") + "\n")?;
    Ok(0)
}

/// A document that the user asks for.
struct AskedDocument<'a> {
    id: &'a str,
    /// Its file, or the end of the path of it.
    file: Option<&'a str>,
}

impl AskedDocument<'_> {
    fn is(&self, document: &InputDocument) -> bool {
        let is_of = |file: &str| {
            let before = document.path.strip_suffix(file);
            before.is_some_and(|before| before.is_empty() || before.ends_with('/') || file.starts_with('/'))
        };
        document.id == self.id && self.file.is_none_or(is_of)
    }

    fn name(&self) -> String {
        let file = self.file.map_or(String::new(), |file| format!(" of \"{file}\""));
        format!("\"{}\"{file}", one_line(self.id))
    }
}

struct Why<'a> {
    common: &'a Common,
    finished: Finished,
    output: &'a str,
}

impl Why<'_> {
    fn document(&self, asked: &AskedDocument) -> Result<Vec<String>> {
        let mut members = Vec::new();
        self.finished.members(|member| members.extend((member.id == asked.id).then_some(member)))?;
        if members.is_empty() || asked.file.is_some() {
            let documents = self.documents(&[asked])?;
            let Some(first) = documents.first() else { bail!(self.no_document(asked)) };
            members.retain(|member| documents.iter().any(|document| document.place == member.place));
            if members.is_empty() {
                let id = one_line(asked.id);
                return Ok(vec![match self.finished.is_reference(first.place) {
                    true => format!(
                        "{id} is of the reference, and no pair names it; of identical documents of the reference the \
                         first stands for all"
                    ),
                    false => format!("{id} was kept: nothing that stays was found to match it"),
                }]);
            }
        }
        let mut lines = Vec::new();
        for member in &members {
            lines.extend(self.member(member)?);
        }
        if members.len() > 1 && asked.file.is_none() {
            lines.push(format!(
                "{} documents in clusters are called {}: --file FILE asks for that of one file",
                members.len(),
                asked.name()
            ));
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
        let mut pairs = Vec::new();
        let mut count = 0;
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

    fn pair(&self, asked: &AskedDocument, other: &AskedDocument) -> Result<Vec<String>> {
        let documents = self.documents(&[asked, other])?;
        let (first, second) = match &documents[..] {
            [first, second] if asked.id == other.id => (first, second),
            _ => (self.one(asked, &documents)?, self.one(other, &documents)?),
        };
        let (a, b) = if first.place <= second.place { (first, second) } else { (second, first) };
        if a.place == b.place {
            bail!(WrongUse(format!("{} is one document", asked.name())));
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

    /// Returns the document that is asked for, the first one of its file.
    ///
    /// # Errors
    /// [`WrongUse`] when there is none, or when files have one each.
    fn one<'d>(&self, asked: &AskedDocument, documents: &'d [InputDocument]) -> Result<&'d InputDocument> {
        let mut found = documents.iter().filter(|document| asked.is(document));
        let first = found.next().ok_or_else(|| self.no_document(asked))?;
        match found.find(|document| document.path != first.path) {
            Some(next) => bail!(WrongUse(format!(
                "documents of several files are called {}, such as those of \"{}\" and \"{}\": --file names the file of each",
                asked.name(),
                first.path,
                next.path
            ))),
            None => Ok(first),
        }
    }

    /// Reads the documents that are asked for in the input, sorted by position.
    fn documents(&self, asked: &[&AskedDocument]) -> Result<Vec<InputDocument>> {
        let input = self.finished.input(self.common.workers())?;
        let ids: Vec<&str> = asked.iter().map(|asked| asked.id).collect();
        let of_watch = json!({"output": self.output, "ids": ids});
        let (watch, progress) = input.watch(&self.common.progress, "why", &of_watch)?;
        let mut documents = watch.end(input.with_ids(&ids, &progress))?;
        documents.retain(|document| asked.iter().any(|asked| asked.is(document)));
        Ok(documents)
    }

    fn no_document(&self, asked: &AskedDocument) -> Failure {
        WrongUse(format!("the input of \"{}\" has no document called {}", self.output, asked.name()))
    }
}
