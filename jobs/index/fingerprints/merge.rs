//! Merges files of fingerprints.

use anyhow::Result;

use super::layout::FileShape;
use super::reader::{FingerprintFile, FingerprintRows};
use super::writer::{FingerprintWriter, GROUP_SHIFT};

/// Writes the entries of all files, but those that do not stay. `stays`: is asked about words and numbers, in the order of the
/// first table.
///
/// Memory: a page of each file, and 8 bytes for each word that is gone.
///
/// # Errors
/// Those of the store and of `stays`, and [`cluster::Error::Damaged`].
pub(crate) fn merge(
    files: &[&FingerprintFile],
    writer: &mut FingerprintWriter,
    mut stays: impl FnMut(u64, u64) -> Result<bool>,
) -> Result<()> {
    // Words of which no entry stays, in order.
    let mut gone: Vec<u64> = Vec::new();
    let mut rows: Vec<FingerprintRows> = files.iter().map(|file| file.rows(0)).collect();
    let mut last = None;
    while let Some((word, number)) = least(&mut rows)? {
        let stays = stays(word, number)?;
        let is_gone = gone.last() == Some(&word);
        match stays {
            true if is_gone => _ = gone.pop(),
            false if last != Some(word) => gone.push(word),
            _ => {}
        }
        last = Some(word);
        if stays {
            writer.push_first(word, number)?;
        }
    }
    writer.push_others(|block, each| {
        let like_block = |file: &FingerprintFile| file.shape().table_like(FileShape::FOUR, block);
        let mut rows: Vec<FingerprintRows> = files.iter().map(|file| file.rows(like_block(file))).collect();
        // Files of different shapes agree on the order of the first 16 bits alone.
        while let Some(bits) = least_bits(&mut rows)? {
            for rows in &mut rows {
                while let Some((key, _)) = rows.peek()?.filter(|(key, _)| key >> GROUP_SHIFT == bits) {
                    rows.next()?;
                    let word = rows.word_of(key);
                    if gone.is_empty() || gone.binary_search(&word).is_err() {
                        each(word)?;
                    }
                }
            }
        }
        Ok(())
    })
}

/// Returns the least first 16 bits of the keys that are next.
fn least_bits(rows: &mut [FingerprintRows]) -> Result<Option<u64>> {
    let mut least: Option<u64> = None;
    for rows in rows {
        if let Some((key, _)) = rows.peek()? {
            least = Some(least.map_or(key >> GROUP_SHIFT, |least| least.min(key >> GROUP_SHIFT)));
        }
    }
    Ok(least)
}

/// Takes the least entry of all files.
fn least(rows: &mut [FingerprintRows]) -> Result<Option<(u64, u64)>> {
    let mut least: Option<(u64, u64)> = None;
    let mut of = None;
    for (at, rows) in rows.iter_mut().enumerate() {
        if let Some(row) = rows.peek()?.filter(|row| least.is_none_or(|least| *row < least)) {
            (least, of) = (Some(row), Some(at));
        }
    }
    Ok(match of {
        Some(at) => rows[at].next()?,
        None => None,
    })
}
