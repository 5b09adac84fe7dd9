//! The page of an evaluation.

use anyhow::Result;
use operators::Ranking;

use super::{Figures, mean, part};
use crate::commands::labels::agreement;
use runtime::report::chart::{Axis, Chart};
use runtime::report::parts::{PagePart, PageTable, page_of_parts};

impl Figures {
    /// Returns the page. `output`: address of the output; `labels`: what the labels are.
    pub(super) fn page(&self, output: &str, labels: &str) -> Result<String> {
        let mut parts = vec![PagePart::Text(format!("`{output}`, against labels: {labels}.")), self.scores()];
        if self.compared.is_empty() {
            let said = "There is no curve of precision and recall: for that, labels must judge single pairs.";
            parts.push(PagePart::Text(said.to_owned()));
        } else {
            let compared: Vec<_> = self.compared.iter().collect();
            let rows = agreement::rows(&compared);
            parts.push(PagePart::Table(PageTable {
                caption: format!("Labelled pairs by length of their texts; {}", agreement::BRACKETS),
                head: vec!["length", "pairs", "same", "precision", "recall", "average precision"],
                rows: rows.into_iter().map(Vec::from).collect(),
            }));
            parts.push(self.curve());
        }
        page_of_parts("How well an output agrees with labels", &parts)
    }

    /// Returns the table of scores.
    fn scores(&self) -> PagePart {
        let mut rows = Vec::new();
        let mut row = |name: &str, [precision, recall, f1]: [Option<f64>; 3], counted: String| {
            rows.push(vec![name.to_owned(), part(precision), part(recall), part(f1), counted]);
        };
        let pairs = &self.pairs;
        let counted = format!("right {}, false {}, missed {}", pairs.right, pairs.wrong, pairs.missed);
        row("pairs", [pairs.precision(), pairs.recall(), pairs.f1()], counted);
        if let Some(all) = &self.removals {
            let counted = format!(
                "removed {}, unsound {}, left {}, groups wiped out {}",
                all.removed, all.unsound, all.left, all.wiped
            );
            row("documents", [all.precision(), all.recall(), all.f1()], counted);
        }
        let (duplicates, others) = (self.core.duplicates(), self.core.others());
        let means = [
            mean(duplicates.precision(), others.precision()),
            mean(duplicates.recall(), others.recall()),
            mean(duplicates.f1(), others.f1()),
        ];
        let counted = format!("accuracy {}", part(self.core.accuracy()));
        row("CORE-2020, means of documents with and without duplicates", means, counted);
        PagePart::Table(PageTable {
            caption: "Scores".to_owned(),
            head: vec!["of", "precision", "recall", "F1", "counted"],
            rows,
        })
    }

    /// Returns the curve of precision over recall as the least similarity falls.
    fn curve(&self) -> PagePart {
        let ranking = Ranking::new(self.compared.iter().map(|pair| pair.ranked).collect());
        let caption = "Precision and recall of the labelled pairs as the least similarity falls. Pairs that the output does not have come last.";
        let chart = Chart::Lines {
            title: String::new(),
            x: Axis::linear("recall"),
            y: Axis::linear("precision"),
            lines: vec![("precision".to_owned(), agreement::stairs(&ranking))],
        };
        PagePart::Figure(caption.to_owned(), chart)
    }
}
