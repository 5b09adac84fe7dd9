//! Checks that all processes of a job see the same input.
//!
//! Paths, lengths and formats must be equal, and in a remote store modification times and ETags too, since
//! all processes see those of the store. Local files may be copies on several hosts. Files of equal lengths
//! and times count as the same, as in rsync. Where times differ, each process reads all local files once and
//! compares their contents.

use anyhow::{Result, bail};
use cluster::{Group, InputFile};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::at_once::each;
use super::plan::Plan;

/// Number of bytes of a file that are read at a time.
const WINDOW_BYTES: usize = 1 << 20;

/// Returns an error if the processes see different inputs.
pub fn check_same_input(plan: &Plan, group: &Group) -> Result<()> {
    let formats = plan.splits.iter().map(|split| (split.format.name(), split.pieces.len()));
    let (local, remote): (Vec<_>, Vec<_>) = plan.files.iter().partition(|file| is_local(file));
    let named = |file: &&InputFile| (file.path.clone(), file.bytes);
    let remote_versions: Vec<_> = remote.iter().map(|file| file.version).collect();
    let seen = format!(
        "{} {:?} {:?} {:?} {remote_versions:?}",
        plan.reference_splits,
        formats.collect::<Vec<_>>(),
        local.iter().map(named).collect::<Vec<_>>(),
        remote.iter().map(named).collect::<Vec<_>>(),
    );
    let times: Vec<u8> =
        local.iter().flat_map(|file| file.version.modified.unwrap_or(0).to_le_bytes()).collect();
    let mine = (xxh3_64(seen.as_bytes()), plan.files.len() as u64, plan.bytes(), xxh3_64(&times));
    let same_times = group.all_reduce(mine, |all| {
        let (seen, files, bytes, times) = all[0];
        match all.iter().position(|other| other.0 != seen) {
            Some(process) if (all[process].1, all[process].2) == (files, bytes) => bail!(
                "process {process} sees other inputs than process 0: as many files and bytes, but other names, lengths, \
                 times or ETags"
            ),
            Some(process) => bail!(
                "process {process} sees other inputs than process 0: {} files with {} bytes, and not {files} with {bytes}",
                all[process].1,
                all[process].2
            ),
            None => Ok(all.iter().all(|other| other.3 == times)),
        }
    })?;
    if same_times {
        return Ok(());
    }
    let contents = each(group.workers(), &local, |file| content(file))?;
    group.all_reduce(contents, |all| {
        let differing = |other: &Vec<u64>| all[0].iter().zip(other).position(|(a, b)| a != b);
        match all.iter().enumerate().find_map(|(process, other)| Some((process, differing(other)?))) {
            Some((process, file)) => bail!(
                "process {process} sees other contents of \"{}\" than process 0: copy the input to all hosts anew",
                local[file].path
            ),
            None => Ok(()),
        }
    })
}

fn is_local(file: &InputFile) -> bool {
    file.store.prefix().is_empty()
}

/// Returns a hash of the contents of a file.
fn content(file: &InputFile) -> Result<u64> {
    let blob = file.open(None)?;
    let mut hash = Xxh3::new();
    let mut window = vec![0; WINDOW_BYTES];
    let mut offset = 0;
    loop {
        let read = blob.read_full_at(offset, &mut window)?;
        if read == 0 {
            return Ok(hash.digest());
        }
        hash.update(&window[..read]);
        offset += read as u64;
    }
}
