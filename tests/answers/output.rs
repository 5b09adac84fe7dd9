//! Tests of the output of a small corpus whose duplicates are known, in every format.

mod formats;
mod options;
mod synthetic;

use crate::answers::brute::{Candidate, Decision, Doc, candidates, greedy, similarity_of_grams};
use crate::support::{Folder, Random, sorted};

/// Method of the tests. With 15 bits no near-duplicate of these texts is missed, as
/// `the_sample_is_what_it_should_be` checks.
const METHOD: &str = "simhash:features=char:5,hamming=15";
/// Number of texts that are not similar to each other.
const ORIGINALS: usize = 12;

/// Makes twelve texts, and up to three more of each: an equal one, one equal but for widths and spaces, a
/// near-duplicate.
fn sample() -> Vec<Doc> {
    let mut random = Random(2017);
    let originals: Vec<String> = (0..ORIGINALS).map(|i| random.text(200 + 15 * i)).collect();
    let mut docs: Vec<Doc> =
        originals.iter().enumerate().map(|(i, text)| Doc::new(format!("o{i}"), text)).collect();
    for (i, text) in originals.iter().enumerate() {
        let spaced = format!("　{}  ", text.replace('，', ","));
        let edited = text.replacen('，', "新", 1 + i % 3);
        let texts = match i % 4 {
            0 => vec![text.clone(), edited, text.clone()],
            1 => vec![edited.clone(), spaced, edited],
            2 => vec![format!("{text}完"), edited],
            _ => vec![],
        };
        docs.extend(texts.into_iter().enumerate().map(|(n, text)| Doc::new(format!("d{i}-{n}"), text)));
    }
    // Documents are shuffled, so that originals do not come first.
    for at in (1..docs.len()).rev() {
        docs.swap(at, random.below(at + 1));
    }
    docs
}

fn matching(docs: &[Doc]) -> Vec<Candidate> {
    candidates(METHOD, docs).into_iter().filter(|pair| pair.millionths >= 800_000).collect()
}

/// Returns the verdict that each document of the sample must get by default.
fn decisions(docs: &[Doc]) -> Vec<Decision> {
    greedy(docs.len(), &matching(docs), |doc| doc)
}

/// Returns the JSON members that describe a removal.
fn removal_members(docs: &[Doc], decision: &Decision) -> Option<String> {
    let Decision::Removed(of, similarity, reason) = decision else { return None };
    let of = &docs[*of].id;
    let similarity = similarity.map_or("null".to_owned(), |similarity| format!("{similarity:?}"));
    let members = [
        format!("\"duplicate_of\":\"{of}\""),
        format!("\"similarity\":{similarity}"),
        format!("\"cluster\":\"{of}\""),
        format!("\"reason\":\"{reason}\""),
    ];
    Some(members.join(","))
}

/// Returns the lines of the file of reasons, which stands beside removed records that have no place for
/// reasons.
fn reasons(docs: &[Doc]) -> Vec<String> {
    let decisions = decisions(docs);
    let line = |(doc, decision): (&Doc, &Decision)| {
        Some(format!("{{\"id\":\"{}\",{}}}", doc.id, removal_members(docs, decision)?))
    };
    docs.iter().zip(&decisions).filter_map(line).collect()
}

/// Checks the tables of pairs and clusters, and the counters, against the expected verdicts of `docs`.
fn check_tables(here: &Folder, output: &str, docs: &[Doc]) {
    let (matching, decisions) = (matching(docs), decisions(docs));
    let goes_for =
        |doc: usize, other: usize| matches!(&decisions[doc], Decision::Removed(of, ..) if *of == other);
    let decides = |pair: &&Candidate| goes_for(pair.low, pair.high) || goes_for(pair.high, pair.low);
    let pairs = pair_rows(docs, matching.iter().filter(decides));
    assert_eq!(sorted(here.table(&format!("{output}/pairs"))), pairs);

    let cluster = |doc: usize| match decisions[doc] {
        Decision::Removed(of, ..) => Some(of),
        Decision::Kept => (0..docs.len()).any(|other| goes_for(other, doc)).then_some(doc),
    };
    let row = |doc: usize| {
        let [id, cluster] = [doc, cluster(doc)?].map(|doc| docs[doc].id.clone());
        let removal = match &decisions[doc] {
            Decision::Kept => [(); 3].map(|()| "null".to_owned()),
            Decision::Removed(of, similarity, reason) => {
                let similarity = similarity.map_or("null".to_owned(), float);
                [docs[*of].id.clone(), similarity, (*reason).to_owned()]
            }
        };
        let kept = removal[2] == "null";
        Some([vec![id, cluster, kept.to_string()], removal.to_vec()].concat())
    };
    // The last columns are the length of the text, which differs for formats that trim texts, and the
    // position.
    let rows = here.table(&format!("{output}/clusters")).into_iter().map(|row| row[..6].to_vec());
    assert_eq!(sorted(rows.collect()), sorted((0..docs.len()).filter_map(row).collect()));

    let kept = decisions.iter().filter(|decision| **decision == Decision::Kept).count() as u64;
    let counter = |name| here.counter(output, name);
    assert_eq!((counter("records_read"), counter("rejected")), (docs.len() as u64, 0));
    assert_eq!((counter("kept"), counter("removed")), (kept, docs.len() as u64 - kept));
    assert_eq!(counter("pairs"), pairs.len() as u64);
}

/// Returns the expected rows of the table of pairs, sorted.
fn pair_rows<'a>(docs: &[Doc], pairs: impl Iterator<Item = &'a Candidate>) -> Vec<Vec<String>> {
    let row = |pair: &Candidate| {
        let similarity = pair.millionths as f64 / 1e6;
        let ids = [pair.low, pair.high].map(|doc| docs[doc].id.clone());
        let [low, high] = ids;
        vec![low, high, pair.hamming.to_string(), float(similarity), pair.identical.to_string()]
    };
    sorted(pairs.map(row).collect())
}

/// Writes a number as the Parquet library shows it.
fn float(number: f64) -> String {
    parquet::record::Field::Double(number).to_string()
}

#[test]
fn the_sample_is_what_it_should_be() {
    let docs = sample();
    let decisions = decisions(&docs);
    let reason = |wanted: &str| {
        decisions.iter().filter(|d| matches!(d, Decision::Removed(.., r) if *r == wanted)).count()
    };
    assert_eq!(decisions.iter().filter(|decision| **decision == Decision::Kept).count(), ORIGINALS);
    assert!(reason("identical") >= 7 && reason("similar") >= 9, "{decisions:?}");
    // No pair is too far apart to be found, and the program counts the same 5-grams as this test.
    for (high, b) in docs.iter().enumerate() {
        for (low, a) in docs[..high].iter().enumerate() {
            let [a, b] = [a, b].map(|doc| doc.text.replace('，', ",").trim().to_owned());
            let similarity = similarity_of_grams(&a, &b);
            let pair = matching(&docs).into_iter().find(|pair| (pair.low, pair.high) == (low, high));
            assert_eq!(
                pair.map(|pair| pair.millionths),
                Some(similarity).filter(|&s| s >= 800_000),
                "{a}\n{b}"
            );
        }
    }
}
