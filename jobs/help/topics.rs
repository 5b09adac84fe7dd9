//! Help about what several commands have in common: `dedup-job help TOPIC`.

use operators::method::Spec;

/// Names of the topics.
pub const TOPICS: [&str; 4] = ["methods", "formats", "memory", "exit-codes"];

/// Number of columns of the help about methods.
const COLUMNS: usize = 100;

/// Returns the help about methods: a paragraph for each.
fn methods() -> String {
    let mut text = String::from(
        "--method NAME:PARAMETER=VALUE,...; for example auto, jaccard:0.8, minhash:jaccard=0.7,features=char:5 or\n\
         simhash:features=char:5,hamming=6. explain tells what a method does and would cost, compare-methods tries several.\n",
    );
    for help in Spec::helps() {
        let mut column = 0;
        for word in help.split_whitespace() {
            let width = word.chars().count();
            match column {
                0 => text.push_str("\n  "),
                _ if column + 1 + width > COLUMNS => {
                    text.push_str("\n    ");
                    column = 2;
                }
                _ => text.push(' '),
            }
            text.push_str(word);
            column += width + 1;
        }
        text.push('\n');
    }
    text
}

/// Returns the text of a topic; `None` if there is none of that name.
pub fn topic(name: &str) -> Option<String> {
    let text = match name {
        "methods" => return Some(methods()),
        "formats" => include_str!("formats.txt"),
        "memory" => include_str!("memory.txt"),
        "exit-codes" => include_str!("exit-codes.txt"),
        _ => return None,
    };
    Some(text.to_owned())
}
