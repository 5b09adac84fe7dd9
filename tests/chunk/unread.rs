//! A file that cannot be read costs a put that file alone.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use super::store::{restored, snapshots, stats};
use crate::support::{Folder, Random, signal, wait_until_stopped};

#[test]
fn files_that_cannot_be_read_are_named_and_all_others_are_put() {
    let here = Folder::new();
    here.write("in/a.txt", "a");
    here.write("in/deep/b.txt", Random(31).text(5000));
    here.write("in/gone", "gone");
    symlink("nothing", here.path("in/lost")).unwrap();
    // Links that lead back are not followed for ever.
    symlink("..", here.path("in/deep/up")).unwrap();
    fs::create_dir(here.path("in/one")).unwrap();
    fs::create_dir(here.path("in/two")).unwrap();
    symlink("../two", here.path("in/one/link")).unwrap();
    symlink("../one", here.path("in/two/link")).unwrap();
    // The put has listed its files when it creates the first one of the store.
    let mut put = here.command("chunk put store in");
    let mut put = put.env("DEDUP_FAULT", "0 create 1 stop").stderr(Stdio::piped()).spawn().unwrap();
    wait_until_stopped(put.id());
    fs::remove_file(here.path("in/gone")).unwrap();
    signal(put.id(), "CONT");
    let ended = put.wait().unwrap();
    let mut said = String::new();
    put.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(ended.code(), Some(3), "{said}");
    for name in ["in/lost\" is not put", "in/gone\" is not put", "2 files or folders could not be read"] {
        assert!(said.contains(name), "{said}");
    }
    assert_eq!(stats(&here, "store")["snapshots"][0]["unread"], 2);
    let files = restored(&here, "store", "latest");
    assert!(files.keys().map(String::as_str).eq(["in/a.txt", "in/deep/b.txt"]), "{:?}", files.keys());
    // A put without one file to read leaves no snapshot.
    here.write("none/x", "x");
    fs::remove_file(here.path("none/x")).unwrap();
    symlink("nothing", here.path("none/x")).unwrap();
    let none = here.run("chunk put store none").ends(1);
    assert!(none.stderr.contains("no file could be read"), "{none:?}");
    here.run("chunk put store missing").fails(2, &["missing"]);
    assert_eq!(snapshots(&here).len(), 1);
    fs::remove_file(here.path("in/lost")).unwrap();
    here.run("chunk put store in").ends(0);
    here.run("chunk check store --read-files").ends(0);
}

#[test]
fn a_restore_names_the_file_that_it_cannot_write() {
    let here = Folder::new();
    here.write("in/a", "a");
    here.run("chunk put store in").ends(0);
    here.write("out/in/a/b", "a folder is where the file should be");
    let restore = here.run("chunk restore store out --overwrite").ends(1);
    assert!(
        restore.stderr.contains("could not write ") && restore.stderr.contains("out/in/a: "),
        "{restore:?}"
    );
}

#[test]
fn a_check_says_how_many_files_a_damaged_pack_leaves() {
    let here = Folder::new();
    here.write("in/a", Random(32).text(3000));
    here.run("chunk put store in").ends(0);
    here.write("in/b", Random(33).text(3000));
    here.run("chunk put store in").ends(0);
    let read = here.run("chunk check store --read-files").ends(0).stdout;
    assert!(read.contains("3 files") && read.contains("all files made"), "{read}");
    let packs = here.files("store/packs");
    assert_eq!(packs.len(), 2);
    let first = packs.iter().min_by_key(|pack| fs::metadata(pack).unwrap().modified().unwrap()).unwrap();
    let mut bytes = fs::read(first).unwrap();
    bytes[20] ^= 1;
    fs::write(first, bytes).unwrap();
    for option in ["--read-data", "--read-files"] {
        let check = here.run(&format!("chunk check store {option}")).ends(1).stdout;
        for (name, left) in snapshots(&here).into_iter().zip(["0 of 1", "1 of 2"]) {
            assert!(check.contains(&format!("snapshot {name}: \"in/a\" cannot be restored")), "{check}");
            assert!(check.contains(&format!("snapshot {name}: {left} files can be restored")), "{check}");
        }
        assert!(!check.contains("in/b"), "{check}");
    }
}
