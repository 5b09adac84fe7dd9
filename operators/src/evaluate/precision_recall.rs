//! Labelled pairs in the order of their similarity, and the precision and recall of each threshold.

use crate::sets::similarity::Similarity;

/// Labelled pairs, the most similar first, given as the thresholds at which the pairs found change.
///
/// Example with five pairs:
///
/// ```text
/// similarity   labelled the same   threshold   right   wrong   precision   recall
/// 0.9          yes                 0.9         1       0       1           1/3
/// 0.8          yes                 0.8         2       0       1           2/3
/// 0.7          no                  0.7         2       1       2/3         2/3
/// 0.6          yes, and one no     0.6         3       2       3/5         1
/// ```
#[derive(Clone, Debug)]
pub struct Ranking {
    points: Vec<Point>,
    same: f64,
}

/// Labelled pair in a ranking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankedPair {
    /// Similarity by which it is ranked.
    pub similarity: Similarity,
    /// Whether it is labelled the same.
    pub same: bool,
    /// Number of pairs that it stands for.
    pub weight: f64,
}

/// Pairs that a threshold finds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Least similarity of a pair that is found: the threshold.
    pub least: Similarity,
    /// Weight of the pairs found that are labelled the same: their number, where each stands for itself.
    pub right: f64,
    /// Weight of the pairs found that are labelled different.
    pub wrong: f64,
}

impl Point {
    /// Returns the share of the pairs found that are labelled the same.
    pub fn precision(&self) -> f64 {
        self.right / (self.right + self.wrong)
    }
}

impl Ranking {
    /// Ranks pairs. Cost: sorting them.
    pub fn new(mut pairs: Vec<RankedPair>) -> Self {
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.similarity));
        let weight = |pairs: &[RankedPair], same: bool| -> f64 {
            pairs.iter().filter(|pair| pair.same == same).fold(0.0, |sum, pair| sum + pair.weight)
        };
        let (mut right, mut wrong) = (0.0, 0.0);
        let equal = pairs.chunk_by(|a, b| a.similarity == b.similarity);
        let points = equal.map(|equal| {
            right += weight(equal, true);
            wrong += weight(equal, false);
            Point { least: equal[0].similarity, right, wrong }
        });
        Ranking { points: points.collect(), same: weight(&pairs, true) }
    }

    /// Returns the points from the highest threshold to the lowest.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Returns the share of the pairs labelled the same that is found.
    pub fn recall(&self, point: &Point) -> f64 {
        if self.same == 0.0 { 0.0 } else { point.right / self.same }
    }

    /// Returns the harmonic mean of precision and recall.
    pub fn f1(&self, point: &Point) -> f64 {
        2.0 * point.right / (point.right + point.wrong + self.same)
    }

    /// Returns the average precision: the mean of the precisions at which each pair labelled the same is
    /// found, which is the area under the steps of the precision-recall curve, without interpolation. Pairs
    /// of equal similarity are found together.
    pub fn average_precision(&self) -> f64 {
        let mut before = 0.0;
        let steps = self.points.iter().map(|point| {
            let found = point.right - std::mem::replace(&mut before, point.right);
            found * point.precision()
        });
        if self.same == 0.0 { 0.0 } else { steps.sum::<f64>() / self.same }
    }

    /// Returns the point of the greatest recall whose precision is at least `least`, and of equal ones the
    /// highest threshold. Returns `None` if no point is that precise.
    pub fn at_precision(&self, least: f64) -> Option<&Point> {
        let precise = self.points.iter().rev().filter(|point| point.precision() >= least);
        precise.max_by(|a, b| a.right.total_cmp(&b.right))
    }

    /// Returns the highest threshold whose recall is at least `least`.
    pub fn at_recall(&self, least: f64) -> Option<&Point> {
        self.points.iter().find(|point| self.recall(point) >= least)
    }

    /// Returns the point of the greatest harmonic mean of precision and recall, and of equal ones the highest
    /// threshold.
    pub fn best(&self) -> Option<&Point> {
        self.points.iter().rev().max_by(|a, b| self.f1(a).total_cmp(&self.f1(b)))
    }

    /// Returns the shortest number that finds the same pairs as the point. It lies above the next lower
    /// similarity of any pair, and of equally short numbers it is the nearest to the middle between the two
    /// similarities.
    pub fn threshold(&self, point: &Point) -> Similarity {
        let at = self.points.partition_point(|other| other.least >= point.least);
        let low = self.points.get(at).map_or(0, |next| next.least.as_millionths());
        let high = point.least.as_millionths();
        let middle = (low + high) / 2;
        for step in [100_000, 10_000, 1_000, 100, 10] {
            let multiples = (low / step + 1..=high / step).map(|times| times * step);
            if let Some(nearest) = multiples.min_by_key(|number| number.abs_diff(middle)) {
                return Similarity::millionths(nearest);
            }
        }
        point.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(pairs: &[(u32, bool)]) -> Ranking {
        let ranked = |&(at, same): &(u32, bool)| RankedPair {
            similarity: Similarity::millionths(at),
            same,
            weight: 1.0,
        };
        Ranking::new(pairs.iter().map(ranked).collect())
    }

    /// Similarities .9, .8 and .6 of pairs labelled the same, and .7, .6 and .1 of pairs labelled different.
    fn example() -> Ranking {
        ranking(&[
            (600_000, true),
            (700_000, false),
            (900_000, true),
            (800_000, true),
            (600_000, false),
            (100_000, false),
        ])
    }

    #[test]
    fn pairs_of_equal_similarity_are_found_together() {
        let counts: Vec<_> = example().points().iter().map(|p| (p.right, p.wrong)).collect();
        assert_eq!(counts, [(1.0, 0.0), (2.0, 0.0), (2.0, 1.0), (3.0, 2.0), (3.0, 3.0)]);
    }

    #[test]
    fn average_precision_is_the_area_under_the_stairs() {
        // Each third of the recall is reached at precision 1, 1 and 3/5.
        assert!((example().average_precision() - (1.0 + 1.0 + 0.6) / 3.0).abs() < 1e-12);
        assert_eq!(ranking(&[(1, false)]).average_precision(), 0.0);
    }

    #[test]
    fn a_pair_of_weight_two_counts_as_two() {
        let weighted = |weight| {
            let pair = |at, same, weight| RankedPair { similarity: Similarity::millionths(at), same, weight };
            Ranking::new(vec![pair(9, true, 1.0), pair(8, false, weight), pair(7, true, 2.0)])
        };
        let twice = ranking(&[(9, true), (8, false), (8, false), (7, true), (7, true)]);
        assert_eq!(weighted(2.0).points(), twice.points());
        assert!((weighted(2.0).average_precision() - twice.average_precision()).abs() < 1e-12);
        assert!(weighted(1.0).average_precision() > twice.average_precision());
    }

    #[test]
    fn a_point_is_found_for_a_wanted_precision_or_recall() {
        let example = example();
        let least = |point: Option<&Point>| point.map(|point| point.least.as_millionths());
        assert_eq!(least(example.at_precision(0.9)), Some(800_000));
        assert_eq!(least(example.at_precision(0.6)), Some(600_000));
        assert_eq!(least(example.at_recall(0.6)), Some(800_000));
        assert_eq!(least(example.at_recall(0.7)), Some(600_000));
        assert_eq!(least(example.best()), Some(800_000)); // F1 .8, and .75 at .6
        assert_eq!(least(example.at_precision(0.5)), Some(600_000)); // and not 0.1, which finds no more
        assert_eq!(ranking(&[(5, false)]).at_precision(0.5), None);
    }

    #[test]
    fn the_threshold_is_the_shortest_number_that_finds_the_same() {
        let threshold = |pairs: &[(u32, bool)]| {
            let ranking = ranking(pairs);
            ranking.threshold(&ranking.points()[0]).as_millionths()
        };
        assert_eq!(threshold(&[(741_935, true), (680_000, false)]), 700_000);
        assert_eq!(threshold(&[(741_935, true), (700_000, false)]), 720_000);
        assert_eq!(threshold(&[(741_935, true), (741_934, false)]), 741_935);
        assert_eq!(threshold(&[(800_000, true), (790_000, false)]), 800_000);
        assert_eq!(threshold(&[(750_000, true)]), 400_000);
    }
}
