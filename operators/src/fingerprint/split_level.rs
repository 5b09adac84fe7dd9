//! Buckets of one level of splitting of the block join.

use super::bit_positions::BitPositions;
use super::bits::Bits;
use crate::record::Row;

/// The buffers of one level of splitting. Rows keep their order within a bucket.
#[derive(Clone, Debug, Default)]
pub(super) struct SplitLevel<W> {
    pub rows: Vec<Row<W>>,
    /// For each group of bits, the ends of its buckets.
    pub ends: Vec<Vec<usize>>,
}

impl<W: Bits> SplitLevel<W> {
    /// Counts the rows of each bucket of each group.
    pub fn count(&mut self, rows: &[Row<W>], groups: &[W]) {
        self.ends.resize_with(self.ends.len().max(groups.len()), Vec::new);
        for (ends, &group) in self.ends.iter_mut().zip(groups) {
            ends.clear();
            ends.resize(1 << group.count_ones(), 0);
            let bits = BitPositions::new(group);
            rows.iter().for_each(|row| ends[bits.of(row.fingerprint)] += 1);
        }
        self.ends[groups.len()..].iter_mut().for_each(Vec::clear);
    }

    /// Returns twice the number of pairs that share a bucket of a group, where each row also makes a pair
    /// with itself.
    pub fn pairs(&self) -> usize {
        self.ends.iter().flatten().map(|count| count * count).sum()
    }

    /// Orders rows by their bits in a group. The counts of the group become the ends of its buckets.
    pub fn scatter(&mut self, rows: &[Row<W>], part: usize, group: W) {
        self.rows.resize(rows.len(), Row::default());
        let ends = &mut self.ends[part];
        let to = &mut self.rows;
        let mut start = 0;
        for end in &mut *ends {
            start += std::mem::replace(end, start);
        }
        let bits = BitPositions::new(group);
        for row in rows {
            let end = &mut ends[bits.of(row.fingerprint)];
            to[*end] = *row;
            *end += 1;
        }
    }
}
