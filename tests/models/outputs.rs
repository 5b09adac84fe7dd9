//! Outputs of `chunk clean` and `dedup --against` by runs that have bad luck.

use super::for_a_while;
use crate::answers::against;
use crate::chunk::clean::{cleaned, naive as naive_units, texts, write_jsonl};
use crate::faults::trouble::Trouble;
use crate::support::{Folder, Random};

#[test]
fn what_is_cut_under_bad_luck_is_what_counting_units_says() {
    for_a_while(|seed| {
        let here = Folder::new();
        let mut random = Random(seed);
        let mut trouble = Trouble::new(seed);
        let texts = texts(20 + random.below(60), seed);
        write_jsonl(&here, "in.jsonl", &texts);
        let unit = ["line", "sentence", "paragraph"][random.below(3)];
        let keep = ["first", "none"][random.below(2)];
        let min_chars = random.below(20);
        let min_repeats = 2 + random.below(3);
        let options =
            format!("--unit {unit} --keep {keep} --min-chars {min_chars} --min-repeats {min_repeats}");
        let line = format!("chunk clean in.jsonl out {options} --split-size 2K --overwrite --quiet");
        trouble.run(&here, &line).ends(0);
        assert_eq!(
            cleaned(&here, "out"),
            naive_units(&texts, unit, keep, min_chars, min_repeats),
            "{options}"
        );
        trouble.counts
    });
}

#[test]
fn what_is_removed_under_bad_luck_is_what_comparing_all_texts_says() {
    for_a_while(|seed| {
        let here = Folder::new();
        let mut random = Random(seed);
        let mut trouble = Trouble::new(seed);
        let all = against::texts(&mut random, 60);
        let reference = against::write(&here, "ref", &all[..20]);
        let input = against::write(&here, "in", &all[20..]);
        let method = against::METHODS[random.below(against::METHODS.len())];
        let within = random.below(2) == 0;
        let asked = if within { "" } else { "--within=no" };
        let line = format!(
            "dedup --against ref in out {asked} --pairs firsts --split-size 2K --quiet --overwrite --method {method}"
        );
        trouble.run(&here, &line).ends(0);
        let answer = against::naive(method, &reference, &input, within);
        against::check(&here, "out", &answer, &input, &format!("{method} {asked} seed {seed}"));
        trouble.counts
    });
}
