//! Names of documents and numbers of their units, for those that may be cut.

use std::ops::Range;

use anyhow::{Result, bail};
use operators::{SpillBudget, ValueFile};
use parking_lot::RwLock;

/// Groups of consecutive splits. The records of a group are sorted together, and one worker writes them.
#[derive(Clone)]
pub(super) struct SplitGroups {
    splits: Range<u32>,
    count: usize,
}

impl SplitGroups {
    /// Divides splits into at most `most` groups. No more workers can write at once.
    pub fn new(splits: Range<u32>, most: usize) -> Self {
        SplitGroups { count: splits.len().min(most), splits }
    }

    /// Returns the number of groups.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the group of a split.
    pub fn of_split(&self, split: u32) -> usize {
        (split - self.splits.start) as usize * self.count / self.splits.len().max(1)
    }

    /// Returns the splits of a group, in order.
    pub fn splits(&self, group: usize) -> impl Iterator<Item = u32> {
        self.splits.clone().filter(move |&split| self.of_split(split) == group)
    }
}

/// Names of documents that have a unit which may be cut.
///
/// Memory: none for each document. Disk: the name and 24 bytes for each, which are read again only for documents that
/// are cut, and for those whose unit stays instead.
pub(super) struct DocNames {
    groups: SplitGroups,
    files: Vec<RwLock<ValueFile>>,
}

/// Name of a document, and the number of its units that are not white space.
pub(super) struct DocName {
    pub id: String,
    pub units: u64,
}

impl DocNames {
    /// Makes files without names.
    pub fn new(groups: &SplitGroups, spill: &SpillBudget) -> Result<Self> {
        let files = (0..groups.count()).map(|_| Ok(RwLock::new(ValueFile::new(spill)?)));
        Ok(DocNames { groups: groups.clone(), files: files.collect::<Result<_>>()? })
    }

    /// Adds a document of a split, and returns the number by which its name is read.
    pub fn add(&self, split: u32, id: &str, units: u64) -> Result<u64> {
        let value = [&units.to_le_bytes(), id.as_bytes()].concat();
        Ok(self.files[self.groups.of_split(split)].write().append(&value)?)
    }

    /// Reads the name of a document of a split.
    pub fn read(&self, split: u32, name: u64) -> Result<DocName> {
        let value = self.files[self.groups.of_split(split)].read().read(name)?;
        let Some((units, id)) = value.split_first_chunk() else { bail!("a name on disk is damaged") };
        Ok(DocName { id: str::from_utf8(id)?.to_owned(), units: u64::from_le_bytes(*units) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_split_is_in_one_group_and_groups_are_consecutive() {
        for splits in [0..0, 0..1, 3..10, 0..256, 5..1000] {
            let groups = SplitGroups::new(splits.clone(), 64);
            let all: Vec<u32> = (0..groups.count()).flat_map(|group| groups.splits(group)).collect();
            assert!(all.into_iter().eq(splits));
        }
    }
}
