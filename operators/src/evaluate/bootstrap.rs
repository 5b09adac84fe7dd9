//! Bootstrap: how far a figure of a sample may be off.

use crate::hash;

/// Number of samples that are drawn.
const DRAWN: u64 = 1_000;
/// Share of the figures that are left out on either side.
const LEFT_OUT: f64 = 0.025;

/// Returns, for each of `N` figures, the interval that holds it in 95 % of the samples that are drawn, with
/// repetition, from `count` items. The samples are the same in every run.
///
/// `figures`: computes the figures of a sample, given by the numbers of its items; `None` where a sample has none,
/// which is left out. Cost: a thousand calls of it.
///
/// Source: Efron, "Bootstrap Methods: Another Look at the Jackknife", Annals of Statistics 1979 (percentiles).
pub fn intervals<const N: usize>(
    count: usize,
    figures: impl Fn(&[usize]) -> [Option<f64>; N],
) -> [Option<(f64, f64)>; N] {
    let mut drawn = [(); N].map(|()| Vec::new());
    let mut sample = Vec::new();
    for number in 0..DRAWN {
        let random = |item| hash::spread(number << 32 | item);
        let place = |item| ((u128::from(random(item)) * count as u128) >> 64) as usize;
        sample.clear();
        sample.extend((0..count as u64).map(place));
        for (all, figure) in drawn.iter_mut().zip(figures(&sample)) {
            all.extend(figure);
        }
    }
    drawn.map(|mut all| {
        all.sort_by(f64::total_cmp);
        let out = (all.len() as f64 * LEFT_OUT) as usize;
        Some((*all.get(out)?, all[all.len() - 1 - out]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_share_is_that_of_the_binomial_distribution() {
        // Of 100 items 30 are counted; the standard deviation of the share is .0458.
        let share =
            |sample: &[usize]| [Some(sample.iter().filter(|&&item| item < 30).count() as f64 / 100.0), None];
        let [of_share, none] = intervals(100, share);
        let (low, high) = of_share.unwrap();
        assert!((0.19..0.23).contains(&low) && (0.37..0.41).contains(&high), "{low} {high}");
        assert_eq!(none, None);
        assert_eq!(of_share, intervals(100, share)[0]);
    }
}
