//! What one split leaves: its map output, the files of the output that it writes, and the manifest that names them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use cluster::Output;
use datasets::Parts;
use serde::{Deserialize, Serialize};

use crate::map_output::MapOutputs;

use super::{EARLIER, OutputFolder, PARTS, put, read};

/// What was written of a split.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct TaskManifest {
    /// The hash of what was decided for the split.
    pub decided: u64,
    pub kept: u64,
    pub removed: u64,
    pub rejected: u64,
    /// Its files in the output with their lengths in bytes.
    pub files: BTreeMap<String, u64>,
}

impl OutputFolder {
    /// Where the map outputs of the run are, and of one that it resumes.
    pub fn map_outputs(&self) -> MapOutputs {
        MapOutputs::new(Arc::clone(&self.store), self.temporary("map"))
    }

    fn task_path(&self, split: u32) -> String {
        self.temporary(&format!("tasks/{split:05}"))
    }

    /// Notes that all files of a split are written. Cost: what was written becomes durable first.
    pub fn task(&self, split: u32, task: &TaskManifest) -> Result<()> {
        self.still_owned()?;
        if !task.files.is_empty() {
            self.store.settle(&self.temporary(PARTS))?;
        }
        // One that is cut short is no JSON, and so none.
        Ok(put(self.store.as_ref(), &self.task_path(split), &serde_json::to_vec(task)?)?)
    }

    /// What a run that this one resumes has written of a split, if it had decided the same and its files are whole: they
    /// are in the output then. To be asked once for each split, before anything is written for it.
    pub fn finished_task(&self, split: u32, decided: u64) -> Result<Option<TaskManifest>> {
        let Some(task) = read(self.store.as_ref(), &self.task_path(split))? else { return Ok(None) };
        let task: Option<TaskManifest> = serde_json::from_slice(&task).ok();
        if let Some(task) = task.filter(|task| task.decided == decided)
            && self.adopt(&task.files)?
        {
            return Ok(Some(task));
        }
        self.store.remove(&self.task_path(split))?;
        Ok(None)
    }

    /// Moves files of the run before to those of this one, if all are there. Nothing else of it gets into the output.
    fn adopt(&self, files: &BTreeMap<String, u64>) -> Result<bool> {
        let earlier = |name| self.temporary(&format!("{EARLIER}/{name}"));
        for (name, bytes) in files {
            let file = match self.store.open(&earlier(name)) {
                Err(cluster::Error::NotFound { .. }) => return Ok(false),
                file => file?,
            };
            if file.bytes() != *bytes {
                return Ok(false);
            }
        }
        let folder =
            |name: &str| name.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
        for folder in files.keys().map(|name| folder(name)).collect::<BTreeSet<_>>() {
            self.store.create_dir(&self.temporary(&format!("{PARTS}/{folder}")))?;
        }
        for name in files.keys() {
            self.store.rename(&earlier(name), &self.temporary(&format!("{PARTS}/{name}")))?;
        }
        Ok(true)
    }
}

/// Finished files and their lengths.
type Files = Arc<Mutex<BTreeMap<String, u64>>>;

/// The parts that one split writes, named after it: `part-00012.jsonl`, and `part-00012-1.jsonl` if there
/// must be a second.
pub(crate) struct SplitParts<'a> {
    folder: &'a OutputFolder,
    split: u32,
    written: RefCell<HashMap<String, u32>>,
    files: Files,
}

impl<'a> SplitParts<'a> {
    pub fn new(folder: &'a OutputFolder, split: u32) -> Self {
        SplitParts { folder, split, written: RefCell::default(), files: Files::default() }
    }

    /// Those that were finished, with their lengths in bytes.
    pub fn files(&self) -> BTreeMap<String, u64> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn create(&self, name: String) -> Result<Box<dyn Output>, datasets::Error> {
        let file = self.folder.file(&name)?;
        Ok(Box::new(Part { name, bytes: 0, file, files: Arc::clone(&self.files) }))
    }
}

impl Parts for SplitParts<'_> {
    fn part(&self, folder: &str, extension: &str) -> Result<Box<dyn Output>, datasets::Error> {
        let mut written = self.written.borrow_mut();
        let count = written.entry(format!("{folder}/{extension}")).or_default();
        let again = if *count == 0 { String::new() } else { format!("-{count}") };
        *count += 1;
        self.create(format!("{folder}/part-{:05}{again}{extension}", self.split))
    }

    fn named(&self, folder: &str, name: &str) -> Result<Box<dyn Output>, datasets::Error> {
        self.create(format!("{folder}/{name}"))
    }
}

/// A part being written, which is counted once it is finished.
struct Part {
    name: String,
    bytes: u64,
    file: Box<dyn Output>,
    files: Files,
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Output for Part {
    fn finish(self: Box<Self>) -> Result<(), cluster::Error> {
        self.file.finish()?;
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(self.name, self.bytes);
        Ok(())
    }
}
