//! Numbers of documents by the length of their texts.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::output::summary::RemovedShare;

/// Ends of the classes of lengths, in characters.
const ENDS: [u64; 6] = [20, 50, 140, 500, 2_000, 10_000];

/// Number of documents in each class of lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct LengthCounts([u64; ENDS.len() + 1]);

impl LengthCounts {
    /// Counts a document by the number of characters of its text.
    pub fn add(&mut self, chars: u64) {
        self.0[ENDS.partition_point(|end| *end <= chars)] += 1;
    }

    /// Returns the classes that have documents, with the numbers of those and of `removed` ones.
    pub fn shares(&self, removed: &LengthCounts) -> Vec<RemovedShare> {
        let name = |class: usize| match class {
            0 => format!("under {}", ENDS[0]),
            last if last == ENDS.len() => format!("{} and more", ENDS[last - 1]),
            class => format!("{} to {}", ENDS[class - 1], ENDS[class] - 1),
        };
        let counts = self.0.into_iter().zip(removed.0).enumerate();
        let of_class = |(class, (documents, removed))| RemovedShare { name: name(class), documents, removed };
        counts.map(of_class).filter(|share| share.documents > 0).collect()
    }

    /// Counts what an output says of its documents.
    pub fn of_shares(shares: &[RemovedShare]) -> Self {
        let mut counts = LengthCounts::default();
        let all = LengthCounts([1; ENDS.len() + 1]).shares(&LengthCounts::default());
        for (count, class) in counts.0.iter_mut().zip(all) {
            let share = shares.iter().find(|share| share.name == class.name);
            *count = share.map_or(0, |share| share.documents);
        }
        counts
    }
}

impl AddAssign for LengthCounts {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_has_one_class() {
        let (mut all, mut removed) = (LengthCounts::default(), LengthCounts::default());
        [0, 19, 20, 139, 140, 10_000, 5_000_000].into_iter().for_each(|chars| all.add(chars));
        [19, 140].into_iter().for_each(|chars| removed.add(chars));
        let shares = all.shares(&removed);
        let shown: Vec<_> =
            shares.iter().map(|share| (share.name.as_str(), share.documents, share.removed)).collect();
        let expected = [
            ("under 20", 2, 1),
            ("20 to 49", 1, 0),
            ("50 to 139", 1, 0),
            ("140 to 499", 1, 1),
            ("10000 and more", 2, 0),
        ];
        assert_eq!(shown, expected);
        assert_eq!(LengthCounts::of_shares(&shares), all);
    }
}
