//! `auto` tells apart what a reader tells apart: texts for which users of other tools reported that one was removed or
//! missed, the reposts, edits and variants that must be found, and cases of our own, whose source says so.

#![expect(clippy::unwrap_used, reason = "helpers of tests, where a panic is a failure")]

use std::collections::BTreeMap;

use operators::method::{PairClassifier, Spec};
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;
use serde::Deserialize;

/// A case: texts, and pairs of them of which one is superfluous, or of which a reader would miss either.
#[derive(Deserialize)]
struct Case {
    case: String,
    docs: Vec<Document>,
    same: Vec<[String; 2]>,
    different: Vec<[String; 2]>,
}

#[derive(Deserialize)]
struct Document {
    id: String,
    text: String,
}

/// Pairs that are judged wrongly, with the reason. A case that is judged rightly one day goes from here.
const WRONG: &[(&str, &str)] =
    &[("en-ocr a-b", "two of three slips stand in one word of a short text, which then shares too little")];

/// Returns the pairs that a method judges wrongly.
fn wrong(spec: &str, case: &Case) -> Vec<String> {
    let spec: Spec = spec.parse().unwrap();
    let method = spec.method(&Lexicon::default(), &Statistics::default(), None).unwrap();
    let mut cleaner = method.cleaner.clone();
    let mut pairs = PairClassifier::new(method);
    let texts: BTreeMap<&str, &str> = case.docs.iter().map(|doc| (&*doc.id, &*doc.text)).collect();
    let numbers: BTreeMap<&str, usize> = texts.iter().map(|(&id, text)| (id, pairs.add(text))).collect();
    let mut joined = |[a, b]: &[String; 2]| {
        let first = cleaner.clean(texts[&**a]).to_owned();
        first == cleaner.clean(texts[&**b]) || pairs.classify(numbers[&**a], numbers[&**b]).matches
    };
    let missed = case.same.iter().filter(|pair| !joined(pair)).collect::<Vec<_>>();
    let taken = case.different.iter().filter(|pair| joined(pair)).collect::<Vec<_>>();
    missed.into_iter().chain(taken).map(|[a, b]| format!("{} {a}-{b}", case.case)).collect()
}

#[test]
fn pairs_that_users_reported_are_judged_as_a_reader_would() {
    let cases = include_str!("reports.jsonl").lines().map(|line| serde_json::from_str::<Case>(line).unwrap());
    let found: Vec<String> = cases.flat_map(|case| wrong("auto", &case)).collect();
    assert_eq!(found, WRONG.iter().map(|(pair, _)| *pair).collect::<Vec<_>>());
}

/// The order in which two texts come says nothing about them.
#[test]
fn a_pair_is_judged_alike_in_either_order() {
    let method = "auto".parse::<Spec>().unwrap();
    let method = method.method(&Lexicon::default(), &Statistics::default(), None).unwrap();
    for case in include_str!("reports.jsonl").lines().map(|line| serde_json::from_str::<Case>(line).unwrap())
    {
        let mut pairs = PairClassifier::new(method.clone());
        let numbers: Vec<usize> = case.docs.iter().map(|doc| pairs.add(&doc.text)).collect();
        for (&a, &b) in numbers.iter().flat_map(|a| numbers.iter().map(move |b| (a, b))) {
            assert_eq!(pairs.classify(a, b), pairs.classify(b, a), "{} {a} {b}", case.case);
        }
    }
}

/// Without reading, texts of one template and denials are the same by their features: the suite tells the two rules apart.
#[test]
fn without_reading_many_of_them_are_judged_wrongly() {
    let cases = include_str!("reports.jsonl").lines().map(|line| serde_json::from_str::<Case>(line).unwrap());
    let found: Vec<String> = cases.flat_map(|case| wrong("auto:templates=same", &case)).collect();
    assert!(found.len() > 30, "{found:?}");
}

/// Lines of four letters share nearly all features whatever they say, so the lines themselves must be compared.
#[test]
fn long_texts_of_few_distinct_features_are_told_apart() {
    let mut random = 1_u64;
    let mut line = || -> String {
        let letter = |_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b"ACGT"[(random >> 62) as usize])
        };
        (0..60).map(letter).collect()
    };
    let one: Vec<String> = (0..5000).map(|_| line()).collect();
    let other: Vec<String> = (0..5000).map(|_| line()).collect();
    let mut edited = one.clone();
    edited.iter_mut().step_by(40).for_each(|changed| *changed = line());
    let document = |id: &str, lines: &[String]| Document { id: id.to_owned(), text: lines.join("\n") };
    let pair = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
    let case = Case {
        case: "genes".to_owned(),
        docs: vec![document("one", &one), document("other", &other), document("edited", &edited)],
        same: vec![pair("one", "edited")],
        different: vec![pair("one", "other"), pair("other", "edited")],
    };
    assert_eq!(wrong("auto", &case), Vec::<String>::new());
}
