//! Files in object stores: S3 and compatible services, Google Cloud Storage, Azure Blob Storage.
//!
//! Object stores have no directories: a path is a directory if objects lie below it, and `/` separates names
//! as elsewhere. An object becomes visible as a whole when its writing ends, and never before.

mod blob;
mod connect;
mod failure;
mod meta;
mod shared;
mod upload;

use std::io::{self, Read};
use std::sync::Arc;

use futures::{StreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectMeta, PutMode, PutPayload};

use self::blob::Object;
use self::connect::Client;
use self::failure::ObjectFailure;
use self::meta::entry;
pub use self::shared::ObjectLimits;
use self::shared::{Shared, is_mark};
use self::upload::ObjectWriter;
use super::error::Error;
use super::left_out::is_hidden;
use super::store::{
    Blob, BlobReader, Entry, Output, Showing, Store, Upload, UploadOutput, Uploads, is_between, walk,
};

/// Largest number of objects that one request removes. S3 allows 1,000.
const REMOVED_AT_ONCE: usize = 1_000;

/// One bucket of S3 or Google Cloud Storage, or one container of Azure.
///
/// Objects cannot be renamed. Files that must become visible at one moment are uploaded before, and shown by
/// completing the uploads. Some tools mark a directory with an empty object whose name ends with `/`. Such a
/// mark is listed as an empty directory; nothing else sees it, and it stays where it is. Names that the
/// client library cannot express (control characters, nothing between two slashes, `.` and `..`) are
/// [`Error::BadName`]; a listing of a folder counts them to what is hidden in it.
pub struct Bucket {
    shared: Arc<Shared>,
}

impl Bucket {
    /// Creates a client of a bucket and connects to nothing.
    ///
    /// `prefix`: such as `s3://bucket`, `gs://bucket`, `az://container` or
    /// `abfss://container@account.dfs.core.windows.net`. `settings`: names and values as in the environment,
    /// such as `AWS_REGION`.
    ///
    /// # Errors
    /// [`Error::BadName`] when the settings do not lead to a bucket.
    pub fn new(prefix: &str, settings: &[(String, String)], limits: ObjectLimits) -> Result<Self, Error> {
        Ok(Bucket { shared: Arc::new(Shared::new(prefix, settings, limits)?) })
    }

    /// Lists the visible entries directly below a path. The boolean says whether there are any entries,
    /// hidden ones included.
    fn below(&self, path: &str, hidden: &mut Vec<String>) -> Result<(Vec<Entry>, bool), Error> {
        let mut children = Vec::new();
        let mut any = false;
        let key = self.shared.key(path)?;
        let mut marker = None;
        let passed = self.shared.pages(path, |page| {
            any |= !page.objects.is_empty() || !page.common_prefixes.is_empty();
            marker = marker.take().or(page.objects.iter().find(|object| object.location == key).cloned());
            let directories = page.common_prefixes.into_iter();
            let directories =
                directories.map(|at| Entry { path: format!("/{at}"), directory: true, ..Entry::default() });
            let files = page.objects.iter().filter(|object| object.location != key);
            let files = files.map(|object| entry(format!("/{}", object.location), object));
            for child in directories.chain(files) {
                match is_hidden(child.name().as_bytes()) {
                    true => hidden.push(child.path),
                    false => children.push(child),
                }
            }
        })?;
        any |= !passed.is_empty();
        hidden.extend(passed.into_iter().map(|key| format!("/{key}")));
        match marker {
            Some(ObjectMeta { size, .. }) if size > 0 => {
                let name = self.shared.name(path);
                Err(Error::BadName { name, reason: "an object of this name ends with a slash".to_owned() })
            }
            _ => Ok((children, any)),
        }
    }

    /// Writes an object under the condition of `mode` and returns whether it was written: no such object
    /// exists, or it has the given version.
    fn put_if(
        &self,
        path: &str,
        action: &'static str,
        contents: &[u8],
        mode: PutMode,
    ) -> Result<bool, Error> {
        let payload = PutPayload::from(contents.to_vec());
        let put = |client: Arc<dyn Client>, key: Path| {
            let (payload, mode) = (payload.clone(), mode.clone());
            async move {
                match client.put_opts(&key, payload, mode.into()).await {
                    Err(
                        object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. },
                    ) => Ok(false),
                    written => Ok(written.map(|_| true)?),
                }
            }
        };
        self.shared.ask(path, action, self.shared.limits.transfer, put)
    }

    fn delete(&self, path: &str, keys: Vec<Path>) -> Result<(), Error> {
        let delete = |client: Arc<dyn Client>, _| {
            let keys = keys.clone();
            async move {
                let keys = stream::iter(keys.into_iter().map(Ok)).boxed();
                let results: Vec<_> = client.delete_stream(keys).collect().await;
                for result in results {
                    match result.map_err(ObjectFailure::from) {
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

    fn children_and_hidden(&self, path: &str, hidden: &mut Vec<String>) -> Result<Vec<Entry>, Error> {
        let (children, any) = self.below(path, hidden)?;
        if any || is_root(path) {
            return Ok(children);
        }
        match self.shared.head(path, "list")? {
            Some(meta) => Ok(vec![entry(path.to_owned(), &meta)]),
            None => Err(Error::NotFound { path: self.shared.name(path) }),
        }
    }

    fn create(&self, path: &str) -> Result<Box<dyn Output>, Error> {
        Ok(Box::new(ObjectWriter::new(self.shared.clone(), path)?))
    }

    fn create_new(&self, path: &str, contents: &[u8]) -> Result<bool, Error> {
        self.put_if(path, "create", contents, PutMode::Create)
    }

    /// Creates nothing, because an object creates its directories.
    fn create_dir(&self, path: &str) -> Result<(), Error> {
        self.shared.key(path).map(drop)
    }

    fn exists(&self, path: &str) -> Result<bool, Error> {
        if !is_root(path) && self.shared.head(path, "look for")?.is_some() {
            return Ok(true);
        }
        Ok(self.shared.any_below(path)? || is_root(path))
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

    fn remove_files(&self, paths: &[String]) -> Result<(), Error> {
        paths.chunks(REMOVED_AT_ONCE).try_for_each(|paths| {
            let keys = paths.iter().map(|path| self.shared.key(path)).collect::<Result<_, _>>()?;
            self.delete(&paths[0], keys)
        })
    }

    /// Leaves out the mark of the path itself.
    fn everything(&self, path: &str) -> Result<Vec<Entry>, Error> {
        self.everything_between(path, None, None)
    }

    fn everything_between(
        &self,
        path: &str,
        after: Option<&str>,
        until: Option<&str>,
    ) -> Result<Vec<Entry>, Error> {
        let key = self.shared.key(path)?;
        let mut entries = Vec::new();
        let offset = after.map(|after| self.shared.key(after)).transpose()?;
        let odd = self.shared.pages_after(path, offset, |page| {
            let last = page.objects.last().map(|last| format!("/{}", last.location));
            let more = last.is_none_or(|last| until.is_none_or(|until| *last < *until));
            let objects = page.objects.iter().filter(|object| !is_mark(object, &key));
            let objects = objects.map(|object| entry(format!("/{}", object.location), object));
            entries.extend(objects.filter(|entry| is_between(&entry.path, after, until)));
            more
        })?;
        // Callers that list everything compare or remove it.
        match odd.into_iter().next() {
            Some(key) => Err(Error::BadName {
                name: format!("{}/{key}", self.shared.prefix),
                reason: "a key with an empty name, \".\" or \"..\" in it is read or removed by no request"
                    .to_owned(),
            }),
            None => Ok(entries),
        }
    }

    fn showing(&self) -> Showing<'_> {
        Showing::Uploads(self)
    }

    /// Lists both the object and the directory, where both have this name.
    fn list_and_hidden(&self, path: &str, hidden: &mut Vec<String>) -> Result<Vec<Entry>, Error> {
        let object = if is_root(path) { None } else { self.shared.head(path, "list")? };
        let mut any = object.is_some();
        let mut files = walk(path, |directory| {
            let (children, some) = self.below(directory, hidden)?;
            any |= some || is_root(path);
            Ok(children)
        })?;
        files.extend(object.map(|object| entry(path.to_owned(), &object)));
        if !any {
            return Err(Error::NotFound { path: self.shared.name(path) });
        }
        files.sort();
        Ok(files)
    }
}

impl Uploads for Bucket {
    fn begin(&self, path: &str) -> Result<Box<dyn UploadOutput>, Error> {
        let mut writer = ObjectWriter::new(self.shared.clone(), path)?;
        writer.begin()?;
        Ok(Box::new(writer))
    }

    fn complete(&self, upload: &Upload) -> Result<bool, Error> {
        upload::complete(&self.shared, upload)
    }

    fn write(&self, path: &str, contents: &[u8], replaced: Option<&str>) -> Result<(), Error> {
        let mode = replaced.map_or(PutMode::Create, |tag| PutMode::Update(upload::version_of_tag(tag)));
        if self.put_if(path, "write", contents, mode)? {
            return Ok(());
        }
        let there = self.open(path)?;
        let mut found = Vec::new();
        if there.bytes() == contents.len() as u64 {
            let read = BlobReader::new(there, 0, u64::MAX).read_to_end(&mut found);
            read.map_err(|error| Error::io(path, "read", error))?;
        }
        match found == contents {
            true => Ok(()),
            false => Err(Error::io(path, "write", io::Error::other("another file is there by now"))),
        }
    }

    fn abort(&self, upload: &Upload) -> Result<(), Error> {
        let abort = |client: Arc<dyn Client>, key: Path| {
            let id = upload.id.clone();
            async move {
                match client.abort_multipart(&key, &id).await.map_err(ObjectFailure::from) {
                    Err(failure) if !failure.is_lost_upload() => Err(failure),
                    _ => Ok(()),
                }
            }
        };
        self.shared.ask(&upload.path, "abort the upload of", self.shared.limits.call, abort)
    }

    fn tag(&self, path: &str) -> Result<Option<String>, Error> {
        Ok(self.shared.head(path, "look for")?.and_then(|meta| upload::tag(&meta)))
    }
}

fn is_root(path: &str) -> bool {
    matches!(path, "" | "/")
}
