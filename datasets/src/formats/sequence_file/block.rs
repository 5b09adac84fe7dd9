//! A block of a block-compressed file: many records, with their keys together and their values together.

use super::class::vint;
use super::codec::Decompressor;

/// Content of a file at the place of one record.
pub(super) enum Raw<'a> {
    /// A record. Its value is still compressed where each value is.
    Record(KeyValue<'a>),
    /// A record, a block or a stretch of the file that cannot be read.
    Lost {
        /// Offset in the file.
        offset: u64,
        /// Reason in lower case, without a full stop.
        reason: &'a str,
        /// First bytes.
        head: &'a [u8],
    },
}

/// The serialised key and value of a record.
pub(super) struct KeyValue<'a> {
    /// Offset in the file of the record, or of its block.
    pub(super) offset: u64,
    /// Index of the record in its block, where there are blocks.
    pub(super) index: Option<usize>,
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

/// Largest length of the lengths of a block's keys, or values, in bytes. It allows at least 3 million
/// records, where a block of Hadoop has one million bytes by default.
const LENGTHS_BYTES: usize = 16 << 20;

/// A decompressed block. Its buffers are kept for the next one.
pub(super) struct DecodedBlock {
    /// Largest length of a block as it is stored, and of its keys and values together.
    pub(super) max_bytes: usize,
    /// Number of its records that are still to come.
    pub(super) left: usize,
    decompressor: Decompressor,
    offset: u64,
    index: usize,
    keys: KeysOrValues,
    values: KeysOrValues,
}

/// The keys of a block, or its values: their lengths, and all of them one after the other.
#[derive(Default)]
struct KeysOrValues {
    /// Lengths at the start of the buffer, which is as long as the longest block so far.
    lengths: Vec<u8>,
    lengths_at: usize,
    /// Keys or values at the start of the buffer.
    bytes: Vec<u8>,
    at: usize,
}

impl DecodedBlock {
    pub(super) fn new(decompressor: Decompressor, max_bytes: usize) -> Self {
        let (keys, values) = (KeysOrValues::default(), KeysOrValues::default());
        DecodedBlock { max_bytes, left: 0, decompressor, offset: 0, index: 0, keys, values }
    }

    /// Decompresses and checks all of a block. So a damaged block gives no records rather than wrong ones.
    ///
    /// `parts`, as stored: the lengths of the `count` keys, the keys, the lengths of the values, the values.
    pub(super) fn fill(&mut self, offset: u64, count: usize, parts: [&[u8]; 4]) -> Result<(), String> {
        let decompressor = &mut self.decompressor;
        let most = LENGTHS_BYTES.min(self.max_bytes);
        let keys = self.keys.measure(decompressor, count, parts[0], most, "key")?;
        let values = self.values.measure(decompressor, count, parts[2], most, "value")?;
        let bytes = keys.saturating_add(values);
        let limit = self.max_bytes;
        if bytes > limit as u64 {
            return Err(format!("the keys and values of the block are {bytes} bytes, more than {limit}"));
        }
        self.keys.fill(decompressor, parts[1], keys as usize, "key")?;
        self.values.fill(decompressor, parts[3], values as usize, "value")?;
        (self.offset, self.index, self.left) = (offset, 0, count);
        Ok(())
    }

    /// Returns the next of `left` records.
    pub(super) fn next(&mut self) -> Raw<'_> {
        let index = Some(self.index);
        self.index += 1;
        self.left -= 1;
        Raw::Record(KeyValue { offset: self.offset, index, key: self.keys.next(), value: self.values.next() })
    }
}

impl KeysOrValues {
    /// Decompresses the lengths, and returns their sum.
    fn measure(
        &mut self,
        decompressor: &mut Decompressor,
        count: usize,
        lengths: &[u8],
        most: usize,
        what: &str,
    ) -> Result<u64, String> {
        (self.lengths_at, self.at) = (0, 0);
        let bytes = decompressor
            .decompress(lengths, most, &mut self.lengths)
            .map_err(|reason| format!("the {what}s of the block: {reason}"))?;
        let lengths = &self.lengths[..bytes];
        let (mut sum, mut at) = (0u64, 0);
        for _ in 0..count {
            let Some((length, bytes)) = vint(&lengths[at..]).filter(|&(length, _)| length >= 0) else {
                return Err(format!("the block does not hold {count} {what}s"));
            };
            at += bytes;
            sum = sum.saturating_add(length as u64);
        }
        if at != lengths.len() {
            return Err(format!("the block holds more than {count} {what}s"));
        }
        Ok(sum)
    }

    /// Decompresses the keys or values.
    fn fill(
        &mut self,
        decompressor: &mut Decompressor,
        bytes: &[u8],
        sum: usize,
        what: &str,
    ) -> Result<(), String> {
        let bytes = decompressor
            .decompress(bytes, sum, &mut self.bytes)
            .map_err(|reason| format!("the {what}s of the block: {reason}"))?;
        if sum != bytes {
            return Err(format!("the {what}s of the block are not as long as it says"));
        }
        Ok(())
    }

    /// Returns the next key or value. All lengths were checked when the block was filled.
    fn next(&mut self) -> &[u8] {
        let (length, bytes) = vint(&self.lengths[self.lengths_at..]).unwrap_or_default();
        self.lengths_at += bytes;
        self.at += length as usize;
        &self.bytes[self.at - length as usize..self.at]
    }
}
