//! The files of one split: its map output, its files in the output, and the task manifest that names these.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::sync::Arc;

use anyhow::Result;
use cluster::{NameBelow, Output, Rename, Showing, Store, TablePartition, UploadOutput};
use datasets::{PartOutput, Parts};

use super::bundles::{Bundles, SMALL_BYTES};
use super::by_upload;
use super::output_folder::OutputFolder;
use super::run_folder::{EARLIER, PARTS};
use crate::output::files::{FileList, OutputFile, SharedFiles};
use crate::output::manifests::TaskManifest;
use crate::output::map_output::MapOutputs;
use crate::output::requests::{put, read};

impl OutputFolder {
    /// Returns the map outputs of this run, and of the run that it resumes.
    pub fn map_outputs(&self) -> MapOutputs {
        self.run.map_outputs()
    }

    fn task_path(&self, split: u32) -> String {
        self.run.temporary(&format!("tasks/{split:05}"))
    }

    /// Notes that all files of a split are written. Cost: on a file system these files become durable first.
    /// In a store of uploads the note may be held until a split finishes a second later, or until
    /// [`OutputFolder::write_held`].
    pub fn task(&self, split: u32, task: &TaskManifest) -> Result<()> {
        self.run.still_owned()?;
        if let Showing::Uploads(_) = self.run.store.showing() {
            return Ok(self.bundles.add_task(&self.run, split, task)?);
        }
        if !task.files.0.is_empty() {
            self.run.store.settle(&self.run.temporary(PARTS))?;
        }
        // A manifest that is cut short is not valid JSON, so it counts as absent.
        Ok(put(self.run.store.as_ref(), &self.task_path(split), &serde_json::to_vec(task)?)?)
    }

    /// Writes the small files and task manifests that this process still holds. Must be called when all of
    /// its splits are written.
    pub fn write_held(&self) -> Result<(), cluster::Error> {
        self.bundles.write_all(&self.run)
    }

    /// Returns what the run that this one resumes has written of a split, if it had decided the same and all
    /// files are there. These files then belong to the output of this run.
    ///
    /// Must be called once for each split, before anything is written for it.
    pub fn finished_task(&self, split: u32, decided: u64) -> Result<Option<TaskManifest>> {
        let renamer = match self.run.store.showing() {
            Showing::Rename(renamer) => renamer,
            // Whether an upload still exists is known only when it is completed.
            Showing::Uploads(_) => return self.bundles.take_found(&self.run, split, decided),
        };
        let Some(task) = read(self.run.store.as_ref(), &self.task_path(split))? else { return Ok(None) };
        let task: Option<TaskManifest> = serde_json::from_slice(&task).ok();
        if let Some(task) = task.filter(|task| task.decided == decided)
            && self.adopt(renamer, &task.files)?
        {
            return Ok(Some(task));
        }
        self.run.store.remove(&self.task_path(split))?;
        Ok(None)
    }

    /// Moves files of an earlier run to those of this run, if all exist in their full lengths. Files that are
    /// not moved never get into the output.
    fn adopt(&self, renamer: &dyn Rename, files: &FileList) -> Result<bool> {
        let earlier = |name: &str| self.run.temporary(&format!("{EARLIER}/{name}"));
        for (name, OutputFile { bytes, .. }) in &files.0 {
            let file = match self.run.store.open(&earlier(name)) {
                Err(cluster::Error::NotFound { .. }) => return Ok(false),
                file => file?,
            };
            if file.bytes() != *bytes {
                return Ok(false);
            }
        }
        let folder =
            |name: &str| name.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
        for folder in files.0.keys().map(|name| folder(name)).collect::<BTreeSet<_>>() {
            self.run.store.create_dir(&self.run.temporary(&format!("{PARTS}/{folder}")))?;
        }
        for name in files.0.keys() {
            renamer.rename(&earlier(name), &self.run.temporary(&format!("{PARTS}/{name}")))?;
        }
        Ok(true)
    }

    /// Begins a file that the commit will show as `name`, and that is noted in `files` once it is finished.
    pub(super) fn part(
        &self,
        name: String,
        files: &SharedFiles,
    ) -> Result<Box<dyn PartOutput>, cluster::Error> {
        self.run.still_owned()?;
        NameBelow::new(&name)?;
        let target = match self.run.store.showing() {
            _ if self.rehearsal => Target::Nowhere,
            Showing::Rename(_) => {
                Target::Aside(self.run.store.create(&self.run.temporary(&format!("{PARTS}/{name}")))?)
            }
            Showing::Uploads(_) => {
                self.bundles.write_long(&self.run)?;
                let store = Arc::clone(&self.run.store);
                let bundles = Arc::clone(&self.bundles);
                let path = self.run.at(&name);
                let run = self.run.own.clone();
                Target::HeldPart(HeldPart { contents: Vec::new(), store, path, run, bundles })
            }
        };
        let hasher = blake3::Hasher::new();
        let files = Arc::clone(files);
        Ok(Box::new(OutputPart { name, bytes: 0, hasher: Box::new(hasher), target, files }))
    }
}

/// Parts that one split writes. They are named after the split: `part-00012.jsonl`, and `part-00012-1.jsonl`
/// if there must be a second. Those of a partition of a table lie in its folders: `kept/dt=2026-11-27/part-00012.parquet`.
pub struct SplitParts<'a> {
    folder: &'a OutputFolder,
    split: u32,
    partition: TablePartition<'a>,
    written: RefCell<HashMap<String, u32>>,
    files: SharedFiles,
    takes_rejected: bool,
}

impl<'a> SplitParts<'a> {
    /// Begins with no part. `split`: the number that the parts are named after.
    pub fn new(folder: &'a OutputFolder, split: u32, partition: TablePartition<'a>) -> Self {
        let (written, files) = Default::default();
        SplitParts { folder, split, partition, written, files, takes_rejected: false }
    }

    /// Returns the same parts. `takes_rejected`: whether rejected records are written, too.
    pub fn with_rejected(self, takes_rejected: bool) -> Self {
        SplitParts { takes_rejected, ..self }
    }

    /// Returns the files that were finished.
    pub fn files(&self) -> FileList {
        self.files.lock().clone()
    }
}

impl Parts for SplitParts<'_> {
    fn part(&self, folder: &str, extension: &str) -> Result<Box<dyn PartOutput>, datasets::Error> {
        let mut written = self.written.borrow_mut();
        let count = written.entry(format!("{folder}/{extension}")).or_default();
        let again = if *count == 0 { String::new() } else { format!("-{count}") };
        *count += 1;
        let stem = &self.folder.stem;
        let split = self.split - self.folder.run.splits.start;
        let folder = match (folder, self.partition.folders()) {
            ("kept" | "removed" | "annotated" | "rejected", folders) if !folders.is_empty() => {
                format!("{folder}/{folders}")
            }
            _ => folder.to_owned(),
        };
        let name = format!("{folder}/{stem}-{split:05}{again}{extension}");
        Ok(self.folder.part(name, &self.files)?)
    }

    fn named(&self, folder: &str, name: &str) -> Result<Box<dyn PartOutput>, datasets::Error> {
        Ok(self.folder.part(format!("{folder}/{name}"), &self.files)?)
    }

    fn takes_rejected(&self) -> bool {
        self.takes_rejected
    }
}

/// File of the output that is being written. It is noted once it is finished.
struct OutputPart {
    name: String,
    bytes: u64,
    // The hasher takes 2 KB, so it is on the heap.
    hasher: Box<blake3::Hasher>,
    target: Target,
    files: SharedFiles,
}

/// Destination of the bytes of a part.
enum Target {
    /// A file in the run's own folder, which the commit renames.
    Aside(Box<dyn Output>),
    /// Memory, as long as the file is small.
    HeldPart(HeldPart),
    /// An upload, which the commit completes.
    Upload(Box<dyn UploadOutput>),
    /// Nowhere, in a rehearsal.
    Nowhere,
}

/// File in a store of uploads that is small so far. Holds up to 256 KiB.
struct HeldPart {
    contents: Vec<u8>,
    store: Arc<dyn Store>,
    /// Path at which readers will see the file.
    path: String,
    /// Path of the folder of the run.
    run: String,
    bundles: Arc<Bundles>,
}

impl HeldPart {
    /// Begins an upload of the file when it is no longer small, with what was written so far.
    fn upload(&self) -> Result<Box<dyn UploadOutput>, cluster::Error> {
        let Showing::Uploads(uploads) = self.store.showing() else { unreachable!("nothing else is held") };
        let mut upload = by_upload::begin(self.store.as_ref(), uploads, &self.path, &self.run)?;
        let written = upload.write_all(&self.contents);
        written.map_err(|error| cluster::Error::io(&self.path, "write", error))?;
        Ok(upload)
    }
}

impl Write for OutputPart {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Target::HeldPart(held) = &self.target
            && held.contents.len() + bytes.len() > SMALL_BYTES
        {
            self.target = Target::Upload(held.upload()?);
        }
        let written = match &mut self.target {
            Target::Aside(file) => file.write(bytes)?,
            Target::HeldPart(held) => held.contents.write(bytes)?,
            Target::Upload(upload) => upload.write(bytes)?,
            Target::Nowhere => bytes.len(),
        };
        self.hasher.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::Aside(file) => file.flush(),
            Target::Upload(upload) => upload.flush(),
            Target::HeldPart(_) | Target::Nowhere => Ok(()),
        }
    }
}

impl PartOutput for OutputPart {
    fn finish(self: Box<Self>, records: u64) -> Result<(), cluster::Error> {
        let OutputPart { name, bytes, hasher, target, files } = *self;
        let (mut upload, mut place) = (None, None);
        match target {
            Target::Aside(file) => file.finish()?,
            Target::HeldPart(held) => place = Some(held.bundles.add(&held.contents)),
            Target::Upload(sent) => upload = Some(sent.finish()?),
            Target::Nowhere => {}
        }
        let file =
            OutputFile { bytes, records, blake3: hasher.finalize().to_hex().to_string(), upload, place };
        match files.lock().0.insert(name.clone(), file) {
            None => Ok(()),
            Some(_) => {
                let reason = "two files of the output would have this name".to_owned();
                Err(cluster::Error::BadName { name, reason })
            }
        }
    }
}
