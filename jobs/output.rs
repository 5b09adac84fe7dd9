//! The output folder: everything under `_temporary`, moved last, `_SUCCESS` after that.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow, bail};
use cluster::{Output, Store, Stores};
use datasets::Parts;

use crate::WrongUse;
use crate::failure::while_running;
use crate::plan::Plan;
use crate::progress::Progress;

/// The folders of an output, in the order in which they become visible.
const FOLDERS: [&str; 9] =
    ["rejects", "labels", "statistics", "clusters", "pairs", "removed", "kept", "packed", "unpacked"];
const SUCCESS: &str = "_SUCCESS";
/// Gone when another run has cleared `_temporary`.
const OWNER: &str = "_owner";

/// An output folder that is not yet committed.
pub(crate) struct OutputFolder {
    store: Arc<dyn Store>,
    path: String,
    /// The name of this run's own folder in `_temporary`: another run in the same output cannot mix with it.
    run: String,
}

impl OutputFolder {
    /// Claims the folder, and lets `work` fill and commit it. What fails is abandoned.
    pub fn fill<T>(
        stores: &Stores,
        uri: &str,
        overwrite: bool,
        plan: &Plan,
        work: impl FnOnce(&OutputFolder) -> Result<T>,
    ) -> Result<T> {
        let folder = OutputFolder::create(stores, uri, overwrite, plan)?;
        let result = work(&folder);
        if result.is_err() {
            // The first error is the one to report.
            folder.abandon();
        }
        result.map_err(while_running)
    }

    /// Claims the folder. What a killed run left in `_temporary` is removed; a finished output, or anything
    /// else that is there, is refused unless `overwrite`; an input inside it always.
    fn create(stores: &Stores, uri: &str, overwrite: bool, plan: &Plan) -> Result<Self> {
        let (store, path) = stores.locate(uri)?;
        let path = path.trim_end_matches('/').to_owned();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let run = format!("{}-{}", std::process::id(), since_1970.as_nanos());
        let folder = OutputFolder { store, path, run };
        if folder.store.exists(&folder.path)? {
            let finished = folder.store.exists(&folder.at(SUCCESS))?;
            let files = folder.store.list(&folder.path)?;
            if files.first().is_some_and(|file| file.path == folder.path) {
                bail!(WrongUse(format!("the output \"{uri}\" is a file")));
            }
            if !overwrite && (finished || !files.is_empty()) {
                bail!(WrongUse(format!("the output \"{uri}\" exists; --overwrite replaces it")));
            }
        }
        // It must be there for its name to be told from others that lead to it.
        folder.store.create_dir(&folder.path)?;
        if let Some(file) = plan.file_below(folder.store.prefix(), &folder.path) {
            bail!(WrongUse(format!("the input \"{}\" lies in the output \"{uri}\"", file.path)));
        }
        folder.store.remove(&folder.at("_temporary"))?;
        let claimed = folder.file(OWNER).and_then(|owner| owner.finish());
        claimed.map_err(|error| anyhow!("could not claim the output \"{uri}\": {error}"))?;
        Ok(folder)
    }

    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    fn temporary(&self, name: &str) -> String {
        format!("{}/_temporary/{}/{name}", self.path, self.run)
    }

    /// Creates a file that the commit will move to `name`.
    pub fn file(&self, name: &str) -> Result<Box<dyn Output>, cluster::Error> {
        self.store.create(&self.temporary(name))
    }

    /// Makes the output visible: folder after folder, then `_SUCCESS` with `success` in it.
    pub fn commit(&self, success: &str, progress: &Progress) -> Result<()> {
        if !self.store.exists(&self.temporary(OWNER))? {
            bail!("another run has begun to write to \"{}\" meanwhile", self.path);
        }
        let mut file = self.file(SUCCESS)?;
        let written = file.write_all(success.as_bytes());
        written.map_err(|error| cluster::Error::io(&self.at(SUCCESS), "write", error))?;
        file.finish()?;
        self.store.settle(&self.path)?;
        self.store.remove(&self.at(SUCCESS))?;
        for folder in FOLDERS {
            self.store.remove(&self.at(folder))?;
        }
        for folder in FOLDERS {
            let finished = self.temporary(folder);
            if self.store.exists(&finished)? {
                self.store.rename(&finished, &self.at(folder))?;
            }
        }
        self.store.rename(&self.temporary(SUCCESS), &self.at(SUCCESS))?;
        // All is committed, whatever is left beside it.
        if let Err(error) = self.store.remove(&self.at("_temporary")) {
            progress.warn(&error.to_string());
        }
        Ok(())
    }

    /// Removes what this uncommitted run has written, as far as that is possible: whoever calls this has an error to
    /// report already.
    pub fn abandon(&self) {
        let removed = self.store.remove(&self.temporary(""));
        // In a bucket no folder is left for the others' to be looked for in, which is as good as an empty one.
        if removed.is_ok() && self.store.children(&self.at("_temporary")).is_ok_and(|left| left.is_empty()) {
            drop(self.store.remove(&self.at("_temporary")));
        }
    }
}

/// The parts that one split writes, named after it: `part-00012.jsonl`, and `part-00012-1.jsonl` if there
/// must be a second.
pub(crate) struct SplitParts<'a> {
    folder: &'a OutputFolder,
    split: u32,
    written: RefCell<HashMap<String, u32>>,
}

impl<'a> SplitParts<'a> {
    pub fn new(folder: &'a OutputFolder, split: u32) -> Self {
        SplitParts { folder, split, written: RefCell::default() }
    }
}

impl Parts for SplitParts<'_> {
    fn part(&self, folder: &str, extension: &str) -> Result<Box<dyn Output>, datasets::Error> {
        let mut written = self.written.borrow_mut();
        let count = written.entry(format!("{folder}/{extension}")).or_default();
        let again = if *count == 0 { String::new() } else { format!("-{count}") };
        *count += 1;
        Ok(self.folder.file(&format!("{folder}/part-{:05}{again}{extension}", self.split))?)
    }

    fn named(&self, folder: &str, name: &str) -> Result<Box<dyn Output>, datasets::Error> {
        Ok(self.folder.file(&format!("{folder}/{name}"))?)
    }
}
