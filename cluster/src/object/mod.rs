//! Files in object stores: S3 and what speaks like it, Google Cloud Storage, Azure Blob Storage.
//!
//! There are no directories: a path is one if objects lie below it, and `/` separates names as elsewhere. An object is
//! seen whole or not at all, from the moment in which its writing ends.

mod blob;
mod connect;
mod failure;
mod shared;
mod upload;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use futures::StreamExt;
use futures::stream;
use object_store::path::Path;
use object_store::{ObjectMeta, PutMode, PutPayload};

use self::blob::Object;
use self::connect::Client;
use self::failure::Failure;
pub use self::shared::ObjectLimits;
use self::shared::{Shared, is_mark};
use self::upload::Upload;
use crate::store::{Blob, BlobReader, Child, Entry, Error, Output, Store, is_hidden};

/// How many objects one request may remove (S3: 1,000).
const REMOVED_AT_ONCE: usize = 1_000;
/// How many objects the service copies at a time: each takes it a while, and us nothing.
const COPIED_AT_ONCE: usize = 16;
/// How many are copied at a time through this machine, each with some 30 MiB of buffers.
const CARRIED_AT_ONCE: usize = 4;

/// One bucket of S3 or Google Cloud Storage, or one container of Azure.
///
/// Renaming is copying and removing, object by object: not atomic, and not for a reader that does not wait for a
/// `_SUCCESS`. Empty objects that end with `/`, with which some tools mark a directory, are listed as one that is empty;
/// nothing else sees them, and they stay where they are. Names that the
/// client library cannot express (control characters, nothing between two slashes, `.` and `..`) are
/// [`Error::BadName`].
pub struct Bucket {
    shared: Arc<Shared>,
}

impl Bucket {
    /// `prefix`: such as `s3://bucket`, `gs://bucket`, `az://container` or
    /// `abfss://container@account.dfs.core.windows.net`. `settings`: names and values as in the environment, such as
    /// `AWS_REGION`. Connects to nothing yet.
    ///
    /// # Errors
    /// [`Error::BadName`] when the settings do not lead to a bucket.
    pub fn new(prefix: &str, settings: &[(String, String)], limits: ObjectLimits) -> Result<Self, Error> {
        Ok(Bucket { shared: Arc::new(Shared::new(prefix, settings, limits)?) })
    }

    /// What lies directly below a path, and whether anything does, hidden or not.
    fn below(&self, path: &str) -> Result<(Vec<Child>, bool), Error> {
        let (mut children, mut any) = (Vec::new(), false);
        let key = self.shared.key(path)?;
        let mut marker = None;
        self.shared.pages(path, true, |page| {
            any |= !page.objects.is_empty() || !page.common_prefixes.is_empty();
            marker = marker.take().or(page.objects.iter().find(|object| object.location == key).cloned());
            let directories = page.common_prefixes.into_iter();
            let directories = directories.map(|at| Child {
                path: format!("/{at}"),
                bytes: 0,
                modified: None,
                directory: true,
            });
            let files = page.objects.into_iter().filter(|object| object.location != key);
            let files = files.map(|object| Child {
                path: format!("/{}", object.location),
                bytes: object.size,
                modified: modified(&object),
                directory: false,
            });
            let seen = |child: &Child| !is_hidden(last_name(&child.path).as_bytes());
            children.extend(directories.chain(files).filter(seen));
        })?;
        match marker {
            Some(ObjectMeta { size, .. }) if size > 0 => {
                let name = self.shared.name(path);
                Err(Error::BadName { name, reason: "an object of this name ends with a slash".to_owned() })
            }
            _ => Ok((children, any)),
        }
    }

    /// The paths of all objects below a path, hidden ones too, but not the path's own mark.
    fn everything(&self, path: &str) -> Result<Vec<Entry>, Error> {
        let (key, mut entries) = (self.shared.key(path)?, Vec::new());
        self.shared.pages(path, false, |page| {
            let objects = page.objects.into_iter().filter(|object| !is_mark(object, &key));
            entries.extend(objects.map(|object| Entry {
                path: format!("/{}", object.location),
                bytes: object.size,
                modified: modified(&object),
            }));
        })?;
        Ok(entries)
    }

    /// Copies one object; `bytes` is its length.
    fn copy(&self, from: &str, to: &str, bytes: u64) -> Result<(), Error> {
        if bytes > self.shared.limits.copy_bytes || !self.shared.connection.copies {
            let mut output = self.create(to)?;
            let copied = io::copy(&mut BlobReader::new(self.open(from)?, 0, u64::MAX), &mut output);
            copied.map_err(|source| Error::io(&self.shared.name(to), "write", source))?;
            return output.finish();
        }
        let target = self.shared.key(to)?;
        let copy = |client: Arc<dyn Client>, from: Path| {
            let to = target.clone();
            async move { Ok(client.copy_opts(&from, &to, Default::default()).await?) }
        };
        self.shared.ask(from, "rename", self.shared.limits.service, copy)
    }

    /// Copies all objects of a directory, of which `entries` is the list, to another, some at a time.
    fn copy_all(&self, entries: &[Entry], from: &str, to: &str) -> Result<(), Error> {
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || -> Result<(), Error> {
            while !failed.load(Ordering::Relaxed) {
                let Some(entry) = entries.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                let target = format!("{to}{}", &entry.path[from.len()..]);
                match self.copy(&entry.path, &target, entry.bytes) {
                    // It marks a directory: the library cannot say its name, nor need it.
                    Err(Error::NotFound { .. }) if entry.bytes == 0 => {}
                    Err(error) => {
                        failed.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                    Ok(()) => {}
                }
            }
            Ok(())
        };
        let at_once = if self.shared.connection.copies { COPIED_AT_ONCE } else { CARRIED_AT_ONCE };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..at_once.min(entries.len())).map(|_| scope.spawn(work)).collect();
            let broken = || Failure::Broken.at(&self.shared.name(from), "rename");
            workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| broken())?)
        })
    }

    fn not_whole(&self, path: &str) -> Error {
        let source = io::Error::other("the copy is not whole");
        Error::io(&self.shared.name(path), "rename to", source)
    }

    fn delete(&self, path: &str, keys: Vec<Path>) -> Result<(), Error> {
        let delete = |client: Arc<dyn Client>, _| {
            let keys = keys.clone();
            async move {
                let keys = stream::iter(keys.into_iter().map(Ok)).boxed();
                let results: Vec<_> = client.delete_stream(keys).collect().await;
                for result in results {
                    match result.map_err(Failure::from) {
                        Err(failure) if !failure.is_absence() => return Err(failure),
                        _ => {}
                    }
                }
                Ok(())
            }
        };
        self.shared.ask(path, "remove", self.shared.limits.call, delete)
    }
}

impl Store for Bucket {
    fn prefix(&self) -> &str {
        &self.shared.prefix
    }

    fn open(&self, path: &str) -> Result<Arc<dyn Blob>, Error> {
        let meta = self.shared.head(path, "open")?;
        let Some(meta) = meta else { return Err(Error::NotFound { path: self.shared.name(path) }) };
        Ok(Arc::new(Object {
            path: self.shared.name(path),
            file: path.to_owned(),
            meta,
            shared: self.shared.clone(),
        }))
    }

    fn children(&self, path: &str) -> Result<Vec<Child>, Error> {
        let (children, any) = self.below(path)?;
        if any || is_root(path) {
            return Ok(children);
        }
        match self.shared.head(path, "list")? {
            Some(meta) => Ok(vec![Child {
                path: path.to_owned(),
                bytes: meta.size,
                modified: modified(&meta),
                directory: false,
            }]),
            None => Err(Error::NotFound { path: self.shared.name(path) }),
        }
    }

    fn create(&self, path: &str) -> Result<Box<dyn Output>, Error> {
        Ok(Box::new(Upload::new(self.shared.clone(), path)?))
    }

    fn create_new(&self, path: &str, contents: &[u8]) -> Result<bool, Error> {
        let payload = PutPayload::from(contents.to_vec());
        let create = |client: Arc<dyn Client>, key: Path| {
            let payload = payload.clone();
            async move {
                match client.put_opts(&key, payload, PutMode::Create.into()).await {
                    Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
                    created => Ok(created.map(|_| true)?),
                }
            }
        };
        self.shared.ask(path, "create", self.shared.limits.transfer, create)
    }

    /// Nothing: an object brings its directories along.
    fn create_dir(&self, path: &str) -> Result<(), Error> {
        self.shared.key(path).map(drop)
    }

    fn exists(&self, path: &str) -> Result<bool, Error> {
        if !is_root(path) && self.shared.head(path, "look for")?.is_some() {
            return Ok(true);
        }
        Ok(self.shared.any_below(path)? || is_root(path))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        let (from, to) = (from.trim_end_matches('/'), to.trim_end_matches('/'));
        if self.exists(to)? {
            let source = io::ErrorKind::AlreadyExists.into();
            return Err(Error::io(&self.shared.name(to), "rename to", source));
        }
        if let Some(meta) = self.shared.head(from, "rename")? {
            self.copy(from, to, meta.size)?;
            if self.shared.head(to, "rename to")?.is_none_or(|copy| copy.size != meta.size) {
                return Err(self.not_whole(to));
            }
            return self.delete(from, vec![self.shared.key(from)?]);
        }
        let entries = self.everything(from)?;
        if entries.is_empty() {
            return Err(Error::NotFound { path: self.shared.name(from) });
        }
        self.copy_all(&entries, from, to)?;
        // Nothing is removed before all of it is seen at its new place; marks of directories are not copied.
        let copies: HashMap<_, _> =
            self.everything(to)?.into_iter().map(|entry| (entry.path, entry.bytes)).collect();
        let is_copied = |entry: &Entry| match copies.get(&format!("{to}{}", &entry.path[from.len()..])) {
            Some(bytes) => *bytes == entry.bytes,
            None => entry.bytes == 0,
        };
        if !entries.iter().all(is_copied) {
            return Err(self.not_whole(to));
        }
        self.remove(from)
    }

    fn remove(&self, path: &str) -> Result<(), Error> {
        let mut keys = if is_root(path) { Vec::new() } else { vec![self.shared.key(path)?] };
        for entry in self.everything(path)? {
            keys.push(self.shared.key(&entry.path)?);
        }
        for keys in keys.chunks(REMOVED_AT_ONCE) {
            self.delete(path, keys.to_vec())?;
        }
        Ok(())
    }

    /// Both, where an object and a directory have the same name.
    fn list(&self, path: &str) -> Result<Vec<Entry>, Error> {
        let mut files = Vec::new();
        if !is_root(path)
            && let Some(meta) = self.shared.head(path, "list")?
        {
            files.push(Entry { path: path.to_owned(), bytes: meta.size, modified: modified(&meta) });
        }
        let mut directories = vec![path.to_owned()];
        let mut any = !files.is_empty();
        while let Some(directory) = directories.pop() {
            let (children, some) = self.below(&directory)?;
            any |= some || is_root(path);
            for child in children {
                match child.directory {
                    true => directories.push(child.path),
                    false => {
                        files.push(Entry { path: child.path, bytes: child.bytes, modified: child.modified })
                    }
                }
            }
        }
        if !any {
            return Err(Error::NotFound { path: self.shared.name(path) });
        }
        files.sort();
        Ok(files)
    }
}

fn modified(object: &ObjectMeta) -> Option<u64> {
    object.last_modified.timestamp_millis().try_into().ok()
}

fn is_root(path: &str) -> bool {
    matches!(path, "" | "/")
}

fn last_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}
