//! Tiles: records that share a key and are too many for one worker meet on many, a part with a part.

use timely::worker::Worker;

use crate::flow::exchange::shuffle::SortingShuffle;
use crate::record::{DocId, Pair, Record};
use crate::{Error, Runs, Scratch, hash};

/// So many tiles there are at the least for each worker: they are not all of one size.
const TILES: u64 = 4;

/// Each record is sent so many times at the most, however little memory there is.
const MOST_PARTS: u64 = 1 << 10;

/// Documents fall into parts; each two parts meet in a tile, and each part by itself.
#[derive(Clone, Copy, Debug)]
struct Tiles {
    parts: u64,
}

impl Tiles {
    /// As many as keep the workers busy.
    fn of_workers(peers: u64) -> Self {
        let enough = (1..).find(|parts| parts * (parts + 1) / 2 >= TILES * peers);
        Tiles { parts: enough.unwrap_or(1) }
    }

    /// The same, or as many as it takes for two parts of so many `rows` to `fit` into memory.
    fn fitting(self, rows: u64, fit: Option<u64>) -> Self {
        let small = fit.map_or(1, |fit| (2 * rows).div_ceil(fit.max(1)).min(MOST_PARTS));
        Tiles { parts: small.max(self.parts) }
    }

    fn part(self, doc: DocId) -> u64 {
        hash::spread(doc.0) % self.parts
    }

    /// All tiles of a document.
    fn of(self, doc: DocId) -> impl Iterator<Item = u64> {
        let part = self.part(doc);
        (0..self.parts).map(move |other| tile(part, other))
    }

    /// Where a pair is to be found.
    fn of_pair(self, pair: &Pair) -> u64 {
        tile(self.part(pair.low), self.part(pair.high))
    }
}

/// Tiles are numbered from 0 on.
fn tile(part: u64, other: u64) -> u64 {
    let (low, high) = (part.min(other), part.max(other));
    high * (high + 1) / 2 + low
}

/// Where a pair is to be found among records that have met.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place(Option<(Tiles, u64)>);

impl Place {
    /// Whether it is here: of two documents that meet in many tiles in one of them.
    #[inline]
    pub fn holds(self, pair: &Pair) -> bool {
        self.0.is_none_or(|(tiles, tile)| tiles.of_pair(pair) == tile)
    }
}

/// Brings records that share a key together on many workers: calls `each` with the records of a tile of a key, and with
/// which of their pairs are to be found there: every pair is in one tile. `rows`: how many records share a record's key,
/// about, and on all workers the same; `fit`: so many fit into memory at once.
///
/// Every record is sent to about `√8w` of `w` workers, or more if that is too many for a tile to fit, and compared with
/// two of so many parts of the others there. Memory: `scratch`, and a tile.
pub(crate) fn in_tiles<R: Record + Ord, E: From<Error>>(
    worker: &mut Worker,
    scratch: &Scratch,
    (rows, fit): (impl Fn(&R) -> u64, Option<u64>),
    scan: impl FnOnce(&mut Worker, &mut dyn FnMut(&mut Worker, R)) -> Result<(), E>,
    (key, doc): (impl Fn(&R) -> u64, impl Fn(&R) -> DocId),
    mut each: impl FnMut(&mut [R], Place),
) -> Result<(), E> {
    let of_workers = Tiles::of_workers(worker.peers() as u64);
    let tiles = |record: &R| of_workers.fitting(rows(record), fit);
    // The tiles of a key go to one worker after the other.
    let to = |((key, tile), _): &((u64, u64), R)| key.wrapping_add(*tile);
    let mut shuffle = SortingShuffle::new(worker, "Tile", to, Runs::new(scratch));
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
                each(&mut records, Place(Some((tiles(&same[0].1), same[0].0.1))));
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
            let tiles = Tiles::of_workers(peers);
            assert_eq!(tiles.parts, parts);
            let numbers = (0..parts).flat_map(|high| (0..=high).map(move |low| tile(low, high)));
            assert!(numbers.eq(0..parts * (parts + 1) / 2));
        }
        let tiles = Tiles::of_workers(4);
        let docs = (0..100).map(DocId);
        for (a, b) in docs.clone().flat_map(|a| docs.clone().map(move |b| (a, b))) {
            let common = tiles.of(a).filter(|&tile| tiles.of(b).any(|other| other == tile));
            let pair = Pair::new(a, b, 0);
            assert_eq!(common.filter(|&tile| tile == tiles.of_pair(&pair)).count(), 1);
        }
    }

    #[test]
    fn there_are_tiles_enough_to_fit_into_memory() {
        assert_eq!(Tiles::of_workers(2).fitting(1_000, Some(10_000)).parts, 4);
        assert_eq!(Tiles::of_workers(1).fitting(100_000, Some(10_000)).parts, 20);
        assert_eq!(Tiles::of_workers(1).fitting(1 << 40, Some(0)).parts, MOST_PARTS);
    }
}
