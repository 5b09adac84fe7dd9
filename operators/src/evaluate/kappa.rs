//! Agreement of several raters beyond chance.

/// Returns Fleiss' kappa: 1 for full agreement, 0 for what chance would give. `None` if there is no item, fewer than two
/// raters, or every rating is the same, so that chance explains all.
///
/// `ratings`: for each item, how many raters chose each category; the sum is the same for every item.
///
/// Source: Fleiss, "Measuring nominal scale agreement among many raters", Psychological Bulletin 1971.
pub fn fleiss_kappa(ratings: &[Vec<usize>]) -> Option<f64> {
    let raters: usize = ratings.first()?.iter().sum();
    let pairs = raters.checked_sub(1)? as f64 * raters as f64;
    let items = ratings.len() as f64;
    let agreeing =
        |counts: &Vec<usize>| counts.iter().map(|&count| count * count.saturating_sub(1)).sum::<usize>();
    let observed = ratings.iter().map(agreeing).sum::<usize>() as f64 / pairs / items;
    let share = |category: usize| {
        ratings.iter().map(|counts| counts[category]).sum::<usize>() as f64 / (items * raters as f64)
    };
    let chance =
        (0..ratings[0].len()).map(|category| share(category).powi(2)).fold(0.0, |sum, square| sum + square);
    (raters > 1 && chance < 1.0).then(|| (observed - chance) / (1.0 - chance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kappa_is_that_of_the_paper() {
        // Three raters, three categories. Agreement 5/6; shares 1/2, 5/12, 1/12, so chance .4306.
        let ratings = [vec![3, 0, 0], vec![0, 3, 0], vec![3, 0, 0], vec![0, 2, 1]];
        let kappa = fleiss_kappa(&ratings).unwrap();
        assert!((kappa - (5.0 / 6.0 - 62.0 / 144.0) / (1.0 - 62.0 / 144.0)).abs() < 1e-12, "{kappa}");
        assert_eq!(fleiss_kappa(&[vec![2, 0], vec![0, 2]]), Some(1.0));
        assert_eq!(
            (fleiss_kappa(&[]), fleiss_kappa(&[vec![1, 0]]), fleiss_kappa(&[vec![2, 0]])),
            (None, None, None)
        );
    }
}
