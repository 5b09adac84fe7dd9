//! Tests of addresses, patterns and lists of inputs.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tempfile::TempDir;

use super::*;

fn folder(names: &[&str]) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    for name in names {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, name).unwrap();
    }
    (folder, path)
}

/// Returns the names that a pattern finds below `folder`.
fn names(folder: &str, pattern: &str) -> Vec<String> {
    let found = Stores::new().expand(&[format!("{folder}/{pattern}")]).unwrap();
    found.iter().map(|file| file.path[folder.len() + 1..].to_owned()).collect()
}

#[test]
fn every_kind_of_uri_leads_to_its_store_and_path() {
    let stores = Stores::new();
    let located = |uri| {
        let (store, path) = stores.locate(uri).unwrap();
        format!("{} {path}", store.prefix())
    };
    assert_eq!(located("/a//b/./c/"), " /a/b/c");
    assert_eq!(located("file:///a/b"), " /a/b");
    assert_eq!(located("file:/a/b"), " /a/b");
    assert_eq!(located("/"), " /");
    assert_eq!(located("a:b"), format!(" {}/a:b", std::env::current_dir().unwrap().display()));
    assert_eq!(located("hdfs://127.0.0.1:9000/a//b/"), "hdfs://127.0.0.1:9000 /a/b");
    assert_eq!(located("hdfs://127.0.0.1:9000"), "hdfs://127.0.0.1:9000 /");
    assert_eq!(located("hdfs://127.0.0.1/文"), "hdfs://127.0.0.1 /文");
    assert_eq!(located("hdfs://LocalHost.:9000/a"), located("hdfs://localhost:9000/a"));
    assert_eq!(located("hdfs://LOCALHOST:9000/a"), "hdfs://localhost:9000 /a");
    assert_eq!(located("s3://bucket/a//b c%20/"), "s3://bucket /a/b c%20");
    assert_eq!(located("s3a://bucket"), "s3://bucket /");
    assert_eq!(located("gs://bucket/文"), "gs://bucket /文");
    let account = "container@account.dfs.core.windows.net";
    assert_eq!(located(&format!("abfs://{account}/x")), format!("abfss://{account} /x"));
}

#[test]
fn relative_names_lie_below_the_directory() {
    let (_guard, folder) = folder(&["a/x", "a,b"]);
    let stores = Stores::below(&folder);
    assert_eq!(stores.locate("a/x").unwrap().1, format!("{folder}/a/x"));
    assert_eq!(stores.locate("/b").unwrap().1, "/b");
    let found = stores.expand(&["a", "a,b"]).unwrap();
    let names: Vec<_> = found.iter().map(|file| &file.path[folder.len()..]).collect();
    assert_eq!(names, ["/a,b", "/a/x"]);
}

#[test]
fn dots_are_resolved_as_their_store_would() {
    let (_guard, folder) = folder(&["a/b/x", "c"]);
    std::os::unix::fs::symlink("a/b", format!("{folder}/link")).unwrap();
    let stores = Stores::below(&folder);
    let located = |uri: &str| Ok::<_, String>(stores.locate(uri).map_err(|error| error.to_string())?.1);
    assert_eq!(located("a/../c/."), Ok(format!("{folder}/c")));
    assert_eq!(located("link/../b/x"), Ok(format!("{folder}/a/b/x")), "as cat link/../b/x has it");
    assert_eq!(located("new/../c"), Ok(format!("{folder}/c")));
    assert_eq!(located("/../.."), Ok("/".to_owned()));
    assert_eq!(located("hdfs://127.0.0.1/a/./b/../../c"), Ok("/c".to_owned()));
    fs::create_dir(format!("{folder}/d[1]")).unwrap();
    assert_eq!(located("d[1]/../c"), Ok(format!("{folder}/c")), "a name that exists is no pattern");
    assert_eq!(located("d[1]/new/../../c"), Ok(format!("{folder}/c")));
    for (uri, hint) in [
        ("hdfs://127.0.0.1/a/../../b", "above the root"),
        ("s3://bucket/a/../b", "in a bucket"),
        ("*/../c", "behind a pattern"),
        ("a/b[1]/x/../c", "behind a pattern"),
        ("hdfs://127.0.0.1/{a,b}/../c", "behind a pattern"),
    ] {
        let error = located(uri).unwrap_err();
        assert!(error.contains(hint), "{uri}: {error}");
    }
}

#[test]
fn a_path_lies_in_a_folder_whatever_links_lead_to_it() {
    let (_guard, folder) = folder(&["state/x", "other/y"]);
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, format!("{folder}/{name}")).unwrap();
    };
    link("state", "link");
    link("state/new", "to-nothing");
    link("round", "round");
    let stores = Stores::below(&folder);
    let lies_in = |inner: &str| stores.lies_in(inner, "state").unwrap();
    for inner in
        ["state", "state/new/a", "link/x", "link/new", "other/../state/x", "to-nothing", "to-nothing/a"]
    {
        assert!(lies_in(inner), "{inner}");
    }
    for outside in ["other", "state-2", "state/../other", "round", "new", "hdfs://127.0.0.1/state/x"] {
        assert!(!lies_in(outside), "{outside}");
    }
    assert!(!lies_in(&"a/".repeat(60_000)));
    assert!(stores.lies_in("hdfs://127.0.0.1/a/b/c", "hdfs://127.0.0.1/a/b/").unwrap());
    assert!(!stores.lies_in("hdfs://127.0.0.1/a/bc", "hdfs://127.0.0.1/a/b").unwrap());
}

#[test]
fn each_name_node_has_one_store() {
    let stores = Stores::new();
    let (one, _) = stores.locate("hdfs://127.0.0.1:9000/a").unwrap();
    assert!(Arc::ptr_eq(&one, &stores.locate("hdfs://127.0.0.1:9000/b").unwrap().0));
    let (other, _) = stores.locate("hdfs://127.0.0.1:9001/a").unwrap();
    assert!(!Arc::ptr_eq(&one, &other));
}

#[test]
fn unknown_schemes_name_the_known_ones() {
    for (uri, hint) in [
        ("ftp://host/x", "hdfs"),
        ("s3:///x", "s3://bucket/path"),
        ("file://host/x", "file:///path"),
        ("", "empty"),
    ] {
        let error = Stores::new().locate(uri).err().unwrap().to_string();
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn patterns_match_level_by_level() {
    let (_guard, folder) = folder(&[
        "2023/01/a.txt",
        "2023/02/b.txt",
        "2024/01/c.txt",
        "2024/01/d.gz",
        "e.txt",
        "2024/_x/f.txt",
        "2024/01/.g.txt",
        "中文/一.txt",
    ]);
    assert_eq!(names(&folder, "*.txt"), ["e.txt"]);
    assert_eq!(names(&folder, "*/*/*.txt"), ["2023/01/a.txt", "2023/02/b.txt", "2024/01/c.txt"]);
    assert_eq!(names(&folder, "*/01"), ["2023/01/a.txt", "2024/01/c.txt", "2024/01/d.gz"]);
    assert_eq!(names(&folder, "202[!3]"), ["2024/01/c.txt", "2024/01/d.gz"]);
    assert_eq!(
        names(&folder, "{2023/02,2024/{01,09}}/?.*"),
        ["2023/02/b.txt", "2024/01/c.txt", "2024/01/d.gz"]
    );
    assert_eq!(names(&folder, "?文/[一二].*"), ["中文/一.txt"]);
    assert_eq!(names(&folder, "2024/_x/*"), ["2024/_x/f.txt"]);
}

#[test]
fn a_link_to_nothing_is_passed_over_with_a_word() {
    let (_guard, folder) = folder(&["a/x", "a/y"]);
    std::os::unix::fs::symlink("nowhere", format!("{folder}/a/z")).unwrap();
    for pattern in ["a", "*", "a/*"] {
        let stores = Stores::new();
        assert_eq!(stores.expand(&[format!("{folder}/{pattern}")]).unwrap().len(), 2, "{pattern}");
        let passed_over = stores.passed_over().into_iter().collect::<Vec<_>>();
        assert_eq!(passed_over, [(format!("{folder}/a/z"), "a link to nothing")], "{pattern}");
    }
    let named = Stores::new().expand(&[format!("{folder}/a/z")]).err().unwrap();
    assert!(matches!(named, Error::NotFound { .. }), "{named}");
}

#[test]
fn lists_are_sorted_and_name_every_file_once() {
    let (_guard, folder) = folder(&["b/x", "a/x", "a/y"]);
    assert_eq!(names(&folder, &format!("b,{folder}/a/{{y,x}},,{folder}/a")), ["a/x", "a/y", "b/x"]);
    let relative = |inputs: [&str; 2]| {
        let found = Stores::new().expand(&inputs.map(|input| format!("{folder}/{input}"))).unwrap();
        found.into_iter().map(|file| file.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(relative(["", "a"]), relative(["a", ""]));
}

#[test]
fn names_are_relative_to_the_input() {
    let (_guard, folder) = folder(&["art/1.txt", "art/old/2.txt"]);
    let names = |pattern: &str| {
        let found = Stores::new().expand(&[format!("{folder}/{pattern}")]).unwrap();
        found.into_iter().map(|file| file.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names("art"), ["1.txt", "old/2.txt"]);
    assert_eq!(names("art/"), ["1.txt", "old/2.txt"]);
    assert_eq!(names("art/1.txt"), ["1.txt"]);
    assert_eq!(names("a*/*.txt"), ["art/1.txt"]);
    assert_eq!(names("art/{old,new}"), ["old/2.txt"]);
}

#[test]
fn what_exists_under_a_name_is_meant_by_it() {
    let (_guard, folder) = folder(&["a[1].txt", "a1.txt", "b,c", "b", "d{1,2}"]);
    assert_eq!(names(&folder, "a[1].txt"), ["a[1].txt"]);
    assert_eq!(names(&folder, "a[1]*"), ["a1.txt"]);
    assert_eq!(names(&folder, "b,c"), ["b,c"]);
    assert_eq!(names(&folder, "d{1,2}"), ["d{1,2}"]);
    assert_eq!(names(&folder, "a[[]*"), ["a[1].txt"]);
    assert_eq!(names(&folder, "{a[1],b}{.txt,}"), ["a[1].txt", "b"]);
}

#[test]
fn an_input_that_leads_to_nothing_is_an_error_that_names_it() {
    let (_guard, folder) = folder(&["a", "d/_SUCCESS"]);
    let error = |input: &str| Stores::new().expand(&[format!("{folder}/{input}")]).err().unwrap();
    assert!(matches!(error("*.txt"), Error::NotFound { path } if path.ends_with("/*.txt")));
    assert!(matches!(error(&format!("a,{folder}/b")), Error::NotFound { path } if path.ends_with("/b")));
    assert!(matches!(error("a/*"), Error::NotFound { .. }));
    assert!(matches!(error("d"), Error::BadName { .. }));
    assert!(matches!(error("{a"), Error::BadName { .. }));
    assert!(matches!(error("a[*"), Error::BadName { .. }));
}

proptest! {
    #[test]
    fn whatever_the_input_a_file_lies_where_its_name_says_and_the_name_leads_nowhere_else(
        files in vec(vec(select(vec!["a", "b", "ab", "...", "c d"]), 1..4), 1..6),
        pattern in vec(select(vec![
            "a", "b", "ab", "...", "c d", "*", "?", "[ab]", "a*", "{a,b}", "{a,..}", "{a,}", "{b,a/../b}", "..", ".", "",
        ]), 1..6),
    ) {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("x/y/root");
        fs::create_dir_all(&root).unwrap();
        for names in files {
            let file = root.join(names.join("/"));
            // A path may be both a file and a folder; the first one stays.
            if fs::create_dir_all(file.parent().unwrap()).is_ok() && !file.exists() {
                fs::write(file, "").unwrap();
            }
        }
        fs::write(outer.path().join("x/a"), "").unwrap();
        let root = fs::canonicalize(root).unwrap();
        let uri = format!("{}/{}", root.display(), pattern.join("/"));
        for file in Stores::new().expand(&[uri]).unwrap_or_default() {
            prop_assert!(!file.name.is_empty() && !file.name.starts_with('/'), "{:?}", file.name);
            prop_assert!(file.name.split('/').all(|part| !["", ".", ".."].contains(&part)), "{:?}", file.name);
            prop_assert!(file.path.ends_with(&format!("/{}", &*file.name)), "{} {:?}", file.path, file.name);
            prop_assert_eq!(fs::canonicalize(&file.path).unwrap(), PathBuf::from(&file.path));
        }
    }
}

#[test]
fn what_is_no_input_is_passed_over_in_folders_and_named_by_what_it_is() {
    let files = [
        "d=1/x",
        "_d=2/x",
        "_hidden/x",
        ".x.crc",
        "_SUCCESS",
        "a._COPYING_",
        "b.tmp",
        "c~",
        "d_$folder$",
        "map/data",
        "map/index",
        "text/data",
        "text/index",
    ];
    let (_guard, folder) = folder(&files);
    fs::write(format!("{folder}/map/data"), "SEQ and more").unwrap();
    let stores = Stores::new();
    let found = stores.expand(&[&folder]).unwrap();
    let inputs: Vec<_> = found.iter().map(|file| &file.path[folder.len() + 1..]).collect();
    assert_eq!(inputs, ["_d=2/x", "d=1/x", "map/data", "text/data", "text/index"]);
    let passed_over = stores.passed_over();
    let kinds: Vec<_> = passed_over.iter().map(|(path, kind)| (&path[folder.len() + 1..], *kind)).collect();
    assert_eq!(
        kinds,
        [
            ("_hidden", "hidden, since its name begins with _ or ."),
            ("a._COPYING_", "a file that is still being copied"),
            ("b.tmp", "a temporary file"),
            ("c~", "an editor's copy of what a file was"),
            ("d_$folder$", "the marker of a folder"),
            ("map/index", "the index of a MapFile"),
        ]
    );
    let stores = Stores::new();
    let nothing = stores.expand(&[format!("{folder}/_h*")]).err().unwrap().to_string();
    assert!(nothing.contains("_hidden\", which is hidden"), "{nothing}");
    assert!(stores.expand(&[format!("{folder}/*")]).is_ok());
    for both in [[&folder, &format!("{folder}/b.tmp")], [&format!("{folder}/b.tmp"), &folder]] {
        let stores = Stores::new();
        assert_eq!(stores.expand(&both).unwrap().len(), inputs.len() + 1);
        assert!(!stores.passed_over().contains_key(&format!("{folder}/b.tmp")));
        assert_eq!(stores.passed_over().len(), passed_over.len() - 1);
    }
    assert_eq!(stores.passed_over().len(), passed_over.len());
    for named in ["b.tmp", "*.tmp", "map/index", "_hidden", "{c~,x}"] {
        assert_eq!(names(&folder, named).len(), 1, "{named}");
    }
}
