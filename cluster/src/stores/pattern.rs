//! Glob patterns of file names: `*`, `?`, `[a-z]` and `{a,b}`.

use glob::Pattern;

use super::error::Error;
use super::store::{Entry, Store, last_name};

/// Reason for which a path is refused.
pub(crate) const BEHIND_A_PATTERN: &str =
    "a \"..\" behind a pattern is not resolved: write the folder that it leads to";

/// Returns whether a name has characters of a pattern.
pub(crate) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '[', '{'])
}

/// Splits a list at the commas outside of braces.
pub(crate) fn split(list: &str) -> Vec<&str> {
    let mut depth = 0usize;
    let separates = |c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    list.split(separates).collect()
}

/// Expands the braces of a pattern: `a{b,c}d` becomes `abd` and `acd`.
pub(crate) fn alternatives(pattern: &str) -> Result<Vec<String>, String> {
    let Some(open) = pattern.find('{') else {
        return Ok(vec![pattern.to_owned()]);
    };
    let mut depth = 0;
    let closes = |c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0
    };
    let close = pattern[open..].find(closes).ok_or("a { is never closed")? + open;
    let mut patterns = Vec::new();
    for choice in split(&pattern[open + 1..close]) {
        patterns.extend(alternatives(&format!("{}{choice}{}", &pattern[..open], &pattern[close + 1..]))?);
    }
    Ok(patterns)
}

/// Adds the files that match to `files`, and to `hidden` the hidden entries that match or lie in directories that do. `names` are the patterns
/// below `directory`, one per level. A directory that matches all of them adds every file below it.
pub(crate) fn matching(
    store: &dyn Store,
    directory: &str,
    names: &[&str],
    bad: &dyn Fn(String) -> Error,
    (files, hidden): (&mut Vec<Entry>, &mut Vec<String>),
) -> Result<(), Error> {
    let Some((first, rest)) = names.split_first() else {
        // With alternatives, a path may be missing under one of them. A path that exists must be read whole.
        if store.exists(directory)? {
            files.extend(store.list_and_hidden(directory, hidden)?);
        }
        return Ok(());
    };
    if !is_pattern(first) {
        return matching(store, &format!("{directory}/{first}"), rest, bad, (files, hidden));
    }
    // The crate globset does not fit: its `?` and `[...]` match one byte, which is a third of a Chinese character.
    let pattern = Pattern::new(first).map_err(|error| bad(error.msg.to_owned()))?;
    let here = if directory.is_empty() { "/" } else { directory };
    let mut hidden_here = Vec::new();
    let children = match store.children_and_hidden(here, &mut hidden_here) {
        Err(Error::NotFound { .. }) => Vec::new(),
        children => children?,
    };
    if rest.is_empty() {
        hidden_here.retain(|path| pattern.matches(last_name(path.trim_end_matches('/'))));
        hidden.append(&mut hidden_here);
    }
    for child in children {
        let name = child.name();
        // A listing of a file contains the file itself.
        if child.path == here || !pattern.matches(name) {
            continue;
        }
        if child.directory {
            matching(store, &child.path, rest, bad, (files, hidden))?;
        } else if rest.is_empty() {
            files.push(child);
        }
    }
    Ok(())
}
