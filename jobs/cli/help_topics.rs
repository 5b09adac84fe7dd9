//! Help about what several commands have in common: `dedup-job help TOPIC`.

use operators::method::Spec;

/// Examples of `dedup`, the commonest first.
pub const EXAMPLES: &str = concat!("Examples:\n", include_str!("help/examples.txt"));

/// Names of the topics.
pub const TOPICS: [&str; 4] = ["methods", "formats", "memory", "exit-codes"];

/// Returns the text of a topic; `None` if there is none of that name.
pub fn topic(name: &str) -> Option<String> {
    let text = match name {
        "methods" => return Some(Spec::help()),
        "formats" => include_str!("help/formats.txt"),
        "memory" => include_str!("help/memory.txt"),
        "exit-codes" => include_str!("help/exit-codes.txt"),
        _ => return None,
    };
    Some(text.to_owned())
}
