//! These tests check the arrows between packages and rooms, and other rules of ARCHITECTURE.md that no compiler
//! checks.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns all Rust files of the repository below `folder`, by their paths in it.
fn sources(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(".rs") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(!found.is_empty(), "no sources in {folder}");
    found
}

/// Returns the identifiers of a source. Everything after `//` in a line counts as a comment.
fn words(source: &str) -> HashSet<&str> {
    let code = source.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_')).collect()
}

/// Checks that no file of `folder` but those that `may` names one of `forbidden`.
#[track_caller]
fn name_none_of(folder: &str, forbidden: &[&str], may: impl Fn(&str) -> bool) {
    for (name, source) in sources(folder).iter().filter(|(name, _)| !may(name)) {
        let words = words(source);
        let named: Vec<_> = forbidden.iter().filter(|word| words.contains(**word)).collect();
        assert!(named.is_empty(), "{name} names {named:?}");
    }
}

/// Returns the packages of this project that a manifest lists.
fn dependencies(manifest: &str) -> Vec<String> {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest)).unwrap();
    let packages = ["jobs", "datasets", "operators", "cluster"].into_iter();
    let listed = |name: &&str| {
        let names = [
            format!("{name}."),
            format!("{name} "),
            format!("dedup-{name}"),
            format!("[dependencies.{name}]"),
        ];
        manifest.lines().any(|line| names.iter().any(|name| line.starts_with(name)))
    };
    packages.filter(listed).map(str::to_owned).collect()
}

#[test]
fn only_the_flow_of_the_operators_names_the_engine() {
    name_none_of("operators/src", &["timely"], |file| file.starts_with("operators/src/flow/"));
    let flow = sources("operators/src/flow");
    assert!(flow.iter().any(|(_, source)| words(source).contains("timely")), "the check finds nothing");
    for folder in ["operators/src", "cluster/src", "datasets/src", "jobs"] {
        name_none_of(folder, &["differential_dataflow"], |file| file.starts_with("operators/src/flow/view/"));
    }
}

#[test]
fn one_file_of_the_operators_names_files() {
    name_none_of("operators/src", &["fs", "File", "tempfile"], |file| {
        file == "operators/src/spill/budget.rs"
    });
}

#[test]
fn the_arrows_between_the_packages_hold() {
    let all = |_: &str| false;
    name_none_of("operators/src", &["cluster", "datasets", "jobs"], |file| {
        // In these files `cluster` is a group of near-duplicates. The manifest shows that there is no
        // dependency.
        ["operators/src/survivors.rs", "operators/src/incremental.rs"].contains(&file)
            || file.starts_with("operators/src/flow/clusters/")
    });
    // In that file it is a module of the engine.
    let engine = |file: &str| file == "cluster/src/processes/tests/life.rs";
    name_none_of("cluster/src", &["operators", "datasets", "jobs"], engine);
    name_none_of("datasets/src", &["timely", "method", "flow", "jobs"], all);
    assert_eq!(dependencies("operators/Cargo.toml"), [""; 0]);
    assert_eq!(dependencies("cluster/Cargo.toml"), [""; 0]);
    assert_eq!(dependencies("datasets/Cargo.toml"), ["operators", "cluster"]);
    assert_eq!(dependencies("Cargo.toml"), ["datasets", "operators", "cluster"]);
}

/// Rooms of a package, from low to high: a room uses only those before it.
const ROOMS: [(&str, &[&str]); 2] = [
    (
        "jobs",
        &[
            "cli",
            "launch",
            "progress",
            "corpus",
            "output",
            "report",
            "dedup",
            "state",
            "nightly",
            "index",
            "chunk",
            "commands",
            "reproduce",
        ],
    ),
    (
        "operators/src",
        &["spill", "text", "fingerprint", "sets", "blocks", "search", "method", "evaluate", "flow"],
    ),
];

#[test]
fn the_arrows_between_the_rooms_hold() {
    for (package, rooms) in ROOMS {
        for (height, room) in rooms.iter().enumerate() {
            for (name, source) in sources(&format!("{package}/{room}")) {
                for above in &rooms[height + 1..] {
                    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
                    let named = code.filter(|line| line.contains(&format!("crate::{above}::")));
                    assert_eq!(named.collect::<Vec<_>>(), [""; 0], "{name} is below {above}");
                }
            }
        }
    }
}

/// Names that every command, or every package, has.
const SHARED_NAMES: [&str; 2] = ["Args", "Error"];

#[test]
fn no_two_types_have_one_name() {
    let mut named = HashMap::<String, String>::new();
    let is_test = |name: &str| name.contains("/tests") || name.ends_with("testing.rs");
    let packages = ["jobs", "operators/src", "datasets/src", "cluster/src"];
    for (name, source) in packages.iter().flat_map(|package| sources(package)) {
        let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let types = code.lines().filter_map(|line| {
            // Those of modules, not of functions or traits.
            let line = line.strip_prefix("pub").map_or(line, |rest| rest.split_once(' ').unwrap().1);
            let (kind, rest) = line.split_once(' ')?;
            let is_type = ["struct", "enum", "trait", "type"].contains(&kind);
            is_type.then(|| rest.split(|c: char| !c.is_alphanumeric()).next().unwrap().to_owned())
        });
        for found in types.filter(|found| !is_test(&name) && !SHARED_NAMES.contains(&found.as_str())) {
            if let Some(other) = named.insert(found.clone(), name.clone()) {
                panic!("{found} is in {other} and in {name}");
            }
        }
    }
    assert!(named.len() > 300, "{}", named.len());
}

#[test]
fn unsafe_code_is_in_three_files() {
    name_none_of("", &["unsafe"], |file| {
        let kernels = ["operators/src/fingerprint/hamming.rs", "operators/src/fingerprint/sketch_list.rs"];
        kernels.contains(&file) || ["jobs/cli/allocator.rs", "tests/layers.rs"].contains(&file)
    });
}

#[test]
fn files_are_short_and_named_after_what_they_hold() {
    let none = ["utils", "util", "common", "helpers", "helper", "types", "manager", "new", "old", "v2"];
    for (name, source) in sources("") {
        let vague = name.split('/').any(|part| none.contains(&part.trim_end_matches(".rs")));
        assert!(!vague, "{name} does not say what it holds");
        // Nobody reads what a compiler has written; what it was written from stands beside it.
        let is_generated = name == "cluster/src/hbase/gateway.rs";
        let lines = source.lines().count();
        assert!(lines <= 400 || is_generated, "{name} has {lines} lines");
    }
}

#[test]
fn files_that_the_architecture_names_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let files: Vec<String> = sources("").into_iter().map(|(name, _)| name.replace("/src/", "/")).collect();
    let mut named = 0;
    for name in text.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs")) {
        // The pattern and the examples of files to add name none that is there.
        if name.contains(['*', ' ']) || name.ends_with("x.rs") || name.contains("/x/") {
            continue;
        }
        let end = format!("/{}", name.replace("/src/", "/"));
        assert!(files.iter().any(|file| format!("/{file}").ends_with(&end)), "ARCHITECTURE.md names {name}");
        named += 1;
    }
    assert!(named > 50, "{named} files are named");
}

#[test]
fn folders_are_small() {
    let mut files = HashMap::<String, usize>::new();
    for (name, _) in sources("").iter().filter(|(name, _)| name.contains('/')) {
        *files.entry(name.rsplit_once('/').unwrap().0.to_owned()).or_default() += 1;
    }
    let large: Vec<_> = files.into_iter().filter(|(_, files)| *files > 15).collect();
    assert_eq!(large, []);
}

#[test]
fn nothing_is_left_unfinished() {
    let marks = ["TODO", "FIXME", "XXX", "wip", "todo", "unimplemented"];
    name_none_of("", &marks, |file| file == "tests/layers.rs");
}

/// Modules of a package by the files that hold them: `output::folder::lock` of `jobs/output/folder/lock.rs`.
fn modules(package: &str) -> HashMap<String, String> {
    let is_test = |name: &str| name.contains("/tests");
    let sources =
        sources(package).into_iter().filter(|(name, _)| !is_test(name) && !name.ends_with("main.rs"));
    let module = |(name, source): (String, String)| {
        let path = name[package.len() + 1..].trim_end_matches(".rs");
        let path = path.trim_end_matches("/mod").trim_end_matches("lib").replace('/', "::");
        // Inline tests may use any file of the package.
        let code = source.split("\nmod tests {").next().unwrap().to_owned();
        let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
        (path, lines.collect::<Vec<_>>().join("\n"))
    };
    sources.map(module).collect()
}

/// Returns the paths that a piece of code names from `crate`, `super` or `self`, with braces written out.
fn paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
            if code[..at].chars().next_back().is_none_or(|before| !is_part(before)) {
                let end = code[at..].find(|c| !is_part(c)).map_or(code.len(), |length| at + length);
                match code[end..].strip_prefix('{').filter(|_| code[..end].ends_with(':')) {
                    Some(inner) => {
                        found.extend(alternatives(inner).map(|name| code[at..end].to_owned() + &name))
                    }
                    None => found.push(code[at..end].to_owned()),
                }
            }
        }
    }
    found
}

/// Returns the names between the brace that has just been opened and the one that closes it: of
/// `a::{b, c}, d}` they are `a::b`, `a::c` and `d`.
fn alternatives(inner: &str) -> impl Iterator<Item = String> {
    let (mut prefixes, mut name, mut found) = (vec![String::new()], String::new(), Vec::new());
    for c in inner.chars() {
        match c {
            '{' => prefixes.push(prefixes.last().unwrap().clone() + &std::mem::take(&mut name)),
            ',' | '}' => {
                if !name.is_empty() {
                    found.push(prefixes.last().unwrap().clone() + &std::mem::take(&mut name));
                }
                if c == '}' {
                    prefixes.pop();
                    if prefixes.is_empty() {
                        break;
                    }
                }
            }
            c if c.is_whitespace() => {}
            c => name.push(c),
        }
    }
    found.into_iter()
}

/// Returns the module that holds what `path` names, as seen from module `here`. A name that a module only
/// passes on (`pub use`) belongs to the module that it comes from.
fn holder(modules: &HashMap<String, String>, here: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split("::").collect();
    let mut at: Vec<&str> = here.split("::").filter(|part| !part.is_empty()).collect();
    match parts.remove(0) {
        "crate" => at.clear(),
        "super" => drop(at.pop()),
        _ => {}
    }
    while parts.first() == Some(&"super") {
        at.pop();
        parts.remove(0);
    }
    at.extend(parts);
    let depth = (0..=at.len()).rev().find(|&depth| modules.contains_key(&at[..depth].join("::")))?;
    let module = at[..depth].join("::");
    let passed_on = at.get(depth).and_then(|name| {
        let uses =
            modules[&module].split("pub").filter_map(|rest| rest.split_once("use ").map(|(_, path)| path));
        let paths = uses.flat_map(|path| paths(path.split(';').next().unwrap_or_default()));
        paths.into_iter().find(|path| path.rsplit("::").next() == Some(name))
    });
    match passed_on.filter(|path| path.starts_with("self::")) {
        Some(path) => holder(modules, &module, &path),
        None => Some(module),
    }
}

/// Returns a module from which `at` can be reached again by going along `uses`, if there is any.
fn circle<'a>(uses: &'a HashMap<String, HashSet<String>>, at: &'a str) -> Option<Vec<&'a str>> {
    let (mut ways, mut seen) = (vec![vec![at]], HashSet::new());
    while let Some(way) = ways.pop() {
        for next in &uses[*way.last().unwrap()] {
            if next == at {
                return Some(way);
            }
            if seen.insert(next) {
                ways.push(way.iter().copied().chain([next.as_str()]).collect());
            }
        }
    }
    None
}

#[test]
fn no_two_files_use_each_other() {
    for package in ["jobs", "operators/src", "datasets/src", "cluster/src"] {
        let modules = modules(package);
        let uses: HashMap<String, HashSet<String>> = modules
            .iter()
            .map(|(module, code)| {
                let used = paths(code).into_iter().filter_map(|path| holder(&modules, module, &path));
                (module.clone(), used.filter(|used| used != module).collect())
            })
            .collect();
        assert!(uses.values().map(HashSet::len).sum::<usize>() > modules.len(), "the check finds nothing");
        let mut circles: Vec<_> = modules.keys().filter_map(|module| circle(&uses, module)).collect();
        circles.sort();
        assert_eq!(circles, Vec::<Vec<&str>>::new(), "{package}");
    }
}
