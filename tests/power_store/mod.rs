//! A file system in memory that loses what was not settled when its power goes.
//!
//! It keeps what is live apart from what is durable. Each change of a name and each content of a file is one
//! step that may survive by itself: a name without its content is an empty file or one of zeros, and a later
//! rename may survive an earlier one.
//!
//! ```text
//! write /a            live: /a holds "x"       steps: name /a, length 1, content "x"
//! rename /a to /b     live: /b holds "x"       steps: ..., name /b
//! the power goes      durable: any of nothing, /a or /b; the file is empty, one zero byte or "x"
//! settle /b instead   durable: /b holds "x", whatever happens then
//! ```

#![allow(dead_code, unused_imports, reason = "not all tests use all of it")]

mod content;
mod names;
mod output;
mod pause;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use cluster::{Blob, Entry, Error, Output, Rename, Showing, Store};
use parking_lot::Mutex;

use self::names::{Id, Names, Step};
use self::output::PowerOutput;

pub use self::content::Content;
pub use self::pause::Pause;

/// Files of a folder, by their paths below it.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Disk with its power supply.
#[derive(Default)]
struct Disk {
    live: Names,
    durable: Names,
    steps: Vec<Step>,
    directories: BTreeSet<Id>,
    next: Id,
    /// Number of changes until the power goes; `None` if it stays.
    left: Option<u64>,
    changes: u64,
}

/// File system whose disk is shared by its clones. A clone may pause before one of its steps.
#[derive(Clone)]
pub struct PowerStore(Arc<Mutex<Disk>>, Option<Arc<Pause>>);

impl Disk {
    /// Makes one change, unless there is no power.
    fn change(&mut self, step: Step) -> Result<(), Error> {
        self.power()?;
        self.live.apply(&step);
        self.steps.push(step);
        Ok(())
    }

    /// Counts one change, and returns an error if the power is out.
    fn power(&mut self) -> Result<(), Error> {
        self.changes += 1;
        match &mut self.left {
            Some(0) => Err(Error::io("/", "write", io::Error::other("the power is out"))),
            left => {
                *left = left.map(|left| left - 1);
                Ok(())
            }
        }
    }

    fn is_directory(&self, id: Id) -> bool {
        self.live.entries.contains_key(&id)
    }

    fn new_id(&mut self) -> Id {
        self.next += 1;
        self.next
    }

    /// Returns the directory of a path, which is made if it is missing, and the last name of the path.
    fn directory(&mut self, path: &str) -> Result<(Id, String), Error> {
        let mut names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        let last = names.pop().unwrap_or_default().to_owned();
        let mut at = 0;
        for name in names {
            at = match self.live.entries.get(&at).and_then(|names| names.get(name)) {
                Some(id) => *id,
                None => {
                    let id = self.new_id();
                    self.change(Step::Entry {
                        directory: at,
                        name: name.to_owned(),
                        to: Some(id),
                        from: None,
                    })?;
                    self.live.entries.insert(id, BTreeMap::new());
                    self.directories.insert(id);
                    id
                }
            };
        }
        Ok((at, last))
    }

    /// Writes a file. `durably`: whether its content is durable before it has a name.
    fn write(&mut self, path: &str, bytes: &[u8], durably: bool) -> Result<(), Error> {
        let (directory, name) = self.directory(path)?;
        let file = self.new_id();
        if durably {
            self.power()?;
            let content = Step::Content { file, bytes: bytes.into() };
            self.live.apply(&content);
            self.durable.apply(&content);
            return self.change(Step::Entry { directory, name, to: Some(file), from: None });
        }
        // The name may survive without the content.
        self.live.contents.insert(file, Arc::new([]));
        self.change(Step::Entry { directory, name, to: Some(file), from: None })?;
        // The length may survive too: the file system knows it before the bytes are on the disk.
        self.steps.push(Step::Length { file, bytes: bytes.len() });
        self.change(Step::Content { file, bytes: bytes.into() })
    }

    fn remove(&mut self, path: &str) -> Result<(), Error> {
        let Some(id) = self.live.find(path) else { return Ok(()) };
        let names: Vec<String> =
            self.live.entries.get(&id).into_iter().flatten().map(|(name, _)| name.clone()).collect();
        for name in names {
            self.remove(&format!("{path}/{name}"))?;
        }
        let (directory, name) = self.directory(path)?;
        self.change(Step::Entry { directory, name, to: None, from: Some(id) })
    }
}

impl PowerStore {
    pub fn new() -> Self {
        let mut disk = Disk::default();
        disk.live.entries.insert(0, BTreeMap::new());
        disk.durable = disk.live.clone();
        PowerStore(Arc::new(Mutex::new(disk)), None)
    }

    /// Returns the same disk, for a process that falls asleep.
    pub fn pausing(&self, pause: Pause) -> Self {
        PowerStore(Arc::clone(&self.0), Some(Arc::new(pause)))
    }

    /// Sleeps if the pause says so. Must be called before each step that changes something.
    fn step(&self) {
        self.1.iter().for_each(|pause| pause.step("step"));
    }

    /// Writes a file, as the outputs of this store do.
    pub(super) fn write(&self, path: &str, bytes: &[u8], durably: bool) -> Result<(), Error> {
        self.step();
        self.0.lock().write(path, bytes, durably)
    }

    /// Returns the number of changes so far, with those that failed.
    pub fn changes(&self) -> u64 {
        self.0.lock().changes
    }

    /// Turns the power off after `changes` more changes.
    pub fn fail_after(&self, changes: u64) {
        self.0.lock().left = Some(changes);
    }

    /// Turns the power on again. There is then all that was settled, and of the other steps those for which
    /// `survives` is true. `survives` is told whether the step is the content of a file.
    pub fn restart(&self, mut survives: impl FnMut(bool) -> bool) {
        let disk = &mut *self.0.lock();
        for step in std::mem::take(&mut disk.steps) {
            if survives(matches!(step, Step::Content { .. })) {
                disk.durable.apply(&step);
            }
        }
        disk.left = None;
        disk.live = disk.durable.clone();
        let ids: Vec<Id> = disk.live.entries.values().flat_map(|names| names.values().copied()).collect();
        for id in ids {
            // A directory with a name exists, even if empty, and so does a file whose content is lost.
            if disk.directories.contains(&id) {
                disk.live.entries.entry(id).or_default();
            } else {
                disk.live.contents.entry(id).or_insert_with(|| Arc::new([]));
            }
        }
    }

    fn move_to(&self, from: &str, to: &str, replaces: bool) -> Result<(), Error> {
        self.step();
        let mut disk = self.0.lock();
        let above = disk.live.find(to.rsplit_once('/').map_or("", |(above, _)| above));
        let id = disk.live.find(from).filter(|_| above.is_some());
        let id = id.ok_or_else(|| Error::NotFound { path: from.to_owned() })?;
        if !replaces && disk.live.find(to).is_some() {
            return Err(Error::io(to, "rename to", io::ErrorKind::AlreadyExists.into()));
        }
        let (directory, name) = disk.directory(to)?;
        disk.change(Step::Entry { directory, name, to: Some(id), from: None })
    }

    /// Returns every file below a path, with hidden ones.
    pub fn files(&self, path: &str) -> Files {
        fn collect(disk: &Disk, id: Id, path: String, files: &mut Files) {
            match disk.live.entries.get(&id) {
                Some(names) => {
                    names.iter().for_each(|(name, id)| collect(disk, *id, format!("{path}/{name}"), files))
                }
                None => drop(files.insert(path, disk.live.contents[&id].to_vec())),
            }
        }
        let disk = self.0.lock();
        let mut files = BTreeMap::new();
        disk.live.find(path).into_iter().for_each(|id| collect(&disk, id, String::new(), &mut files));
        files
    }
}

impl Store for PowerStore {
    fn prefix(&self) -> &str {
        ""
    }

    fn open(&self, path: &str) -> Result<Arc<dyn Blob>, Error> {
        let disk = self.0.lock();
        let contents = disk.live.find(path).and_then(|id| disk.live.contents.get(&id));
        let contents = contents.ok_or_else(|| Error::NotFound { path: path.to_owned() })?;
        Ok(Arc::new(Content(path.to_owned(), Arc::clone(contents))))
    }

    fn children_and_hidden(&self, path: &str, hidden: &mut Vec<String>) -> Result<Vec<Entry>, Error> {
        let disk = self.0.lock();
        let child = |path: String, id: Id| Entry {
            path,
            bytes: disk.live.contents.get(&id).map_or(0, |bytes| bytes.len() as u64),
            version: Default::default(),
            directory: disk.is_directory(id),
        };
        let id = disk.live.find(path).ok_or_else(|| Error::NotFound { path: path.to_owned() })?;
        let Some(names) = disk.live.entries.get(&id) else { return Ok(vec![child(path.to_owned(), id)]) };
        let is_hidden = |(name, _): &(&String, &Id)| name.starts_with(['_', '.']);
        let (unseen, seen): (Vec<_>, Vec<_>) = names.iter().partition(is_hidden);
        hidden.extend(unseen.into_iter().map(|(name, _)| format!("{path}/{name}")));
        Ok(seen.into_iter().map(|(name, id)| child(format!("{path}/{name}"), *id)).collect())
    }

    fn create(&self, path: &str) -> Result<Box<dyn Output>, Error> {
        Ok(Box::new(PowerOutput { store: self.clone(), path: path.to_owned(), bytes: Vec::new() }))
    }

    fn create_new(&self, path: &str, contents: &[u8]) -> Result<bool, Error> {
        self.step();
        let mut disk = self.0.lock();
        if disk.live.find(path).is_some() {
            return Ok(false);
        }
        disk.write(path, contents, false).map(|()| true)
    }

    fn create_dir(&self, path: &str) -> Result<(), Error> {
        self.step();
        self.0.lock().directory(&format!("{path}/x")).map(|_| ())
    }

    fn exists(&self, path: &str) -> Result<bool, Error> {
        Ok(self.0.lock().live.find(path).is_some())
    }

    fn remove(&self, path: &str) -> Result<(), Error> {
        self.step();
        self.0.lock().remove(path)
    }

    fn everything(&self, path: &str) -> Result<Vec<Entry>, Error> {
        let files = self.files(path).into_iter();
        let entry = |(name, contents): (String, Vec<u8>)| Entry {
            path: format!("{path}{name}"),
            bytes: contents.len() as u64,
            ..Entry::default()
        };
        Ok(files.map(entry).collect())
    }

    fn showing(&self) -> Showing<'_> {
        Showing::Rename(self)
    }

    /// Makes durable no more than a store must: names in directories at or below the path, the names that
    /// lead to the path, and contents at or below it.
    fn settle(&self, path: &str) -> Result<(), Error> {
        let disk = &mut *self.0.lock();
        disk.power()?;
        let id = disk.live.find(path).ok_or_else(|| Error::NotFound { path: path.to_owned() })?;
        let mut settled = BTreeSet::new();
        disk.live.below(id, &mut settled);
        let mut above = vec![0];
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let at = above.last().and_then(|at| disk.live.entries.get(at)?.get(name).copied());
            above.extend(at);
        }
        for step in std::mem::take(&mut disk.steps) {
            let is_settled = match &step {
                Step::Entry { directory, to, .. } => {
                    settled.contains(directory) || to.is_some_and(|to| above.contains(&to))
                }
                Step::Length { file, .. } | Step::Content { file, .. } => settled.contains(file),
            };
            if is_settled {
                disk.durable.apply(&step);
                if let Step::Entry { to: Some(id), .. } = step {
                    // Its earlier names can no longer come back.
                    disk.steps.retain(|step| !matches!(step, Step::Entry { to, .. } if *to == Some(id)));
                }
            } else {
                disk.steps.push(step);
            }
        }
        Ok(())
    }
}

impl Rename for PowerStore {
    fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        self.move_to(from, to, false)
    }

    fn rename_over(&self, from: &str, to: &str) -> Result<(), Error> {
        self.move_to(from, to, true)
    }

    fn remove_empty(&self, path: &str) -> Result<(), Error> {
        self.step();
        let mut disk = self.0.lock();
        let id = disk.live.find(path);
        match id.and_then(|id| disk.live.entries.get(&id)).is_some_and(BTreeMap::is_empty) {
            true => disk.remove(path),
            false => Ok(()),
        }
    }
}
