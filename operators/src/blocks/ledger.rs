//! Counts what a block store has read and what it keeps.

/// Bytes of the index for each different block: a hash of 32 bytes and the place of the block.
pub const BLOCK_BYTES: u64 = 40;
/// Bytes of a reference to a block in the list of blocks of a text.
pub const REFERENCE_BYTES: u64 = 8;

/// Bytes that a block store has read, and the bytes, blocks and references that it keeps of them.
///
/// Example: the texts `一。二。` and `一。三。`, cut into sentences of 6 bytes:
///
/// ```text
/// read             24 bytes
/// kept             18 bytes: 一。 二。 三。
/// blocks            3, at 40 bytes in the index
/// references        4, at 8 bytes: each text is a list of two
/// saved            1 - 18 / 24 = 25 %; with index 1 - (18 + 3 * 40 + 4 * 8) / 24, which is below 0
/// ```
///
/// Memory: the kept data, and 4 bytes for each block and each reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockLedger {
    bytes_in: u64,
    data: Vec<u8>,
    lengths: Vec<u32>,
    references: Vec<u32>,
}

impl BlockLedger {
    /// Counts a text that is read.
    pub(super) fn read(&mut self, text: &str) {
        self.bytes_in += text.len() as u64;
    }

    /// Keeps the data of a new block, and returns the number of the block.
    pub(super) fn keep(&mut self, data: &[u8]) -> u32 {
        self.data.extend_from_slice(data);
        self.index(data.len())
    }

    /// Adds to the index a block whose bytes are kept as parts of other blocks, and returns its number.
    pub(super) fn index(&mut self, length: usize) -> u32 {
        self.lengths.push(length as u32);
        self.lengths.len() as u32 - 1
    }

    /// Adds a reference to a block at the end of all lists.
    pub(super) fn refer(&mut self, block: u32) {
        self.references.push(block);
    }

    /// Returns the bytes of all texts that were added, in UTF-8: BytesIn of the paper.
    pub fn bytes_in(&self) -> u64 {
        self.bytes_in
    }

    /// Returns the kept data of all blocks, one behind the other. Its length is BytesOut of the paper.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Returns the number of different blocks that the index has.
    pub fn blocks(&self) -> u64 {
        self.lengths.len() as u64
    }

    /// Returns the number of references to blocks, from the lists of texts and of blocks.
    pub fn references(&self) -> u64 {
        self.references.len() as u64
    }

    /// Returns the bytes of the kept data alone.
    pub fn data_bytes(&self) -> u64 {
        self.data.len() as u64
    }

    /// Returns the bytes of the data, of the index and of all references.
    pub fn bytes_with_index(&self) -> u64 {
        self.data_bytes() + BLOCK_BYTES * self.blocks() + REFERENCE_BYTES * self.references()
    }

    /// Returns what restoring the texts needs, to be compressed: the data, the references with 8 bytes each, and the
    /// lengths of blocks with 4. Hashes of blocks, by which a repeated block is found, are not in it.
    pub fn restorable(&self) -> Vec<u8> {
        let mut bytes = self.data.clone();
        bytes.extend(self.references.iter().flat_map(|&block| u64::from(block).to_le_bytes()));
        bytes.extend(self.lengths.iter().flat_map(|length| length.to_le_bytes()));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_has_the_bytes_that_it_says() {
        let mut ledger = BlockLedger::default();
        ["一。二。", "一。三。"].iter().for_each(|text| ledger.read(text));
        let numbers = ["一。", "二。", "三。"].map(|sentence| ledger.keep(sentence.as_bytes()));
        assert_eq!(numbers, [0, 1, 2]);
        [0, 1, 0, 2].iter().for_each(|&block| ledger.refer(block));
        assert_eq!((ledger.bytes_in(), ledger.data_bytes()), (24, 18));
        assert_eq!(ledger.bytes_with_index(), 18 + 3 * 40 + 4 * 8);
        let restorable = ledger.restorable();
        assert_eq!(restorable.len(), 18 + 4 * 8 + 3 * 4);
        assert_eq!(restorable[18 + 24..18 + 34], [2, 0, 0, 0, 0, 0, 0, 0, 6, 0]);
    }
}
