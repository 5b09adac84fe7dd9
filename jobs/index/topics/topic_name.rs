//! Names of topics.

/// Reads the name of a topic, which is also that of a folder.
pub(crate) fn topic_name(name: &str) -> Result<String, String> {
    let fits = |name: &&str| {
        (1..=100).contains(&name.len())
            && !name.starts_with(['_', '.'])
            && !name.contains(|c: char| c == '/' || c.is_control())
    };
    let name = Some(name).filter(fits);
    name.map(str::to_owned).ok_or_else(|| {
        "expected 1 to 100 bytes without / and control characters, not beginning with _ or .".to_owned()
    })
}
