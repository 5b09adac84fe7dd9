//! Properties of a method that are known before it runs: the chance that it compares two texts, and the
//! memory for each document.

use std::f64::consts::PI;

use crate::sets::similarity::Similarity;

/// Chance that a pair becomes a candidate, as a function of its similarity (the S-curve of a method).
pub struct Curve {
    /// Name of the similarity that the chance depends on.
    pub of: &'static str,
    /// Reason why the chance is what it is.
    pub because: String,
    pub(super) chance: Chance,
}

pub(super) type Chance = Box<dyn Fn(f64) -> f64>;

impl Curve {
    /// Returns the chance at a similarity between 0 and 1.
    pub fn at(&self, similarity: f64) -> f64 {
        (self.chance)(similarity.clamp(0.0, 1.0))
    }
}

/// Memory that a search holds of a corpus, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Bytes for each document.
    pub document: u64,
    /// Bytes for each feature that other documents have too, in documents that may have a partner.
    pub feature: u64,
}

impl Cost {
    /// Memory of a search by fingerprints.
    pub(super) const FINGERPRINTS: Cost = Cost { document: 64, feature: 0 };
}

pub(super) fn step(least: Similarity) -> Chance {
    Box::new(move |similarity| f64::from(similarity >= least.as_f64()))
}

/// Returns the chance that two SimHash fingerprints of `bits` bits differ in at most `limit` of them.
///
/// Source: Charikar, "Similarity Estimation Techniques from Rounding Algorithms", STOC 2002, section 3: a
/// random hyperplane separates two vectors with the chance of their angle over pi. The bits are independent,
/// so the number of differing bits is binomial.
pub(super) fn within(bits: u32, limit: u32, cosine: f64) -> f64 {
    let differs = cosine.acos() / PI;
    if differs == 0.0 {
        return 1.0;
    }
    let odds = differs / (1.0 - differs);
    let mut exactly = (1.0 - differs).powi(bits as i32);
    let mut at_most = exactly;
    for count in 1..=limit.min(bits) {
        exactly *= odds * f64::from(bits - count + 1) / f64::from(count);
        at_most += exactly;
    }
    at_most.min(1.0)
}

#[cfg(test)]
mod tests {
    use crate::method::Spec;

    fn chance(spec: &str, similarity: f64) -> f64 {
        spec.parse::<Spec>().unwrap().curve().at(similarity)
    }

    /// Values printed by Python: the sum of `comb(bits, i) * p**i * (1 - p)**(bits - i)` for `i` up to the
    /// limit.
    #[test]
    fn simhash_differs_in_as_many_bits_as_the_angle_says() {
        for (bits, limit, cosine, expected) in BINOMIAL {
            let got = chance(&format!("simhash:bits={bits},hamming={limit}"), cosine);
            assert!((got / expected - 1.0).abs() < 1e-9, "{bits} {limit} {cosine}: {got}");
        }
    }

    const BINOMIAL: [(u32, u32, f64, f64); 6] = [
        (64, 3, 0.5, 3.086380408037482e-8),
        (64, 3, 0.9, 0.013033433267061087),
        (64, 3, 0.99, 0.6739798322708903),
        (32, 2, 0.95, 0.3591460870618196),
        (64, 10, 0.8, 0.21262534257504467),
        (64, 0, 0.999, 0.39944473829092836),
    ];

    #[test]
    fn every_curve_rises_from_0_to_1() {
        for spec in Spec::examples() {
            let chances: Vec<f64> =
                (0..=100).map(|percent| chance(spec, f64::from(percent) / 100.0)).collect();
            assert!(chances.is_sorted() && chances[0] < 0.5 && chances[100] == 1.0, "{spec}: {chances:?}");
        }
    }
}
