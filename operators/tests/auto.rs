//! `auto` cleans and compares as docs/design/0013 and 0037 say: cases worked out by another implementation of
//! the rule.

use operators::method::{Method, MethodJob, SetMethod, Spec, Zhou};
use operators::sets::{PackedSets, Sets};
use operators::text::Cleaner;
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;

/// The cleaned texts and whether they match, with their similarity.
struct Compare<'a>(&'a str, &'a str);

impl MethodJob for Compare<'_> {
    type Output = (String, String, Option<f64>);

    fn run<M: Method>(self, _cleaner: Cleaner, _method: M) -> Self::Output {
        panic!("auto compares sets")
    }

    fn sets(self, mut method: SetMethod) -> Self::Output {
        let [a, b] = [self.0, self.1].map(|text| {
            let text = method.cleaner.clean(text).to_owned();
            let (mut sets, mut packed) = (Sets::default(), Vec::new());
            method.rule.sets(&text, &mut sets);
            sets.pack(&mut packed);
            (text, packed)
        });
        let matches = method.rule.matches(PackedSets(&a.1), PackedSets(&b.1));
        (a.0, b.0, matches.map(|similarity| (similarity.as_f64() * 1e6).round()))
    }

    fn zhou(self, _cleaner: Cleaner, _method: Zhou) -> Self::Output {
        panic!("auto compares sets")
    }
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
            let spec: Spec = spec.parse().unwrap();
            let found = spec
                .with(&Lexicon::default(), &Statistics::default(), Compare(&fields[0], &fields[1]))
                .unwrap();
            let expected = (fields[matches] == "1").then(|| fields[similarity].parse().unwrap());
            assert_eq!(
                found,
                (fields[2].clone(), fields[3].clone(), expected),
                "{spec}, case {number}: {line}"
            );
        }
    }
}
