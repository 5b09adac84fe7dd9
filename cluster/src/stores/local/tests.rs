//! Names, links and edge cases of the local file system.

use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::time::UNIX_EPOCH;

use tempfile::TempDir;

use super::*;

fn folder() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    (folder, path)
}

fn write(path: &str, text: &str) {
    let mut output = Local.create(path).unwrap();
    output.write_all(text.as_bytes()).unwrap();
    output.finish().unwrap();
}

fn listed(path: &str) -> Vec<String> {
    let entries = Local.list(path).unwrap();
    entries.iter().map(|entry| entry.path[path.len()..].to_owned()).collect()
}

#[test]
fn a_file_is_seen_only_when_it_is_finished() {
    let (_guard, folder) = folder();
    let path = format!("{folder}/a/b/part");
    let mut output = Local.create(&path).unwrap();
    output.write_all(&[7; 1 << 18]).unwrap();
    assert!(!Local.exists(&path).unwrap());
    assert_eq!(listed(&folder), [""; 0]);
    output.finish().unwrap();
    assert_eq!(Local.list(&folder).unwrap()[0].bytes, 1 << 18);
    assert_eq!(fs::read_dir(format!("{folder}/a/b")).unwrap().count(), 1);
}

#[test]
fn an_unfinished_file_leaves_nothing_behind() {
    let (_guard, folder) = folder();
    let mut output = Local.create(&format!("{folder}/part")).unwrap();
    output.write_all(b"half").unwrap();
    drop(output);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_new_file_is_as_readable_as_any_other() {
    let (_guard, folder) = folder();
    fs::write(format!("{folder}/other"), "").unwrap();
    write(&format!("{folder}/part"), "x");
    let mode = |name| fs::metadata(format!("{folder}/{name}")).unwrap().permissions().mode();
    assert_eq!(mode("part"), mode("other"));
}

#[test]
fn the_longest_name_can_be_written() {
    let (_guard, folder) = folder();
    let path = format!("{folder}/{}", "重".repeat(85));
    write(&path, "x");
    assert!(Local.exists(&path).unwrap());
}

#[test]
fn lists_are_sorted_by_byte_and_leave_out_hidden_names() {
    let (_guard, folder) = folder();
    for name in ["b/x", "b-x", "a", "中/文", ".hidden", "_SUCCESS", "_temporary/0/part", "b/.crc"] {
        write(&format!("{folder}/{name}"), name);
    }
    assert_eq!(listed(&folder), ["/a", "/b-x", "/b/x", "/中/文"]);
    assert_eq!(listed(&format!("{folder}/_temporary")), ["/0/part"]);
    assert_eq!(listed(&format!("{folder}/_SUCCESS")), [""]);
}

#[test]
fn links_are_followed_but_never_in_a_circle() {
    let (_guard, folder) = folder();
    write(&format!("{folder}/a/one"), "1");
    write(&format!("{folder}/b/two"), "2");
    symlink(format!("{folder}/a/one"), format!("{folder}/b/file")).unwrap();
    symlink(format!("{folder}/b"), format!("{folder}/a/to-b")).unwrap();
    symlink(format!("{folder}/a"), format!("{folder}/b/to-a")).unwrap();
    symlink("..", format!("{folder}/a/up")).unwrap();
    let expected = ["/file", "/to-a/one", "/two"];
    assert_eq!(listed(&format!("{folder}/b")), expected);
}

#[test]
fn names_of_any_bytes_are_listed_opened_written_and_renamed() {
    let (_guard, folder) = folder();
    let at = |name: &[u8]| Path::new(&folder).join(OsStr::from_bytes(name));
    let long = [[0xE9; 251].as_slice(), b".txt"].concat();
    let names: [&[u8]; 4] = [b"caf\xe9", b"new\nline", b"-dash", &long];
    for name in names {
        fs::write(at(name), name).unwrap();
    }
    for entry in Local.list(&folder).unwrap() {
        let name = entry.path[folder.len() + 1..].to_owned();
        let mut bytes = vec![0; entry.bytes as usize];
        Local.open(&entry.path).unwrap().read_full_at(0, &mut bytes).unwrap();
        assert_eq!(at(&bytes), path_of_text(&entry.path));
        write(&format!("{folder}/new/{name}/x"), &name);
        Local.rename(&format!("{folder}/new/{name}"), &format!("{folder}/moved-{}", name.len())).unwrap();
        assert!(Local.exists(&format!("{folder}/moved-{}/x", name.len())).unwrap());
        Local.remove(&entry.path).unwrap();
    }
    assert_eq!(Local.list(&folder).unwrap().len(), names.len());
    assert!(names.iter().all(|name| !at(name).exists()));
}

#[test]
fn reads_are_cut_at_the_end_and_a_file_cut_short_is_an_error() {
    let (_guard, folder) = folder();
    let path = format!("{folder}/x");
    write(&path, "0123456789");
    let blob = Local.open(&path).unwrap();
    let mut buffer = [0; 4];
    assert_eq!(blob.bytes(), 10);
    assert_eq!((blob.read_at(8, &mut buffer).unwrap(), &buffer[..2]), (2, &b"89"[..]));
    assert_eq!(blob.read_at(10, &mut buffer).unwrap(), 0);
    assert_eq!(blob.read_at(u64::MAX, &mut buffer).unwrap(), 0);
    fs::write(&path, "012").unwrap();
    assert!(matches!(blob.read_at(5, &mut buffer), Err(Error::Changed { .. })));
}

#[test]
fn a_file_that_is_written_to_while_it_is_open_is_an_error_however_long_it_is() {
    let (_guard, folder) = folder();
    let path = format!("{folder}/x");
    write(&path, "0123456789");
    let file = File::options().append(true).open(&path).unwrap();
    file.set_modified(UNIX_EPOCH).unwrap();
    let blob = Local.open(&path).unwrap();
    assert_eq!(blob.read_at(0, &mut [0; 4]).unwrap(), 4);
    fs::write(&path, "9876543210").unwrap();
    assert!(matches!(blob.read_at(4, &mut [0; 4]), Err(Error::Changed { .. })));
}

#[test]
fn rename_never_replaces_and_remove_takes_trees_links_and_nothing() {
    let (_guard, folder) = folder();
    let path = |name: &str| format!("{folder}/{name}");
    write(&path("a/x"), "1");
    write(&path("b"), "2");
    assert!(Local.rename(&path("a"), &path("b")).is_err());
    Local.rename(&path("a"), &path("c")).unwrap();
    symlink(path("c"), path("link")).unwrap();
    Local.remove(&path("link")).unwrap();
    assert_eq!(listed(&folder), ["/b", "/c/x"]);
    Local.remove(&path("c")).unwrap();
    Local.remove(&path("b")).unwrap();
    Local.remove(&path("b")).unwrap();
    Local.create_dir(&path("d/e")).unwrap();
    Local.create_dir(&path("d/e")).unwrap();
    assert!(Local.exists(&path("d/e")).unwrap());
    assert!(!Local.exists(&path("b")).unwrap());
    for name in ["d", "d/e", "d", "none"] {
        Local.remove_empty(&path(name)).unwrap();
    }
    write(&path("d/x"), "1");
    Local.remove_empty(&path("d")).unwrap();
    assert_eq!(listed(&folder), ["/d/x"]);
    Local.remove_empty(&path("d/x")).unwrap();
    assert_eq!(listed(&folder), ["/d/x"]);
}

#[test]
fn of_many_who_create_a_file_at_once_one_does() {
    let (_guard, folder) = folder();
    for round in 0..50 {
        let path = format!("{folder}/a/{round}");
        let create = |me: u8| Local.create_new(&path, &[me; 100]).unwrap();
        let created: Vec<u8> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|me| (me, scope.spawn(move || create(me)))).collect();
            threads.into_iter().filter_map(|(me, thread)| thread.join().unwrap().then_some(me)).collect()
        });
        let [winner] = created[..] else { panic!("{created:?}") };
        assert_eq!(fs::read(&path).unwrap(), [winner; 100]);
    }
    assert_eq!(fs::read_dir(format!("{folder}/a")).unwrap().count(), 50);
    fs::create_dir(format!("{folder}/b")).unwrap();
    assert!(!Local.create_new(&format!("{folder}/b"), b"x").unwrap());
}

#[test]
fn a_file_is_listed_with_the_time_of_its_last_writing() {
    let (_guard, folder) = folder();
    write(&format!("{folder}/x"), "1");
    let file = File::options().append(true).open(format!("{folder}/x")).unwrap();
    file.set_modified(UNIX_EPOCH + std::time::Duration::from_millis(1_234_567)).unwrap();
    assert_eq!(Local.list(&folder).unwrap()[0].version.modified, Some(1_234_567));
}

#[test]
fn missing_files_and_directories_are_told_apart() {
    let (_guard, folder) = folder();
    assert!(matches!(Local.open(&format!("{folder}/x")), Err(Error::NotFound { .. })));
    assert!(matches!(Local.list(&format!("{folder}/x")), Err(Error::NotFound { .. })));
    assert!(matches!(Local.rename(&format!("{folder}/x"), "/y"), Err(Error::NotFound { .. })));
    assert!(matches!(Local.open(&folder), Err(Error::Io { .. })));
}

#[test]
fn bytes_in_the_cache_of_files_are_at_hand_if_nobody_may_write_them() {
    let (_guard, folder) = folder();
    let path = format!("{folder}/a");
    write(&path, "0123456789");
    let (settled, other) = (Local.open_settled(&path).unwrap(), Local.open(&path).unwrap());
    let mut buffer = [0; 4];
    // The system may have put the file out of its cache; whoever reads it brings it back.
    let is_at_hand = (0..100).any(|_| {
        settled.read_full_at(3, &mut [0; 4]).unwrap();
        settled.read_at_hand(3, &mut buffer)
    });
    assert!(is_at_hand && buffer == *b"3456");
    assert!(!settled.read_at_hand(8, &mut buffer), "these bytes are not all in the file");
    assert!(!other.read_at_hand(3, &mut buffer));
}
