//! Tests of the options that say which documents stay and which pairs are written.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use super::{METHOD, matching, pair_rows, sample};
use crate::answers::brute::{Candidate, Decision, Doc, candidates, greedy};
use crate::support::{Folder, Random, sorted};

fn with(docs: &[Doc]) -> Folder {
    let here = Folder::new();
    here.write("a.jsonl", Doc::json_lines(docs));
    here
}

/// Returns for each removed document what it says of its removal.
fn removals(here: &Folder, output: &str) -> HashMap<String, [Value; 4]> {
    let lines = here.objects(&format!("{output}/removed"), ".jsonl").into_iter();
    let names = ["duplicate_of", "similarity", "cluster", "reason"];
    lines
        .map(|line| (line["id"].as_str().unwrap().to_owned(), names.map(|name| line[name].clone())))
        .collect()
}

fn expected(docs: &[Doc], decisions: &[Decision]) -> HashMap<String, [Value; 4]> {
    let removal = |(doc, decision): (&Doc, &Decision)| match decision {
        Decision::Kept => None,
        Decision::Removed(of, similarity, reason) => {
            let of = json!(docs[*of].id);
            let values = [of.clone(), json!(similarity), of, json!(reason)];
            Some((doc.id.clone(), values))
        }
    };
    docs.iter().zip(decisions).filter_map(removal).collect()
}

/// Returns a text, and twice the one before with 30 characters more. The first and the last do not match.
fn chain() -> [Doc; 3] {
    let text = Random(8).text(260);
    let start = |chars: usize| text.chars().take(chars).collect::<String>();
    let docs = [("a", 200), ("b", 230), ("c", 260)].map(|(id, chars)| Doc::new(id, start(chars)));
    let pairs: Vec<_> = matching(&docs).iter().map(|pair| (pair.low, pair.high, pair.millionths)).collect();
    assert_eq!(pairs, [(0, 1, 867_256), (1, 2, 882_812)]);
    assert_eq!(candidates(METHOD, &docs).len(), 3);
    docs
}

#[test]
fn of_a_chain_greedy_loses_the_middle_and_components_all_but_one() {
    let [a, b, c] = chain();
    let removal = |of: &str, similarity: Value, cluster: &str, reason: &str| {
        [json!(of), similarity, json!(cluster), json!(reason)]
    };
    let (of_a, of_b) = (json!(0.867_256), json!(0.882_812));
    for (order, options, expected) in [
        ([&a, &b, &c], "", vec![("b", removal("a", of_a.clone(), "a", "similar"))]),
        ([&c, &b, &a], "", vec![("b", removal("c", of_b.clone(), "c", "similar"))]),
        (
            [&b, &a, &c],
            "",
            vec![
                ("a", removal("b", of_a.clone(), "b", "similar")),
                ("c", removal("b", of_b.clone(), "b", "similar")),
            ],
        ),
        ([&a, &b, &c], "--keep longest", vec![("b", removal("c", of_b.clone(), "c", "similar"))]),
        (
            [&a, &b, &c],
            "--resolve components",
            vec![("b", removal("a", of_a, "a", "similar")), ("c", removal("a", Value::Null, "a", "chain"))],
        ),
        (
            [&a, &b, &c],
            "--resolve components --keep longest",
            vec![("a", removal("c", Value::Null, "a", "chain")), ("b", removal("c", of_b, "a", "similar"))],
        ),
    ] {
        let here = with(&order.map(Doc::clone));
        here.run(&format!("dedup a.jsonl out --method {METHOD} --quiet {options}")).ends(0);
        let expected = expected.into_iter().map(|(id, removal)| (id.to_owned(), removal)).collect();
        assert_eq!(removals(&here, "out"), expected, "{order:?} {options}");
        let chains = here.counter("out", "removed_chain");
        assert_eq!(chains, u64::from(options.contains("components")));
        let largest = if options.contains("components") || order[0].id == "b" { 3 } else { 2 };
        assert_eq!(here.counter("out", "largest_cluster"), largest);
    }
}

#[test]
fn the_longest_of_a_cluster_stays() {
    let docs = sample();
    let here = with(&docs);
    here.run(&format!("dedup a.jsonl out --method {METHOD} --keep longest --quiet")).ends(0);
    let longest = |doc: usize| usize::MAX - docs[doc].text.chars().count();
    let decisions = greedy(docs.len(), &matching(&docs), longest);
    assert_ne!(decisions, greedy(docs.len(), &matching(&docs), |doc| doc));
    assert_eq!(removals(&here, "out"), expected(&docs, &decisions));
}

#[test]
fn the_one_with_the_greatest_number_of_a_cluster_stays() {
    let docs = sample();
    // Many numbers are equal, so that the order of the corpus decides too.
    let halves = |doc: usize| doc as i64 * 7919 % 7 - 3;
    let decisions = greedy(docs.len(), &matching(&docs), |doc| (3 - halves(doc)) as usize);
    assert_ne!(decisions, greedy(docs.len(), &matching(&docs), |doc| doc));
    let here = Folder::new();
    let numbered = || docs.iter().enumerate().map(|(at, doc)| (doc, halves(at) as f64 / 2.0));
    let line = |(doc, number): (&Doc, f64)| match number {
        0.0 => json!({ "id": doc.id, "text": doc.text, "n": "-0.0" }).to_string() + "\n",
        _ => json!({ "id": doc.id, "text": doc.text, "n": number }).to_string() + "\n",
    };
    here.write("a.jsonl", numbered().map(line).collect::<String>());
    let row = |(doc, number): (&Doc, f64)| format!("{},{number},\"{}\"\n", doc.id, doc.text);
    here.write("a.csv", "id,n,text\n".to_owned() + &numbered().map(row).collect::<String>());
    write_numbered(&here, "a.parquet", numbered().map(|(doc, number)| (&*doc.id, &*doc.text, number)));
    for method in [METHOD, "jaccard:0.8,features=char:5", "minhash:features=char:5"] {
        let tables = ["a.jsonl", "a.csv", "a.parquet"].map(|file| {
            let options = format!("--method {method} --keep priority:n --workers 2 --quiet --overwrite");
            here.run(&format!("dedup {file} out {options}")).ends(0);
            if file == "a.jsonl" {
                assert_eq!(removals(&here, "out"), expected(&docs, &decisions), "{method}");
                assert_eq!(here.success("out")["configuration"]["keep"], "priority:n");
            }
            here.table("out/clusters")
        });
        assert!(tables[1] == tables[0] && tables[2] == tables[0], "{method}");
    }
}

/// Writes documents with a column `n` of numbers.
fn write_numbered<'d>(here: &Folder, name: &str, docs: impl Iterator<Item = (&'d str, &'d str, f64)>) {
    let docs: Vec<_> = docs.collect();
    let text = |of: fn(&(&'d str, &'d str, f64)) -> &'d str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(docs.iter().map(of)))
    };
    let numbers: ArrayRef = Arc::new(Float64Array::from_iter_values(docs.iter().map(|doc| doc.2)));
    let columns = [("id", text(|doc| doc.0)), ("text", text(|doc| doc.1)), ("n", numbers)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer =
        ArrowWriter::try_new(File::create(here.path(name)).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn all_pairs_are_those_that_brute_force_finds() {
    let docs = sample();
    let here = with(&docs);
    for least in ["0.8", "0.93", "0"] {
        let options = format!("--method {METHOD} --pairs all --verify jaccard:{least} --workers 3 --quiet");
        here.run(&format!("dedup a.jsonl out{least} {options}")).ends(0);
        let least_millionths = (least.parse::<f64>().unwrap() * 1e6) as u64;
        let candidates = candidates(METHOD, &docs);
        let near = candidates.iter().filter(|pair| pair.millionths >= least_millionths);
        assert_eq!(sorted(here.table(&format!("out{least}/pairs"))), pair_rows(&docs, near), "{least}");
    }
}

#[test]
fn without_verification_matching_fingerprints_are_enough() {
    let docs = sample();
    let here = with(&docs);
    for method in ["simhash:features=char:5,hamming=6", "simhash", "exact"] {
        let pairs = candidates(method, &docs);
        here.run(&format!("dedup a.jsonl out --method {method} --verify none --pairs all --overwrite -q"))
            .ends(0);
        let row = |pair: &Candidate| {
            let [low, high] = [pair.low, pair.high].map(|doc| docs[doc].id.clone());
            // Only the fingerprint is known.
            vec![low, high, pair.hamming.to_string(), "null".to_owned(), (pair.hamming == 0).to_string()]
        };
        assert_eq!(sorted(here.table("out/pairs")), sorted(pairs.iter().map(row).collect()), "{method}");

        // Equal fingerprints are preferred, but do not prove equal texts. Of others, the first kept document
        // is named.
        let by_fingerprint: Vec<Candidate> =
            pairs.iter().map(|p| Candidate { identical: p.hamming == 0, millionths: 0, ..*p }).collect();
        let mut decisions = greedy(docs.len(), &by_fingerprint, |doc| doc);
        for decision in &mut decisions {
            if let Decision::Removed(_, similarity, reason) = decision {
                *similarity = None;
                if method != "exact" {
                    *reason = "similar";
                }
            }
        }
        here.run(&format!("dedup a.jsonl few --method {method} --verify none --overwrite -q")).ends(0);
        assert_eq!(removals(&here, "few"), expected(&docs, &decisions), "{method}");
    }
}
