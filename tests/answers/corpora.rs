//! Tests on real corpora, in the folder that `DEDUP_TEST_DATA` names.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use operators::text::features::{FeatureSpec, Features, Lexicon};
use operators::text::{Clean, Cleaner};
use operators::{Similarity, jaccard};
use serde_json::Value;

use crate::support::{Folder, rows, sorted, test_data};

const METHODS: [(&str, &str); 2] = [("simhash", "jieba"), ("simhash:features=char:5", "char:5")];

fn corpus(name: &str) -> Option<PathBuf> {
    test_data(&format!("corpora/{name}"))
}

/// Checks that nothing is lost, and returns the numbers of kept, removed and rejected records.
fn ledger(here: &Folder, output: &str, read: u64) -> (u64, u64, u64) {
    let counter = |name| here.counter(output, name);
    assert_eq!(counter("records_read"), read);
    let (kept, removed, rejected) = (counter("kept"), counter("removed"), counter("rejected"));
    assert_eq!(kept + removed + rejected, read);
    assert_eq!(counter("removed_identical") + counter("removed_similar"), removed);
    (kept, removed, rejected)
}

/// Sets of features that verification compares, made anew.
struct Sets<'a> {
    cleaner: Cleaner,
    features: Features,
    texts: HashMap<&'a str, &'a str>,
}

impl<'a> Sets<'a> {
    fn new(features: &str, texts: HashMap<&'a str, &'a str>) -> Self {
        let features = FeatureSpec::parse(features).unwrap();
        let features = Features::new(features, &Lexicon::default()).unwrap();
        Sets { cleaner: Cleaner::new(Clean::Nfkc), features, texts }
    }

    fn of(&mut self, id: &str) -> Vec<u64> {
        let mut set = Vec::new();
        let text = self.cleaner.clean(self.texts[id]);
        self.features.all(text, &mut set);
        set.sort_unstable();
        set.dedup();
        set
    }

    /// Checks that a removed document is as similar to the one that it names as it says, and that this is
    /// enough.
    fn check(&mut self, id: &str, duplicate_of: &str, similarity: f64) {
        let measured = jaccard(&self.of(id), &self.of(duplicate_of));
        assert_eq!(measured.as_f64(), similarity, "{id} and {duplicate_of}");
        assert!(measured >= "0.8".parse::<Similarity>().unwrap(), "{id} and {duplicate_of}: {measured}");
    }
}

#[test]
fn mixed_parquet_loses_nothing_and_nothing_without_a_near_duplicate() {
    let Some(input) = corpus("mixed.parquet") else { return };
    let all = sorted(rows(&input));
    assert_eq!((all.len(), all[0].len()), (219_837, 4));
    for (method, features) in METHODS {
        let here = Folder::new();
        let options = format!("--method {method} --workers 2 --progress plain");
        let run = here.run(&format!("dedup {} out {options}", input.display())).ends(0);
        let rates = run
            .stderr
            .lines()
            .filter_map(|line| line.split(" MB/s").next()?.rsplit(' ').next()?.parse::<u64>().ok());
        assert!(rates.into_iter().all(|rate| rate < 10_000), "{run:?}");
        let (kept_count, removed_count, _) = ledger(&here, "out", 219_837);

        let (kept, removed) = (here.rows("out/kept"), here.rows("out/removed"));
        assert_eq!((kept.len() as u64, removed.len() as u64), (kept_count, removed_count));
        assert!(removed_count > 30_000, "{removed_count} removed");
        let removed_inputs = removed.iter().map(|row| row[..4].to_vec());
        assert!(sorted(kept.iter().cloned().chain(removed_inputs).collect()) == all, "{method}: rows differ");

        let kept_ids: HashMap<&str, ()> = kept.iter().map(|row| (row[0].as_str(), ())).collect();
        let mut sets =
            Sets::new(features, all.iter().map(|row| (row[0].as_str(), row[1].as_str())).collect());
        assert_eq!(sets.texts.len(), all.len());
        let mut clusters = here.rows("out/clusters");
        clusters.retain(|row| row[2] == "false");
        let clusters: HashMap<_, _> = clusters.iter().map(|row| (row[0].as_str(), row[1].as_str())).collect();
        for row in &removed {
            let [id, .., of, similarity, cluster, reason] = &row[..] else { panic!("{row:?}") };
            assert!(kept_ids.contains_key(of.as_str()), "{id} duplicates {of}, which is not kept");
            assert!(reason == "similar" || similarity.parse() == Ok(1.0));
            assert_eq!(clusters[id.as_str()], cluster);
            sets.check(id, of, similarity.parse().unwrap());
        }
        assert_eq!(clusters.len(), removed.len());
    }
}

#[test]
fn the_sogou_files_give_their_200_and_10_documents() {
    for (name, documents) in [("news_sohusite_xml.smarty.dat", 200), ("SogouCS.mini.txt", 10)] {
        let Some(input) = corpus(name) else { return };
        let elements = elements(&fs::read(&input).unwrap());
        assert_eq!(elements.len(), documents);
        for (method, _) in METHODS {
            let here = Folder::new();
            let options = format!("--method {method} --workers 3 --split-size 50K --quiet");
            here.run(&format!("dedup {} out {options}", input.display())).ends(0);
            let (kept, removed, _) = ledger(&here, "out", documents as u64);
            let parts = |folder| elements_of(&here, folder);
            assert_eq!((parts("out/kept").len() as u64, parts("out/removed").len() as u64), (kept, removed));
            let divided = [parts("out/kept"), parts("out/removed")].concat();
            assert!(sorted(divided) == sorted(elements.clone()), "{name}: documents differ");
            let reasons = here.objects("out/removed/_reasons", ".jsonl");
            assert_eq!(reasons.len() as u64, removed);
            assert!(reasons.iter().all(|reason| reason["similarity"].as_f64().unwrap() >= 0.8));
        }
    }
}

fn elements_of(here: &Folder, folder: &str) -> Vec<Vec<u8>> {
    elements(&here.bytes(folder, ".dat"))
}

/// Returns the bytes of each `<doc>`, found without any knowledge of encodings.
fn elements(file: &[u8]) -> Vec<Vec<u8>> {
    let mut elements = Vec::new();
    for line in file.split_inclusive(|&byte| byte == b'\n') {
        match (line.trim_ascii(), elements.last_mut()) {
            (b"<doc>", _) => elements.push(line.to_vec()),
            (b"<docs>" | b"</docs>", _) | (_, None) => {}
            (_, Some(element)) => element.extend_from_slice(line),
        }
    }
    elements
}

#[test]
fn the_category_tree_gives_932_documents_and_38_rejects() {
    let Some(input) = corpus("category-tree") else { return };
    for (method, features) in METHODS {
        let here = Folder::new();
        let options = format!("--method {method} --workers 3 --split-size 100K --quiet");
        here.run(&format!("dedup {} out {options}", input.display())).ends(3);
        let (kept, removed, rejected) = ledger(&here, "out", 970);
        assert_eq!((kept + removed, rejected), (932, 38));
        assert_eq!(here.objects("out/rejects", ".jsonl").len(), 38);

        let mut texts = HashMap::new();
        for (folder, count) in [("out/kept", kept), ("out/removed", removed)] {
            let root = here.path(folder);
            let files = here.files(folder).into_iter().filter(|file| file.extension().unwrap() == "txt");
            let mut copies = 0;
            for file in files {
                let name = file.strip_prefix(&root).unwrap();
                let bytes = fs::read(&file).unwrap();
                assert!(bytes == fs::read(input.join(name)).unwrap(), "{name:?} differs");
                let text = match String::from_utf8(bytes) {
                    Ok(text) => text,
                    Err(gbk) => encoding_rs::GB18030.decode(gbk.as_bytes()).0.into_owned(),
                };
                texts.insert(name.to_str().unwrap().to_owned(), text);
                copies += 1;
            }
            assert_eq!(copies, count, "{folder}");
        }
        let mut sets =
            Sets::new(features, texts.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect());
        let reasons = here.objects("out/removed/_reasons", ".jsonl");
        assert_eq!(reasons.len() as u64, removed);
        for reason in &reasons {
            let text = |name: &str| reason[name].as_str().unwrap();
            assert!(here.path("out/removed").join(text("id")).exists());
            assert!(here.path("out/kept").join(text("duplicate_of")).exists());
            sets.check(text("id"), text("duplicate_of"), reason["similarity"].as_f64().unwrap());
        }
    }
}

#[test]
fn all_corpora_together_are_one() {
    let names = ["mixed.parquet", "news_sohusite_xml.smarty.dat", "SogouCS.mini.txt", "category-tree"];
    let Some(inputs) = names.iter().map(|name| corpus(name)).collect::<Option<Vec<_>>>() else { return };
    let inputs: Vec<_> = inputs.iter().map(|input| input.display().to_string()).collect();
    let here = Folder::new();
    let options = "--method simhash:features=char:5 --quiet --summary-json s.json";
    here.run(&format!("dedup {} out {options}", inputs.join(","))).ends(3);
    let (_, _, rejected) = ledger(&here, "out", 219_837 + 200 + 10 + 970);
    assert_eq!(rejected, 38);
    let summary: Value = serde_json::from_slice(&fs::read(here.path("s.json")).unwrap()).unwrap();
    assert_eq!(summary["counters"]["input_files"], 973);
}
