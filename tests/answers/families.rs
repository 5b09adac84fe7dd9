//! Tests that where very many documents share keys the same ones stay, for the same others, as if all pairs were compared.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::random::Random;
use crate::support::Folder;

/// Returns texts of several families: near-equal ones, those of three templates with other numbers, repetitions of one character,
/// and a chain of which each text goes on where the one before it has begun. They come in random order.
fn families(seed: u64, size: usize) -> Vec<String> {
    let mut random = Random(seed);
    let mut texts = Vec::new();
    let page: Vec<char> = random.text(120).chars().collect();
    for _ in 0..size {
        let mut near = page.clone();
        for _ in 0..1 + random.below(12) {
            near[random.below(120)] = random.text(1).chars().next().unwrap();
        }
        texts.push(near.into_iter().collect());
    }
    let template = random.text(40);
    for number in 0..size {
        texts.push(format!("{template}共{}人，其中{}人在{}区", 17 * number, 10 + number % 7, number % 30));
    }
    for number in 0..size / 2 {
        let one = number % 9;
        let other = 31 * number;
        texts.push(format!("{template}2026年第{one}次，{other}人到了{}站", number % 4));
        texts.push(format!(
            "the train of 2026 with number {other} came {one} minutes late to station {}",
            number % 4
        ));
    }
    texts.extend((0..size).map(|length| "哈".repeat(length % 70 + 1)));
    let long: Vec<char> = random.text(60 + 4 * size).chars().collect();
    texts.extend((0..size).map(|start| long[4 * start..4 * start + 60].iter().collect::<String>()));
    for at in (1..texts.len()).rev() {
        texts.swap(at, random.below(at + 1));
    }
    texts
}

/// Writes the texts with a date each, in two files.
pub(super) fn corpus(here: &Folder, seed: u64, size: usize) {
    let texts = families(seed, size);
    let line = |(number, text): (usize, &String)| {
        json!({"id": format!("d{number}"), "date": (number * 37) % 50, "text": text}).to_string() + "\n"
    };
    let lines: Vec<String> = texts.iter().enumerate().map(line).collect();
    let (one, other) = lines.split_at(lines.len() / 3);
    here.write("one.jsonl", one.concat());
    here.write("other.jsonl", other.concat());
}

/// Returns for each row of `removed/` its id, the document that stays in its place, and their similarity.
fn removed(here: &Folder, output: &str) -> BTreeMap<String, (String, Value)> {
    let rows = here.objects(&format!("{output}/removed"), ".jsonl");
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "id"), (text(row, "duplicate_of"), row["similarity"].clone()))).collect()
}

/// Returns the pairs of an output with their similarities.
fn pairs(here: &Folder, output: &str) -> BTreeMap<(String, String), String> {
    let rows = here.table(&format!("{output}/pairs")).into_iter();
    rows.map(|row| ((row[0].clone(), row[1].clone()), row[3].clone())).collect()
}

const METHODS: [&str; 6] = [
    "auto",
    "minhash",
    "jaccard:0.8",
    "auto:search=exact,templates=same",
    "simhash:features=char:2,hamming=6",
    "simhash:bits=128,features=char:3,hamming=9",
];

#[test]
fn the_same_documents_stay_as_if_all_pairs_were_compared() {
    let here = Folder::new();
    let mut crowded = BTreeMap::<&str, usize>::new();
    for (seed, (inputs, options)) in (1..).zip([
        ("one.jsonl other.jsonl", ""),
        ("one.jsonl other.jsonl", "--keep longest"),
        ("one.jsonl other.jsonl", "--keep priority:date"),
        ("--against one.jsonl other.jsonl", ""),
        ("--against one.jsonl other.jsonl", "--within no --keep longest"),
    ]) {
        corpus(&here, seed, 150);
        for method in METHODS {
            let name = format!("{inputs} {options} {method}");
            let run = |output: &str, more: &str| {
                let options = format!("{options} --quiet --split-size 16K --method {method} {more}");
                here.run(&format!("dedup {inputs} {output} --overwrite {options}")).ends(0);
            };
            run("all", "--pairs all");
            let all = pairs(&here, "all");
            for (output, more) in
                [("few", "--workers 1"), ("three", "--workers 3"), ("bounded", "--workers 2 --memory 200M")]
            {
                run(output, more);
                assert!(
                    here.contents(&format!("{output}/kept")) == here.contents("all/kept"),
                    "{name} {more}"
                );
                assert!(here.output(output) == here.output("few"), "{name} {more}");
            }
            let (removed, by_all) = (removed(&here, "few"), removed(&here, "all"));
            assert!(removed == by_all, "{name}: each goes for the same document");
            for (id, (of, similarity)) in &removed {
                assert!(!removed.contains_key(of), "{name}: {id} goes for {of}, which goes");
                let pair = [(id, of), (of, id)].map(|(a, b)| all.get(&(a.clone(), b.clone())));
                let matching = pair.into_iter().flatten().next();
                let matching = matching.unwrap_or_else(|| panic!("{name}: {id} and {of} do not match"));
                assert_eq!(matching.parse().ok(), similarity.as_f64(), "{name}: {id} and {of}");
            }
            assert_eq!(here.counter("few", "pairs"), removed.len() as u64, "{name}");
            here.run("check --full few").ends(0);
            *crowded.entry(method).or_default() +=
                usize::from(here.counter("few", "candidates") < here.counter("all", "candidates"));
        }
    }
    let all_crowded = METHODS.iter().all(|method| crowded[method] > 1);
    assert!(all_crowded, "in several runs of each method fewer pairs are compared: {crowded:?}");
}

#[test]
fn a_cluster_is_a_document_that_stays_and_those_that_go_for_it() {
    let here = Folder::new();
    corpus(&here, 9, 100);
    here.write("labels.tsv", "d1\td2\t1\n");
    here.run("dedup one.jsonl other.jsonl out --quiet").ends(0);
    let of_removed: Vec<_> = removed(&here, "out").into_iter().map(|(id, (of, _))| (id, of)).collect();
    let rows = here.table("out/clusters");
    let mut of_clusters = Vec::new();
    for row in &rows {
        let id = row[0].clone();
        let cluster = row[1].clone();
        let kept = &row[2];
        match kept.as_str() {
            "true" => assert_eq!(id, cluster),
            _ => of_clusters.push((id, cluster)),
        }
    }
    of_clusters.sort();
    assert_eq!(of_clusters, of_removed);
    let named = here.objects("out/removed", ".jsonl");
    assert!(named.iter().all(|row| row["cluster"] == row["duplicate_of"]));
    let stay = rows.iter().filter(|row| row[2] == "true").count() as u64;
    assert_eq!(here.counter("out", "clusters"), stay);
    here.run("eval out labels.tsv --by pairs").fails(2, &["--pairs firsts"]);
    here.run("rethreshold out again --threshold 0.9").fails(2, &["other pairs may decide"]);
    here.run("dedup one.jsonl none --pairs deciding --resolve components").fails(2, &["--pairs firsts"]);
}

#[test]
fn a_family_that_comes_late_is_compared_as_little_as_one_that_comes_first() {
    let here = Folder::new();
    let mut random = Random(7);
    let template = random.text(80);
    let page: Vec<char> = random.text(120).chars().collect();
    let line =
        |number: usize, text: String| json!({"id": format!("d{number}"), "text": text}).to_string() + "\n";
    let near = |random: &mut Random| {
        let mut text = page.clone();
        for _ in 0..2 {
            text[random.below(120)] = random.text(1).chars().next().unwrap();
        }
        text.into_iter().collect::<String>()
    };
    let templates: Vec<String> = (0..3000)
        .map(|number| {
            line(number, format!("{template}{}和{}以及{}", 7 * number, 1000 + 13 * number, 77 * number))
        })
        .collect();
    let family: Vec<String> = (3000..6000).map(|number| line(number, near(&mut random))).collect();
    here.write("first.jsonl", family.concat() + &templates.concat());
    here.write("late.jsonl", templates.concat() + &family.concat());
    for method in ["auto", "minhash", "jaccard:0.8", "simhash"] {
        let [first, late] = ["first", "late"].map(|order| {
            here.run(&format!("dedup {order}.jsonl {order} --overwrite --quiet --method {method}")).ends(0);
            here.counter(order, "candidates")
        });
        assert!(late < 2 * first && first < 40 * 6000, "{method}: {first} and {late} candidates");
    }
}
