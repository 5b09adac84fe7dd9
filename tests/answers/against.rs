//! Tests of `--against`: the decisions, pairs and counts are those of a naive reference that compares every two
//! documents, for any number of workers and processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use operators::Similarity;
use operators::method::Spec;
use operators::search::MappedText;
use operators::sets::PackedSets;
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;

use super::brute::Doc;
use crate::corpus::json_line;
use crate::faults::{command, processes};
use crate::support::{Folder, Random, run, sorted};

/// Methods that find every pair that their rule matches in these corpora.
pub const METHODS: [&str; 6] = [
    "auto:search=exact,short=0.5,long=0.5",
    "jaccard:0.6,features=char:2,clean=none",
    "contained:0.7,features=char:2,clean=none",
    "minhash:jaccard=0.6,bands=128,rows=1,features=char:2",
    "simhash:hamming=15,features=char:2",
    "exact",
];

/// A removed document: its id, the id of the one that stays, the reason, the similarity if it is measured.
type Removed = (String, String, &'static str, Option<Similarity>);

/// Answer of the naive reference.
#[derive(Debug, Default)]
pub struct Answer {
    removed: Vec<Removed>,
    /// Pairs, and whether they are identical.
    pairs: BTreeSet<(String, String, bool)>,
}

/// Makes texts that repeat, vary and contain each other.
pub fn texts(random: &mut Random, count: usize) -> Vec<String> {
    let bases: Vec<Vec<char>> = (0..count / 5).map(|_| random.text(60).chars().collect()).collect();
    let text = |random: &mut Random| {
        let mut text = bases[random.below(bases.len())].clone();
        match random.below(4) {
            0 => {}
            1 => {
                let start = random.below(30);
                text = text[start..start + 8 + random.below(22)].to_vec();
            }
            2 => text.extend(bases[random.below(bases.len())].iter().take(random.below(60))),
            _ => {
                for _ in 0..1 + random.below(6) {
                    let at = random.below(text.len());
                    text[at] = random.text(1).chars().next().unwrap();
                }
            }
        }
        text.into_iter().collect()
    };
    (0..count).map(|_| text(random)).collect()
}

/// Writes documents with a name of their own in files of a folder, in this order, and returns them.
pub fn write(here: &Folder, folder: &str, texts: &[String]) -> Vec<Doc> {
    let docs: Vec<Doc> =
        texts.iter().enumerate().map(|(number, text)| Doc::new(format!("{folder}{number}"), text)).collect();
    for (number, docs) in docs.chunks(docs.len().div_ceil(3)).enumerate() {
        here.write(&format!("{folder}/{number}.jsonl"), Doc::json_lines(docs));
    }
    docs
}

/// Decides what `method` removes from `input`, by comparing every document with every other.
pub fn naive(method: &str, reference: &[Doc], input: &[Doc], within: bool) -> Answer {
    let spec: Spec = method.parse().unwrap();
    let verify = spec.approximate().then(|| "0.8".parse().unwrap());
    let mut method = spec.method(&Lexicon::default(), &Statistics::default(), verify).unwrap();
    let mut search = method.text_search();
    let mut mapped = |doc: &Doc| {
        let text = method.cleaner.clean(&doc.text).to_owned();
        (MappedText::new(&mut *search, text.as_str().into()), method.rule.packed(&text), text)
    };
    let mapped: Vec<_> = reference.iter().chain(input).map(&mut mapped).collect();
    let docs: Vec<&Doc> = reference.iter().chain(input).collect();
    let first = |doc: usize| (0..=doc).find(|&other| mapped[other].2 == mapped[doc].2).unwrap();
    let is_reference = |doc: usize| doc < reference.len();
    let similarity = |a: usize, b: usize| {
        let near = method.verified && search.are_candidates(&mapped[a].0, &mapped[b].0);
        near.then(|| method.rule.matches(PackedSets(&mapped[a].1), PackedSets(&mapped[b].1))).flatten()
    };
    let measured = spec.measures() || verify.is_some();
    let mut answer = Answer::default();
    let mut decided = BTreeMap::<usize, Removed>::new();
    for doc in reference.len()..docs.len() {
        let same = first(doc);
        let mut pair = |other: usize, identical| {
            answer.pairs.insert((docs[other].id.clone(), docs[doc].id.clone(), identical))
        };
        let removal = if is_reference(same) || within && same < doc {
            pair(same, true);
            match decided.get(&same) {
                // The first of the identical documents goes itself, and so do all of them.
                Some((_, of, reason, similarity)) => Some((of.clone(), *reason, *similarity)),
                None => Some((docs[same].id.clone(), "identical", measured.then_some(Similarity::ONE))),
            }
        } else {
            let others = (0..doc).filter(|&other| first(other) == other && (within || is_reference(other)));
            let near: Vec<_> = others.filter_map(|other| Some((other, similarity(other, doc)?))).collect();
            near.iter().for_each(|&(other, _)| _ = pair(other, false));
            let staying = near.into_iter().filter(|(other, _)| !decided.contains_key(other));
            let best = staying.max_by_key(|&(other, similarity)| (similarity, usize::MAX - other));
            best.map(|(other, alike)| (docs[other].id.clone(), "similar", Some(alike)))
        };
        if let Some((of, reason, similarity)) = removal {
            decided.insert(doc, (docs[doc].id.clone(), of, reason, similarity));
        }
    }
    answer.removed = decided.into_values().collect();
    answer
}

/// Checks an output against the answer, and that all else of the input is kept byte for byte.
pub fn check(here: &Folder, output: &str, answer: &Answer, input: &[Doc], what: &str) {
    let removed: Vec<Removed> = here
        .objects(&format!("{output}/removed"), ".jsonl")
        .iter()
        .map(|row| {
            let text = |name: &str| row[name].as_str().unwrap().to_owned();
            let reason = if row["reason"] == "identical" { "identical" } else { "similar" };
            assert_eq!(row["reason"], reason);
            let similarity = row["similarity"].as_f64();
            let similarity = similarity.map(|value| Similarity::millionths((value * 1e6).round() as u32));
            (text("id"), text("duplicate_of"), reason, similarity)
        })
        .collect();
    assert_eq!(removed, answer.removed, "{what}");
    let gone: BTreeSet<&String> = removed.iter().map(|removed| &removed.0).collect();
    let kept = input.iter().filter(|doc| !gone.contains(&doc.id));
    let kept: String = kept.map(|doc| json_line(&doc.id, &doc.text)).collect();
    assert_eq!(String::from_utf8(here.bytes(&format!("{output}/kept"), ".jsonl")).unwrap(), kept, "{what}");
    let rows = here.table(&format!("{output}/pairs"));
    let pairs = rows.iter().map(|row| (row[0].clone(), row[1].clone(), row[4] == "true"));
    assert_eq!(sorted(pairs.collect::<Vec<_>>()), answer.pairs.iter().cloned().collect::<Vec<_>>(), "{what}");
    let removed = removed.len() as u64;
    for (counter, expected) in [
        ("records_read", input.len() as u64),
        ("removed", removed),
        ("kept", input.len() as u64 - removed),
        ("pairs", answer.pairs.len() as u64),
    ] {
        assert_eq!(here.counter(output, counter), expected, "{counter} of {what}");
    }
}

#[test]
fn decisions_and_pairs_are_those_of_comparing_every_document_with_every_other() {
    let mut removed = BTreeMap::<&str, usize>::new();
    for seed in 0..4 {
        let here = Folder::new();
        let mut random = Random(seed);
        let all = texts(&mut random, 150);
        let reference = write(&here, "ref", &all[..40]);
        let input = write(&here, "in", &all[40..]);
        for (method, within) in METHODS.into_iter().flat_map(|method| [(method, true), (method, false)]) {
            let answer = naive(method, &reference, &input, within);
            removed
                .entry(method)
                .and_modify(|of| *of += answer.removed.len())
                .or_insert(answer.removed.len());
            let asked = if within { "" } else { "--within=no" };
            let options =
                format!("{asked} --pairs firsts --split-size 2K --quiet --overwrite --method {method}");
            let mut first = None;
            for workers in [1, 2, 4] {
                let line = "dedup --against ref/0.jsonl,ref/1.jsonl --against ref/2* in out";
                here.run(&format!("{line} {options} --workers {workers}")).ends(0);
                check(&here, "out", &answer, &input, &format!("{method} {asked} seed {seed}"));
                let documents = here.success("out")["counters"]["reference"]["documents"].clone();
                assert_eq!(documents, reference.len());
                let output = here.output("out");
                let expected = first.get_or_insert_with(|| output.clone());
                assert!(*expected == output, "{method} {asked} with {workers} workers");
            }
            if seed == 0 {
                let line =
                    format!("{} --workers 4 dedup --against ref in out {options}", processes(&here, 2));
                run(&mut command(&here, &line)).ends(0);
                assert!(first == Some(here.output("out")), "{method} {asked} with 2 processes");
            }
        }
    }
    assert!(removed.values().all(|&removed| removed > 50), "{removed:?}");
}

/// Returns the part of the different pairs of characters of the shorter text that the other one has, without any
/// code of the program.
fn contained(a: &str, b: &str) -> f64 {
    let grams = |text: &str| -> BTreeSet<Vec<char>> {
        text.chars().collect::<Vec<_>>().windows(2).map(<[char]>::to_vec).collect()
    };
    let (a, b) = (grams(a), grams(b));
    a.intersection(&b).count() as f64 / a.len().min(b.len()) as f64
}

#[test]
fn every_item_in_a_page_is_found_however_long_the_page_is() {
    let here = Folder::new();
    let mut random = Random(7);
    let item = |_| {
        let chars = 20 + random.below(30);
        random.text(chars)
    };
    let items: Vec<String> = (0..60).map(item).collect();
    let page = |number: usize| {
        let mut page = random.text(200 + 40 * number);
        if number.is_multiple_of(2) {
            let mut item: Vec<char> = items[number].chars().collect();
            let changed = random.below(item.len());
            item[changed] = '某';
            page.insert_str(page.char_indices().nth(number).unwrap().0, &item.iter().collect::<String>());
        }
        page
    };
    let pages: Vec<String> = (0..60).map(page).collect();
    let (reference, input) = (write(&here, "ref", &items), write(&here, "in", &pages));
    here.run(
        "dedup --against ref in out --within no --quiet --method contained:0.8,features=char:2,clean=none",
    )
    .ends(0);
    let mut expected = Vec::new();
    for item in &reference {
        let holds = |page: &&Doc| contained(&item.text, &page.text) >= 0.8;
        expected.extend(input.iter().filter(holds).map(|page| (item.id.clone(), page.id.clone())));
    }
    let pairs = here.table("out/pairs").into_iter().map(|row| (row[0].clone(), row[1].clone()));
    assert_eq!(sorted(pairs.collect::<Vec<_>>()), sorted(expected));
    assert_eq!(here.counter("out", "removed"), 30);
}

#[test]
fn a_higher_threshold_makes_what_a_search_with_it_would() {
    let here = Folder::new();
    let mut random = Random(3);
    let all = texts(&mut random, 200);
    write(&here, "ref", &all[..60]);
    write(&here, "in", &all[60..]);
    for options in [
        "--within=yes --resolve components",
        "--within=no --pairs firsts",
        "--keep longest --pairs all",
        "--within=no --pairs all",
    ] {
        let dedup = |least: &str, output: &str| {
            let method = format!("jaccard:{least},features=char:2");
            here.run(&format!(
                "dedup --against ref in {output} --method {method} {options} --split-size 2K --quiet"
            ))
            .ends(0);
        };
        dedup("0.5", "low");
        dedup("0.7", "high");
        here.run("rethreshold low again --threshold 0.7 --quiet").ends(0);
        assert!(here.output("again") == here.output("high"), "{options}");
        let mut counters = ["again", "high"].map(|output| here.success(output)["counters"].clone());
        counters.iter_mut().for_each(|counters| counters["candidates"] = 0.into());
        assert_eq!(counters[0], counters[1], "{options}");
        for part in ["pairs_by_similarity", "cluster_sizes"] {
            assert_eq!(here.success("again")[part], here.success("high")[part], "{options}");
        }
        assert_ne!(here.counter("low", "removed"), here.counter("high", "removed"));
        here.run("check high again --full").ends(0);
        ["low", "high", "again"].iter().for_each(|output| fs::remove_dir_all(here.path(output)).unwrap());
    }
}
