//! The modules of a package, and which of them name each other.

use std::collections::{HashMap, HashSet};

use super::packages::Package;

/// Returns the modules that each module of a package names, by their paths.
pub fn uses(package: &Package) -> HashMap<String, HashSet<String>> {
    let modules = modules(package);
    let uses_of = |(module, code): (&String, &String)| {
        let used = paths(code).into_iter().filter_map(|path| holder(&modules, module, &path));
        (module.clone(), used.filter(|used| used != module).collect())
    };
    modules.iter().map(uses_of).collect()
}

/// Modules of a package by the files that hold them: `output::folder::lock` of `jobs/runtime/output/folder/lock.rs`.
fn modules(package: &Package) -> HashMap<String, String> {
    let is_test = |name: &str| name.contains("/tests");
    let sources =
        package.files().into_iter().filter(|(name, _)| !is_test(name) && !name.ends_with("main.rs"));
    let module = |(name, source): (String, String)| {
        let path = name[package.sources.len() + 1..].trim_end_matches(".rs");
        let path = path.trim_end_matches("/mod").trim_end_matches("lib").replace('/', "::");
        // Inline tests may use any file of the package, and a visibility is no use.
        let code = source.split("\nmod tests {").next().unwrap().to_owned();
        let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
        let lines = lines.map(|line| match line.trim_start().strip_prefix("pub(in ") {
            Some(rest) => rest.split_once(')').map_or(rest, |(_, item)| item),
            None => line,
        });
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
    let mut prefixes = vec![String::new()];
    let mut name = String::new();
    let mut found = Vec::new();
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
        // A path of a facade begins with a module beside it, with or without `self`.
        let whole = |path: &str| match path.split("::").next() {
            Some("self" | "super" | "crate") => path.to_owned(),
            _ => format!("self::{path}"),
        };
        let paths = uses.flat_map(|path| paths(&whole(path.split(';').next().unwrap_or_default())));
        paths.into_iter().find(|path| path.rsplit("::").next() == Some(name))
    });
    match passed_on.and_then(|path| holder(modules, &module, &path)) {
        Some(held) if held != module => Some(held),
        _ => Some(module),
    }
}

/// Returns a module from which `at` can be reached again by going along `uses`, if there is any.
pub fn circle<'a>(uses: &'a HashMap<String, HashSet<String>>, at: &'a str) -> Option<Vec<&'a str>> {
    let mut ways = vec![vec![at]];
    let mut seen = HashSet::new();
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
