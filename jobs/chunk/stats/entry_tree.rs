//! Entries of a table of `chunk stats --by`, such as folders, and who of them has a chunk for itself.

use std::collections::HashMap;
use std::ops::AddAssign;

use serde::Serialize;

/// Number of the entry that all others lie in.
pub(super) const ROOT: u32 = 0;
/// Stands for no entry.
const NONE: u32 = u32::MAX;

/// A row of the table, without its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct EntryRow {
    /// Number of files in all snapshots, and of their bytes. A file counts once for each snapshot that it is in.
    pub files: u64,
    pub bytes: u64,
    /// Number of bytes of the chunks that it was the first to bring, in the order of the snapshots and of the names in each.
    pub new_chunk_bytes: u64,
    /// Number of bytes that these take in packs.
    pub new_stored_bytes: u64,
    /// Number of bytes of the chunks that nothing else wants.
    pub own_chunk_bytes: u64,
    /// Number of bytes that these take in packs.
    pub own_stored_bytes: u64,
}

impl AddAssign for EntryRow {
    fn add_assign(&mut self, other: EntryRow) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.new_chunk_bytes += other.new_chunk_bytes;
        self.new_stored_bytes += other.new_stored_bytes;
        self.own_chunk_bytes += other.own_chunk_bytes;
        self.own_stored_bytes += other.own_stored_bytes;
    }
}

/// Facts about a chunk: which entry has brought it, and which is the innermost entry that everything which wants it
/// lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkOwner {
    first: u32,
    owner: u32,
}

impl Default for ChunkOwner {
    fn default() -> Self {
        ChunkOwner { first: NONE, owner: NONE }
    }
}

/// Entries, each of which lies in another one. Entries that lie beside each other, such as files, all lie in the root.
///
/// A chunk belongs to the innermost entry that holds everything which wants it, and so to those around that one:
///
/// ```text
/// a/b/x wants chunks 1 2     own of a/b: 1 2    brought by a/b: 1 2
/// a/c/y wants chunks 3 4     own of a/c: 4      brought by a/c: 3 4
/// a/z   wants chunk  3       own of a: 1 2 3 4  brought by a: 1 2 3 4
/// ```
///
/// Memory: about 120 bytes for each entry.
pub(super) struct EntryTree {
    /// Numbers of entries by the first 128 bits of the BLAKE3 hashes of their names.
    numbers: HashMap<[u8; 16], u32>,
    entries: Vec<TreeEntry>,
}

struct TreeEntry {
    parent: u32,
    depth: u32,
    row: EntryRow,
}

impl EntryTree {
    /// Makes a tree of the root.
    pub fn new() -> Self {
        let root = TreeEntry { parent: ROOT, depth: 0, row: EntryRow::default() };
        EntryTree { numbers: HashMap::new(), entries: vec![root] }
    }

    /// Returns the number of an entry that lies in `parent`, which a new one gets. Entries are numbered in the order in
    /// which they come, so a parent has a lower number.
    pub fn number(&mut self, parent: u32, name: &str) -> u32 {
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(name.as_bytes()).as_bytes()[..16]);
        let depth = self.entries[parent as usize].depth + 1;
        let entries = &mut self.entries;
        *self.numbers.entry(hash).or_insert_with(|| {
            entries.push(TreeEntry { parent, depth, row: EntryRow::default() });
            entries.len() as u32 - 1
        })
    }

    /// Counts a file of an entry.
    pub fn add_file(&mut self, entry: u32, bytes: u64) {
        self.entries[entry as usize].row += EntryRow { files: 1, bytes, ..EntryRow::default() };
    }

    /// Notes that an entry wants a chunk. Entries come in the order of time. Cost: the depth of the entries.
    pub fn note(&self, chunk: &mut ChunkOwner, entry: u32) {
        if chunk.first == NONE {
            *chunk = ChunkOwner { first: entry, owner: entry };
        } else {
            chunk.owner = self.innermost(chunk.owner, entry);
        }
    }

    /// Returns the innermost entry that two entries lie in, or are.
    fn innermost(&self, mut one: u32, mut other: u32) -> u32 {
        while one != other {
            let (a, b) = (&self.entries[one as usize], &self.entries[other as usize]);
            if a.depth >= b.depth {
                one = a.parent;
            } else {
                other = b.parent;
            }
        }
        one
    }

    /// Adds a chunk of `bytes` bytes, which takes `stored` bytes in its pack, to the entries that own it and have brought it.
    pub fn add_chunk(&mut self, chunk: ChunkOwner, bytes: u64, stored: u64) {
        if chunk.first == NONE {
            return;
        }
        let new = EntryRow { new_chunk_bytes: bytes, new_stored_bytes: stored, ..EntryRow::default() };
        let own = EntryRow { own_chunk_bytes: bytes, own_stored_bytes: stored, ..EntryRow::default() };
        self.entries[chunk.first as usize].row += new;
        self.entries[chunk.owner as usize].row += own;
    }

    /// Adds to each entry what those in it have, and returns the rows in the order of the numbers.
    pub fn into_rows(mut self) -> Vec<EntryRow> {
        for entry in (1..self.entries.len()).rev() {
            let TreeEntry { parent, row, .. } = self.entries[entry];
            self.entries[parent as usize].row += row;
        }
        self.entries.into_iter().map(|entry| entry.row).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Returns the folders that a file lies in, and the file.
    fn entries(file: &str) -> Vec<&str> {
        file.match_indices('/').map(|(at, _)| &file[..at]).chain([file]).collect()
    }

    proptest! {
        /// Chunk `n` has `n + 1` bytes, of which half are stored.
        #[test]
        fn an_entry_owns_what_would_be_unused_without_it(
            files in vec(("[ab](/[ab]){0,3}", vec(0usize..12, 0..6)), 0..12),
        ) {
            let mut tree = EntryTree::new();
            let mut chunks = [ChunkOwner::default(); 12];
            let mut numbers = BTreeMap::from([("", ROOT)]);
            // A name that is a file and a folder is one entry here.
            for (name, wanted) in &files {
                let mut entry = ROOT;
                for part in entries(name) {
                    entry = tree.number(entry, part);
                    numbers.insert(part, entry);
                }
                tree.add_file(entry, 1);
                wanted.iter().for_each(|&chunk| tree.note(&mut chunks[chunk], entry));
            }
            for (at, &chunk) in (1..).zip(&chunks) {
                tree.add_chunk(chunk, 2 * at, at);
            }
            let rows = tree.into_rows();
            prop_assert_eq!(rows.len(), numbers.len());
            for (entry, number) in numbers {
                let is_in = |name: &str| entry.is_empty() || entries(name).contains(&entry);
                let wanted = |inside: bool| {
                    let files = files.iter().filter(|(name, _)| is_in(name) == inside);
                    files.flat_map(|(_, wanted)| wanted.iter().copied()).collect::<BTreeSet<usize>>()
                };
                let first = |chunk: &usize| files.iter().find(|(_, wanted)| wanted.contains(chunk));
                let sum = |chunks: Vec<usize>| chunks.into_iter().map(|chunk| chunk as u64 + 1).sum::<u64>();
                let own = sum(wanted(true).difference(&wanted(false)).copied().collect());
                let new = (0..12).filter(|chunk| first(chunk).is_some_and(|(name, _)| is_in(name))).collect();
                let new = sum(new);
                let count = files.iter().filter(|(name, _)| is_in(name)).count() as u64;
                prop_assert_eq!(rows[number as usize], EntryRow {
                    files: count,
                    bytes: count,
                    new_chunk_bytes: 2 * new,
                    new_stored_bytes: new,
                    own_chunk_bytes: 2 * own,
                    own_stored_bytes: own,
                });
            }
        }
    }
}
