//! `auto` cleans and compares as docs/design/0013 and 0037 say: cases worked out by another implementation of
//! the rule.

#![expect(clippy::unwrap_used, reason = "helpers of tests, where a panic is a failure")]

use operators::method::Spec;
use operators::sets::PackedSets;
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;

/// Returns the cleaned texts, and their similarity in millionths if they match.
fn compare(spec: &str, a: &str, b: &str) -> (String, String, Option<f64>) {
    let spec: Spec = spec.parse().unwrap();
    let mut method = spec.method(&Lexicon::default(), &Statistics::default(), None).unwrap();
    let [a, b] = [a, b].map(|text| method.cleaner.clean(text).to_owned());
    let packed = [&a, &b].map(|text| method.rule.packed(text));
    let matches = method.rule.matches(PackedSets(&packed[0]), PackedSets(&packed[1]));
    (a, b, matches.map(|similarity| (similarity.as_f64() * 1e6).round()))
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => '\n',
            ('\\', Some('t')) => '\t',
            ('\\', Some(other)) => other,
            _ => c,
        });
    }
    out
}

/// A line: two texts, as they are cleaned, and for `auto` and `auto:revisions` the similarity in millionths and whether
/// they match.
#[test]
fn texts_are_cleaned_and_compared_by_the_rule() {
    let cases = include_str!("auto.tsv").lines().filter(|line| !line.starts_with("# "));
    for (number, line) in cases.enumerate() {
        let fields: Vec<String> = line.split('\t').map(unescape).collect();
        for (spec, similarity, matches) in [("auto", 4, 5), ("auto:revisions", 6, 7)] {
            let found = compare(spec, &fields[0], &fields[1]);
            let expected = (fields[matches] == "1").then(|| fields[similarity].parse().unwrap());
            assert_eq!(
                found,
                (fields[2].clone(), fields[3].clone(), expected),
                "{spec}, case {number}: {line}"
            );
        }
    }
}
