//! Nights over families of near-equal texts: their results are those of any number of workers, and they cost what their own documents
//! cost.

use super::ledger::export;
use crate::support::{Folder, Random};

/// Writes documents that are each one template with some characters replaced. Their number `n` decides by `priority:n`.
fn family(here: &Folder, random: &mut Random, (file, docs, replaced): (&str, usize, usize), template: &str) {
    let mut lines = String::new();
    for number in 0..docs {
        let mut text: Vec<char> = template.chars().collect();
        for _ in 0..replaced {
            let at = random.below(text.len());
            text[at] = random.text(1).chars().next().unwrap();
        }
        let text = text.into_iter().collect::<String>();
        let priority = random.below(4);
        lines += &format!("{{\"id\":\"{file}-{number}\",\"n\":{priority},\"text\":\"{text}\"}}\n");
    }
    here.write(file, lines);
}

#[test]
fn a_night_says_the_same_for_any_number_of_workers() {
    let simhash = "simhash:hamming=8,features=char:2 --verify jaccard:0.5";
    for (seed, (method, policy)) in (0..).zip([
        ("auto", "newest"),
        (simhash, "priority:n"),
        ("minhash", "newest"),
        ("auto", "priority:n"),
        (simhash, "newest"),
    ]) {
        let here = Folder::new();
        let mut random = Random(seed);
        let template = random.text(60);
        for (night, docs) in [30, 90, 60].into_iter().enumerate() {
            family(&here, &mut random, (&format!("in{night}.jsonl"), docs, 3), &template);
        }
        let gone: String = (0..30).step_by(4).map(|number| format!("in0.jsonl-{number}\n")).collect();
        here.write("gone.txt", gone);
        let mut all = Vec::new();
        for workers in 1..5 {
            let state = format!("state{workers}");
            let mut outputs = Vec::new();
            for night in 0..3 {
                let output = format!("out{workers}-{night}");
                let retract = if night == 2 { "--retract gone.txt" } else { "" };
                let line = format!(
                    "nightly --quiet --workers {workers} --split-size 2K --method {method} --policy {policy} --night n{night} \
                     --state {state} --output {output} {retract} in{night}.jsonl"
                );
                here.run(&line).ends(0);
                let lines = |folder: &str| here.lines(&format!("{output}/{folder}"), ".jsonl");
                let corrections = here.bytes(&format!("{output}/corrections"), ".parquet");
                outputs.push((lines("kept"), lines("removed"), corrections));
            }
            let documents = export(&here, &state).into_iter();
            let documents: Vec<_> = documents.map(|doc| (doc.id, doc.duplicate_of)).collect();
            all.push((outputs, documents));
        }
        let (first, others) = all.split_first().unwrap();
        for (other, workers) in others.iter().zip(2..) {
            assert!(other == first, "seed {seed}, {method}, {policy}, {workers} workers");
        }
    }
}

#[test]
fn documents_that_have_stayed_are_not_compared_with_each_other() {
    let here = Folder::new();
    let mut random = Random(7);
    let template = random.text(120);
    family(&here, &mut random, ("old.jsonl", 400, 8), &template);
    family(&here, &mut random, ("new.jsonl", 40, 8), &template);
    let night = "nightly --quiet --workers 2 --method auto --state state";
    here.run(&format!("{night} --output old old.jsonl")).ends(0);
    here.run(&format!("{night} --output new new.jsonl")).ends(0);
    let (stayed, candidates) = (here.counter("old", "kept"), here.counter("new", "candidates"));
    assert!(stayed > 300, "{stayed} have stayed");
    // Each new document may meet all others, twice at the most.
    assert!(
        (40..2 * 40 * 440).contains(&candidates),
        "{candidates} candidates, of {stayed} that have stayed"
    );
}
