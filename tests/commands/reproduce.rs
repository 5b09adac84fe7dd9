//! Tests of `reproduce`, and of `fingerprint`, which its pages use.

use std::collections::BTreeMap;
use std::fs;

use crate::corpus::json_lines;
use crate::support::{Folder, Random, run};

/// Returns the rows of a page by claim: the names of the columns with their values.
fn claims(here: &Folder, page: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut rows = csv::Reader::from_path(here.path(&format!("{page}.csv"))).unwrap();
    let head = rows.headers().unwrap().clone();
    let row = |row: csv::StringRecord| {
        let row: BTreeMap<String, String> =
            head.iter().zip(row.iter()).map(|(name, value)| (name.into(), value.into())).collect();
        (row["claim"].clone(), row)
    };
    rows.records().map(|record| row(record.unwrap())).collect()
}

/// Checks that a page has all that it names, and returns its claims.
#[track_caller]
fn page(here: &Folder, folder: &str, paper: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let claims = claims(here, &format!("{folder}/{paper}"));
    let text = fs::read_to_string(here.path(&format!("{folder}/{paper}.md"))).unwrap();
    let html = fs::read_to_string(here.path(&format!("{folder}/{paper}.html"))).unwrap();
    assert_eq!(html.matches("<svg").count(), text.matches(".svg)").count(), "{paper}");
    for (claim, row) in &claims {
        let verdicts = ["holds", "holds in part", "does not hold", "cannot be said"];
        assert!(verdicts.contains(&row["verdict"].as_str()), "{claim}: {row:?}");
        assert!(
            !row["published"].is_empty() && !row["measured"].is_empty() && !row["why"].is_empty(),
            "{claim}"
        );
        assert!(text.contains(&claim.replace('|', "\\|")), "{claim}");
        let runs = row["raw_runs"].lines().zip(row["commands"].lines());
        for (file, command) in runs {
            let run = fs::read_to_string(here.path(&format!("{folder}/{file}"))).unwrap();
            assert!(run.contains(&format!("command: {command}\n")), "{file}");
            assert!(!command.contains(" compare ") || run.contains("exit code 0"), "{file}");
        }
    }
    for figure in text.split("](").skip(1).filter_map(|link| link.split_once(".svg)")) {
        let svg = fs::read_to_string(here.path(&format!("{folder}/{}.svg", figure.0))).unwrap();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{}", figure.0);
    }
    claims
}

#[track_caller]
fn verdict<'a>(claims: &'a BTreeMap<String, BTreeMap<String, String>>, begin: &str) -> &'a str {
    let row = claims.iter().find(|(claim, _)| claim.starts_with(begin));
    &row.unwrap_or_else(|| panic!("no claim begins with {begin:?}")).1["verdict"]
}

#[test]
fn each_claim_of_each_paper_has_a_verdict_and_its_runs() {
    let here = Folder::new();
    here.run("reproduce all out --scale quick").ends(0);
    assert!(!here.path("out/work").exists());
    let index = fs::read_to_string(here.path("out/README.md")).unwrap();
    let papers = ["zhou2017", "lanceyan", "zhang2014", "hbase", "peng2017"];
    let pages = papers.map(|paper| {
        assert!(index.contains(&format!("[{paper}]({paper}.md)")));
        page(&here, "out", paper)
    });
    // These do not depend on any clock.
    let [zhou, lanceyan, _, hbase, peng] = &pages;
    for (claims, begin, expected) in [
        (zhou, "Figure 1, with the folded hash", "holds"),
        (zhou, "Buckets and recursion with the folded hash", "holds"),
        (zhou, "Buckets and recursion on a bad distribution", "holds in part"),
        (zhou, "Figure 3: the traditional method is wrong", "holds"),
        (lanceyan, "The two printed fingerprints", "holds"),
        (lanceyan, "Both printed hashCodes", "holds"),
        (lanceyan, "Steps 3 to 5", "holds"),
        (lanceyan, "SimHash finds that the two sentences are alike", "does not hold"),
        (hbase, "Pairs that a query reads", "holds"),
        (hbase, "A query compares 33.5 million", "holds"),
        (peng, "Figure 4: one changed byte", "holds"),
        (peng, "Texts that are half alike", "does not hold"),
    ] {
        assert_eq!(verdict(claims, begin), expected, "{begin}");
    }
    here.run("reproduce hbase out").fails(2, &["exists"]);
}

#[test]
fn a_corpus_of_the_user_is_taken() {
    let here = Folder::new();
    let mut random = Random(3);
    let words: Vec<char> = "春夏秋冬山水风云日月天地人心花鸟".chars().collect();
    let mut post = || (0..12).map(|_| words[random.below(words.len())]).collect::<String>();
    let posts: Vec<String> = (0..300).map(|_| post()).collect();
    let again = posts[..60].iter().map(|post| format!("{post}//@小明:转发"));
    here.write("posts of mine.jsonl", json_lines(posts.iter().cloned().chain(again).enumerate()));
    // A shell takes the quotes away.
    run(&mut here.shell("dedup-job reproduce zhou2017 out --input 'posts of mine.jsonl'")).ends(0);
    let claims = page(&here, "out", "zhou2017");
    let deleted = claims.iter().find(|(claim, _)| claim.starts_with("Buckets and recursion with")).unwrap();
    assert!(deleted.1["measured"].contains("deleted at 360 posts"), "{deleted:?}");
    here.run("reproduce all other --input mine.jsonl").fails(2, &["--input is for one paper"]);
    here.run("reproduce zhou2017 third --input missing.jsonl").fails(1, &["missing.jsonl"]);
}

#[test]
fn the_steps_of_a_fingerprint_add_up() {
    let here = Folder::new();
    let run = here.run("fingerprint 你妈妈喊你回家吃饭哦，回家罗回家罗 你妈妈叫你回家吃饭啦，回家罗回家罗 --method simhash:bits=32").ends(0);
    let lines: Vec<&str> = run.stdout.lines().map(str::trim).collect();
    let after =
        |begin: &str| -> Vec<&str> { lines.iter().filter_map(|line| line.strip_prefix(begin)).collect() };
    let (sums, bits) = (after("sums of the weights, + for a 1 and - for a 0: "), after("fingerprint: "));
    assert_eq!((sums.len(), bits.len()), (2, 2));
    for (sums, bits) in sums.iter().zip(&bits) {
        let sign = |sum: &str| if sum.parse::<i64>().unwrap() > 0 { '1' } else { '0' };
        assert_eq!(sums.split(' ').map(sign).collect::<String>(), *bits);
    }
    let words: Vec<Vec<&str>> = lines.iter().map(|line| line.split_whitespace().collect()).collect();
    let home = words.iter().find(|words| words.first() == Some(&"回家")).unwrap();
    assert_eq!((home.len(), home[1], home[2].len()), (3, "3", 32));
    let apart = bits[0].chars().zip(bits[1].chars()).filter(|(a, b)| a != b).count();
    assert_eq!(after("differs from the first one in "), [format!("{apart} bits")]);
    here.run("fingerprint 甲 --method minhash").fails(2, &["has no SimHash"]);
}
