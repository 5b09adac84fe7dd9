//! Tiles: spreads the records of a key, if they are too many for one worker, over many workers, where each
//! part of them meets each other part.

use timely::worker::Worker;

use crate::flow::exchange::shuffle::{RecordScan, SortingShuffle};
use crate::record::{DocId, Pair, Record};
use crate::search::crowds::Belongs;
use crate::{Error, ExternalSort, SpillBudget, hash};

/// Least number of tiles of each worker. There are several, because tiles differ in size.
const TILES: u64 = 4;

/// Greatest number of times that a record is sent, however little memory there is.
const MOST_PARTS: u64 = 1 << 10;

/// A grid of pairs of parts. Documents are divided into parts by their hash, and each two parts meet in a
/// tile.
///
/// Example with three parts:
///
/// ```text
///          part 0   part 1   part 2
/// part 0   tile 0
/// part 1   tile 1   tile 2
/// part 2   tile 3   tile 4   tile 5
/// a document of part 1 is sent to tiles 1, 2 and 4
/// documents of parts 1 and 2 meet in tile 4 alone
/// two documents of part 1 meet in all three tiles; their pair belongs to tile 2
/// ```
#[derive(Clone, Copy, Debug)]
struct PairGrid {
    parts: u64,
}

impl PairGrid {
    /// Makes as many tiles as keep the workers busy.
    fn of_workers(peers: u64) -> Self {
        let enough = (1..).find(|parts| parts * (parts + 1) / 2 >= TILES * peers);
        PairGrid { parts: enough.unwrap_or(1) }
    }

    /// Increases the number of parts, if necessary, so that two parts of `rows` rows fit into memory, which
    /// holds `fit` rows.
    fn fitting(self, rows: u64, fit: Option<u64>) -> Self {
        let small = fit.map_or(1, |fit| (2 * rows).div_ceil(fit.max(1)).min(MOST_PARTS));
        PairGrid { parts: small.max(self.parts) }
    }

    fn part(self, doc: DocId) -> u64 {
        hash::spread(doc.0) % self.parts
    }

    /// Returns all tiles of a document.
    fn of(self, doc: DocId) -> impl Iterator<Item = u64> {
        let part = self.part(doc);
        (0..self.parts).map(move |other| tile(part, other))
    }

    /// Returns the tile that a pair belongs to.
    fn of_pair(self, pair: &Pair) -> u64 {
        tile(self.part(pair.low), self.part(pair.high))
    }
}

/// Returns the number of the tile of two parts, from 0 on.
fn tile(part: u64, other: u64) -> u64 {
    let (low, high) = (part.min(other), part.max(other));
    high * (high + 1) / 2 + low
}

/// Brings records that share a key together in tiles on many workers. Calls `each` with the records of a tile
/// of a key, and with a function that tells which pairs belong to it: two documents may meet in many tiles, but their pair belongs
/// to one of them.
///
/// `rows`: the approximate number of records with a record's key, the same on all workers. `fit`: the number
/// of records that fit into memory at once. `scan`: gives the records of this worker. `key`, `doc`: the key
/// and the document of a record.
///
/// Every record is sent to about `√8w` tiles with `w` workers, or more if a tile would not fit otherwise. In
/// each tile it meets the records of at most two of that many parts. Memory: `spill`, and a tile.
pub(crate) fn in_tiles<R: Record + Ord, E: From<Error>>(
    worker: &mut Worker,
    spill: &SpillBudget,
    (rows, fit): (impl Fn(&R) -> u64, Option<u64>),
    scan: RecordScan<'_, R, E>,
    (key, doc): (impl Fn(&R) -> u64, impl Fn(&R) -> DocId),
    mut each: impl FnMut(&mut [R], Belongs),
) -> Result<(), E> {
    let of_workers = PairGrid::of_workers(worker.peers() as u64);
    let tiles = |record: &R| of_workers.fitting(rows(record), fit);
    // The tiles of a key go to one worker after the other.
    let to = |((key, tile), _): &((u64, u64), R)| key.wrapping_add(*tile);
    let mut shuffle = SortingShuffle::new(worker, "Tile", to, ExternalSort::new(spill));
    scan(worker, &mut |worker, record| {
        for tile in tiles(&record).of(doc(&record)) {
            shuffle.send(worker, ((key(&record), tile), record));
        }
    })?;
    let mut arrived = shuffle.finish(worker)?;
    let mut records = Vec::new();
    arrived.each_group(
        0,
        |a, b| a.0 == b.0,
        |some| {
            for same in some.chunk_by(|a, b| a.0 == b.0) {
                records.clear();
                records.extend(same.iter().map(|(_, record)| *record));
                let grid = tiles(&same[0].1);
                let tile = same[0].0.1;
                each(&mut records, Box::new(move |pair| grid.of_pair(pair) == tile));
            }
        },
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_parts_has_a_tile_of_its_own() {
        for (peers, parts) in [(2, 4), (4, 6), (8, 8), (1000, 89)] {
            let tiles = PairGrid::of_workers(peers);
            assert_eq!(tiles.parts, parts);
            let numbers = (0..parts).flat_map(|high| (0..=high).map(move |low| tile(low, high)));
            assert!(numbers.eq(0..parts * (parts + 1) / 2));
        }
        let tiles = PairGrid::of_workers(4);
        let docs = (0..100).map(DocId);
        for (a, b) in docs.clone().flat_map(|a| docs.clone().map(move |b| (a, b))) {
            let common = tiles.of(a).filter(|&tile| tiles.of(b).any(|other| other == tile));
            let pair = Pair::new(a, b, 0);
            assert_eq!(common.filter(|&tile| tile == tiles.of_pair(&pair)).count(), 1);
        }
    }

    #[test]
    fn there_are_tiles_enough_to_fit_into_memory() {
        assert_eq!(PairGrid::of_workers(2).fitting(1_000, Some(10_000)).parts, 4);
        assert_eq!(PairGrid::of_workers(1).fitting(100_000, Some(10_000)).parts, 20);
        assert_eq!(PairGrid::of_workers(1).fitting(1 << 40, Some(0)).parts, MOST_PARTS);
    }
}
