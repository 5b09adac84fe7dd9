//! A bucket in memory in which each request may fail, do half its work, do all of it without an answer, or be
//! the last one of its process.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::slice;
use std::sync::Arc;

use cluster::{Blob, Entry, Error, Output, Showing, Store, Upload, UploadOutput, Uploads};
use parking_lot::{Mutex, MutexGuard};

use super::power_store::{Content, Files, Pause};

/// Fault of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The request does nothing, and an error is answered.
    Fails,
    /// The request does its work, for every second key if it has several, and an error is answered.
    Half,
    /// The request does its work, and the process that made it dies before it has the answer.
    Last,
}

/// Contents of an object, and its tag. As in S3, equal contents have equal tags.
type Object = (Arc<[u8]>, String);

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Object>,
    /// Path and contents of each upload that is not completed, by its id.
    uploads: BTreeMap<String, (String, Vec<u8>)>,
    /// Ids of uploads that were written to an object, so that a later run can find them.
    noted: BTreeSet<String>,
    /// Number of requests since the last restart.
    requests: u64,
    /// Number of requests before the last restart, so that no id is given twice.
    before: u64,
    /// Whether each request since the last restart changes something.
    changing: Vec<bool>,
    fault: Option<(u64, Fault)>,
    dead: bool,
}

/// Bucket whose objects are shared by its clones. A clone may pause before one of its requests.
#[derive(Clone, Default)]
pub(super) struct BucketStore(Arc<Mutex<State>>, Option<Arc<Pause>>);

fn broken(path: &str) -> Error {
    Error::io(path, "reach", io::Error::other("the request failed"))
}

impl State {
    /// Makes a request for `keys`. `work` does it for one key.
    fn request(
        &mut self,
        keys: &[String],
        changes: bool,
        mut work: impl FnMut(&mut State, &str),
    ) -> Result<(), Error> {
        let path = keys.first().map_or("/", String::as_str);
        if self.dead {
            return Err(broken(path));
        }
        let number = self.requests;
        self.requests += 1;
        self.changing.push(changes);
        let fault = self.fault.filter(|(at, _)| *at == number).map(|(_, fault)| fault);
        match fault {
            None | Some(Fault::Last) => keys.iter().for_each(|key| work(self, key)),
            Some(Fault::Half) => keys.iter().step_by(2).for_each(|key| work(self, key)),
            Some(Fault::Fails) => {}
        }
        self.dead = fault == Some(Fault::Last);
        if fault.is_some() { Err(broken(path)) } else { Ok(()) }
    }

    fn put(&mut self, path: &str, contents: &[u8]) {
        if path.contains("/uploads/")
            && let Ok(upload) = serde_json::from_slice::<Upload>(contents)
        {
            self.noted.insert(upload.id);
        }
        self.objects.insert(path.to_owned(), (contents.into(), blake3::hash(contents).to_string()));
    }
}

impl BucketStore {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Returns the same bucket, for a process that falls asleep.
    pub fn pausing(&self, pause: Pause) -> Self {
        BucketStore(Arc::clone(&self.0), Some(Arc::new(pause)))
    }

    /// Makes a request that changes something.
    fn change(
        &self,
        what: &'static str,
        keys: &[String],
        work: impl FnMut(&mut State, &str),
    ) -> Result<(), Error> {
        self.1.iter().for_each(|pause| pause.step(what));
        self.state().request(keys, true, work)
    }

    /// Begins a new process. Its request of that number, counted from 0, gets the fault.
    pub fn restart(&self, fault: Option<(u64, Fault)>) {
        let state = &mut *self.state();
        state.before += state.requests;
        (state.requests, state.dead, state.fault) = (0, false, fault);
        state.changing.clear();
    }

    /// Returns for each request since the restart whether it changes something.
    pub fn requests(&self) -> Vec<bool> {
        self.state().changing.clone()
    }

    /// Returns the objects below a path.
    pub fn files(&self, path: &str) -> Files {
        let state = self.state();
        let below = state.objects.iter().filter_map(|(name, (contents, _))| {
            Some((name.strip_prefix(path)?.to_owned(), contents.to_vec()))
        });
        below.collect()
    }

    /// Returns the uploads that still take space although a run has noted them.
    pub fn forgotten_uploads(&self) -> Vec<String> {
        let state = self.state();
        state.uploads.keys().filter(|id| state.noted.contains(*id)).cloned().collect()
    }

    /// Forgets all uploads that are not completed, as some services do after a week.
    pub fn forget_uploads(&self) {
        self.state().uploads.clear();
    }

    fn listed(&self, path: &str) -> Result<Vec<Entry>, Error> {
        let mut state = self.state();
        state.request(&[path.to_owned()], false, |_, _| ())?;
        let below = format!("{path}/");
        let below = state.objects.range(below.clone()..).take_while(|(name, _)| name.starts_with(&below));
        let entry = |(name, (contents, _)): (&String, &Object)| Entry {
            path: name.clone(),
            bytes: contents.len() as u64,
            ..Entry::default()
        };
        Ok(below.map(entry).collect())
    }

    fn look(&self, path: &str) -> Result<Option<Object>, Error> {
        let mut state = self.state();
        state.request(&[path.to_owned()], false, |_, _| ())?;
        Ok(state.objects.get(path).cloned())
    }
}

impl Store for BucketStore {
    fn prefix(&self) -> &str {
        "twin://"
    }

    fn open(&self, path: &str) -> Result<Arc<dyn Blob>, Error> {
        let (contents, _) = self.look(path)?.ok_or_else(|| Error::NotFound { path: path.to_owned() })?;
        Ok(Arc::new(Content(path.to_owned(), contents)))
    }

    fn children_and_hidden(&self, path: &str, hidden: &mut Vec<String>) -> Result<Vec<Entry>, Error> {
        let mut children = BTreeMap::new();
        for Entry { path: name, bytes, version, .. } in self.listed(path)? {
            let (first, rest) =
                name[path.len() + 1..].split_once('/').map_or((&name[path.len() + 1..], ""), |both| both);
            let path = format!("{path}/{first}");
            if first.starts_with(['_', '.']) {
                hidden.push(path);
                continue;
            }
            children.insert(first.to_owned(), Entry { path, bytes, version, directory: !rest.is_empty() });
        }
        Ok(children.into_values().collect())
    }

    fn create(&self, path: &str) -> Result<Box<dyn Output>, Error> {
        Ok(Box::new(Put { store: self.clone(), path: path.to_owned(), contents: Vec::new() }))
    }

    fn create_new(&self, path: &str, contents: &[u8]) -> Result<bool, Error> {
        let mut created = false;
        self.change("create", &[path.to_owned()], |state, path| {
            created = !state.objects.contains_key(path);
            if created {
                state.put(path, contents);
            }
        })?;
        Ok(created)
    }

    fn create_dir(&self, _path: &str) -> Result<(), Error> {
        Ok(())
    }

    fn exists(&self, path: &str) -> Result<bool, Error> {
        Ok(self.look(path)?.is_some() || !self.listed(path)?.is_empty())
    }

    fn remove(&self, path: &str) -> Result<(), Error> {
        let below = self.listed(path)?.into_iter().map(|entry| entry.path);
        let keys: Vec<_> = [path.to_owned()].into_iter().chain(below).collect();
        self.change("remove", &keys, |state, key| drop(state.objects.remove(key)))
    }

    fn remove_files(&self, paths: &[String]) -> Result<(), Error> {
        self.change("remove files", paths, |state, key| drop(state.objects.remove(key)))
    }

    fn everything(&self, path: &str) -> Result<Vec<Entry>, Error> {
        self.listed(path)
    }

    fn showing(&self) -> Showing<'_> {
        Showing::Uploads(self)
    }
}

impl Uploads for BucketStore {
    fn begin(&self, path: &str) -> Result<Box<dyn UploadOutput>, Error> {
        let mut begun = String::new();
        self.change("begin", &[path.to_owned()], |state, path| {
            begun = (state.before + state.requests).to_string();
            state.uploads.insert(begun.clone(), (path.to_owned(), Vec::new()));
        })?;
        let upload = Upload { path: path.to_owned(), id: begun, ..Upload::default() };
        Ok(Box::new(Sending { store: self.clone(), upload, contents: Vec::new(), sent: false }))
    }

    fn complete(&self, upload: &Upload) -> Result<bool, Error> {
        let mut known = false;
        self.change("complete", slice::from_ref(&upload.path), |state, path| {
            if let Some((to, contents)) = state.uploads.remove(&upload.id) {
                assert_eq!(to, path);
                state.put(path, &contents);
                known = true;
            }
        })?;
        Ok(known)
    }

    fn write(&self, path: &str, contents: &[u8], replaced: Option<&str>) -> Result<(), Error> {
        let mut written = false;
        self.change("write", &[path.to_owned()], |state, path| {
            if state.objects.get(path).map(|(_, tag)| tag.as_str()) == replaced {
                state.put(path, contents);
                written = true;
            }
        })?;
        match written || self.look(path)?.is_some_and(|(found, _)| *found == *contents) {
            true => Ok(()),
            false => Err(broken(path)),
        }
    }

    fn abort(&self, upload: &Upload) -> Result<(), Error> {
        let keys = slice::from_ref(&upload.path);
        self.change("abort", keys, |state, _| drop(state.uploads.remove(&upload.id)))
    }

    fn tag(&self, path: &str) -> Result<Option<String>, Error> {
        Ok(self.look(path)?.map(|(_, tag)| tag))
    }
}

struct Put {
    store: BucketStore,
    path: String,
    contents: Vec<u8>,
}

impl Write for Put {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.contents.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for Put {
    fn finish(self: Box<Self>) -> Result<(), Error> {
        let keys = [self.path.clone()];
        self.store.change("put", &keys, |state, path| state.put(path, &self.contents))
    }
}

struct Sending {
    store: BucketStore,
    upload: Upload,
    contents: Vec<u8>,
    sent: bool,
}

impl Write for Sending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.contents.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl UploadOutput for Sending {
    fn begun(&self) -> Upload {
        self.upload.clone()
    }

    fn finish(mut self: Box<Self>) -> Result<Upload, Error> {
        let bytes = self.contents.len() as u64;
        let keys = [self.upload.path.clone()];
        self.store.change("send", &keys, |state, _| {
            if let Some((_, contents)) = state.uploads.get_mut(&self.upload.id) {
                contents.clone_from(&self.contents);
            }
        })?;
        self.sent = true;
        Ok(Upload { parts: vec!["1".to_owned()], bytes, ..self.upload.clone() })
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.sent {
            drop(self.store.abort(&self.upload));
        }
    }
}
