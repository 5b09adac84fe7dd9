//! Changes of what runs share, which only the owner of a lock can make.
//!
//! An owner may fall asleep between its look at the lock and a change, and wake when another run has taken over and
//! ended. So a look alone keeps nobody from harm. On a file system each change is a rename from or into the folder of the
//! owner's run, and whoever takes over renames that folder first: a change that comes late finds no folder, and fails. In a
//! bucket, a change depends on what the owner has seen: the file does not exist, or has a certain tag.
//!
//! ```text
//! A writes _temporary/00000001-a/new, looks at the lock, and falls asleep
//! B takes lock 2, renames _temporary/00000001-a and removes it, makes its change, and gives the lock back
//! A wakes and renames _temporary/00000001-a/new, which does not exist, and ends with an error
//! ```

use anyhow::Result;
use cluster::{Showing, Store};

use super::by_rename::vanish;
use super::lock::{Lock, numbers, paths};
use crate::corpus::output_layout::{LOCK, is_of_run};
use crate::output::requests::{put, read};

impl Lock {
    /// Returns the folder that is for this run alone.
    pub fn own(&self) -> String {
        format!("{}/{}", self.place().0, self.run())
    }

    /// Returns the part of the name of this run's folder that no other run has.
    pub fn unique(&self) -> &str {
        self.run().rsplit('-').next().unwrap_or_default()
    }

    /// Removes the folders of all other runs, for owners that go on with none of them. From then on no earlier owner can
    /// change anything by [`Lock::create`], [`Lock::replace`] and [`Lock::discard`].
    pub fn fence(&self) -> Result<()> {
        let (folder, _) = self.place();
        other_runs(self.store().as_ref(), folder, &self.own())?
            .iter()
            .try_for_each(|run| self.remove_run(run))
    }

    /// Removes the folder of another run.
    pub(super) fn remove_run(&self, other: &str) -> Result<()> {
        let store = self.store();
        let Showing::Rename(renamer) = store.showing() else { return Ok(store.remove(other)?) };
        // The owner may only be asleep and write there during the removal, so the folder is renamed first.
        let gone = format!("{}/gone", self.own());
        store.remove(&gone)?;
        store.create_dir(&self.own())?;
        match renamer.rename(other, &gone) {
            Err(_) if !store.exists(other)? => return Ok(()),
            renamed => renamed?,
        }
        Ok(store.remove(&gone)?)
    }

    /// Creates a small file if nothing has that name, and returns whether it did. The folder above it must exist. A
    /// caller that gets false may find its own `contents` there, if the answer to an earlier attempt was lost.
    ///
    /// # Errors
    /// When another run has taken over; those of the store.
    pub fn create(&self, path: &str, contents: &[u8]) -> Result<bool> {
        let store = self.store().as_ref();
        let Showing::Rename(renamer) = store.showing() else {
            self.check()?;
            return Ok(store.create_new(path, contents)?);
        };
        let new = self.write_own(contents).map_err(|error| self.reason(error))?;
        match renamer.rename(&new, path) {
            Err(_) if store.exists(path)? => Ok(false),
            renamed => renamed.map(|()| true).map_err(|error| self.reason(error.into())),
        }
    }

    /// Changes the contents of a small file in one step. `change` gets those that it has, if it exists.
    ///
    /// # Errors
    /// When another run has taken over, or has changed the file meanwhile; those of the store and of `change`.
    pub fn replace(&self, path: &str, change: impl FnOnce(Option<Vec<u8>>) -> Result<Vec<u8>>) -> Result<()> {
        let store = self.store().as_ref();
        match store.showing() {
            Showing::Rename(renamer) => {
                let new = self.write_own(&change(read(store, path)?)?).map_err(|error| self.reason(error))?;
                renamer.rename_over(&new, path).map_err(|error| self.reason(error.into()))
            }
            Showing::Uploads(uploads) => {
                let tag = uploads.tag(path)?;
                let contents = change(read(store, path)?)?;
                self.check()?;
                Ok(uploads.write(path, &contents, tag.as_deref())?)
            }
        }
    }

    /// Returns the path at which a large file is written that is to be at `path`: in the folder of this run, or in a bucket
    /// `path` itself, where a file is seen when it is finished.
    pub fn aside(&self, path: &str) -> String {
        match self.store().showing() {
            Showing::Rename(_) => format!("{}/{}", self.own(), path.rsplit('/').next().unwrap_or_default()),
            Showing::Uploads(_) => path.to_owned(),
        }
    }

    /// Moves a finished file from where [`Lock::aside`] says to its path, in the place of one that is there.
    ///
    /// # Errors
    /// When another run has taken over; those of the store.
    pub fn show(&self, aside: &str, path: &str) -> Result<()> {
        let Showing::Rename(renamer) = self.store().showing() else { return Ok(()) };
        self.check()?;
        renamer.rename_over(aside, path).map_err(|error| self.reason(error.into()))
    }

    /// Returns the reason for a failure: if another run has taken over, that is the reason, since it moves or removes the
    /// files of this run.
    pub fn reason(&self, error: anyhow::Error) -> anyhow::Error {
        match self.check() {
            Err(taken) if self.is_lost() => taken,
            _ => error,
        }
    }

    /// Writes a durable file into the folder of this run, looks at the lock, and returns the path.
    fn write_own(&self, contents: &[u8]) -> Result<String> {
        let store = self.store().as_ref();
        let new = format!("{}/new", self.own());
        put(store, &new, contents)?;
        store.settle(&new)?;
        self.check()?;
        Ok(new)
    }

    /// Removes files, such as locks and beats. The numbers of locks are used again, and an owner that was asleep must not
    /// remove the lock of another run.
    pub fn discard(&self, paths: &[String]) -> Result<()> {
        let (store, own) = (self.store(), self.own());
        let Showing::Rename(renamer) = store.showing() else {
            return Ok(paths.iter().try_for_each(|path| store.remove(path))?);
        };
        let aside = format!("{own}/discarded");
        // The folder is made before the lock is looked at: a run that takes over later removes or renames it.
        store.create_dir(&own)?;
        self.check()?;
        for path in paths {
            if store.exists(path)? {
                store.remove(&aside)?;
                renamer.rename(path, &aside)?;
            }
        }
        Ok(store.remove(&aside)?)
    }

    /// Returns the paths of this lock and of its beat, the lock last.
    pub fn paths(&self) -> [String; 2] {
        let (folder, number) = self.place();
        paths(folder, number)
    }

    /// Returns the paths of all earlier locks and beats. Before them come those of locks and beats that were
    /// being written when their run died, to which the store of this machine gives hidden names.
    pub fn earlier_paths(&self) -> Result<Vec<String>, cluster::Error> {
        let store = self.store();
        let (folder, number) = self.place();
        let earlier = numbers(store.as_ref(), folder)?.into_iter().filter(|&earlier| earlier < number);
        let earlier: Vec<String> = earlier.flat_map(|earlier| paths(folder, earlier)).collect();
        if earlier.is_empty() {
            return Ok(earlier);
        }
        let of_earlier = |path: &str| {
            let name = path.strip_prefix(folder)?.strip_prefix("/.")?.strip_prefix(LOCK)?;
            name.get(..8)?.parse().ok().filter(|&earlier: &u64| earlier < number)
        };
        let everything = store.everything(folder)?.into_iter().map(|entry| entry.path);
        let unfinished = everything.filter(|path| of_earlier(path).is_some());
        Ok(unfinished.chain(earlier).collect())
    }

    /// Gives the lock back, with what is left of earlier ones. For owners whose folder of the run holds nothing that another
    /// run goes on with.
    ///
    /// # Errors
    /// When another run has taken over; those of the store.
    pub fn release(&self) -> Result<()> {
        self.stop();
        if let Err(error) = self.check() {
            if self.is_lost() {
                // Only the first error is reported.
                drop(vanish(self.store().as_ref(), &self.own()));
            }
            return Err(error);
        }
        let paths: Vec<String> = self.earlier_paths()?.into_iter().chain(self.paths()).collect();
        self.discard(&paths).map_err(|error| self.reason(error))?;
        self.store().remove(&self.own())?;
        match self.store().showing() {
            Showing::Rename(renamer) => Ok(renamer.remove_empty(self.place().0)?),
            Showing::Uploads(_) => Ok(()),
        }
    }
}

/// Returns the folders of the runs in `folder` but `own`, the earliest first. What else lies there is of another program.
pub(super) fn other_runs(store: &dyn Store, folder: &str, own: &str) -> Result<Vec<String>> {
    let directories =
        store.children(folder)?.into_iter().filter(|child| child.directory && is_of_run(&child.path));
    let mut runs: Vec<_> = directories
        .map(|child| child.path.trim_end_matches('/').to_owned())
        .filter(|run| run != own)
        .collect();
    runs.sort();
    Ok(runs)
}
