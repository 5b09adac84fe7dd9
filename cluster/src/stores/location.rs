//! Resolution of what a user writes (URIs, comma lists, patterns) to files in stores.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{self, Component, Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use parking_lot::Mutex;

use super::connector::Connector;
use super::error::Error;
use super::found::InputFile;
use super::left_out;
use super::local;
use super::local::{Local, real_path};
use super::name::{path_of_text, text_of_path};
use super::pattern::{BEHIND_A_PATTERN, alternatives, is_pattern, matching, split};
use super::store::{Entry, Store, parent};
use super::sums::Sums;

/// Stores of a job: this machine's files, one HDFS per name node and one object store per bucket. Each is
/// created on first use.
pub struct Stores {
    local: Arc<Local>,
    /// Base of relative local paths. Empty means the working directory of the process.
    directory: PathBuf,
    /// Remote stores by the prefix of their paths, such as `hdfs://host:8020` or `s3://bucket`.
    remote: Mutex<BTreeMap<String, Arc<dyn Store>>>,
    /// Paths behind inputs that are passed over, with what each is.
    passed_over: Mutex<BTreeMap<String, &'static str>>,
    /// Names for people of local files, by their paths.
    shown: Mutex<BTreeMap<String, Arc<str>>>,
}

impl Default for Stores {
    fn default() -> Self {
        Self::new()
    }
}

impl Stores {
    /// Creates the local store and connects to nothing.
    pub fn new() -> Self {
        Stores::below("")
    }

    /// Creates stores whose relative local paths are relative to `directory` (text of a path).
    pub fn below(directory: &str) -> Self {
        Stores {
            local: Arc::new(Local),
            directory: path_of_text(directory),
            remote: Mutex::default(),
            passed_over: Mutex::default(),
            shown: Mutex::default(),
        }
    }

    /// Gives a local file, which is a copy of what has no path, the name by which people know it. Ids and messages have it then.
    pub fn show_as(&self, path: &str, name: &str) {
        let path = self.absolute(path).unwrap_or_else(|_| path.to_owned());
        self.shown.lock().insert(path, name.into());
    }

    /// Returns the full paths that [`Stores::expand`] has passed over in folders and behind patterns, with what each is, such as
    /// `a temporary file`. Markers such as `_SUCCESS`, which hide no records, are not among them.
    pub fn passed_over(&self) -> BTreeMap<String, &'static str> {
        self.passed_over.lock().clone()
    }

    /// Returns the store and the absolute path that `uri` names. The path need not exist.
    ///
    /// | form of `uri` | meaning |
    /// |---|---|
    /// | `hdfs://host:port/path` | HDFS at that name node; `viewfs` works the same way |
    /// | `hdfs:///path` | HDFS at `fs.defaultFS` |
    /// | `s3://bucket/path` | S3; `s3a` is the same |
    /// | `gs://bucket/path` | Google Cloud Storage |
    /// | `az://container/path` | Azure, account from the environment |
    /// | `abfs://container@account.dfs.core.windows.net/path` | Azure; `abfss` is the same |
    /// | `file:///path`, or a plain path | a local file |
    ///
    /// The returned path has no empty parts, no `.` and no `..`. A local `..` behind a link is the parent of
    /// the link's target, as for every program that opens the path.
    ///
    /// # Errors
    /// [`Error::BadName`] for other schemes, when no name node or bucket is known, and for a `..` that cannot
    /// be resolved: in a bucket, above a root, or behind a pattern.
    pub fn locate(&self, uri: &str) -> Result<(Arc<dyn Store>, String), Error> {
        let bad = |reason: String| Error::BadName { name: uri.to_owned(), reason };
        let (scheme, rest) = match uri.split_once(':') {
            // Hadoop writes file:/path. Other names with a colon are files.
            Some((scheme, rest)) if rest.starts_with('/') && Connector::has_short_addresses(scheme) => {
                (scheme, rest)
            }
            Some((scheme, rest)) if is_scheme(scheme) && rest.starts_with("//") => (scheme, rest),
            _ => ("", uri),
        };
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) if !scheme.is_empty() => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            _ => ("", rest),
        };
        match scheme {
            "" if path.is_empty() => Err(bad("it is empty".to_owned())),
            "file" if !matches!(authority, "" | "localhost") => {
                Err(bad("file:// takes no host: write file:///path".to_owned()))
            }
            "" | "file" => Ok((self.local.clone(), self.absolute(path)?)),
            _ => {
                let connector = Connector::of(scheme).map_err(bad)?;
                let prefix = connector.prefix(authority).map_err(bad)?;
                let path = connector.path(path).map_err(bad)?;
                Ok((self.remote(&prefix, connector)?, path))
            }
        }
    }

    /// Whether `inner` is `outer` or lies in it, perhaps by a link. Neither need exist.
    ///
    /// # Errors
    /// Those of [`Stores::locate`].
    pub fn lies_in(&self, inner: &str, outer: &str) -> Result<bool, Error> {
        let (of_inner, inner) = self.locate(inner)?;
        let (of_outer, outer) = self.locate(outer)?;
        match of_inner.prefix() {
            prefix if prefix != of_outer.prefix() => Ok(false),
            "" => {
                let real = |path: &str| real_path(&path_of_text(path));
                Ok(real(&inner).starts_with(real(&outer)))
            }
            _ => Ok(Path::new(&inner).starts_with(outer)),
        }
    }

    fn absolute(&self, path: &str) -> Result<String, Error> {
        let below = self.directory.join(path_of_text(path));
        let failed = |source| Error::io(path, "find", source);
        let mut resolved = PathBuf::new();
        for part in path::absolute(below).map_err(failed)?.components() {
            if part != Component::ParentDir {
                resolved.push(part);
                continue;
            }
            match fs::canonicalize(&resolved) {
                Ok(target) => resolved = target,
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                Err(_) => {
                    let text = text_of_path(resolved.as_os_str());
                    if !literal_head(self.local.as_ref(), &text)?.1.is_empty() {
                        let reason = BEHIND_A_PATTERN.to_owned();
                        return Err(Error::BadName { name: path.to_owned(), reason });
                    }
                }
            }
            resolved.pop();
        }
        Ok(text_of_path(resolved.as_os_str()))
    }

    /// Returns the store of a prefix; `connector` makes it the first time.
    fn remote(&self, prefix: &str, connector: &Connector) -> Result<Arc<dyn Store>, Error> {
        let mut stores = self.remote.lock();
        if let Some(store) = stores.get(prefix) {
            return Ok(store.clone());
        }
        let store = connector.connect(prefix)?;
        stores.insert(prefix.to_owned(), store.clone());
        Ok(store)
    }

    /// Returns the files that `inputs` name, sorted by full path, each once.
    ///
    /// Each input is a list of files, directories (with all files below) and patterns, separated by commas
    /// outside of `{}`. `*`, `?` and `[a-z]` never match a `/`; `{a,b}` may contain one. Names that begin
    /// with `_` or `.` are skipped unless they are written out. A name that exists is taken literally, even
    /// where it looks like a pattern or, for a local file, like a list. Cost: one listing per directory that
    /// a pattern may reach into.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an input that leads to no file, [`Error::BadName`] for a malformed pattern or
    /// a directory without files.
    pub fn expand<S: AsRef<str>>(&self, inputs: &[S]) -> Result<Vec<InputFile>, Error> {
        let mut found = Vec::new();
        for inputs in inputs.iter().map(AsRef::as_ref) {
            if inputs.contains(',') && !self.local.exists(&self.absolute(inputs)?)? {
                for input in split(inputs).into_iter().filter(|input| !input.is_empty()) {
                    self.expand_one(input, &mut found)?;
                }
            } else {
                self.expand_one(inputs, &mut found)?;
            }
        }
        // If two inputs lead to the same file, the outer input names it, in whatever order they come.
        found.sort_by_cached_key(|file| (file.full_path(), Reverse(file.name.len())));
        found.dedup_by_key(|file| file.full_path());
        // What one input leads past, another one may name.
        let is_read = |path: &str| {
            let first =
                |least: &str| found.get(found.partition_point(|file| file.full_path().as_str() < least));
            let below = format!("{path}/");
            first(path).is_some_and(|file| file.full_path() == path)
                || first(&below).is_some_and(|file| file.full_path().starts_with(&below))
        };
        self.passed_over.lock().retain(|path, _| !is_read(path));
        Ok(found)
    }

    /// Removes entries that are no input, and notes them and what is hidden in `passed_over`. `input`: its path. Returns the first path,
    /// in the order of bytes, that was passed over.
    fn pass_over(
        &self,
        store: &dyn Store,
        input: &str,
        files: &mut Vec<Entry>,
        hidden: Vec<String>,
    ) -> Result<Option<(String, &'static str)>, Error> {
        let mut passed_over =
            if store.prefix().is_empty() { local::take_special(files)? } else { BTreeMap::new() };
        passed_over.append(&mut left_out::take(store, input, files)?);
        let hidden = hidden.into_iter().filter(|path| left_out::may_hide_records(path));
        passed_over.extend(hidden.map(|path| {
            let kind = left_out::kind_of_hidden(&path);
            (path, kind)
        }));
        let full = |(path, kind)| (format!("{}{path}", store.prefix()), kind);
        let passed_over: Vec<_> = passed_over.into_iter().map(full).collect();
        self.passed_over.lock().extend(passed_over.iter().cloned());
        Ok(passed_over.into_iter().next())
    }

    fn expand_one(&self, input: &str, found: &mut Vec<InputFile>) -> Result<(), Error> {
        let (store, path) = self.locate(input)?;
        let (base, pattern) = literal_head(store.as_ref(), &path)?;
        let bad = |reason| Error::BadName { name: input.to_owned(), reason };
        let (mut files, mut hidden) = (Vec::new(), Vec::new());
        if pattern.is_empty() {
            files = store.list_and_hidden(&path, &mut hidden)?;
        } else {
            for pattern in alternatives(pattern).map_err(bad)? {
                // A choice in braces may leave empty names.
                let names: Vec<_> = pattern.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
                if names.contains(&"..") {
                    return Err(bad("a \"..\" in braces is not resolved".to_owned()));
                }
                let path = format!("{base}/{}", names.join("/"));
                let (head, rest) = literal_head(store.as_ref(), &path)?;
                let names: Vec<_> = rest.split('/').filter(|name| !name.is_empty()).collect();
                matching(store.as_ref(), head, &names, &bad, (&mut files, &mut hidden))?;
            }
        }
        let passed_over = self.pass_over(store.as_ref(), &path, &mut files, hidden)?;
        if files.is_empty() {
            return Err(match passed_over {
                Some((file, kind)) if pattern.is_empty() && file == format!("{}{path}", store.prefix()) => {
                    bad(format!("it is {kind}"))
                }
                Some((file, kind)) => {
                    let nothing = if pattern.is_empty() { "no files in it" } else { "no file matches it" };
                    bad(format!("{nothing} but \"{file}\", which is {kind}"))
                }
                None if pattern.is_empty() => bad("no files in it".to_owned()),
                None => Error::NotFound { path: input.to_owned() },
            });
        }
        for Entry { path, bytes, version, .. } in files {
            // An input that is a file is named by its last name.
            let base = if path == base { parent(&path) } else { base };
            let name = InputFile::name_below(&path, base.len())?;
            let sums = Arc::new(Sums::new(bytes, version));
            let shown = self.shown.lock().get(&path).cloned();
            found.push(InputFile { store: store.clone(), path, name, bytes, version, shown, sums });
        }
        Ok(())
    }
}

/// Splits an absolute path into its literal head and the pattern behind it. A name that exists is literal, so
/// a working directory called `run[1]` is no pattern.
fn literal_head<'a>(store: &dyn Store, path: &'a str) -> Result<(&'a str, &'a str), Error> {
    let mut start = 0;
    for name in path.split('/') {
        let end = start + name.len();
        if is_pattern(name) && !store.exists(&path[..end])? {
            return Ok((&path[..start.saturating_sub(1)], &path[start..]));
        }
        start = end + 1;
    }
    Ok((path, ""))
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

#[cfg(test)]
mod tests;
