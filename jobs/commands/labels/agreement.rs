//! Agreement of a method with labelled pairs: precision, recall and average precision, for each length class.

use operators::{RankedPair, Ranking, intervals};
use serde_json::{Value, json};

/// Labelled pair, and what was made of it.
pub(crate) struct ComparedPair {
    /// Similarity of the pair, 0 where it is not known because the pair was not found; label; weight.
    pub ranked: RankedPair,
    /// Length class that the labels give.
    pub class: Option<String>,
    pub found: bool,
}

/// Precision, recall and average precision; `None` where there is no pair to measure them by.
type Measured = [Option<f64>; 3];

const NAMES: [&str; 3] = ["precision", "recall", "average precision"];

/// Measured of one class, with the intervals that hold them in 95 % of bootstrap samples.
struct ClassAgreement<'a> {
    class: &'a str,
    pairs: usize,
    same: usize,
    figures: Measured,
    intervals: [Option<(f64, f64)>; 3],
}

/// Returns a table with a line for each class, in the order in which the labels name them, and one for all.
pub(crate) fn table(compared: &[&ComparedPair]) -> String {
    let mut table = format!("{:10} {:>6} {:>6}", "length", "pairs", "same");
    NAMES.iter().for_each(|name| table += &format!("  {name:>21}"));
    table.push('\n');
    for [class, pairs, same, precision, recall, average] in rows(compared) {
        table += &format!("{class:10} {pairs:>6} {same:>6}  {precision:>21}  {recall:>21}  {average:>21}\n");
    }
    table + BRACKETS + "\n"
}

/// Explains the intervals.
pub(crate) const BRACKETS: &str =
    "in brackets: 95 % of bootstrap samples lie there; each pair counts by its weight";

/// Returns the rows of the table: the class, its pairs, how many of them are the same, precision, recall, average precision.
pub(crate) fn rows(compared: &[&ComparedPair]) -> Vec<[String; 6]> {
    let row = |of: ClassAgreement| {
        let shown = |at: usize| match of.figures[at].zip(of.intervals[at]) {
            Some((figure, (low, high))) => format!("{figure:.3} ({low:.3}, {high:.3})"),
            None => "-".to_owned(),
        };
        [of.class.to_owned(), of.pairs.to_string(), of.same.to_string(), shown(0), shown(1), shown(2)]
    };
    classes(compared).into_iter().map(row).collect()
}

/// Returns what the table shows.
pub(crate) fn to_json(compared: &[&ComparedPair]) -> Value {
    let class = |of: ClassAgreement| {
        let [precision, recall, average] = of.figures;
        let [of_precision, of_recall, of_average] = of.intervals;
        json!({
            "length": of.class, "pairs": of.pairs, "same": of.same,
            "precision": precision, "precision_95": of_precision,
            "recall": recall, "recall_95": of_recall,
            "average_precision": average, "average_precision_95": of_average,
        })
    };
    classes(compared).into_iter().map(class).collect()
}

fn classes<'a>(compared: &[&'a ComparedPair]) -> Vec<ClassAgreement<'a>> {
    let mut names: Vec<&str> = Vec::new();
    for name in compared.iter().filter_map(|pair| pair.class.as_deref()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    // Classes of length come in their order, and those that the user has named behind them.
    let place =
        |name: &str| ["short", "middle", "long"].iter().position(|length| *length == name).unwrap_or(3);
    names.sort_by_key(|name| place(name));
    let every = std::iter::once(("all", None));
    let of_class = |(class, only): (&'a str, Option<&str>)| {
        let pairs: Vec<&ComparedPair> =
            compared.iter().copied().filter(|pair| only.is_none() || pair.class.as_deref() == only).collect();
        let whole: Vec<usize> = (0..pairs.len()).collect();
        ClassAgreement {
            class,
            pairs: pairs.len(),
            same: pairs.iter().filter(|pair| pair.ranked.same).count(),
            figures: figures(&pairs, &whole),
            intervals: intervals(pairs.len(), |sample| figures(&pairs, sample)),
        }
    };
    names.into_iter().map(|name| (name, Some(name))).chain(every).map(of_class).collect()
}

/// Computes the figures of the pairs with these numbers.
fn figures(pairs: &[&ComparedPair], sample: &[usize]) -> Measured {
    let drawn = || sample.iter().map(|&number| pairs[number]);
    let weight = |wanted: &dyn Fn(&ComparedPair) -> bool| -> f64 {
        drawn().filter(|pair| wanted(pair)).fold(0.0, |sum, pair| sum + pair.ranked.weight)
    };
    let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
    let right = weight(&|pair| pair.found && pair.ranked.same);
    let same = weight(&|pair| pair.ranked.same);
    let ranking = Ranking::new(drawn().map(|pair| pair.ranked).collect());
    let average = (same > 0.0).then(|| ranking.average_precision());
    [ratio(right, weight(&|pair| pair.found)), ratio(right, same), average]
}

/// Returns the points of the curve of precision over recall, from the left. The curve is a staircase, since a
/// pair is found at the precision of its threshold.
pub(crate) fn stairs(ranking: &Ranking) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut recall = 0.0;
    for point in ranking.points() {
        points.push((recall, point.precision()));
        recall = ranking.recall(point);
        points.push((recall, point.precision()));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use operators::Similarity;

    #[test]
    fn a_table_has_a_line_for_each_class_and_one_for_all() {
        let pair = |class: &str, at, same, found, weight| ComparedPair {
            ranked: RankedPair { similarity: Similarity::millionths(at), same, weight },
            class: Some(class.to_owned()),
            found,
        };
        let compared = [
            pair("short", 900_000, true, true, 3.0),
            pair("short", 800_000, false, true, 1.0),
            pair("short", 100_000, true, false, 1.0),
            pair("long", 700_000, false, false, 5.0),
        ];
        let compared: Vec<&ComparedPair> = compared.iter().collect();
        let table = table(&compared);
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1][..4], ["short", "3", "2", "0.750"]);
        assert_eq!(lines[2], ["long", "1", "0", "-", "-", "-"]);
        assert_eq!(lines[3][..4], ["all", "4", "2", "0.750"]);
        // Recall is 3 of 4; three quarters of the recall come at precision 1, one at 4 of 5.
        let json = to_json(&compared);
        assert_eq!((&json[0]["recall"], &json[0]["average_precision"]), (&json!(0.75), &json!(0.95)));
    }
}
