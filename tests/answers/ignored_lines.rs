//! Tests of `--ignore-lines`: lines that many documents have decide no pair, and nothing else changes.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::faults::{Whole, command, processes};
use crate::support::{Folder, Random, run};

/// Method by which pages of one navigation are near, although their articles are not.
const METHOD: &str = "--method jaccard:0.5,features=char:3";

/// Navigation of a site, with white space at the ends that differs from page to page.
struct Site(Vec<String>);

impl Site {
    fn new(random: &mut Random, lines: usize) -> Self {
        Site((0..lines).map(|_| random.text(15)).collect())
    }

    /// Returns a page with an article between two halves of the navigation.
    fn page(&self, random: &mut Random, article: &str) -> String {
        let mut page = String::new();
        for (number, line) in self.0.iter().enumerate() {
            if number == self.0.len() / 2 {
                page += &format!("{article}\n\n");
            }
            page += &format!("{}{line}{}\n", " ".repeat(random.below(3)), ["", " ", "\r"][random.below(3)]);
        }
        page
    }
}

/// Returns an article of some lines.
fn article(random: &mut Random) -> String {
    (0..4).map(|_| random.text(60)).collect::<Vec<_>>().join("\n")
}

fn write(here: &Folder, name: &str, pages: &[(String, String)]) {
    let line = |(id, text): &(String, String)| json!({"id": id, "text": text, "n": [1]}).to_string() + "\n";
    here.write(name, pages.iter().map(line).collect::<String>());
}

/// Makes a corpus of ten sites in three files. Each site has five articles of its own and one that the next site has
/// too, and two pages of navigation alone. One page is in the corpus twice.
fn crawl(here: &Folder) -> Vec<(String, String)> {
    let mut random = Random(11);
    let shared: Vec<String> = (0..10).map(|_| article(&mut random)).collect();
    let mut pages = Vec::new();
    for site in 0..10 {
        let navigation = Site::new(&mut random, 40);
        for number in 0..5 {
            let own = article(&mut random);
            pages.push((format!("s{site}-{number}"), navigation.page(&mut random, &own)));
        }
        for (name, shared) in [("own", &shared[site]), ("next", &shared[(site + 1) % 10])] {
            pages.push((format!("s{site}-{name}"), navigation.page(&mut random, shared)));
        }
        pages.push((format!("s{site}-empty"), navigation.0.join("\n")));
        pages.push((format!("s{site}-most"), navigation.0[..30].join("\n")));
    }
    pages.push(("again".to_owned(), pages[3].1.clone()));
    for (number, pages) in pages.chunks(pages.len().div_ceil(3)).enumerate() {
        write(here, &format!("in/{number}.jsonl"), pages);
    }
    pages
}

/// Returns the removed records of an output by their ids.
fn removed(here: &Folder, output: &str) -> BTreeMap<String, Value> {
    let id = |record: &Value| record["id"].as_str().unwrap().to_owned();
    here.objects(output, ".jsonl")
        .into_iter()
        .filter(|record| !record["reason"].is_null())
        .map(|record| (id(&record), record))
        .collect()
}

#[test]
fn five_articles_under_one_navigation_stay_five() {
    let here = Folder::new();
    let mut random = Random(5);
    let navigation = Site::new(&mut random, 40);
    let pages: Vec<_> = (0..5)
        .map(|number| {
            let article = article(&mut random);
            (format!("p{number}"), navigation.page(&mut random, &article))
        })
        .collect();
    write(&here, "in.jsonl", &pages);
    here.run(&format!("dedup in.jsonl without {METHOD}")).ends(0);
    assert_eq!(here.counter("without", "removed"), 4);
    here.run(&format!("dedup in.jsonl with {METHOD} --ignore-lines 3")).ends(0);
    assert_eq!(here.counter("with", "removed"), 0);
    assert_eq!((here.counter("with", "ignored_lines"), here.counter("with", "shortened")), (40, 5));
    assert!(here.bytes("with/kept", ".jsonl") == fs::read(here.path("in.jsonl")).unwrap());
    here.run("check with --full").ends(0);
}

#[test]
fn an_article_of_two_sites_is_found_whatever_their_navigation_is() {
    let here = Folder::new();
    let pages = crawl(&here);
    here.run(&format!("dedup in out {METHOD} --ignore-lines 4")).ends(0);
    let removed = removed(&here, "out/removed");
    let similar = removed.values().filter(|record| record["reason"] == "similar");
    // Each shared article once, and of each site one of the two pages that are navigation alone.
    assert_eq!(similar.count(), 10 + 10);
    // These two are equal, and the others are so without ignored lines alone.
    let identical: Vec<_> = removed.values().filter(|record| record["reason"] == "identical").collect();
    assert_eq!(identical.len(), 1);
    assert_eq!((&identical[0]["id"], &identical[0]["duplicate_of"]), (&json!("again"), &json!("s0-3")));
    let whole: Vec<_> = removed.values().filter(|record| record["similarity"] == 1.0).collect();
    assert_eq!(whole.len(), 11);
    // Records go out as they came.
    let mut out: BTreeMap<String, String> = BTreeMap::new();
    for record in here.objects("out/kept", ".jsonl").iter().chain(removed.values()) {
        assert_eq!(record["n"], json!([1]));
        let text = |name: &str| record[name].as_str().unwrap().to_owned();
        out.insert(text("id"), text("text"));
    }
    assert_eq!(out, pages.into_iter().collect());
    // Without the option, sites collapse.
    here.run(&format!("dedup in plain {METHOD}")).ends(0);
    assert!(here.counter("plain", "removed") > 60);
}

#[test]
fn the_output_is_the_same_for_any_workers_processes_and_memory() {
    let here = Folder::new();
    crawl(&here);
    for method in [
        "jaccard:0.5,features=char:3",
        "minhash:jaccard=0.6,features=char:3",
        "auto",
        "simhash --verify none",
    ] {
        let mut first = None;
        for line in [
            "--workers 1 dedup in out",
            "--workers 2 dedup in out --split-size 20K",
            "--workers 4 dedup in out",
            "--workers 2 dedup in out --memory 60M",
        ] {
            here.run(&format!("{line} --overwrite --quiet --ignore-lines 4 --method {method}")).ends(0);
            let output = here.output("out");
            // Other splits have other parts.
            if !line.contains("split-size") {
                assert!(*first.get_or_insert_with(|| output.clone()) == output, "{line} {method}");
            }
        }
        let line =
            format!("{} --workers 4 dedup in out --overwrite --quiet --ignore-lines 4", processes(&here, 2));
        run(&mut command(&here, &format!("{line} --method {method}"))).ends(0);
        assert!(first == Some(here.output("out")), "{method} with 2 processes");
    }
}

#[test]
fn texts_that_differ_in_ignored_lines_alone_are_similar_and_not_identical() {
    let here = Folder::new();
    let mut random = Random(2);
    let one = Site::new(&mut random, 9);
    let other = Site::new(&mut random, 9);
    let text = article(&mut random);
    let mut pages = Vec::new();
    for number in 0..3 {
        for (name, site) in [("one", &one), ("other", &other)] {
            let article = article(&mut random);
            pages.push((format!("{name}{number}"), site.page(&mut random, &article)));
        }
    }
    pages.push(("a".to_owned(), one.page(&mut random, &text)));
    pages.push(("b".to_owned(), other.page(&mut random, &text)));
    write(&here, "in.jsonl", &pages);
    for method in [
        "auto",
        "jaccard:0.9",
        "contained:0.9",
        "minhash",
        "simhash",
        "simhash --verify none",
        "manku2007",
        "zhou2017",
    ] {
        here.run(&format!("dedup in.jsonl out --overwrite -q --ignore-lines 4 --method {method}")).ends(0);
        let removed = removed(&here, "out/removed");
        assert_eq!(removed.len(), 1, "{method}: {removed:?}");
        assert_eq!(
            (&removed["b"]["duplicate_of"], &removed["b"]["reason"]),
            (&json!("a"), &json!("similar"))
        );
    }
    here.run("dedup in.jsonl out --overwrite -q --ignore-lines 4").ends(0);
    let said = here.run("why out a b").ends(0).stdout;
    assert!(said.contains("without ignored lines: ") && said.contains("so they are a candidate"), "{said}");
}

#[test]
fn a_list_serves_another_run_and_goes_on_with_the_output() {
    let here = Folder::new();
    crawl(&here);
    here.run(&format!("dedup in out -q {METHOD} --ignore-lines 4 --pairs firsts")).ends(0);
    let list = |output: &str| here.bytes(&format!("{output}/ignored-lines"), ".parquet");
    for (number, of) in ["out", "out/ignored-lines/part-00000.parquet"].iter().enumerate() {
        let output = format!("again{number}");
        here.run(&format!("dedup in {output} -q {METHOD} --ignore-lines-of {of} --pairs firsts")).ends(0);
        assert!(here.output(&output) == here.output("out") && list(&output) == list("out"));
    }
    here.run("rethreshold out higher -q --threshold 0.9").ends(0);
    here.run("dedup in high -q --method jaccard:0.9,features=char:3 --ignore-lines 4 --pairs firsts").ends(0);
    assert!(here.output("higher") == here.output("high") && list("higher") == list("high"));
    assert_eq!(here.counter("higher", "shortened"), here.counter("high", "shortened"));
    here.run("check out again0 higher --full").ends(0);
    // A page of one site alone has no line twice, but the list has its navigation.
    let page = here.lines("in", "0.jsonl")[0].clone();
    here.write("new.jsonl", page + "\n");
    here.run(&format!("dedup --against in new.jsonl new -q {METHOD} --ignore-lines-of out")).ends(0);
    assert_eq!(here.counter("new", "shortened"), here.counter("out", "shortened") + 1);
    here.run(&format!("dedup in plain -q {METHOD}")).ends(0);
    here.run(&format!("dedup in no --ignore-lines-of plain {METHOD}"))
        .fails(2, &["\"plain\"", "left none out"]);
}

#[test]
fn a_killed_run_goes_on_with_its_own_lines_alone() {
    let here = Folder::new();
    crawl(&here);
    let line = |lines: &str| format!("--workers 2 dedup in out -q {METHOD} --split-size 8K {lines}");
    let whole = |lines: &str| {
        here.run(&line(lines)).ends(0);
        Whole::take(&here)
    };
    let killed = |lines: &str, point: &str| {
        let run = run(here.command(&line(lines)).env("DEDUP_FAULT", point));
        assert_eq!(run.code, None, "{point}: {run:?}");
    };
    let (some, none) = (whole("--ignore-lines 4"), whole("--ignore-lines 1000"));
    assert!(some.files != none.files);
    for point in ["0 exchange 1 kill", "0 finish 9 kill"] {
        for (least, expected) in [("4", &some), ("1000", &none)] {
            killed("--ignore-lines 4", point);
            assert!(whole(&format!("--ignore-lines {least}")) == *expected, "{point}, then {least}");
        }
    }
    // The list of the same name has other lines.
    here.run(&format!("dedup in list -q {METHOD} --ignore-lines 4")).ends(0);
    killed("--ignore-lines-of list", "0 exchange 1 kill");
    here.run(&format!("dedup in list -q {METHOD} --ignore-lines 1000 --overwrite")).ends(0);
    assert!(whole("--ignore-lines-of list").files == none.files);
}

#[test]
fn lines_of_a_reference_and_of_the_input_count_together() {
    let here = Folder::new();
    let mut random = Random(9);
    let navigation = Site::new(&mut random, 60);
    let mut page = |name: &str| {
        let article = article(&mut random);
        (name.to_owned(), navigation.page(&mut random, &article))
    };
    write(&here, "ref.jsonl", &[page("a"), page("b")]);
    write(&here, "in.jsonl", &[page("c"), page("d")]);
    here.run(&format!("dedup --against ref.jsonl in.jsonl plain -q {METHOD}")).ends(0);
    assert_eq!(here.counter("plain", "removed"), 2);
    here.run(&format!("dedup --against ref.jsonl in.jsonl out -q {METHOD} --ignore-lines 4")).ends(0);
    assert_eq!((here.counter("out", "removed"), here.counter("out", "ignored_lines")), (0, 60));
}

#[test]
fn jobs_that_cannot_ignore_lines_say_what_to_do() {
    let here = Folder::new();
    write(&here, "in.jsonl", &[("a".to_owned(), "今天\n明天".to_owned())]);
    let why = ["whole texts", "chunk clean"];
    here.run("nightly --state s --output o in.jsonl --ignore-lines 3").fails(2, &why);
    here.run("index build i in.jsonl --ignore-lines 3").fails(2, &why);
    here.run("index query i in.jsonl --ignore-lines-of o").fails(2, &why);
    here.run("index serve i --ignore-lines 3").fails(2, &why);
    here.run("dedup in.jsonl o --ignore-lines 3 --method exact").fails(2, &["exact", "another --method"]);
    here.run("dedup in.jsonl o --ignore-lines 1").fails(2, &["--ignore-lines"]);
    here.run("dedup in.jsonl o --ignore-lines 3 --ignore-lines-of o").fails(2, &["cannot be used with"]);
    here.run("dedup in.jsonl o --ignore-lines-of nothing").fails(2, &["no list of ignored lines"]);
}
