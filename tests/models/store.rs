//! Puts, forgets and prunes of a store that have bad luck. Every snapshot is compared with a copy of what was put.

use std::fs;

use super::for_a_while;
use crate::chunk::store::{docx, restored, snapshots, stats};
use crate::faults::trouble::Trouble;
use crate::support::{Folder, Random, Run, Tree};

/// Number of operations with each seed.
const OPERATIONS: usize = 16;
/// Most snapshots that are kept.
const MOST_SNAPSHOTS: usize = 5;

/// A store, and what it must hold.
struct StoreModel {
    here: Folder,
    random: Random,
    trouble: Trouble,
    /// The snapshots in the order of puts, with the files of each.
    known: Vec<(String, Tree)>,
    /// All that was done, for the message of a failure.
    steps: String,
}

impl StoreModel {
    fn new(seed: u64) -> Self {
        let here = Folder::new();
        here.write("in/first", "first");
        StoreModel {
            here,
            random: Random(seed),
            trouble: Trouble::new(seed),
            known: Vec::new(),
            steps: format!("seed {seed}"),
        }
    }

    fn run(mut self) -> Trouble {
        for _ in 0..OPERATIONS {
            match self.random.below(8) {
                0 | 1 if !self.known.is_empty() => self.change("chunk prune store"),
                2 if self.known.len() > 1 => drop(self.forget()),
                _ if self.known.len() >= MOST_SNAPSHOTS => self.keep_last(),
                3 if !self.known.is_empty() => self.sleep(),
                _ => self.put(),
            }
        }
        self.look();
        self.here.run("chunk check store --read-data").ends(0);
        self.known.iter().for_each(|known| self.is_restored(known));
        self.here.run("chunk forget store --keep-last 0").ends(0);
        self.here.run("chunk prune store").ends(0);
        assert_eq!(stats(&self.here, "store")["packs"], 0, "{}", self.steps);
        self.trouble
    }

    /// Changes some files of the folder `in`: documents, texts and bytes are written, changed, or removed.
    fn change_files(&mut self) {
        let (here, random) = (&self.here, &mut self.random);
        for _ in 0..1 + random.below(4) {
            let number = random.below(12);
            let name = format!("in/{}/{number}", number % 3);
            match random.below(6) {
                0 => drop(fs::remove_file(here.path(&name))),
                1 => here.write(&name, random.text(30_000)),
                2 => here.write(&name, random.bytes(100_000)),
                _ => {
                    // A version of a document that others share paragraphs with.
                    let mut texts: Vec<String> = (0..300).map(|line| Random(line).text(50)).collect();
                    let at = random.below(300);
                    texts[at] = random.text(50);
                    here.write(&name, docx(&texts[random.below(200)..]));
                }
            }
        }
    }

    /// Returns the files of the folder `in` under the names that a snapshot gives them.
    fn files(&self) -> Tree {
        self.here.contents("in").into_iter().map(|(name, bytes)| (format!("in/{name}"), bytes)).collect()
    }

    fn put(&mut self) {
        self.change_files();
        self.change("chunk put store in");
        let files = self.files();
        assert!(self.known.iter().any(|known| known.1 == files), "{}", self.steps);
    }

    /// Forgets a snapshot, and returns its name.
    fn forget(&mut self) -> String {
        let (name, _) = self.known.remove(self.random.below(self.known.len()));
        self.change(&format!("chunk forget store {name}"));
        name
    }

    /// Forgets all but the last snapshots, in the order of puts.
    fn keep_last(&mut self) {
        let kept = 1 + self.random.below(3);
        self.known.drain(..self.known.len() - kept);
        self.change(&format!("chunk forget store --keep-last {kept}"));
    }

    /// Runs a command that may die or sleep, and looks at the store.
    fn change(&mut self, line: &str) {
        self.steps += &format!("\n{line}");
        let Run { code, stdout, stderr } = self.trouble.run(&self.here, line);
        // A forget that died may have forgotten its snapshot already.
        let is_done = line.starts_with("chunk forget") && stderr.contains("no snapshot");
        assert!(code == Some(0) || is_done, "{}\n{stdout}\n{stderr}", self.steps);
        self.look();
    }

    /// Lets a put fall asleep, and wakes it when others have changed the store.
    fn sleep(&mut self) {
        self.change_files();
        let line = "chunk put store in";
        self.steps += &format!("\nasleep: {line}");
        let asleep = self.trouble.fall_asleep(&self.here, line);
        let mut forgotten = Vec::new();
        let ended = match asleep {
            Err(ended) => ended,
            Ok(asleep) => {
                self.look();
                for _ in 0..1 + self.random.below(3) {
                    match self.random.below(3) {
                        0 if self.known.len() > 1 => forgotten.push(self.forget()),
                        _ => self.change("chunk prune store"),
                    }
                }
                asleep.wake()
            }
        };
        self.steps += &format!("\nawake: {ended:?}");
        self.look();
        let files = self.files();
        let is_there = self.known.iter().any(|known| known.1 == files);
        // It may have fallen asleep when its snapshot was there, which was forgotten then.
        let is_forgotten = forgotten.iter().any(|name| ended.stdout.contains(name));
        assert!(ended.code != Some(0) || is_there || is_forgotten, "{}", self.steps);
    }

    /// Checks that the store has the snapshots that it must have, and takes in those of a put that has just run.
    fn look(&mut self) {
        let listed = snapshots(&self.here);
        let files = self.files();
        for name in &listed[self.known.len().min(listed.len())..] {
            self.known.push((name.clone(), files.clone()));
            self.is_restored(&self.known[self.known.len() - 1]);
        }
        let known: Vec<&String> = self.known.iter().map(|known| &known.0).collect();
        assert_eq!(listed.iter().collect::<Vec<_>>(), known, "{}", self.steps);
        if let Some(known) = self.known.get(self.random.below(self.known.len())) {
            self.is_restored(known);
        }
        self.here.run("chunk check store").ends(0);
    }

    fn is_restored(&self, (name, files): &(String, Tree)) {
        assert!(restored(&self.here, "store", name) == *files, "{name} is another one: {}", self.steps);
    }
}

#[test]
fn every_snapshot_survives_bad_luck() {
    for_a_while(|seed| StoreModel::new(seed).run().counts);
}
