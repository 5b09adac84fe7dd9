//! Tests of `zhou2017`: the paper's own example, its deletions by the book, and what it counts.

use std::collections::{BTreeMap, BTreeSet};

use operators::DocId;
use operators::method::ZhouSpec;
use operators::text::features::Features;

use crate::corpus::json_lines;
use crate::support::{Folder, Random, sorted};

#[test]
fn a_repost_is_a_duplicate_of_its_post() {
    let here = Folder::new();
    let posts = [
        "今天是晴天",
        "今天是晴天.//A:xxx//B:XXX",
        "明天下雨",
        "//@小明:转发",
        "今天[太阳]是晴天http://t.cn/A1",
    ];
    let docs = posts.iter().zip(1..).map(|(text, id)| (format!("p{id}"), text));
    here.write("in.jsonl", json_lines(docs));
    for (retrieval, of_bits) in [("linear", 14), ("bucket", 0), ("recursive", 0)] {
        let options = format!("--method zhou2017:retrieval={retrieval} --overwrite --quiet");
        here.run(&format!("dedup in.jsonl out {options}")).ends(0);
        let removed = here.objects("out/removed", ".jsonl");
        let ids: Vec<_> =
            removed.iter().map(|row| (row["id"].as_str(), row["duplicate_of"].as_str())).collect();
        assert_eq!(ids, [(Some("p2"), Some("p1")), (Some("p5"), Some("p1"))], "{retrieval}");
        assert!(removed.iter().all(|row| row["similarity"] == 1.0 && row["reason"] == "similar"));
        // Comparisons of five posts in the first copy, and of the three posts that are left in the others.
        assert_eq!(here.counter("out", "block_comparisons"), of_bits, "{retrieval}");
        assert!(here.counter("out", "comparisons") >= 2);
    }
    let method = "zhou2017:k=4,retrieval=recursive,fold=upper,features=jieba,clean=weibo";
    assert_eq!(here.success("out")["configuration"]["method"], method);
}

#[test]
fn zhou2017_refuses_verification() {
    let here = Folder::new();
    here.write("in.jsonl", json_lines([("1", "今天是晴天")]));
    for verify in ["none", "jaccard:0.8"] {
        let run = here.run(&format!("dedup in.jsonl out --method zhou2017 --verify {verify}"));
        run.fails(2, &["zhou2017", "leave --verify out"]);
    }
}

/// A kept document, a deleted one, their distance, and their Dup in millionths.
type Edge = (String, String, u32, u64);

/// Does the paper's deletion by buckets, without any code of the program but the words and Sim. Returns also
/// the number of comparisons.
fn by_the_book(texts: &[String]) -> (BTreeSet<Edge>, u64) {
    let zhou = ZhouSpec::default().zhou(Features::Chars(1));
    let rows: Vec<_> = (0..).zip(texts).map(|(doc, text)| zhou.row(DocId(doc), text)).collect();
    let mut left: Vec<usize> = (0..rows.len()).collect();
    let mut edges = BTreeSet::new();
    let mut comparisons = 0;
    for byte in 0..4 {
        let value = |doc: usize| rows[doc].fingerprint.to_be_bytes()[byte];
        let mut kept: Vec<usize> = Vec::new();
        for doc in left {
            let found = kept.iter().filter(|&&other| value(other) == value(doc)).find_map(|&other| {
                comparisons += 1;
                zhou.duplicates(&rows[other], &rows[doc]).map(|found| (other, found))
            });
            match found {
                None => kept.push(doc),
                Some((other, (pair, dup))) => {
                    let millionths = (dup.as_f64() * 1e6).round() as u64;
                    edges.insert((other.to_string(), doc.to_string(), pair.distance, millionths));
                }
            }
        }
        left = kept;
    }
    (edges, comparisons)
}

#[test]
fn components_delete_as_the_paper_and_greedy_names_a_kept_match() {
    let mut random = Random(5);
    let words: Vec<char> = "春夏秋冬山水风云日月".chars().collect();
    let mut text = || (0..4 + random.below(5)).map(|_| words[random.below(words.len())]).collect::<String>();
    let texts: Vec<String> = (0..200).map(|_| text()).collect();
    let (edges, comparisons) = by_the_book(&texts);
    let deleted: BTreeSet<&str> = edges.iter().map(|edge| edge.1.as_str()).collect();
    assert_eq!(deleted.len(), edges.len(), "deleted once");

    let here = Folder::new();
    here.write("in.jsonl", json_lines(texts.iter().enumerate()));
    let removed = |resolve: &str| -> BTreeMap<String, (String, String)> {
        let options =
            "--method zhou2017:retrieval=bucket,features=char:1,clean=none --workers 3 --split-size 1K";
        here.run(&format!("dedup in.jsonl {resolve} {options} --resolve {resolve} --pairs firsts --quiet"))
            .ends(0);
        assert_eq!(here.counter(resolve, "comparisons"), comparisons);
        let pairs = here.rows(&format!("{resolve}/pairs")).into_iter().map(|row| {
            let millionths = (row[3].parse::<f64>().unwrap() * 1e6).round() as u64;
            (row[0].clone(), row[1].clone(), row[2].parse().unwrap(), millionths)
        });
        assert_eq!(pairs.collect::<BTreeSet<Edge>>(), edges);
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let rows = here.objects(&format!("{resolve}/removed"), ".jsonl");
        rows.iter()
            .map(|row| (text(&row["id"]), (text(&row["duplicate_of"]), text(&row["reason"]))))
            .collect()
    };
    let components = removed("components");
    assert_eq!(components.keys().map(String::as_str).collect::<BTreeSet<_>>(), deleted);

    let greedy = removed("greedy");
    for (id, (of, reason)) in &greedy {
        assert!(!greedy.contains_key(of) && reason == "similar");
        assert!(edges.iter().any(|edge| (&edge.0, &edge.1) == (of, id)), "{id} was not found to match {of}");
    }
    let chained = components.values().filter(|(_, reason)| reason == "chain").count();
    assert!(chained > 0, "no chain is in the test");
    let back: Vec<_> = components.keys().filter(|id| !greedy.contains_key(*id)).collect();
    assert!(!back.is_empty() && back.len() <= chained, "{back:?}");
    assert!(greedy.keys().all(|id| components.contains_key(id)));
    assert_eq!(sorted(here.lines("greedy/kept", ".jsonl")).len(), 200 - greedy.len());
}

/// Returns how many comparisons the busiest of four workers makes, as a multiple of the mean.
fn load(here: &Folder, retrieval: &str) -> f64 {
    let method = format!("zhou2017:retrieval={retrieval},fold=lower,features=char:2,clean=none");
    let options = "--workers 4 --split-size 1K --overwrite --quiet";
    here.run(&format!("dedup in.jsonl out --method {method} {options}")).ends(0);
    let blocks = here.success("out")["blocks"].as_array().unwrap().clone();
    let sum = |name: &str| blocks.iter().map(|copy| copy[name].as_u64().unwrap()).sum::<u64>();
    4.0 * sum("most_compared_by_a_worker") as f64 / sum("compared") as f64
}

#[test]
fn groups_that_are_split_again_are_searched_by_all_workers() {
    let here = Folder::new();
    let mut random = Random(7);
    let words: Vec<char> = ('一'..='三').chain('丁'..='乂').collect();
    let mut text = || (0..12).map(|_| words[random.below(words.len())]).collect::<String>();
    here.write("in.jsonl", json_lines((0..1_000).map(|id| (id, text()))));
    let (bucket, recursive) = (load(&here, "bucket"), load(&here, "recursive"));
    assert!(bucket > 3.0 && recursive < 2.5, "{bucket} {recursive}");
}
