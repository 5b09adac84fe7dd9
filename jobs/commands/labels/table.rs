//! Tables of labelled pairs, which `label` makes.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use anyhow::{Result, bail};
use operators::fleiss_kappa;

use runtime::cli::exit::WrongUse;

/// Labels that a pair can have: the same, different, cannot say.
pub(crate) const LABELS: [&str; 3] = ["1", "0", "?"];

/// Pairs with labels, or to be labelled, in a file with a header.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LabelTable {
    pub rows: Vec<LabelledRow>,
}

/// Row of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LabelledRow {
    pub ids: [String; 2],
    /// One of [`LABELS`], or empty for a pair that is not labelled yet.
    pub label: String,
    /// Labels of the files that were merged.
    pub merged: Vec<String>,
    /// Length class: short, middle or long.
    pub length: String,
    /// Number of pairs of the corpus that the pair stands for.
    pub weight: String,
}

impl LabelTable {
    /// Reads the text of a file, which is called `name` in errors.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let wrong = |line: usize, reason: &str| WrongUse(format!("\"{name}\", line {line}: {reason}"));
        let mut lines = (1..).zip(text.lines());
        let header: Vec<&str> =
            lines.next().map(|(_, header)| header.split('\t').collect()).unwrap_or_default();
        let place = |column| header.iter().position(|&other| other == column);
        let (Some(a), Some(b), Some(label)) = (place("a"), place("b"), place("label")) else {
            bail!(wrong(1, "expected a header with the columns a, b and label"));
        };
        let (length, weight) = (place("length"), place("weight"));
        let mut rows = Vec::<LabelledRow>::new();
        let mut known = HashSet::new();
        for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
            let fields: Vec<&str> = line.trim_end_matches('\r').split('\t').collect();
            let field = |at: Option<usize>| at.and_then(|at| fields.get(at)).unwrap_or(&"").to_string();
            let row = LabelledRow {
                ids: [a, b].map(|at| field(Some(at))),
                label: field(Some(label)),
                merged: Vec::new(),
                length: field(length),
                weight: weight.map_or("1".to_owned(), |at| field(Some(at))),
            };
            if row.ids.iter().any(String::is_empty) {
                bail!(wrong(number, "a pair has two ids"));
            }
            if !row.label.is_empty() && !LABELS.contains(&row.label.as_str()) {
                bail!(wrong(number, "the label is none of 1, 0 and ?"));
            }
            if !known.insert(sorted(&row.ids).map(str::to_owned)) {
                bail!(wrong(number, "the pair is on an earlier line too"));
            }
            if weight_of(&row.weight).is_none() {
                bail!(wrong(number, "the weight is no number above 0"));
            }
            rows.push(row);
        }
        if rows.is_empty() {
            bail!(WrongUse(format!("\"{name}\" holds no pairs")));
        }
        Ok(LabelTable { rows })
    }

    /// Returns the text of the file.
    pub fn to_text(&self) -> String {
        let merged = self.rows.first().map_or(0, |row| row.merged.len());
        let mut text = "a\tb\tlabel".to_owned();
        (1..=merged).for_each(|number| text += &format!("\tlabel{number}"));
        text += "\tlength\tweight\n";
        for LabelledRow { ids: [a, b], label, merged, length, weight } in &self.rows {
            let merged: String = merged.iter().map(|label| format!("\t{label}")).collect();
            let _ = writeln!(text, "{a}\t{b}\t{label}{merged}\t{length}\t{weight}");
        }
        text
    }

    /// Merges tables of the same pairs, by the label that most of them give, or ? where none has a majority. Also
    /// returns Fleiss' kappa. `named`: the tables and the names of their files, the first of which gives the order.
    pub fn merge(named: &[(String, LabelTable)]) -> Result<(Self, Option<f64>)> {
        let Some((_, first)) = named.first() else { bail!(WrongUse("there is no file to merge".to_owned())) };
        let mut merged = first.clone();
        for (name, table) in named {
            let of: HashMap<[&str; 2], &str> =
                table.rows.iter().map(|row| (sorted(&row.ids), row.label.as_str())).collect();
            if table.rows.len() != merged.rows.len() {
                bail!(WrongUse(format!("\"{name}\" has other pairs than the first file")));
            }
            for row in &mut merged.rows {
                let [a, b] = &row.ids;
                match of.get(&sorted(&row.ids)).copied() {
                    None => {
                        bail!(WrongUse(format!("\"{name}\" does not have the pair of \"{a}\" and \"{b}\"")))
                    }
                    Some("") => {
                        bail!(WrongUse(format!("\"{name}\" has no label yet for \"{a}\" and \"{b}\"")))
                    }
                    Some(label) => row.merged.push(label.to_owned()),
                }
            }
        }
        let mut ratings = Vec::new();
        for row in &mut merged.rows {
            let votes = LABELS.map(|label| row.merged.iter().filter(|vote| *vote == label).count());
            let majority = LABELS.iter().zip(votes).find(|&(_, votes)| 2 * votes > row.merged.len());
            row.label = majority.map_or("?", |(label, _)| label).to_string();
            ratings.push(votes.to_vec());
        }
        Ok((merged, fleiss_kappa(&ratings)))
    }
}

/// Returns the weight that a field of a table says; `None` if it says none.
pub(super) fn weight_of(field: &str) -> Option<f64> {
    field.parse().ok().filter(|weight: &f64| *weight > 0.0 && weight.is_finite())
}

/// Returns the ids of a pair in an order that does not depend on which came first.
fn sorted(ids: &[String; 2]) -> [&str; 2] {
    let [a, b] = [&ids[0], &ids[1]].map(String::as_str);
    if a <= b { [a, b] } else { [b, a] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &str) -> LabelTable {
        LabelTable::parse("t", &format!("a\tb\tlabel\tlength\tweight\n{rows}")).unwrap()
    }

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let text = "a\tb\tlabel\tlength\tweight\nx\ty\t1\tshort\t2.5\nx\tz\t\tlong\t1\n";
        assert_eq!(LabelTable::parse("t", text).unwrap().to_text(), text);
        for (text, expected) in [
            ("", "line 1: expected a header"),
            ("a\tb\tlabel\nx\ty\t2\n", "line 2: the label is none of"),
            ("a\tb\tlabel\nx\n", "line 2: a pair has two ids"),
            ("a\tb\tlabel\nx\ty\t1\ny\tx\t0\n", "line 3: the pair is on an earlier line too"),
            ("a\tb\tlabel\tweight\nx\ty\t1\t-5\n", "line 2: the weight is no number above 0"),
            ("a\tb\tlabel\n", "holds no pairs"),
        ] {
            let error = LabelTable::parse("t", text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn files_are_merged_by_majority() {
        let named =
            |rows: &[&str]| -> Vec<_> { rows.iter().map(|rows| ("t".to_owned(), table(rows))).collect() };
        let (merged, kappa) =
            LabelTable::merge(&named(&["x\ty\t1\ts\t2\nx\tz\t0\ts\t1\n", "z\tx\t?\ts\t1\ny\tx\t1\ts\t2\n"]))
                .unwrap();
        assert_eq!(
            merged.to_text(),
            "a\tb\tlabel\tlabel1\tlabel2\tlength\tweight\nx\ty\t1\t1\t1\ts\t2\nx\tz\t?\t0\t?\ts\t1\n"
        );
        assert!(kappa.is_some_and(|kappa| (0.0..1.0).contains(&kappa)));
        for rows in [
            ["x\ty\t1\t\t1\n", "x\tz\t1\t\t1\n"],
            ["x\ty\t1\t\t1\n", "x\ty\t\t\t1\n"],
            ["x\ty\t1\t\t1\n", "x\ty\t1\t\t1\na\tb\t1\t\t1\n"],
        ] {
            assert!(LabelTable::merge(&named(&rows)).is_err());
        }
    }
}
