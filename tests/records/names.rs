//! Tests of files with unusual names, some of which are no text.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use serde_json::Value;

use crate::support::{Folder, run};

/// Returns names that end in `.txt`, without this ending. The last one is 255 bytes long with it.
fn names() -> Vec<Vec<u8>> {
    let names: [&[u8]; 13] = [
        b"new\nline",
        b"-dash",
        b"--overwrite",
        b"caf\xe9",
        b"\xff\xfe",
        // This character stands for the byte of the next name.
        "\u{10F7E9}".as_bytes(),
        b"\xe9",
        "法律".as_bytes(),
        &"法律".as_bytes()[..4],
        b"a\\xE9",
        b" \t\x1b[31m",
        b"{a,b}*?[c]",
        &[0xE9; 251],
    ];
    names.map(<[u8]>::to_vec).to_vec()
}

fn below(folder: &Folder, path: &[u8]) -> std::path::PathBuf {
    folder.path("").join(OsStr::from_bytes(path))
}

/// Returns the files below a folder, by the bytes of their paths from there.
fn tree(root: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

#[test]
fn files_of_a_tree_keep_their_names_whatever_the_bytes() {
    let folder = Folder::new();
    let (input, output) = (b"in\xe9".as_slice(), b"-out\n\xff".as_slice());
    for (i, name) in names().iter().enumerate() {
        for category in [b"Art".as_slice(), b"\xb7\xa8\xc2\xc9", b"-c"] {
            let path = below(&folder, &[input, b"/", category, b"/", name, b".txt"].concat());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{} {}", "文".repeat(i), String::from_utf8_lossy(category))).unwrap();
        }
    }
    let corpus = tree(&below(&folder, input));
    assert_eq!(corpus.len(), 39);
    let mut command = folder.command("dedup --method exact --quiet --");
    let done = run(command.arg(OsStr::from_bytes(input)).arg(OsStr::from_bytes(output)));
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    assert!(tree(&below(&folder, &[output, b"/kept"].concat())) == corpus);

    // The corpus is there twice. Each document of the second copy is removed, under its own name, and names
    // its equal.
    let copy = Folder::new();
    let both = ["a", "b"].map(|name| copy.path(name));
    for (path, text) in &corpus {
        for root in &both {
            let file = root.join(OsStr::from_bytes(path));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
    }
    copy.run("dedup --method exact --quiet . out").ends(0);
    assert!(tree(&copy.path("out/kept/a")) == corpus);
    let (removed, reasons): (BTreeMap<_, _>, BTreeMap<_, _>) =
        tree(&copy.path("out/removed")).into_iter().partition(|(name, _)| name.starts_with(b"b/"));
    let removed: BTreeMap<_, _> =
        removed.into_iter().map(|(name, text)| (name[2..].to_vec(), text)).collect();
    assert!(removed == corpus);
    let rows = reasons.values().flat_map(|part| str::from_utf8(part).unwrap().lines());
    let ids: Vec<_> = rows.map(|row| serde_json::from_str::<Value>(row).unwrap()["id"].to_string()).collect();
    assert!(ids.contains(&"\"b/Art/caf\u{10F7E9}.txt\"".to_owned()), "{ids:?}");
    assert!(ids.contains(&"\"b/Art/new\\nline.txt\"".to_owned()), "{ids:?}");
}

#[test]
fn patterns_and_errors_name_files_of_any_bytes() {
    let folder = Folder::new();
    fs::create_dir(folder.path("in")).unwrap();
    let texts = [b"x\xe9.jsonl".as_slice(), b"x\xe9\xff.jsonl", b"x\n.jsonl", b"-.jsonl"];
    for name in texts {
        fs::write(below(&folder, &[b"in/", name].concat()), "{\"text\":\"文\"}\n{\"text\":\"章\"}\n")
            .unwrap();
    }
    let run_on = |input: &[u8]| {
        run(folder.command("dedup --overwrite --quiet --").arg(OsStr::from_bytes(input)).arg("out"))
    };
    for (pattern, files) in
        [(b"in/x\xe9.*".as_slice(), 1), (b"in/x?.jsonl", 2), (b"in/x\xe9?.jsonl", 1), (b"in/*", 4)]
    {
        run_on(pattern).ends(0);
        assert_eq!(folder.counter("out", "input_files"), files, "{}", String::from_utf8_lossy(pattern));
    }
    run_on(b"in/no\xe9\n\x1b.jsonl").fails(2, &["in/no\\xE9\\n\\u{1b}.jsonl\" does not exist"]);
    // An input that lies in the output is refused whatever its name is.
    let output = std::ffi::OsString::from_vec(b"in/../in".to_vec());
    run(folder.command("dedup --overwrite --").arg(OsStr::from_bytes(b"in/x\xe9.jsonl")).arg(output))
        .fails(2, &["in/x\\xE9.jsonl\" lies in the output"]);
}

#[test]
fn files_of_one_name_from_several_inputs_are_all_seen_in_the_output() {
    for inputs in [["h/_work/a", "h/_work/b"], [".h/a", ".h/b"], ["x/1/y", "x/2/y"], ["h/a", "h/b/1.txt"]] {
        let folder = Folder::new();
        for (input, text) in inputs.iter().zip(["文章一", "另一篇文字"]) {
            let file = folder.path(input).join("1.txt");
            let file = if input.ends_with(".txt") { folder.path(input) } else { file };
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        folder.run(&format!("dedup --method exact --quiet {} {} out", inputs[0], inputs[1])).ends(0);
        folder.run("dedup --method exact --quiet out/kept again").ends(0);
        assert_eq!(folder.counter("again", "input_files"), 2, "{inputs:?}");
    }
}

#[test]
fn a_file_that_is_the_folder_of_another_input_is_told_apart() {
    let folder = Folder::new();
    for name in ["a/x.txt", "b/x.txt/y.txt"] {
        let file = folder.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, name).unwrap();
    }
    folder.run("dedup --method exact --quiet a b out").ends(0);
    let kept = tree(&folder.path("out/kept"));
    assert!(kept.keys().map(Vec::as_slice).eq([b"a/x.txt".as_slice(), b"b/x.txt/y.txt"]), "{kept:?}");
}

#[test]
fn a_name_that_every_reader_would_skip_is_refused_before_anything_is_written() {
    let folder = Folder::new();
    for name in ["in/_9.txt", "in/a/_x/1.txt"] {
        let file = folder.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, name).unwrap();
    }
    for input in ["in/_9.txt", "in/*/_x/1.txt"] {
        folder.run(&format!("dedup --quiet {input} out")).fails(2, &["every reader would skip", "rename"]);
        assert!(!folder.path("out").exists());
        let night = format!("nightly --quiet --method exact --state state --output out {input}");
        folder.run(&night).fails(2, &["every reader would skip", "rename"]);
        assert!(!folder.path("out").exists());
    }
    folder.run("dedup --quiet in/a/_x out").ends(0);
}

#[test]
fn the_name_of_the_working_directory_is_no_pattern() {
    let folder = Folder::new();
    for (name, text) in [("run[1]", "here"), ("run1", "elsewhere"), ("{run1,b}", "here"), ("ru*", "here")] {
        fs::create_dir(folder.path(name)).unwrap();
        fs::write(folder.path(name).join("x.jsonl"), format!("{{\"text\":\"{text}\"}}\n")).unwrap();
    }
    for name in ["run[1]", "{run1,b}", "ru*"] {
        let mut command = folder.command("dedup --method exact --quiet *.jsonl out");
        run(command.current_dir(folder.path(name))).ends(0);
        let kept = tree(&folder.path(name).join("out/kept"));
        let text = kept.values().next().map(|text| String::from_utf8_lossy(text).into_owned());
        assert_eq!(text.as_deref(), Some("{\"text\":\"here\"}\n"), "{name}");
        let mut command = folder.command("dedup --method exact --quiet");
        run(command.arg(folder.path(name).join("*.jsonl")).arg(folder.path("out of").join(name))).ends(0);
    }
}
