//! Random sequences of nights, withdrawals, compactions, rollbacks and repeats, and the batch that each of them is
//! compared with.

use std::fmt::Write as _;

use super::ledger::{Ledger, Removals, export, is_sound, removals, removed_in};
use crate::faults::trouble::Trouble;
use crate::support::{Folder, Random};

/// Method as `nightly` and as `dedup` know it.
#[derive(Clone, Copy)]
pub struct Method {
    pub nightly: &'static str,
    pub batch: &'static str,
}

/// Documents of a state, and what is known about it without the state.
#[derive(Clone, Default)]
struct Corpus {
    docs: Vec<Doc>,
    ledger: Ledger,
    /// Decisions of one batch.
    batch: Removals,
}

#[derive(Clone)]
struct Doc {
    id: String,
    text: String,
    /// Number by which the policy `priority:n` compares it.
    number: i32,
    /// Number of its night.
    night: usize,
    withdrawn: bool,
}

impl Doc {
    fn line(&self) -> String {
        let Doc { id, text, number, .. } = self;
        format!("{{\"id\":\"{id}\",\"n\":{number},\"text\":\"{text}\"}}\n")
    }
}

/// A night that is done and not rolled back.
struct Done {
    number: usize,
    /// Arguments without the number of workers.
    line: String,
    code: i32,
    withdrawn: Vec<String>,
    after: Corpus,
    /// Whether the version is kept for a rollback.
    is_kept: bool,
}

pub struct Sequence {
    here: Folder,
    random: Random,
    method: Method,
    policy: &'static str,
    templates: Vec<String>,
    /// Numbers of new documents that a night may have, and of withdrawn ones.
    counts: [[usize; 5]; 2],
    corpus: Corpus,
    done: Vec<Done>,
    nights: usize,
    /// All that was done, for the message of a failure.
    steps: String,
    trouble: Option<Trouble>,
}

impl Sequence {
    pub fn new(method: Method, seed: u64) -> Self {
        let mut random = Random(seed);
        let policy = ["old-first", "longest", "newest", "priority:n"][random.below(4)];
        let count = [2, 4, 10][random.below(3)];
        let lengths: Vec<usize> = (0..count).map(|_| [6, 12, 25, 60, 90][random.below(5)]).collect();
        let templates = lengths.into_iter().map(|chars| random.text(chars)).collect();
        Sequence {
            here: Folder::new(),
            random,
            method,
            policy,
            templates,
            counts: [[0, 1, 3, 10, 40], [0, 0, 1, 1, 3]],
            corpus: Corpus::default(),
            done: Vec::new(),
            nights: 0,
            steps: format!("seed {seed}, {}, {policy}", method.nightly),
            trouble: None,
        }
    }

    /// Returns a sequence of which nearly all documents are of one family, so that very many share keys.
    pub fn of_family(method: Method, seed: u64) -> Self {
        let sequence = Sequence::new(method, seed);
        let template = Random(seed).text(90);
        Sequence { templates: vec![template], counts: [[1, 40, 120, 120, 200], [0, 0, 1, 8, 20]], ..sequence }
    }

    /// Returns a sequence whose runs have bad luck.
    pub fn under(trouble: Trouble, method: Method, seed: u64) -> Self {
        Sequence { trouble: Some(trouble), ..Sequence::new(method, seed) }
    }

    /// Takes the steps of the sequence, and looks at everything after each of them. Returns the bad luck that it has had.
    pub fn run(mut self) -> Option<Trouble> {
        for _ in 0..4 + self.random.below(6) {
            match self.random.below(12) {
                0 | 1 if !self.done.is_empty() => self.compact(),
                2 | 3 if !self.done.is_empty() => self.roll_back(),
                4 if !self.done.is_empty() => self.repeat(),
                _ => self.night(),
            }
        }
        self.trouble
    }

    /// Runs the program, which must end with this code.
    fn program(&mut self, line: &str, code: i32) {
        let (run, may_be_done) = match &mut self.trouble {
            Some(trouble) => (trouble.run(&self.here, line), true),
            None => (self.here.run(line), false),
        };
        // A night that is done already does not count its rejects again.
        let is_done = may_be_done && (run.code, code) == (Some(0), 3);
        assert!(run.code == Some(code) || is_done, "{}\n{line}\n{run:?}", self.steps);
    }

    fn workers(&mut self) -> usize {
        1 + self.random.below(4)
    }

    fn night(&mut self) {
        let number = self.nights;
        let workers = self.workers();
        let withdrawn = self.draw_withdrawn();
        let new = self.new_documents(&withdrawn);
        if new.is_empty() && withdrawn.is_empty() {
            return;
        }
        self.nights += 1;
        let split = ["", " --split-size 1K"][self.random.below(2)];
        let method = self.method.nightly;
        let policy = self.policy;
        let mut line = format!(
            "nightly --quiet --state state --output out{number} --method {method} --policy {policy}{split}"
        );
        let mut code = 0;
        if !withdrawn.is_empty() {
            self.here.write(&format!("withdrawn{number}.txt"), withdrawn.join("\n"));
            write!(line, " --retract withdrawn{number}.txt").unwrap();
        }
        if !new.is_empty() {
            let mut lines: String = new.iter().map(Doc::line).collect();
            if self.random.below(4) == 0 {
                lines.insert_str(0, "bad\n");
                code = 3;
            }
            self.here.write(&format!("in{number}.jsonl"), lines);
            write!(line, " in{number}.jsonl").unwrap();
        }
        write!(self.steps, "\nnight {number}: {} new, withdrawn {withdrawn:?}", new.len()).unwrap();
        self.program(&format!("{line} --workers {workers}"), code);

        let is_withdrawn = |doc: &&mut Doc| withdrawn.contains(&doc.id);
        self.corpus.docs.iter_mut().filter(is_withdrawn).for_each(|doc| doc.withdrawn = true);
        self.corpus.docs.extend(new);
        self.corpus.ledger.add(&self.here, &format!("out{number}"), &withdrawn);
        self.corpus.batch = self.batch();
        for (id, stays) in removed_in(&self.here, &format!("out{number}")) {
            let docs = || self.corpus.docs.iter();
            let text = docs().find(|doc| doc.id == id && doc.night == number).map(|doc| &doc.text);
            if docs().any(|doc| doc.night < number && Some(&doc.text) == text) {
                continue; // It goes for the document for which its text has gone.
            }
            assert_eq!(self.corpus.batch.get(&id), Some(&stays), "\"{id}\" of out{number}: {}", self.steps);
        }
        self.look();
        let after = self.corpus.clone();
        self.done.push(Done { number, line, code, withdrawn, after, is_kept: true });
    }

    /// Returns edited templates, edited documents of before and of those that go, copies, and texts of their own.
    fn new_documents(&mut self, withdrawn: &[String]) -> Vec<Doc> {
        let count = self.counts[0][self.random.below(5)];
        let mut docs: Vec<Doc> = Vec::new();
        for number in 0..count {
            let before = self.corpus.docs.iter().chain(&docs).map(|doc| &doc.text);
            let before: Vec<&String> = before.collect();
            let going = self.corpus.docs.iter().filter(|doc| withdrawn.contains(&doc.id));
            let going: Vec<&String> = going.map(|doc| &doc.text).collect();
            let own = self.random.text(20);
            let base = match self.random.below(6) {
                0 if !before.is_empty() => before[self.random.below(before.len())],
                1 if !going.is_empty() => going[self.random.below(going.len())],
                2 => &own,
                _ => &self.templates[self.random.below(self.templates.len())],
            };
            let mut text: Vec<char> = base.chars().collect();
            for _ in 0..[0, 0, 0, 1, 1, 2, 4][self.random.below(7)] {
                let at = self.random.below(text.len());
                text[at] = self.random.text(1).chars().next().unwrap();
            }
            // An id that was withdrawn may come again.
            let is_free = |id: &String, docs: &[Doc]| {
                docs.iter().chain(&self.corpus.docs).all(|doc| doc.id != *id || doc.withdrawn)
            };
            let withdrawn: Vec<&Doc> = self.corpus.docs.iter().filter(|doc| doc.withdrawn).collect();
            let again = match self.random.below(8) {
                0 if !withdrawn.is_empty() => Some(withdrawn[self.random.below(withdrawn.len())].id.clone()),
                _ => None,
            };
            let id = again.filter(|id| is_free(id, &docs));
            let id = id.unwrap_or_else(|| format!("d{}-{number}", self.nights));
            let text = text.into_iter().collect();
            let number = self.random.below(5) as i32 - 2;
            docs.push(Doc { id, text, number, night: self.nights, withdrawn: false });
        }
        docs
    }

    /// Returns ids of some documents, which may be withdrawn already, and sometimes one of no document.
    fn draw_withdrawn(&mut self) -> Vec<String> {
        let count = self.counts[1][self.random.below(5)];
        let known = self.corpus.docs.len();
        let ids = (0..count).filter(|_| known > 0);
        let mut ids: Vec<String> =
            ids.map(|_| self.corpus.docs[self.random.below(known)].id.clone()).collect();
        if count > 0 && self.random.below(4) == 0 {
            ids.push(format!("unknown{}", self.nights));
        }
        ids
    }

    /// Returns what one `dedup` over the documents that are not withdrawn removes.
    fn batch(&mut self) -> Removals {
        let mut docs: Vec<&Doc> = self.corpus.docs.iter().filter(|doc| !doc.withdrawn).collect();
        if docs.is_empty() {
            return Removals::new();
        }
        if self.policy == "newest" {
            // Documents of one night stay in their order.
            docs.sort_by_key(|doc| std::cmp::Reverse(doc.night));
        }
        let lines: String = docs.into_iter().map(Doc::line).collect();
        self.here.write("all.jsonl", lines);
        let keep = match self.policy {
            "old-first" | "newest" => "first",
            policy => policy,
        };
        let method = self.method.batch;
        let line = format!("dedup all.jsonl batch --overwrite --quiet --method {method} --keep {keep}");
        self.program(&format!("{line} --resolve greedy --workers 2"), 0);
        removed_in(&self.here, "batch")
    }

    /// Checks that the outputs and the state say what the batch says.
    fn look(&mut self) {
        let (steps, corpus) = (&self.steps, &self.corpus);
        let expected: Vec<&String> = corpus.batch.keys().collect();
        assert_eq!(corpus.ledger.0.iter().collect::<Vec<_>>(), expected, "the outputs: {steps}");
        let documents = export(&self.here, "state");
        // A document keeps the name for which it has gone, even if one comes later that is more similar.
        let removed = removals(&documents);
        assert!(removed.keys().eq(corpus.batch.keys()), "the export: {steps}\n{removed:?}");
        let stays = |id: &String| documents.iter().any(|doc| doc.id == *id && doc.duplicate_of.is_none());
        assert!(removed.values().all(stays), "the names of the export: {steps}\n{removed:?}");
        let live = corpus.docs.iter().filter(|doc| !doc.withdrawn);
        let live: Vec<_> = live.map(|doc| (doc.id.clone(), format!("out{}", doc.night))).collect();
        let documents: Vec<_> = documents.into_iter().map(|doc| (doc.id, doc.night)).collect();
        assert_eq!(documents, live, "the documents of the export: {steps}");
        is_sound(&self.here, "state");
    }

    fn compact(&mut self) {
        self.steps += "\ncompact";
        self.program("nightly compact --state state --quiet", 0);
        if self.corpus.docs.iter().any(|doc| doc.withdrawn) {
            self.done.iter_mut().for_each(|done| done.is_kept = false);
            // The version that the compaction makes is the one after the last night.
            self.done.iter_mut().last().into_iter().for_each(|done| done.is_kept = true);
        }
        self.look();
        if self.random.below(3) == 0 {
            self.roll_back();
        }
    }

    fn roll_back(&mut self) {
        let at = self.random.below(self.done.len());
        let (to, is_kept) = (self.done[at].number, self.done[at].is_kept);
        write!(self.steps, "\nrollback to {to}").unwrap();
        self.program(
            &format!("nightly rollback --state state --to out{to} --quiet"),
            if is_kept { 0 } else { 2 },
        );
        if !is_kept {
            return self.look();
        }
        let mut undone = self.done.split_off(at + 1).into_iter();
        self.corpus = self.done[at].after.clone();
        self.look();
        // The next night finds the state that it has found before.
        if let Some(next) = undone.next().filter(|_| self.random.below(2) == 0) {
            write!(self.steps, "\nnight {} once more", next.number).unwrap();
            let workers = self.workers();
            self.program(&format!("{} --overwrite --workers {workers}", next.line), next.code);
            self.corpus = next.after.clone();
            self.look();
            self.done.push(Done { is_kept: true, ..next });
        }
    }

    /// Runs the same night again, which changes nothing. It is refused if a withdrawn id has come back since.
    fn repeat(&mut self) {
        let at = self.random.below(self.done.len());
        let workers = self.workers();
        write!(self.steps, "\nnight {} again", self.done[at].number).unwrap();
        let before = self.here.contents("state");
        let Done { line, number, withdrawn, .. } = &self.done[at];
        let later = self.corpus.docs.iter().filter(|doc| doc.night > *number && !doc.withdrawn);
        let is_back = later.into_iter().any(|doc| withdrawn.contains(&doc.id));
        let line = format!("{line} --workers {workers}");
        let code = if is_back { 2 } else { 0 };
        self.program(&line, code);
        if self.trouble.is_some() {
            // The next run removes what one has left that died or slept.
            self.here.run(&line).ends(code);
        }
        assert!(self.here.contents("state") == before, "the state has changed: {}", self.steps);
    }
}
