//! Distances of Peng's fingerprints: of unrelated paragraphs, and of strings of which some characters are changed.

use operators::blocks::peng2017::{SentenceHash, THRESHOLD, distance, fingerprint, md5, sha1};
use operators::hash;
use serde::Serialize;

/// Numbers of sentences of two paragraphs, and how many sentences they share.
const PARAGRAPHS: [(usize, usize); 7] = [(1, 0), (2, 0), (4, 0), (10, 0), (2, 1), (4, 2), (10, 5)];
/// Number of pairs of paragraphs of each kind.
const PAIRS: u64 = 2_000;
/// Numbers of sentences of a string, and how many of them have a changed character.
const STRINGS: [(usize, usize); 9] =
    [(1, 0), (1, 1), (40, 0), (40, 1), (40, 2), (40, 5), (40, 10), (40, 20), (40, 40)];
/// Number of strings of each kind.
const TRIALS: u64 = 50;

/// Distances of the fingerprints of two paragraphs.
#[derive(Debug, Serialize)]
pub(super) struct DistanceReport {
    pub sentences: usize,
    /// Number of sentences that both paragraphs have.
    pub shared: usize,
    pub bits: u32,
    pub mean: f64,
    pub standard_deviation: f64,
    /// Percentage of the pairs that count as similar.
    pub percent_similar: f64,
}

/// Similarity of a string and the same string with changed characters: figure 4 of the paper.
#[derive(Debug, Serialize)]
pub(super) struct ChangedReport {
    pub sentences: usize,
    /// Number of characters that are changed, each in a sentence of its own.
    pub changed: usize,
    /// Percentage of the strings with the same MD5.
    pub percent_by_hash: f64,
    /// Percentage of the bits in which the fingerprints agree, of 128 bits and of 160.
    pub percent_by_simhash: [f64; 2],
}

/// Measures distances of paragraphs of random sentences out of `sentences`, which are different. Kinds of paragraphs that need
/// more sentences are left out.
pub(super) fn unrelated_paragraphs(sentences: &[&str], seed: u64) -> Vec<DistanceReport> {
    let of_kind = |(count, shared): (usize, usize)| {
        let pairs: Vec<[String; 2]> = (0..PAIRS)
            .map(|pair| {
                let drawn = draw(sentences.len(), 2 * count - shared, hash::spread(seed) ^ pair);
                let paragraph = |places: &[usize]| places.iter().map(|&at| sentences[at]).collect();
                [paragraph(&drawn[..count]), paragraph(&drawn[count - shared..])]
            })
            .collect();
        [distances(&pairs, md5, 128), distances(&pairs, sha1, 160)].map(|(bits, all)| {
            let count_all = all.len() as f64;
            let mean = all.iter().map(|&distance| f64::from(distance)).sum::<f64>() / count_all;
            let variance =
                all.iter().map(|&distance| (f64::from(distance) - mean).powi(2)).sum::<f64>() / count_all;
            let similar = all.iter().filter(|&&distance| distance < THRESHOLD).count() as f64;
            DistanceReport {
                sentences: count,
                shared,
                bits,
                mean,
                standard_deviation: variance.sqrt(),
                percent_similar: 100.0 * similar / count_all,
            }
        })
    };
    let kinds = PARAGRAPHS.into_iter().filter(|(count, shared)| 2 * count - shared < sentences.len());
    kinds.flat_map(of_kind).collect()
}

fn distances<const WORDS: usize>(
    pairs: &[[String; 2]],
    hash: SentenceHash<WORDS>,
    bits: u32,
) -> (u32, Vec<u32>) {
    let all = pairs.iter().map(|[a, b]| distance(&fingerprint(a, hash), &fingerprint(b, hash)));
    (bits, all.collect())
}

/// Returns `count` different numbers below `end`, which is larger.
fn draw(end: usize, count: usize, seed: u64) -> Vec<usize> {
    let mut drawn = Vec::new();
    let mut random = seed;
    while drawn.len() < count {
        random = hash::spread(random);
        let number = (random % end as u64) as usize;
        if !drawn.contains(&number) {
            drawn.push(number);
        }
    }
    drawn
}

/// Measures how alike a string of random `sentences` and its changed copy are by hash and by fingerprint. Strings that need
/// more sentences are left out.
pub(super) fn changed_strings(sentences: &[&str], seed: u64) -> Vec<ChangedReport> {
    let of_kind = |(count, changed): (usize, usize)| {
        let mut equal = 0;
        let mut agreeing = [0; 2];
        for trial in 0..TRIALS {
            let drawn = draw(sentences.len(), count, hash::spread(!seed) ^ trial);
            let string: String = drawn.iter().map(|&at| sentences[at]).collect();
            let copy: String =
                drawn.iter().zip(0..).map(|(&at, place)| change(sentences[at], place < changed)).collect();
            equal += u64::from(md5(string.as_bytes()) == md5(copy.as_bytes()));
            agreeing[0] += 128 - u64::from(distance(&fingerprint(&string, md5), &fingerprint(&copy, md5)));
            agreeing[1] += 160 - u64::from(distance(&fingerprint(&string, sha1), &fingerprint(&copy, sha1)));
        }
        let percent = |part: u64, whole: u64| 100.0 * part as f64 / (whole * TRIALS) as f64;
        ChangedReport {
            sentences: count,
            changed,
            percent_by_hash: percent(equal, 1),
            percent_by_simhash: [percent(agreeing[0], 128), percent(agreeing[1], 160)],
        }
    };
    STRINGS.into_iter().filter(|(count, _)| *count < sentences.len()).map(of_kind).collect()
}

/// Returns a sentence with another first character, or as it is.
fn change(sentence: &str, is_changed: bool) -> String {
    let mut chars = sentence.chars();
    match chars.next().filter(|_| is_changed) {
        Some(first) => format!("{}{}", if first == '甲' { '乙' } else { '甲' }, chars.as_str()),
        None => sentence.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::generated::generated_sentences;
    use super::*;

    fn measured<T>(measure: impl Fn(&[&str], u64) -> T) -> T {
        let sentences = generated_sentences(2_000, 1);
        measure(&sentences.iter().map(String::as_str).collect::<Vec<_>>(), 1)
    }

    #[test]
    fn kinds_that_need_more_sentences_are_left_out() {
        assert_eq!(unrelated_paragraphs(&["一。", "二。", "三。"], 1).len(), 2);
        assert_eq!(changed_strings(&["一。", "二。"], 1).len(), 2);
        assert!(changed_strings(&[], 1).is_empty());
    }

    /// docs/papers/peng2017.md: the range that the paper calls similar is that of unrelated text.
    #[test]
    fn unrelated_paragraphs_are_called_similar() {
        let all = measured(unrelated_paragraphs);
        let of = |sentences, shared, bits| {
            let row =
                |row: &&DistanceReport| (row.sentences, row.shared, row.bits) == (sentences, shared, bits);
            all.iter().find(row).unwrap()
        };
        for (sentences, mean, similar) in
            [(1, 64.0, 83.0), (2, 48.0, 100.0), (4, 55.0, 99.5), (10, 60.0, 95.0)]
        {
            let row = of(sentences, 0, 128);
            assert!((row.mean - mean).abs() < 1.0 && (row.percent_similar - similar).abs() < 3.0, "{row:?}");
        }
        for (sentences, mean, similar) in [(1, 80.0, 5.0), (2, 60.0, 94.0), (4, 69.0, 55.0), (10, 75.0, 18.0)]
        {
            let row = of(sentences, 0, 160);
            assert!((row.mean - mean).abs() < 1.0 && (row.percent_similar - similar).abs() < 5.0, "{row:?}");
        }
        assert!((30.0..42.0).contains(&of(10, 5, 128).mean), "{:?}", of(10, 5, 128));
    }

    #[test]
    fn a_fingerprint_changes_little_by_little_and_a_hash_at_once() {
        let all = measured(changed_strings);
        let of = |sentences, changed| {
            all.iter().find(|row| (row.sentences, row.changed) == (sentences, changed)).unwrap()
        };
        assert_eq!((of(40, 0).percent_by_hash, of(40, 0).percent_by_simhash), (100.0, [100.0; 2]));
        assert_eq!(of(40, 1).percent_by_hash, 0.0);
        let by_simhash: Vec<_> =
            [0, 1, 2, 5, 10, 20, 40].map(|changed| of(40, changed).percent_by_simhash[0]).to_vec();
        assert!(by_simhash.is_sorted_by(|a, b| a > b), "{by_simhash:?}");
        // A paragraph of one sentence has the MD5 of that sentence, half of whose bits change.
        assert!((of(1, 1).percent_by_simhash[0] - 50.0).abs() < 3.0, "{:?}", of(1, 1));
        assert!(by_simhash[6] < 55.0, "{by_simhash:?}");
    }
}
