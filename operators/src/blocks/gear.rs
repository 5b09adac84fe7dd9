//! Blocks cut by content with a gear hash (FastCDC).

use fastcdc::v2020::{AVERAGE_MIN, FastCDC, MAXIMUM_MIN, MINIMUM_MIN};

use super::exact::{ExactStore, size_of_blocks};
use super::store::{BlockMethod, BlockStore};

/// Largest wanted mean of the bytes of a block.
const MOST_BYTES: usize = 1 << 20;

/// `gear:SIZE`: blocks of about SIZE bytes, which end where the hash of the 64 bytes before has certain bits clear.
/// Blocks have a quarter of SIZE to four times SIZE bytes. An insertion changes the block that it is in, and perhaps the
/// next one.
///
/// Source: Xia et al., "The Design of Fast Content-Defined Chunking for Data Deduplication Based Storage Systems", IEEE
/// TPDS 2020, as the crate `fastcdc` has it, with its normalisation level 1.
pub(super) struct GearBlocks;

impl BlockMethod for GearBlocks {
    fn name(&self) -> &'static str {
        "gear"
    }

    fn form(&self) -> &'static str {
        "gear:SIZE"
    }

    fn examples(&self) -> &[&'static str] {
        &["gear:8K", "gear:4K", "gear:2K", "gear:1K"]
    }

    fn open<'a>(&self, parameter: Option<&str>) -> Result<Box<dyn BlockStore<'a> + 'a>, String> {
        let mean = size_of_blocks(parameter, AVERAGE_MIN, MOST_BYTES)?;
        // The crate asks for even sizes.
        if !mean.is_multiple_of(8) {
            return Err("SIZE a multiple of 8".to_owned());
        }
        let least = (mean / 4).max(MINIMUM_MIN);
        let most = (mean * 4).max(MAXIMUM_MIN);
        Ok(ExactStore::open(move |text: &'a str| {
            let bytes = text.as_bytes();
            let blocks = FastCDC::new(bytes, least, mean, most);
            blocks.map(|block| &bytes[block.offset..block.offset + block.length]).collect()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash;

    #[test]
    fn an_insertion_changes_few_blocks() {
        let text: String =
            (0..20_000).map(|n| char::from_u32(0x4e00 + (hash::spread(n) % 7_919) as u32).unwrap()).collect();
        let changed = format!("{}插入{}", &text[..3_000], &text[3_000..]);
        let mut store = GearBlocks.open(Some("1K")).unwrap();
        assert_eq!(store.add(&text).left_out.len(), 0);
        let found = store.add(&changed);
        let left_out: usize = found.left_out.iter().map(|range| range.len()).sum();
        assert!(left_out > text.len() - 10_000 && left_out < text.len(), "{left_out} of {}", text.len());
        assert_eq!(store.ledger().bytes_in(), (text.len() + changed.len()) as u64);
    }
}
