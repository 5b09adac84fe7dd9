//! One night: from the plan of the new documents to the commit of the output and of the state.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use cluster::{Group, Stores};
use datasets::Reading;
use operators::DocId;
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;
use xxhash_rust::xxh3::xxh3_128;

use super::args::NightArgs;
use super::night_work::NightWork;
use crate::state::{
    EarlierDocs, NightCommit, NightEntry, NightState, Numbering, StateFolder, StateManifest, number_of,
    stamp_of,
};
use batch::corpus_counts;
use batch::dedup_job::{Companion, DedupJob};
use batch::options::DedupOptions;
use runtime::Common;
use runtime::cli::configuration::{Configuration, deciding};
use runtime::cli::exit::WrongUse;
use runtime::cli::terminal::say;
use runtime::cli::values::{id_lines, without_cr};
use runtime::corpus::plan::Plan;
use runtime::corpus::run::Run;
use runtime::corpus::same_input::check_same_input;
use runtime::output::{Key, OutputJob};

/// Runs a night as one of its processes. Returns the exit code: 0, or 3 if records were rejected.
pub(super) fn run_night(common: &Common, args: NightArgs) -> Result<u8> {
    common.in_group(args, "the night", |group, args| Night::new(common, group, args)?.run())
}

/// A night that is planned, as one process of the job sees it.
///
/// ```text
/// plan     the new files and the withdrawn ids; the splits come behind those of the state
/// claim    the lock of the state, then that of the output
/// search   new documents with each other, and with the keys that the state holds
/// decide   the clusters that are touched, and what the state keeps of them
/// write    the records of the new documents
/// commit   the version of the state is prepared, the output is committed, the version is committed
/// ```
pub(super) struct Night<'a> {
    common: &'a Common,
    group: &'a Arc<Group>,
    start: Instant,
    stores: Stores,
    args: NightArgs,
    name: String,
    /// Output folder with the prefix of its store and its whole path.
    output: String,
    lexicon: Lexicon,
    of_dedup: DedupOptions,
    /// Lines that name the documents that are withdrawn by their ids.
    withdrawn: Vec<String>,
    plan: Plan,
    reading: Reading,
    /// Hash of the input files and the withdrawn ids.
    input: String,
}

impl<'a> Night<'a> {
    /// Plans a night.
    ///
    /// # Errors
    /// [`WrongUse`] when there is nothing to do, or the method keeps no keys.
    pub fn new(common: &'a Common, group: &'a Arc<Group>, mut args: NightArgs) -> Result<Self> {
        let start = Instant::now();
        let stores = Stores::new();
        args.options.input.limit_records(args.memory.of_records(group.workers()));
        let state = StateFolder::open(&stores, args.state()?)?;
        state.refuse_others()?;
        let pinned = match &args.again {
            Some(again) => Some(again.pinned.clone()),
            None => state.newest()?.map(|manifest| manifest.pinned),
        };
        args.options.resolve(&args.given, pinned.as_ref())?;
        if group.index() == 0 {
            common.warn_of(&args.options.method);
        }
        let of_dedup = args.options.of_dedup();
        let lexicon = args.options.input.lexicon(args.options.method.cuts_words())?;
        let withdrawn = args.options.retract.as_deref().map(id_lines).transpose()?.unwrap_or_default();
        let plan = match args.inputs.is_empty() {
            true if args.options.retract.is_none() && !args.empty => {
                bail!(WrongUse(
                    "expected an INPUT, or --retract with the ids of documents to withdraw".to_owned()
                ))
            }
            true => Plan::nothing(),
            false => args.options.input.plan(&stores, &args.inputs)?,
        };
        let reading = of_dedup.reading(&plan)?;
        refuse_nested(&stores, &plan, args.output()?, &state)?;
        check_same_input(&plan, group)?;
        let name = args.name()?;
        let input = hash_of_input(&plan, &withdrawn)?;
        if args.again.as_ref().is_some_and(|again| again.input != input) {
            bail!(WrongUse(format!("the input of the night \"{name}\" has changed since")));
        }
        let (store, path) = stores.locate(args.output()?)?;
        let output = format!("{}{}", store.prefix(), path.trim_end_matches('/'));
        Ok(Night {
            common,
            group,
            start,
            stores,
            args,
            name,
            output,
            lexicon,
            of_dedup,
            withdrawn,
            plan,
            reading,
            input,
        })
    }

    /// Runs the night. Returns the exit code: 0, or 3 if records were rejected.
    pub fn run(self) -> Result<u8> {
        let uri = self.args.state()?;
        let wait = self.args.wait();
        let mut claimed = None;
        let pinned = self.args.options.pinned(&self.lexicon);
        let claim = |_| -> Result<_> {
            let folder = StateFolder::claim(&self.stores, uri, self.group, wait)?;
            let manifest = folder.newest();
            let run = folder.run().to_owned();
            claimed = Some(folder);
            let manifest = manifest?;
            if let Some(manifest) = &manifest {
                manifest.check_pinned(uri, &pinned)?;
                manifest.check_complete(uri, &self.name, &self.input)?;
            }
            // A state that does not exist takes the secret of the run that makes it.
            Ok((manifest.unwrap_or_else(|| StateManifest::empty(pinned.clone(), [0; 2])), run))
        };
        let (manifest, run) = match self.group.all_reduce((), claim) {
            Ok((manifest, run)) => (Ok(manifest), run),
            Err(error) => (Err(error), String::new()),
        };
        let folder = Arc::new(match claimed {
            Some(folder) => folder,
            None => StateFolder::of_run(&self.stores, uri, run)?,
        });
        let result = manifest.and_then(|manifest| match self.is_done(&folder, &manifest)? {
            true => Ok(0),
            false => self.run_with(&folder, manifest),
        });
        let code = folder.or_release(result)?;
        folder.release().map(|()| code)
    }

    /// Whether the state has this night already, with the same input and output.
    fn is_done(&self, folder: &StateFolder, manifest: &StateManifest) -> Result<bool> {
        let Some(night) = manifest.nights.iter().find(|night| night.name == self.name) else {
            return Ok(false);
        };
        let other = match (night.output == self.output, night.input == self.input) {
            (false, _) => Some("output"),
            (_, false) => Some("input, or files of other times of change"),
            _ => None,
        };
        if let Some(other) = other {
            bail!(WrongUse(format!(
                "the state has a night \"{}\" already, with another {other}: give this one another name with --night, or \
                 roll back",
                self.name
            )));
        }
        let back = match self.withdrawn.is_empty() {
            true => 0,
            false => self.ids_that_are_back(&EarlierDocs::open(folder, manifest)?, night)?,
        };
        if back > 0 {
            bail!(WrongUse(format!(
                "the state has the night \"{}\" already, and later nights have brought documents with {back} of its ids: \
                 withdraw these under another name, with --night and another --output",
                self.name
            )));
        }
        let stamp = stamp_of(&self.stores, &self.output)?;
        if stamp.is_none_or(|stamp| stamp.version != night.version) {
            bail!(WrongUse(format!(
                "the state has the night \"{}\" already, but its output \"{}\" is gone or of another run: roll back to the \
                 night before it, and run it again",
                self.name, self.output
            )));
        }
        if self.group.index() == 0 && !self.common.progress.quiet {
            say(format_args!("the state has the night \"{}\" already: nothing was done", self.name));
        }
        Ok(true)
    }

    /// Returns how many of the withdrawn ids are of documents that later nights have brought.
    fn ids_that_are_back(&self, docs: &EarlierDocs, night: &NightEntry) -> Result<usize> {
        let mut back = 0;
        for id in &self.withdrawn {
            back += usize::from(docs_of_line(docs, id)?.into_iter().any(|doc| number_of(doc) >= night.end));
        }
        Ok(back)
    }

    fn run_with(self, folder: &Arc<StateFolder>, manifest: StateManifest) -> Result<u8> {
        let mut docs = EarlierDocs::open(folder, &manifest)?;
        docs.withdraw(self.docs_to_withdraw(&docs)?);
        let statistics = self.given_statistics(folder, &manifest)?;
        let Night { common, group, args, lexicon, of_dedup, mut plan, reading, .. } = self;
        plan.first_split = docs.first_split();
        let options = &args.options;
        let output = args.output()?;
        let plan = Arc::new(plan);
        let local = options.input.local_folder();
        let spill = args.memory.spill_budget(group, &options.method, &lexicon, plan.text_bytes, &local)?;
        let configuration =
            serde_json::to_value(Configuration::here(options.clone(), group.all_workers(), &args.inputs)?)?;
        let key = match group.index() {
            0 => {
                let of_state = (manifest.version, &manifest.pinned, &self.name);
                Some(Key::new(&(&self.input, of_state, deciding(&configuration)), &plan)?)
            }
            _ => None,
        };
        let commit = NightCommit::new(Arc::clone(folder), &self.output);
        let job = OutputJob {
            common,
            stores: &self.stores,
            run: Run { group: Arc::clone(group), plan, reading, progress: Arc::default() },
            name: "nightly",
            start: self.start,
            configuration,
            output,
            args: &args.output_args,
            key,
            limits: format!("{:?} max-rejects {:?}", args.guards, args.max_rejects),
        };
        let version = manifest.version + 1;
        let numbering = Numbering::new(docs.first_split(), []);
        let docs = Arc::new(docs);
        let state = NightState {
            folder: Arc::clone(folder),
            docs,
            version,
            numbering,
            reorders: args.options.policy.reorders(),
        };
        let night = NightEntry {
            name: self.name.clone(),
            output: self.output.clone(),
            input: self.input.clone(),
            version,
            withdrawn: state.docs.going().len() as u64,
            ..NightEntry::default()
        };
        let options = &of_dedup;
        let guards = &args.guards;
        let max_rejects = args.max_rejects;
        let report = args.report;
        let companion = Some(&commit as &dyn Companion);
        let dedup = DedupJob { job: &job, options, guards, max_rejects, report, companion };
        let begun = dedup.begin()?;
        let work = NightWork {
            dedup: &dedup,
            args: &args,
            lexicon: &lexicon,
            state,
            manifest,
            night,
            commit: &commit,
        };
        let result = begun.work(|folder| match dedup.decided_before(folder) {
            Some(end) => end,
            None => work.search_and_write(folder, statistics, spill),
        });
        job.end(begun, result)
    }

    /// Reads the statistics of the state, or those that the user has given.
    fn given_statistics(&self, folder: &StateFolder, manifest: &StateManifest) -> Result<Option<Statistics>> {
        let options = &self.args.options;
        let uri = match (&manifest.statistics, options.statistics.as_deref()) {
            (Some(of), _) => {
                folder.check_statistics(of)?;
                Some(format!("{}/{}", folder.uri.trim_end_matches('/'), of.file))
            }
            (None, given) => given.map(str::to_owned),
        };
        let read = |uri: String| corpus_counts::read(&self.stores, &uri, &options.method, &self.lexicon);
        uri.map(read).transpose()
    }

    /// Returns the documents with the withdrawn ids, in order. Warns of ids that no document has.
    fn docs_to_withdraw(&self, docs: &EarlierDocs) -> Result<Vec<DocId>> {
        let mut going = Vec::new();
        let mut unknown = Vec::new();
        for id in &self.withdrawn {
            let of_id = docs_of_line(docs, id)?;
            if of_id.is_empty() {
                unknown.push(id);
            }
            going.extend(of_id);
        }
        if let (Some(first), 0) = (unknown.first(), self.group.index()) {
            self.common.warn(format_args!(
                "{} of the ids to withdraw are of no document of the state, the first: \"{first}\"",
                unknown.len()
            ));
        }
        going.sort_unstable();
        going.dedup();
        Ok(going)
    }
}

/// Returns an error if an input or the output lies in the state, or the state in the output.
fn refuse_nested(stores: &Stores, plan: &Plan, output: &str, state: &StateFolder) -> Result<()> {
    let uri = &state.uri;
    if let Some(file) = plan.file_below(state.prefix(), &state.at("")) {
        bail!(WrongUse(format!("the input \"{}\" lies in the state \"{uri}\"", file.path)));
    }
    if stores.lies_in(output, uri)? {
        bail!(WrongUse(format!("the output \"{output}\" lies in the state \"{uri}\"")));
    }
    if stores.lies_in(uri, output)? {
        bail!(WrongUse(format!("the state \"{uri}\" lies in the output \"{output}\"")));
    }
    Ok(())
}

/// Returns the documents with the id of a line. If none has it byte for byte, a CR at its end belongs to the line break.
fn docs_of_line(docs: &EarlierDocs, line: &str) -> Result<Vec<DocId>> {
    let of_line = docs.docs_of_id(line)?;
    if of_line.is_empty() && line.ends_with('\r') { docs.docs_of_id(without_cr(line)) } else { Ok(of_line) }
}

/// Returns the hash of the names, lengths and times of the input files, and of the withdrawn ids.
pub(super) fn hash_of_input(plan: &Plan, withdrawn: &[String]) -> Result<String> {
    let mut text = String::new();
    for file in &plan.files {
        writeln!(text, "{}\0{}\0{:?}", file.full_path(), file.bytes, file.version.modified)?;
    }
    withdrawn.iter().try_for_each(|line| writeln!(text, "-{}", without_cr(line)))?;
    Ok(format!("{:032x}", xxh3_128(text.as_bytes())))
}
