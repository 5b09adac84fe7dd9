//! `chunk restore`: writes the files of a snapshot as they were.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use cluster::{Stores, one_line, path_of_text};
use datasets::Extractors;
use tempfile::Builder;

use super::args::RestoreArgs;
use super::name_filter::NameFilter;
use super::store::{ChunkStore, ContentReader, SnapshotFile, SnapshotManifest, SnapshotReader};
use runtime::Common;
use runtime::cli::exit::WrongUse;
use runtime::cli::terminal::say;
use runtime::corpus::at_once::each_with;

/// Number of files that the workers share at a time.
const BATCH_FILES: usize = 1 << 10;

/// Restores the files that `args` name; files that go to a folder are shared by the workers. Returns 0, or 1 if there are
/// files that could not be restored, each of which is told of.
///
/// Memory: that of a [`ContentReader`] for each worker, and what the list of the snapshot says of a thousand files.
///
/// # Errors
/// Those of the store, and [`WrongUse`] when no file has such a name.
pub(super) fn restore(common: &Common, args: &RestoreArgs) -> Result<u8> {
    let stores = Stores::new();
    let store = ChunkStore::open(&stores, &args.store)?;
    let manifest = store.snapshot(&args.snapshot)?;
    let folder = match &args.folder {
        Some(folder) => Some(local_folder(&stores, folder)?),
        None => None,
    };
    let extractors = Arc::new(Extractors::of_this_program()?);
    let workers = if folder.is_some() { common.workers() } else { 1 };
    let mut files = SnapshotReader::open(&store, &manifest)?;
    let (mut restored, mut failed, mut is_end) = (0u64, 0u64, false);
    let mut wanted = NameFilter::new(&args.names);
    while !is_end {
        let mut batch = Vec::new();
        while !is_end && batch.len() < BATCH_FILES {
            match files.next()? {
                Some(file) if wanted.takes(&file.name) => batch.push(file),
                Some(_) => {}
                None => is_end = true,
            }
        }
        // Files that follow each other mostly have their chunks in the same frames, so one worker takes several.
        let groups: Vec<_> = batch.chunks(batch.len().div_ceil(4 * workers).max(1)).collect();
        let reader = |_| ContentReader::new(&store, &extractors);
        let results = each_with(workers, &groups, reader, |contents, group| {
            let restore = |file| match &folder {
                Some(folder) => restore_file(contents, &manifest, file, folder, args.overwrite),
                None => contents.write(&manifest, file, &mut io::stdout().lock()),
            };
            Ok(group.iter().map(restore).collect::<Vec<_>>())
        })?;
        let results = results.into_iter().flatten();
        for (file, result) in batch.iter().zip(results) {
            match result {
                Ok(()) => restored += 1,
                Err(error) => {
                    failed += 1;
                    say(one_line(&format!("error: \"{}\" is not restored: {error:#}", file.name)));
                }
            }
        }
    }
    wanted.finish(std::slice::from_ref(&manifest))?;
    if folder.is_some() && !common.progress.quiet {
        say(format_args!("{restored} files restored from snapshot {}", manifest.name));
    }
    Ok(u8::from(failed > 0))
}

fn local_folder(stores: &Stores, folder: &str) -> Result<PathBuf> {
    let (store, path) = stores.locate(folder)?;
    if !store.prefix().is_empty() {
        bail!(WrongUse(format!("\"{folder}\" is no folder of this machine")));
    }
    Ok(path_of_text(&path))
}

/// Writes a file beside its place, and moves it there once its hash is right.
fn restore_file(
    contents: &mut ContentReader,
    manifest: &SnapshotManifest,
    file: &SnapshotFile,
    folder: &Path,
    overwrite: bool,
) -> Result<()> {
    let is_below = file.name.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if !is_below {
        bail!("its name leads out of the folder");
    }
    let path = folder.join(path_of_text(&file.name));
    let above = path.parent().unwrap_or(folder);
    fs::create_dir_all(above).with_context(|| format!("could not create {}", above.display()))?;
    if !overwrite && path.symlink_metadata().is_ok() {
        bail!("{} is there already; --overwrite replaces it", path.display());
    }
    let in_folder = || format!("could not write a file in {}", above.display());
    let mut temporary = Builder::new().prefix(".restore-").tempfile_in(above).with_context(in_folder)?;
    let mut buffered = io::BufWriter::with_capacity(1 << 17, temporary.as_file_mut());
    contents.write(manifest, file, &mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    if let Some(mode) = file.mode {
        // The owner is another one, so nobody may run it as its owner.
        temporary.as_file().set_permissions(Permissions::from_mode(mode & 0o777))?;
    }
    if let Some(time) = file.modified {
        let size = time.unsigned_abs();
        let since = Duration::new((size / 1_000_000_000) as u64, (size % 1_000_000_000) as u32);
        let time = if time < 0 { UNIX_EPOCH.checked_sub(since) } else { UNIX_EPOCH.checked_add(since) };
        temporary.as_file().set_modified(time.context("its time is none")?)?;
    }
    let moved = if overwrite { temporary.persist(&path) } else { temporary.persist_noclobber(&path) };
    moved.with_context(|| format!("could not write {}", path.display()))?;
    Ok(())
}
