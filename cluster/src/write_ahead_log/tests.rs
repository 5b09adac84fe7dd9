use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::Error;

type Records = Vec<(u64, Vec<u8>)>;

fn open(folder: &Path, from: u64) -> (LogWriter, Records, Option<TornTail>) {
    let mut records = Vec::new();
    let each = |number, record: &[u8]| {
        records.push((number, record.to_vec()));
        Ok::<_, Error>(())
    };
    let (log, torn) = LogWriter::open(folder, from, each).unwrap();
    (log, records, torn)
}

fn file(folder: &Path) -> PathBuf {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.pop().unwrap()
}

/// Writes groups of records, whose contents are their numbers.
fn write(folder: &Path, groups: &[usize]) -> Records {
    LogWriter::create(folder).unwrap();
    let (mut log, mut records, _) = open(folder, 0);
    for records_of_group in groups {
        for _ in 0..*records_of_group {
            let number = log.next();
            log.append(&number.to_le_bytes()).unwrap();
            records.push((number, number.to_le_bytes().to_vec()));
        }
        log.commit().unwrap();
    }
    records
}

proptest! {
    #[test]
    fn committed_records_come_back_whatever_is_torn_behind_them(
        groups in proptest::collection::vec(0..4usize, 0..6),
        uncommitted in 0..3usize,
        torn in proptest::collection::vec(any::<u8>(), 0..60),
        from in 0..8u64,
    ) {
        let folder = TempDir::new().unwrap();
        let written = write(folder.path(), &groups);
        let (mut log, ..) = open(folder.path(), 0);
        for _ in 0..uncommitted {
            log.append(b"lost").unwrap();
        }
        drop(log);
        let path = file(folder.path());
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, [&bytes[..], &torn].concat()).unwrap();
        let from = from.min(written.len() as u64);
        let (mut log, read, found) = open(folder.path(), from);
        prop_assert_eq!(&read[..], &written[from as usize..]);
        prop_assert_eq!(found.map_or(0, |torn| torn.bytes), torn.len() as u64);
        prop_assert_eq!(log.append(b"next").unwrap(), written.len() as u64);
        log.commit().unwrap();
        let (_, read, torn) = open(folder.path(), 0);
        prop_assert_eq!((read.len(), torn), (written.len() + 1, None));
    }
}

#[test]
fn every_flipped_bit_before_the_last_group_is_found() {
    let folder = TempDir::new().unwrap();
    write(folder.path(), &[2, 3, 1]);
    let path = file(folder.path());
    let whole = fs::read(&path).unwrap();
    let last = whole.len() - (24 + 4 + 8);
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, bytes).unwrap();
        match read_log(folder.path(), 0, |_, _| Ok::<_, Error>(())) {
            Err(Error::Damaged { .. }) => assert!(bit / 8 < last, "bit {bit}"),
            Ok(contents) => {
                // The last group cannot be told from one that a crash has torn.
                assert!(bit / 8 >= last, "bit {bit}");
                assert_eq!((contents.next, contents.torn.map(|torn| torn.offset)), (5, Some(last as u64)));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_torn_group_is_cut_off_wherever_it_ends() {
    let folder = TempDir::new().unwrap();
    write(folder.path(), &[2, 3]);
    let path = file(folder.path());
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let (_, read, torn) = open(folder.path(), 0);
        assert!([0, 2].contains(&read.len()), "{length}");
        assert_eq!(
            torn.map_or(0, |torn| torn.bytes + torn.offset),
            if [0, 8, 56].contains(&length) { 0 } else { length as u64 }
        );
        fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn nothing_is_written_after_a_sync_that_failed() {
    let folder = TempDir::new().unwrap();
    write(folder.path(), &[2]);
    let (mut log, ..) = open(folder.path(), 0);
    log.append(b"never acknowledged").unwrap();
    log.sync = |_| Err(io::Error::other("no"));
    assert!(log.commit().is_err());
    log.sync = |_| Ok(());
    assert!(log.commit().is_err() && log.append(b"more").is_err());
    let (mut log, read, _) = open(folder.path(), 0);
    assert_eq!(read[..2].iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1]);
    log.append(b"again").unwrap();
    log.commit().unwrap();
}

#[test]
fn a_refused_record_does_not_come_back() {
    let folder = TempDir::new().unwrap();
    write(folder.path(), &[2]);
    let (mut log, ..) = open(folder.path(), 0);
    log.append(b"refused").unwrap();
    // The bytes have been written, and the disk did not take them.
    log.sync = |_| Err(io::Error::other("no"));
    assert!(log.commit().is_err());
    drop(log);
    let (_, read, torn) = open(folder.path(), 0);
    assert_eq!((read.len(), torn), (2, None));
}

#[test]
fn a_log_that_has_another_owner_stays_as_that_one_writes_it() {
    let folder = TempDir::new().unwrap();
    write(folder.path(), &[2]);
    let (mut log, ..) = open(folder.path(), 0);
    log.set_owner_check(|| Err(Error::NotFound { path: "lock".to_owned() }));
    let (mut next, ..) = open(folder.path(), 0);
    next.append(b"next").unwrap();
    next.commit().unwrap();
    log.append(b"lost").unwrap();
    assert!(log.commit().is_err());
    let (_, read, torn) = open(folder.path(), 2);
    assert_eq!((read, torn), (vec![(2, b"next".to_vec())], None));
}

/// A log in a folder that is renamed, and another log that then has its name.
#[test]
fn a_log_that_lost_its_place_takes_nothing_and_changes_no_other_log() {
    type Lose = fn(&Path, &Path);
    let renamed: Lose = |log, other| {
        fs::rename(log, log.with_extension("moved")).unwrap();
        fs::rename(other, log).unwrap();
    };
    let moved: Lose = |log, _| fs::rename(log, log.with_extension("moved")).unwrap();
    let removed: Lose = |log, _| fs::remove_dir_all(log).unwrap();
    let file_removed: Lose = |log, _| fs::remove_file(file(log)).unwrap();
    for lose in [renamed, moved, removed, file_removed] {
        let folder = TempDir::new().unwrap();
        let (path, other) = (folder.path().join("log"), folder.path().join("other"));
        write(&path, &[2]);
        let (mut log, ..) = open(&path, 0);
        log.begin_file().unwrap();
        log.append(b"kept").unwrap();
        log.commit().unwrap();
        let others = write(&other, &[1, 1]);
        let before = fs::read(file(&other)).unwrap();
        lose(&path, &other);
        assert!(log.begin_file().is_err());
        let _ = log.remove_before(2);
        log.append(b"lost").unwrap();
        assert!(log.commit().is_err());
        assert!(log.append(b"lost").is_err());
        if path.exists() && !other.exists() {
            assert_eq!(fs::read(file(&path)).unwrap(), before);
            assert_eq!(open(&path, 0).1, others);
        }
        let kept = folder.path().join("log.moved");
        if kept.exists() {
            assert_eq!(open(&kept, 2).1, [(2, b"kept".to_vec())]);
        }
    }
}

#[test]
fn files_before_a_record_are_removed_and_gaps_are_found() {
    let folder = TempDir::new().unwrap();
    LogWriter::create(folder.path()).unwrap();
    let (mut log, ..) = open(folder.path(), 0);
    log.remove_before(9).unwrap();
    for _ in 0..3 {
        log.begin_file().unwrap();
        log.append(b"a").unwrap();
        log.append(b"b").unwrap();
        log.commit().unwrap();
    }
    let files = || fs::read_dir(folder.path()).unwrap().count();
    log.remove_before(3).unwrap();
    assert_eq!(files(), 2);
    assert_eq!(open(folder.path(), 5).1, [(5, b"b".to_vec())]);
    let early = read_log(folder.path(), 1, |_, _| Ok::<_, Error>(()));
    assert!(matches!(early, Err(Error::Damaged { .. })));
    log.begin_file().unwrap();
    log.remove_before(6).unwrap();
    assert_eq!(files(), 1);
    assert_eq!(open(folder.path(), 6).0.next(), 6);
    assert_eq!(log.append(b"c").unwrap(), 6);
    log.commit().unwrap();
    assert_eq!(open(folder.path(), 6).1, [(6, b"c".to_vec())]);
    let late = read_log(folder.path(), 8, |_, _| Ok::<_, Error>(()));
    assert!(matches!(late, Err(Error::Damaged { .. })));
    fs::remove_file(file(folder.path())).unwrap();
    let none = read_log(folder.path(), 7, |_, _| Ok::<_, Error>(()));
    assert!(matches!(none, Err(Error::Damaged { .. })));
}
