//! A search of the corpus of a run, and what it counts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cluster::{Local, text_of_path};
use datasets::MissingField;
use operators::hash::Secret;
use operators::method::Method;
use operators::search::crowds::place::Rank;
use operators::search::zhou::copy_search::Comparisons;
use operators::search::{PassLoad, SearchContext, SearchInputs};
use operators::text::ignored_lines::IgnoredLines;
use operators::{DocId, Merit, Sides, SpillBudget};
use serde::{Deserialize, Serialize};

use crate::keep::KeepOrder;
use runtime::corpus::run::Run;
use runtime::output::map_output::MapOutputs;
use runtime::output::rejects::Rejects;
use runtime::report::lengths::LengthCounts;

/// A search of the corpus of a run.
pub struct CorpusSearch {
    /// Processes, plan, reading and progress of the run.
    pub run: Run,
    /// Method that cleans the texts and finds the pairs.
    pub method: Method,
    /// Pairs that are looked for.
    pub sides: Sides,
    /// Number of records that may be rejected; `None` for any number.
    pub max_rejects: Option<u64>,
    /// Folder of the map output.
    pub outputs: MapOutputs,
    /// Secret with which texts are hashed to find equal ones.
    pub secret: Secret,
    /// Memory of each worker, beyond which its records are spilled.
    pub spill: SpillBudget,
    /// Whether the map output also has the whole texts of methods that do not compare stored ones, in a section behind the others.
    pub keeps_texts: bool,
    /// Lines that are left out of the comparison, if any are.
    pub ignored: Option<IgnoredLines>,
    /// Keep order, if of the documents that share keys with very many others only the matches are wanted by which a greedy
    /// decision removes one; `None` if every match is.
    pub leaders: Option<KeepOrder>,
}

impl CorpusSearch {
    /// Prepares a search without a limit of memory or rejects, whose map output lies in `folder`.
    pub fn in_folder(folder: &Path, run: Run, method: Method) -> Self {
        CorpusSearch {
            run,
            method,
            sides: Sides::default(),
            max_rejects: None,
            outputs: MapOutputs::new(Arc::new(Local), text_of_path(folder.as_os_str())),
            secret: Secret::random(),
            spill: SpillBudget::unused(),
            keeps_texts: false,
            ignored: None,
            leaders: None,
        }
    }

    /// Returns what the search of the method is made for.
    pub fn context(&self) -> SearchContext<'_> {
        let ignores_lines = self.ignored.is_some();
        self.method.context(SearchInputs { secret: self.secret, sides: self.sides, ignores_lines })
    }

    /// Returns the place of a document in keep order.
    pub fn rank(&self, doc: DocId, merit: &dyn Fn() -> Merit) -> Rank {
        self.leaders.as_ref().map_or((0, doc), |rank| rank(doc, merit))
    }
}

/// Counts of the documents of one side of the corpus, without rejected ones.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct SideCounts {
    /// Number of documents that were read, those without text included.
    pub docs: u64,
    /// Length of their texts before they are cleaned, in bytes of UTF-8.
    pub text_bytes: u64,
    /// Documents whose illegal bytes were read as U+FFFD.
    pub replaced: u64,
    /// Documents without text, which are nobody's duplicates.
    pub without_text: u64,
    /// Documents that are compared without some of their lines.
    pub shortened: u64,
    /// Documents of each length.
    pub by_length: LengthCounts,
    /// Documents of code, if the cleaning reads code in its own way.
    pub code: Option<u64>,
    /// The first file without the fields that were asked for, and its split.
    pub without_field: Option<(u32, MissingField)>,
}

impl SideCounts {
    fn add(&mut self, other: SideCounts) {
        self.docs += other.docs;
        self.text_bytes += other.text_bytes;
        self.replaced += other.replaced;
        self.without_text += other.without_text;
        self.shortened += other.shortened;
        self.by_length += other.by_length;
        self.code = self.code.into_iter().chain(other.code).reduce(|a, b| a + b);
        let both = self.without_field.take().into_iter().chain(other.without_field);
        self.without_field = both.min_by_key(|(split, _)| *split);
    }
}

/// Result of a search, of one worker, of one process or of all together.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct SearchResult {
    /// Rejected records of the reference and of the input.
    pub rejects: Rejects,
    /// Counts of the documents of the input, without those of the reference.
    pub input: SideCounts,
    /// Counts of the reference, if there is one.
    pub reference: SideCounts,
    /// Pairs before verification.
    pub candidates: u64,
    /// Documents of which only those matches are known that decide.
    pub crowd: u64,
    /// Comparisons, if the method counts them.
    pub comparisons: Option<Comparisons>,
    /// For each worker, its load in each pass of the search.
    pub loads: Vec<Vec<PassLoad>>,
    /// Number of records of each split, rejected ones included.
    pub records: BTreeMap<u32, u64>,
    /// Number of lines that were left out of the comparison, if there is a list of them.
    pub ignored_lines: Option<u64>,
}

impl SearchResult {
    /// Joins the results of several workers or processes.
    pub fn join(parts: impl IntoIterator<Item = SearchResult>) -> Self {
        let mut all = SearchResult::default();
        for mut part in parts {
            all.rejects.join(part.rejects);
            all.input.add(part.input);
            all.reference.add(part.reference);
            all.candidates += part.candidates;
            all.crowd += part.crowd;
            all.comparisons = all.comparisons.into_iter().chain(part.comparisons).reduce(|a, b| a + b);
            all.loads.append(&mut part.loads);
            all.records.append(&mut part.records);
            all.ignored_lines = all.ignored_lines.max(part.ignored_lines);
        }
        all
    }
}
