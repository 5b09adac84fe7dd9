//! Tests of `chunk clean --near`: what is cut is what comparing every two units says.

use std::collections::{BTreeSet, HashMap};

use super::clean::{Cleaned, Kin, Text, cleaned, naive_near, units, write_jsonl};
use crate::support::{Folder, Random, Tree};

/// Returns a unit with some characters replaced, left out or added.
fn changed(unit: &str, random: &mut Random) -> String {
    let mut chars: Vec<char> = unit.chars().collect();
    for _ in 0..=random.below(3) {
        let at = random.below(chars.len());
        let new = random.text(1).chars().next().unwrap();
        match random.below(3) {
            0 => chars[at] = new,
            1 => drop(chars.remove(at)),
            _ => chars.insert(at, new),
        }
    }
    chars.into_iter().collect()
}

/// Returns texts of random units. Some are copies of earlier ones, with or without changes, so there are chains of
/// units each of which is near the one before it, and a large family of units that are near one. `ends`: what may stand behind a unit.
fn texts(docs: usize, seed: u64, ends: &[&str]) -> Vec<Text> {
    let mut random = Random(seed);
    let (mut earlier, page): (Vec<String>, String) = (Vec::new(), random.text(50));
    let mut text = || -> String {
        let mut unit = || {
            let unit = match (random.below(5), earlier.len()) {
                (4, _) => changed(&page, &mut random),
                (0, _) | (_, 0..4) => {
                    let chars = 6 + random.below(50);
                    random.text(chars)
                }
                (1, count) => earlier[random.below(count)].clone(),
                // One of the latest is changed, or any.
                (2, count) => changed(&earlier[count - 1 - random.below(4)], &mut random),
                (_, count) => changed(&earlier[random.below(count)], &mut random),
            };
            earlier.push(unit.clone());
            unit + ends[random.below(ends.len())]
        };
        (0..9).map(|_| unit()).collect()
    };
    (0..docs).map(|at| (format!("d{at}"), text())).collect()
}

/// Returns the features of a unit: its runs of `size` characters, of which a shorter unit is one.
fn features(unit: &str, size: usize) -> BTreeSet<Vec<char>> {
    let chars: Vec<char> = unit.split_whitespace().collect::<Vec<_>>().join(" ").chars().collect();
    if chars.len() < size {
        BTreeSet::from([chars])
    } else {
        chars.windows(size).map(<[_]>::to_vec).collect()
    }
}

/// Compares every unit with every earlier one that stays. Returns those that go, and the number of those that match
/// only units that go, and that of all matches.
fn kin(texts: &[Text], unit: &str, min_chars: usize, size: usize, least: u64) -> (Kin, usize, u64) {
    let mut kin = Kin::new();
    let mut seen = HashMap::new();
    let mut saved = 0;
    let mut all_matches = 0;
    let mut order: Vec<(String, BTreeSet<Vec<char>>)> = Vec::new();
    let long = texts.iter().flat_map(|(_, text)| units(unit, text));
    let long = long.map(|unit| unit.trim().to_owned()).filter(|unit| unit.chars().count() >= min_chars);
    for text in long.filter(|unit| !unit.is_empty()) {
        if seen.insert(text.clone(), ()).is_some() {
            continue;
        }
        let own = features(&text, size);
        let mut best = (0, "");
        let mut matches = 0;
        for (other, of_other) in &order {
            let shared = own.intersection(of_other).count();
            let similarity = shared as u64 * 1_000_000 / (own.len() + of_other.len() - shared) as u64;
            matches += usize::from(similarity >= least);
            if similarity >= least && !kin.contains_key(other) && similarity > best.0 {
                best = (similarity, other);
            }
        }
        saved += usize::from(best.0 == 0 && matches > 0);
        all_matches += matches as u64;
        if best.0 > 0 {
            kin.insert(text.clone(), (best.1.to_owned(), best.0 as f64 / 1e6));
        }
        order.push((text, own));
    }
    (kin, saved, all_matches)
}

#[test]
fn what_is_cut_is_what_comparing_every_two_units_says() {
    let folder = Folder::new();
    let cases = [
        ("line", "first", 10, 2, 2, 800_000),
        ("line", "none", 0, 3, 2, 700_000),
        ("sentence", "first", 8, 4, 1, 600_000),
        ("sentence", "none", 12, 2, 5, 500_000),
        ("paragraph", "first", 5, 2, 3, 750_000),
    ];
    let mut crowded = 0;
    for (number, (unit, keep, min_chars, min_repeats, size, least)) in (0..).zip(cases) {
        let ends: &[&str] = match unit {
            "line" => &["\n", " \n", "\n\n"],
            "sentence" => &["。", "！\n", "？"],
            _ => &["\n\n", "\n \n", "\n"],
        };
        let texts = texts(90, 40 + number, ends);
        write_jsonl(&folder, "in.jsonl", &texts);
        let options = format!(
            "--unit {unit} --keep {keep} --min-chars {min_chars} --min-repeats {min_repeats} \
             --near jaccard:{},features=char:{size}",
            least as f64 / 1e6
        );
        folder
            .run(&format!("chunk clean in.jsonl out {options} --split-size 5K --overwrite --quiet"))
            .ends(0);
        let (kin, saved, matches) = kin(&texts, unit, min_chars, size, least);
        let expected = naive_near(&texts, &kin, unit, keep, min_chars, min_repeats);
        let Cleaned { kept, removed, spans } = cleaned(&folder, "out");
        assert_eq!(spans, expected.spans, "{options}");
        assert_eq!((kept, removed), (expected.kept, expected.removed), "{options}");
        assert_eq!(folder.counter("out", "near_units"), kin.len() as u64, "{options}");
        crowded += u64::from(folder.counter("out", "candidates") < matches);
        let planted = kin.len() > 30 && (saved > 5 || unit == "paragraph");
        assert!(planted, "{options}: {} near, {saved} near none that stays", kin.len());
    }
    assert!(crowded > 2, "in most of these cases not every match is compared: {crowded}");
}

#[test]
fn near_units_are_the_same_for_any_workers_and_little_memory() {
    let folder = Folder::new();
    write_jsonl(&folder, "in.jsonl", &texts(1500, 17, &["\n"]));
    let output = |options: &str| -> Tree {
        let line = "chunk clean in.jsonl out --near jaccard:0.7,features=char:3 --min-chars 8 --split-size 100K \
                    --overwrite --quiet";
        folder.run(&format!("{line} {options}")).ends(0);
        folder.output("out")
    };
    let one = output("--workers 1");
    assert!(one.keys().filter(|name| name.starts_with("kept/")).count() > 5);
    assert!(folder.counter("out", "near_units") > 1000);
    for options in ["--workers 2", "--workers 3", "--workers 2 --memory 40M --local-dir ."] {
        assert!(output(options) == one, "{options}");
    }
    assert!(folder.success("out")["process"]["spilled_bytes"].as_u64().unwrap() > 1 << 20);
    folder.run("check out --full").ends(0);
}

#[test]
fn methods_that_miss_pairs_or_cut_what_is_longer_are_refused() {
    let folder = Folder::new();
    folder.write("in.jsonl", "{\"text\":\"a\"}\n");
    for (near, words) in [
        ("minhash", "jaccard:T alone, not by minhash"),
        ("auto", "jaccard:T alone, not by auto"),
        ("contained:0.8", "jaccard:T alone, not by contained"),
        ("jaccard:2", "a number from 0.01 to 1"),
        ("jaccard:0.8,feature=char:2", "no parameter \"feature\""),
        ("jacard", "no method is called \"jacard\""),
    ] {
        let run = folder.run(&format!("chunk clean in.jsonl out --near {near}")).ends(2);
        assert!(run.stderr.contains(words), "{run:?}");
    }
    let line = "--workers 2 chunk clean in.jsonl out --near jaccard:0.8";
    folder.run(&format!("{line} --memory 38M")).fails(2, &["--memory 38M", "it takes 40M"]);
    folder.write("stop.txt", "的\n");
    folder.run(&format!("{line} --stop-words stop.txt")).fails(2, &["features=jieba"]);
    assert!(!folder.path("out").exists());
}
