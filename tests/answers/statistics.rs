//! Tests of the corpus statistics that some weights of features need: counted, kept, used again.

use std::fs;

use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::corpus::{demo, json_lines};
use crate::support::{Folder, Random};

const METHODS: [&str; 4] = [
    "simhash:features=char:2,weights=tfidf",
    "simhash:weights=rank5,hamming=5,blocks=8",
    "simhash:features=word:1,weights=tfidf,bits=128,hamming=8",
    "manku2007:blocks=6",
];

#[test]
fn statistics_and_what_follows_from_them_are_the_same_however_they_come_about() {
    let here = demo(1500, 1);
    for method in METHODS {
        for (output, options) in [
            ("1", "--workers 1"),
            ("2", "--workers 2 --split-size 32K"),
            ("3", "--workers 3 --split-size 32K"),
            ("kept", "--workers 2 --split-size 32K --statistics 1"),
            ("file", "--workers 2 --split-size 32K --statistics kept/statistics/part-00000.parquet"),
        ] {
            let options = format!("--overwrite --quiet --method {method} {options}");
            here.run(&format!("dedup demo/corpus.jsonl {output} {options}")).ends(0);
        }
        let two = here.output("2");
        assert!(two.contains_key("statistics/part-00000.parquet"), "{method}: {:?}", two.keys());
        assert_eq!(two["statistics/part-00000.parquet"], here.bytes("1/statistics", ".parquet"), "{method}");
        assert_eq!(here.rows("1/pairs").len() as u64, here.counter("2", "pairs"), "{method}");
        assert!(here.counter("2", "removed") > 100, "{method}");
        for output in ["3", "kept", "file"] {
            assert!(here.output(output) == two, "{output} of {method}");
        }
    }
}

#[test]
fn the_file_of_statistics_says_what_was_counted() {
    let here = Folder::new();
    here.write("a.jsonl", json_lines([("a", "我我你"), ("b", "我")]) + "bad\n");
    here.run("dedup a.jsonl out --method simhash:features=word:1,weights=rank5,clean=none").ends(3);
    let file = fs::File::open(here.path("out/statistics/part-00000.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let metadata = reader.metadata().file_metadata();
    let values = metadata.key_value_metadata().unwrap();
    let value = |key| values.iter().find(|value| value.key == key).and_then(|value| value.value.as_deref());
    assert_eq!((metadata.num_rows(), value("corpus_documents")), (1 << 22, Some("2")));
    assert!(value("counted").unwrap().starts_with("features=word:1,clean=none,words="));
    let mut counts: Vec<i64> =
        here.rows("out/statistics").iter().map(|row| row[0].parse().unwrap()).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(counts[..3], [2, 1, 0]);
    // There are no statistics where none are needed, nor those of an older run.
    here.run("dedup a.jsonl out --overwrite").ends(3);
    assert!(here.files("out/statistics").is_empty());
}

/// The posts share one long phrase, and each has a short part of its own.
#[test]
fn what_all_texts_share_weighs_little() {
    let here = Folder::new();
    let mut random = Random(5);
    let phrase = random.text(60);
    let posts = (0..300).map(|i| (i, phrase.clone() + &random.text(8)));
    here.write("a.jsonl", json_lines(posts));
    let candidates = |weights: &str| {
        let method = format!("simhash:hamming=15,features=word:1,weights={weights}");
        here.run(&format!("dedup a.jsonl {weights} --method {method} --pairs firsts --quiet")).ends(0);
        here.counter(weights, "candidates")
    };
    let [tf, tfidf, rank5] = ["tf", "tfidf", "rank5"].map(candidates);
    assert!(tf > 30_000 && tfidf < 300 && rank5 < 3_000, "{tf} {tfidf} {rank5}");
}

#[test]
fn statistics_of_something_else_are_refused() {
    let here = Folder::new();
    here.write("a.jsonl", json_lines([("a", "今天天气很好")]));
    here.write("words", "今天\n");
    here.run("dedup a.jsonl out --method simhash:weights=tfidf,features=char:2").ends(0);
    here.run("dedup a.jsonl plain").ends(0);
    let uses = |method: &str, path: &str| {
        here.run(&format!("dedup a.jsonl new --method {method} --statistics {path}"))
    };
    uses("simhash", "out").fails(2, &["--statistics", "weights=tf,", "counts nothing"]);
    uses("exact", "out").fails(2, &["--statistics", "exact", "counts nothing"]);
    uses("manku2007", "out")
        .fails(2, &["\"out\"", "are of features=char:2,clean=nfkc", "those of features=jieba"]);
    here.run("dedup a.jsonl counted --method manku2007").ends(0);
    uses("manku2007 --stop-words words", "counted").fails(2, &["words=c44bdff4074eecdb"]);
    uses("manku2007", "plain").fails(2, &["plain/statistics/part-00000.parquet"]);
    uses("manku2007", "none.parquet").fails(2, &["none.parquet"]);
    uses("manku2007", "plain/clusters/part-00000.parquet").fails(2, &["no statistics", "metadata lacks"]);
    let file = fs::read(here.path("out/statistics/part-00000.parquet")).unwrap();
    here.write("half.parquet", &file[..file.len() / 2]);
    uses("manku2007", "half.parquet").fails(2, &["half.parquet", "no statistics"]);
    assert!(here.files("new").is_empty());
    uses("simhash:weights=rank5,features=char:2", "out").ends(0);
}
