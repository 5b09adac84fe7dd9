//! The steps by which fingerprints come about, for people.

use std::fmt::Write as _;

use operators::Bits;
use operators::search::bits::{SimHash, WeightedFeature};
use unicode_width::UnicodeWidthStr;

/// Returns the steps of all texts. `cleaned`: the same texts as they are compared.
pub(super) fn steps<W: Bits>(mut simhash: SimHash<W>, texts: &[String], cleaned: &[String]) -> String {
    let bits = simhash.bits() as usize;
    let is_set = |word: W, bit: usize| word.halves()[bit / 64] >> (bit % 64) & 1 == 1;
    let binary = |word: W| -> String {
        (0..bits).rev().map(|bit| if is_set(word, bit) { '1' } else { '0' }).collect()
    };
    let mut out = String::new();
    let mut first = None;
    for (text, cleaned) in texts.iter().zip(cleaned) {
        let features = simhash.weighted_features(cleaned);
        let fingerprint = simhash.fingerprint(cleaned);
        let _ = writeln!(out, "{text}");
        let width = features.iter().map(|feature| feature.text.width()).max().unwrap_or(0);
        let mut sums = vec![0_i64; bits];
        for WeightedFeature { text, weight, hash } in &features {
            let space = " ".repeat(width - text.width());
            let _ = writeln!(out, "  {text}{space} {weight:>3}  {}", binary(*hash));
            for (bit, sum) in sums.iter_mut().rev().enumerate() {
                *sum += if is_set(*hash, bit) { *weight as i64 } else { -(*weight as i64) };
            }
        }
        let sums: Vec<String> =
            sums.iter().map(|sum| if *sum == 0 { "0".to_owned() } else { format!("{sum:+}") }).collect();
        let _ = writeln!(out, "  sums of the weights, + for a 1 and - for a 0: {}", sums.join(" "));
        let _ = writeln!(out, "  fingerprint: {}", binary(fingerprint));
        match first {
            None => first = Some(fingerprint),
            Some(first) => drop(writeln!(
                out,
                "  differs from the first one in {} bits",
                (first ^ fingerprint).count_ones()
            )),
        }
    }
    out
}
