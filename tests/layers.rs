//! These tests check the arrows between packages and rooms, and other rules of ARCHITECTURE.md that no compiler
//! checks.

mod modules;
mod packages;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use self::modules::{circle, uses};
use self::packages::{PACKAGES, Package, sources};

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

/// Returns the packages of this project that a manifest lists as dependencies.
fn dependencies(manifest: &str) -> HashSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest).join("Cargo.toml");
    let manifest = fs::read_to_string(path).unwrap();
    let listed = manifest.split("\n[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let names = listed.lines().filter_map(|line| line.split(['.', ' ']).next());
    let ours = ["hbase", "operators", "cluster", "datasets", "runtime", "batch", "nightly", "index", "chunk"];
    names.filter(|name| ours.contains(name)).map(str::to_owned).collect()
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
        file.starts_with("operators/src/decide/") || file.starts_with("operators/src/flow/clusters/")
    });
    // In that file it is a module of the engine.
    let engine = |file: &str| file == "cluster/src/processes/tests/life.rs";
    name_none_of("cluster/src", &["operators", "datasets", "jobs"], engine);
    name_none_of("datasets/src", &["timely", "method", "flow", "jobs"], all);
    for package in &PACKAGES {
        let uses: HashSet<String> = package.uses.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(dependencies(package.manifest), uses, "{}", package.manifest);
    }
}

#[test]
fn a_job_without_its_command_line_needs_neither_clap_nor_axum() {
    for package in ["dedup-batch", "dedup-nightly", "dedup-index", "dedup-chunk"] {
        let tree = |features: &[&str]| {
            let mut command = Command::new(env!("CARGO"));
            command.args([
                "tree",
                "--locked",
                "--offline",
                "--edges",
                "normal",
                "--prefix",
                "none",
                "-p",
                package,
            ]);
            let output = command.args(features).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let names = |tree: &str, name: &str| tree.lines().any(|line| line.starts_with(&format!("{name} v")));
        let tree_without = tree(&[]);
        assert!(!names(&tree_without, "clap") && !names(&tree_without, "axum"), "{package}: {tree_without}");
        assert!(names(&tree(&["--features", "cli"]), "clap"), "the check finds nothing");
    }
}

#[test]
fn the_arrows_between_the_rooms_hold() {
    for package in &PACKAGES {
        let uses = uses(package);
        let room = |module: &str| module.split("::").next().unwrap_or_default().to_owned();
        let height = |module: &str| package.rooms.iter().position(|other| *other == room(module));
        for (module, used) in uses.iter().flat_map(|(module, used)| used.iter().map(move |one| (module, one)))
        {
            if let (Some(here), Some(there)) = (height(module), height(used)) {
                assert!(there <= here, "{}: {module} uses {used}", package.sources);
            }
        }
        let rooms: HashSet<String> = uses.keys().map(|module| room(module)).collect();
        let missing: Vec<_> = package.rooms.iter().filter(|room| !rooms.contains(**room)).collect();
        assert_eq!(missing, [&""; 0], "{}", package.sources);
    }
}

/// Names that every command, or every package, has.
const SHARED_NAMES: [&str; 2] = ["Args", "Error"];

#[test]
fn no_two_types_have_one_name() {
    let mut named = HashMap::<String, String>::new();
    let is_test = |name: &str| name.contains("/tests") || name.ends_with("testing.rs");
    for (name, source) in PACKAGES.iter().flat_map(Package::files) {
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
        kernels.contains(&file) || ["jobs/runtime/cli/allocator.rs", "tests/layers.rs"].contains(&file)
    });
}

#[test]
fn files_are_short_and_named_after_what_they_hold() {
    let none = ["utils", "util", "common", "helpers", "helper", "types", "manager", "new", "old", "v2"];
    for (name, source) in sources("") {
        let vague = name.split('/').any(|part| none.contains(&part.trim_end_matches(".rs")));
        assert!(!vague, "{name} does not say what it holds");
        // Nobody reads what a compiler has written; what it was written from stands beside it.
        let is_generated = name == "cluster/hbase/gateway.rs";
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

/// Returns all documents of the repository, by their paths in it.
fn documents() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["", "docs", "docs/design", "docs/guide", "docs/guide/zh", "docs/papers"];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    let documents = paths.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let named = |path: PathBuf| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    documents.map(|path| (named(path.clone()), fs::read_to_string(&path).unwrap())).collect()
}

#[test]
fn links_between_documents_lead_to_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut followed = 0;
    for (name, text) in documents() {
        let folder = root.join(&name).parent().unwrap().to_owned();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next());
        for link in links.filter(|link| !link.is_empty() && !link.contains(':')) {
            assert!(folder.join(link).exists(), "{name} leads to {link}");
            followed += 1;
        }
    }
    assert!(followed > 100, "{followed} links");
    for (name, source) in sources("") {
        let pages = source.split("docs/").skip(1).filter_map(|rest| rest.split_inclusive(".md").next());
        let is_path = |page: &&str| page.ends_with(".md") && !page.contains(|c: char| c.is_whitespace());
        for page in pages.filter(is_path) {
            assert!(
                root.join("docs").join(page).exists() || name.starts_with("tests/layers"),
                "{name} names docs/{page}"
            );
        }
    }
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

#[test]
fn no_two_files_use_each_other() {
    for package in &PACKAGES {
        let uses = uses(package);
        assert!(uses.values().any(|used| !used.is_empty()), "the check finds nothing");
        let mut circles: Vec<_> = uses.keys().filter_map(|module| circle(&uses, module)).collect();
        circles.sort();
        assert_eq!(circles, Vec::<Vec<&str>>::new(), "{}", package.sources);
    }
}
