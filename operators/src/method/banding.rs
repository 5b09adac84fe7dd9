//! Bands and rows of a MinHash signature, as they follow from the threshold of `minhash`.

use super::parameters::{WrongParameter, number, store};
use crate::sets::minhash::MinHash;
use crate::sets::similarity::Similarity;

/// Bands, rows and seed that the user gave for a signature. What he left out follows from the threshold.
///
/// A pair at the threshold `t` is missed with the probability `(1 - t^rows)^bands`. More rows compare fewer pairs of
/// unrelated texts, but need more bands. The choice is the cheapest one, by an estimate for a million documents, that
/// misses at most 1 pair in 20,000. Where the greatest number of bands does not suffice for that, it misses at most 1
/// in 1,000.
///
/// ```text
/// threshold    bands x rows    missed at the threshold
/// 0.3          256 x 3         1 in 1,100
/// 0.5          154 x 4         1 in 20,700
/// 0.6           72 x 4         1 in 21,900
/// 0.8           25 x 5         1 in 20,500
/// ```
///
/// Below a threshold of 0.299 nothing is chosen: with 2 rows a text would be compared with nearly every other one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Banding {
    bands: Option<u32>,
    rows: Option<u32>,
    seed: u64,
}

/// Greatest probability with which a pair at the threshold is missed, unless the user chose the bands or rows.
pub const MOST_MISSED: f64 = 1.0 / 1_000.0;
/// Probability to miss a pair at the threshold for which bands are added.
const AIM: f64 = 1.0 / 20_000.0;
/// Greatest number of bands: each is a section of the map output.
const MAX_BANDS: u32 = 256;
/// Greatest number of rows.
const MAX_ROWS: u32 = 64;
/// Greatest number of slots of a signature. Short texts fill few slots of a longer one, and the others cost
/// time.
const MAX_SLOTS: u32 = 1024;
/// Least number of rows that is chosen. Of unrelated texts, 1 pair in 100 would agree on a band of 2 rows.
const LEAST_ROWS: u32 = 3;

impl Banding {
    /// Sets `bands`, `rows` or `seed`.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<(), WrongParameter> {
        let mut count = 0;
        match key {
            "bands" => {
                number(&mut count, value, 1..=MAX_BANDS, "1 to 256")?;
                self.bands = Some(count);
            }
            "rows" => {
                number(&mut count, value, 1..=MAX_ROWS, "1 to 64")?;
                self.rows = Some(count);
            }
            "seed" => store(&mut self.seed, value.parse().ok(), "a whole number below 2^64")?,
            _ => return Err(WrongParameter::Unknown),
        }
        Ok(())
    }

    /// Returns the reason why there is no signature for a threshold that is given and kept.
    pub(super) fn check(&self, least: Similarity) -> Result<(), String> {
        match (self.bands, self.rows) {
            (Some(bands), Some(rows)) if bands * rows > MAX_SLOTS => {
                Err(format!("bands times rows must be no more than {MAX_SLOTS}, not {}", bands * rows))
            }
            (None, None) if cheapest(least.as_f64()).is_none() => Err(format!(
                "no bands find nearly all pairs of a similarity of {least} without comparing nearly all texts: take \
                 jaccard:{least}, which finds all of them, or give bands and rows"
            )),
            _ => Ok(()),
        }
    }

    /// Returns the signature for a threshold. For a threshold at which nothing can be chosen it has as many bands as
    /// there may be; `Banding::check` refuses such a threshold.
    pub fn signature(&self, least: Similarity) -> MinHash {
        let least = least.as_f64();
        let (bands, rows) = match (self.bands, self.rows) {
            (Some(bands), Some(rows)) => (bands, rows),
            (None, Some(rows)) => (bands_for(least, rows), rows),
            (Some(bands), None) => (bands, rows_for(least, bands)),
            (None, None) => cheapest(least).unwrap_or((MAX_BANDS, LEAST_ROWS)),
        };
        MinHash::new(bands, rows, self.seed)
    }
}

/// Returns the probability that a pair at the threshold is missed.
pub(super) fn missed(minhash: &MinHash, least: Similarity) -> f64 {
    missed_by(least.as_f64(), minhash.bands, minhash.rows)
}

fn missed_by(least: f64, bands: u32, rows: u32) -> f64 {
    (1.0 - least.powi(rows as i32)).powi(bands as i32)
}

/// Returns the least number of bands of `rows` rows that miss at most [`AIM`], or the greatest number of
/// bands.
fn bands_for(least: f64, rows: u32) -> u32 {
    let most = MAX_BANDS.min(MAX_SLOTS / rows);
    (1..most).find(|&bands| missed_by(least, bands, rows) <= AIM).unwrap_or(most)
}

/// Returns the greatest number of rows with which `bands` bands miss at most [`AIM`], or 1.
fn rows_for(least: f64, bands: u32) -> u32 {
    let most = MAX_ROWS.min(MAX_SLOTS / bands);
    (1..=most).rev().find(|&rows| missed_by(least, bands, rows) <= AIM).unwrap_or(1)
}

/// Returns the bands and rows that cost least among those that miss no more than is promised.
fn cheapest(least: f64) -> Option<(u32, u32)> {
    (LEAST_ROWS..=MAX_ROWS)
        .map(|rows| (bands_for(least, rows), rows))
        .filter(|&(bands, rows)| missed_by(least, bands, rows) <= MOST_MISSED)
        .min_by(|&a, &b| cost(a).total_cmp(&cost(b)))
}

/// Returns the estimated nanoseconds that a document of a large corpus costs.
fn cost((bands, rows): (u32, u32)) -> f64 {
    let met = DOCUMENTS / 2.0 * UNRELATED.powi(rows as i32);
    f64::from(bands) * (BAND_NS + f64::from(rows) * SLOT_NS + met * MET_NS)
}

/// Number of documents of the corpus for which the cost is estimated.
const DOCUMENTS: f64 = 1e6;
/// Similarity of two texts of it that have nothing to do with each other. It is that of texts by pairs of characters, and
/// of pages with one frame; by 5 characters, most texts have nothing in common.
const UNRELATED: f64 = 0.1;
/// Nanoseconds to write, send, sort and read the record of a band. Measured: docs/design/candidate-search.md.
const BAND_NS: f64 = 900.0;
/// Nanoseconds to fill a slot.
const SLOT_NS: f64 = 10.0;
/// Nanoseconds to compare the sketches of two texts that agree on a band, and the features of the few that pass.
const MET_NS: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash;

    fn similarity(least: f64) -> Similarity {
        Similarity::millionths((least * 1e6).round() as u32)
    }

    fn chosen(least: f64) -> (u32, u32) {
        let minhash = Banding::default().signature(similarity(least));
        (minhash.bands, minhash.rows)
    }

    #[test]
    fn a_pair_at_the_threshold_is_missed_as_seldom_as_promised() {
        for least in [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0] {
            assert!(Banding::default().check(similarity(least)).is_ok(), "{least}");
            let (bands, rows) = chosen(least);
            let missed = 1.0 - MinHash::new(bands, rows, 0).probability(least);
            assert!(
                missed <= MOST_MISSED && bands * rows <= MAX_SLOTS,
                "{least}: {bands} x {rows}: {missed}"
            );
            assert!(missed <= AIM || bands == MAX_BANDS, "{least}: {bands} x {rows}: {missed}");
        }
    }

    #[test]
    fn chosen_bands_and_rows_are_those_of_the_documentation() {
        let all = [0.3, 0.4, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9, 0.95].map(chosen);
        let expected = [(256, 3), (150, 3), (154, 4), (104, 4), (72, 4), (37, 4), (25, 5), (12, 5), (7, 5)];
        assert_eq!(all, expected);
    }

    #[test]
    fn one_given_number_decides_the_other() {
        let with = |bands, rows| {
            let MinHash { bands, rows, .. } = Banding { bands, rows, seed: 0 }.signature(similarity(0.7));
            (bands, rows)
        };
        assert_eq!(with(None, Some(4)), (37, 4));
        assert_eq!(with(Some(40), None), (40, 4));
        assert_eq!(with(Some(25), Some(5)), (25, 5));
        // These can only miss more than is aimed at.
        assert_eq!(with(None, Some(64)), (16, 64));
        assert_eq!(with(Some(2), None), (2, 1));
    }

    #[test]
    fn a_threshold_without_sensible_bands_is_refused_unless_bands_or_rows_are_given() {
        let check = |least, bands| Banding { bands, ..Banding::default() }.check(similarity(least));
        assert!(check(0.29, None).unwrap_err().contains("take jaccard:0.29,"));
        assert!(check(0.3, None).is_ok() && check(0.29, Some(200)).is_ok());
    }

    /// Returns how many of `trials` pairs of sets with half of all features in common agree on no band.
    fn missed_halves(minhash: MinHash, all: u64, trials: u64) -> usize {
        let bands = |trial: u64, other: u64| {
            let half = all / 2;
            let mut keys = Vec::new();
            // One feature in four is in the one set alone, and one in four in the other.
            let own = (half..half + half / 2).map(|feature| feature + other);
            let set: Vec<u64> =
                (0..half).chain(own).map(|feature| hash::spread(trial << 32 | feature)).collect();
            minhash.bands(&set, &mut keys);
            keys
        };
        let agree = |trial| bands(trial, 0).iter().zip(&bands(trial, 1 << 20)).any(|(a, b)| a == b);
        (0..trials).filter(|&trial| !agree(trial)).count()
    }

    /// Four pairs of 4,000 would be 1 in 1,000. The texts have more features than the signature has slots.
    #[test]
    fn pairs_at_a_half_are_found_as_the_curve_says() {
        let least = similarity(0.5);
        assert!(missed_halves(Banding::default().signature(least), 2000, 4000) <= 4);
        let (bands, rows) = (Some(25), Some(5));
        let missed = missed_halves(Banding { bands, rows, seed: 0 }.signature(least), 2000, 4000);
        assert!((1700..1920).contains(&missed), "{missed} of 4000, expected 1809");
    }
}
