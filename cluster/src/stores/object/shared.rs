//! Requests to a bucket: each has credentials, a deadline and retries with backoff.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use log::trace;
use object_store::list::PaginatedListOptions;
use object_store::path::{self, Path};
use object_store::{GetOptions, GetResult, ListResult, ObjectMeta};
use parking_lot::Mutex;
use tokio::runtime::Runtime;

use super::connect::{Client, Connection, connect};
use super::failure::ObjectFailure;
use crate::stores::error::Error;
use crate::stores::remote;
use crate::stores::remote::Backoff;

/// Number of keys of a page. A page that the library refuses is asked for again with half as many keys, then
/// with a quarter, and so on.
const PAGE_KEYS: usize = 1024;
/// Appended to a prefix, it comes behind every key with that prefix.
const LAST_KEY: &str = "\u{10FFFF}";

/// Time limits of requests to an object store.
#[derive(Clone, Copy, Debug)]
pub struct ObjectLimits {
    /// Limit for fetching credentials, before the first request.
    pub sign_in: Duration,
    /// Limit for a page of a listing and for other requests that carry little.
    pub call: Duration,
    /// Limit for one attempt at reading a range of up to 8 MiB or at writing a part.
    pub transfer: Duration,
    /// Limit for work of the service itself, such as joining the parts of an object.
    pub service: Duration,
    /// Number of attempts at a request before it fails.
    pub attempts: u32,
    /// Length of the first parts of an object being written, in bytes. S3 requires 5 MiB or more.
    pub part_bytes: usize,
}

impl Default for ObjectLimits {
    fn default() -> Self {
        ObjectLimits {
            sign_in: Duration::from_secs(5),
            call: Duration::from_secs(30),
            transfer: Duration::from_secs(60),
            service: Duration::from_secs(600),
            attempts: 6,
            part_bytes: 8 << 20,
        }
    }
}

/// State that a bucket, its open objects and its objects being written share.
pub(super) struct Shared {
    pub prefix: String,
    pub limits: ObjectLimits,
    runtime: Runtime,
    pub connection: Connection,
    signed_in: Mutex<bool>,
}

impl Shared {
    /// Creates a client and connects to nothing.
    pub(super) fn new(
        prefix: &str,
        settings: &[(String, String)],
        limits: ObjectLimits,
    ) -> Result<Self, Error> {
        let connection = connect(prefix, settings)?;
        let prefix = prefix.to_owned();
        let runtime = remote::runtime("objects")?;
        Ok(Shared { prefix, limits, runtime, connection, signed_in: Mutex::new(false) })
    }

    pub(super) fn name(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    pub(super) fn key(&self, path: &str) -> Result<Path, Error> {
        Path::parse(path).map_err(|error| {
            ObjectFailure::Library(object_store::Error::InvalidPath { source: error })
                .at(&self.name(path), "use")
        })
    }

    /// Runs `work` in a task of its own, for at most `limit`.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, ObjectFailure>> + Send + 'static,
    ) -> Result<T, ObjectFailure> {
        trace!(target: "request", "{}", self.prefix);
        remote::wait(&self.runtime, limit, work)?
    }

    /// Fetches credentials before the first request. Without this check, the library asks a machine that only
    /// clouds have.
    fn sign_in(&self) -> Result<(), Error> {
        let mut signed_in = self.signed_in.lock();
        if !*signed_in {
            let answer = self.wait(self.limits.sign_in, (self.connection.sign_in)());
            answer.map_err(|failure| Error::BadName {
                name: self.prefix.clone(),
                reason: format!("no credentials ({failure}): {}", self.connection.sources),
            })?;
            *signed_in = true;
        }
        Ok(())
    }

    /// Makes a request until it is answered or no attempt is left. Requests must be safe to repeat.
    pub(super) fn ask<T: Send + 'static, F>(
        &self,
        path: &str,
        action: &'static str,
        limit: Duration,
        work: impl Fn(Arc<dyn Client>, Path) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, ObjectFailure>> + Send + 'static,
    {
        let key = self.key(path)?;
        self.sign_in()?;
        let mut backoff = Backoff::new(self.limits.attempts);
        loop {
            match self.wait(limit, work(self.connection.client.clone(), key.clone())) {
                Ok(answer) => return Ok(answer),
                Err(failure) if failure.may_pass() => {
                    backoff.wait_after(failure.at(&self.name(path), action))?
                }
                Err(failure) => return Err(failure.at(&self.name(path), action)),
            }
        }
    }

    /// Returns the metadata of an object, or `None` if there is no such object.
    pub(super) fn head(&self, path: &str, action: &'static str) -> Result<Option<ObjectMeta>, Error> {
        let options = || GetOptions { head: true, ..GetOptions::default() };
        let head = |client: Arc<dyn Client>, key: Path| async move {
            match client.get_opts(&key, options()).await.map_err(ObjectFailure::from) {
                Ok(GetResult { meta, .. }) => Ok(Some(meta)),
                Err(failure) if failure.is_absence() => Ok(None),
                // The answer to this request has no text. The answer to a listing has one, which may say that
                // the key is wrong.
                Err(failure) if failure.is_unexplained() => {
                    let page = PaginatedListOptions { max_keys: Some(1), ..PaginatedListOptions::default() };
                    match client.list_paginated(Some(key.as_ref()), page).await {
                        Ok(_) => Err(failure),
                        Err(explained) => Err(explained.into()),
                    }
                }
                Err(failure) => Err(failure),
            }
        };
        self.ask(path, action, self.limits.call, head)
    }

    /// Gives every page of the entries directly below a path to `each`. Directories come as names only. Returns the keys
    /// that the library cannot express.
    pub(super) fn pages(&self, path: &str, mut each: impl FnMut(ListResult)) -> Result<Vec<String>, Error> {
        let options = PaginatedListOptions { delimiter: Some("/".into()), ..PaginatedListOptions::default() };
        self.pages_while(path, options, |page| {
            each(page);
            true
        })
    }

    /// Gives every page of the objects below a path that come after a key to `each`, until that returns
    /// false. Returns the keys that the library cannot express.
    pub(super) fn pages_after(
        &self,
        path: &str,
        after: Option<Path>,
        each: impl FnMut(ListResult) -> bool,
    ) -> Result<Vec<String>, Error> {
        let offset = after.map(|after| after.to_string());
        let options = PaginatedListOptions { offset, ..PaginatedListOptions::default() };
        self.pages_while(path, options, each)
    }

    /// Gives pages to `each` until that returns false. Returns the keys that the library cannot express.
    ///
    /// One such key makes the library refuse its whole page. So the page is asked for again with half as many keys, until
    /// the key is alone, and the listing goes on behind it: some 20 requests for each such key.
    fn pages_while(
        &self,
        path: &str,
        mut options: PaginatedListOptions,
        mut each: impl FnMut(ListResult) -> bool,
    ) -> Result<Vec<String>, Error> {
        let mut passed = Vec::new();
        loop {
            let mut more = true;
            match self.page(path, options.clone(), &mut |page| more = each(page))? {
                ListedPage::Given(next) if !more || next.is_none() || next == options.page_token => {
                    return Ok(passed);
                }
                ListedPage::Given(next) => options.page_token = next,
                ListedPage::Refused(key) if options.max_keys == Some(1) => {
                    let below = if key.ends_with('/') { LAST_KEY } else { "" };
                    options.offset = Some(format!("{key}{below}"));
                    (options.page_token, options.max_keys) = (None, None);
                    passed.push(key);
                }
                ListedPage::Refused(_) => options.max_keys = Some(options.max_keys.unwrap_or(PAGE_KEYS) / 2),
            }
        }
    }

    /// Returns whether any object lies below a path.
    pub(super) fn any_below(&self, path: &str) -> Result<bool, Error> {
        let key = self.key(path)?;
        let mut any = false;
        // One of the two may be the mark of the directory itself.
        let options = PaginatedListOptions { max_keys: Some(2), ..PaginatedListOptions::default() };
        let page = self.page(path, options, &mut |page| {
            any |= !page.objects.iter().all(|object| is_mark(object, &key))
        })?;
        Ok(any || matches!(page, ListedPage::Refused(_)))
    }

    /// Gives one page of a listing to `each`, unless the library refuses it.
    fn page(
        &self,
        path: &str,
        options: PaginatedListOptions,
        each: &mut impl FnMut(ListResult),
    ) -> Result<ListedPage, Error> {
        let list = |client: Arc<dyn Client>, key: Path| {
            let options = options.clone();
            let prefix = (!key.is_root()).then(|| format!("{key}/"));
            async move {
                match client.list_paginated(prefix.as_deref(), options).await {
                    Err(object_store::Error::InvalidPath {
                        source: path::Error::EmptySegment { path } | path::Error::BadSegment { path, .. },
                    }) => Ok(Err(path)),
                    page => Ok(Ok(page?)),
                }
            }
        };
        let page = self.ask(path, "list", self.limits.call, list).map_err(|error| match error {
            // A listing of a missing directory is empty; it fails only if the bucket itself is missing.
            Error::NotFound { .. } => Error::NotFound { path: self.prefix.clone() },
            error => error,
        })?;
        Ok(match page {
            Ok(page) => {
                each(page.result);
                ListedPage::Given(page.page_token)
            }
            Err(key) => ListedPage::Refused(key),
        })
    }
}

/// A page of a listing, or the key for which the library refuses it.
enum ListedPage {
    /// It was given; the token of the next page, if there is one.
    Given(Option<String>),
    /// It holds this key, which the library cannot express.
    Refused(String),
}

/// Returns whether an object found below a directory is the mark of that directory: an empty object whose key
/// is the directory's with a slash at its end. The library drops that slash, so it can neither read nor
/// remove the mark.
pub(super) fn is_mark(object: &ObjectMeta, directory: &Path) -> bool {
    object.size == 0 && object.location == *directory
}
