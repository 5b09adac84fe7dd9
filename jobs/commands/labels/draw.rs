//! Draws pairs to be labelled, so that few labels tell much of a whole corpus.

use std::collections::{BTreeMap, HashSet};

use operators::flow::ClusterBatch;
use operators::{Similarity, hash};

use super::table::{LabelTable, LabelledRow};

/// Least similarity of a pair that is drawn, by the similarity of `auto`.
pub(crate) const LEAST: f64 = 0.4;
/// Number of bands of similarity in which equally many pairs are drawn.
const BANDS: u32 = 6;
/// Lengths from which on the shorter text of a pair is of the next class, in characters.
const CLASSES: [(&str, u64); 3] = [("short", 40), ("middle", 200), ("long", u64::MAX)];

/// Pairs of a length class and a band of similarity: of all that were offered, those of the least hashes.
#[derive(Default)]
struct Stratum {
    offered: u64,
    drawn: BTreeMap<u64, [String; 2]>,
}

/// Draws pairs in equal numbers from each length class and each band of similarity, where there are so many.
pub(crate) struct StratifiedDraw {
    wanted: usize,
    seed: u64,
    strata: BTreeMap<(usize, u32), Stratum>,
}

impl StratifiedDraw {
    /// Prepares to draw `wanted` pairs. Memory: the ids of ten times as many pairs for each of 18 strata.
    pub fn new(wanted: usize, seed: u64) -> Self {
        StratifiedDraw { wanted, seed, strata: BTreeMap::new() }
    }

    /// Offers the pairs of clusters.
    pub fn offer(&mut self, batch: &ClusterBatch) {
        for &(pair, similarity) in &batch.matches().pairs {
            let chars = batch.merit(pair.low).chars.min(batch.merit(pair.high).chars);
            let class = CLASSES.iter().position(|&(_, below)| chars < below).unwrap_or(CLASSES.len() - 1);
            let above = similarity.map_or(0.0, Similarity::as_f64) - LEAST;
            let band = (above / (1.0 - LEAST) * f64::from(BANDS)).clamp(0.0, f64::from(BANDS - 1)) as u32;
            let place = hash::spread(pair.low.0 ^ hash::spread(pair.high.0 ^ hash::spread(self.seed)));
            let stratum = self.strata.entry((class, band)).or_default();
            stratum.offered += 1;
            stratum.drawn.insert(place, [pair.low, pair.high].map(|doc| batch.id(doc).to_owned()));
            // More than are wanted, since no document is in two pairs.
            if stratum.drawn.len() > 10 * self.wanted {
                stratum.drawn.pop_last();
            }
        }
    }

    /// Joins what several workers were offered.
    pub fn join(&mut self, other: StratifiedDraw) {
        for (key, of) in other.strata {
            let stratum = self.strata.entry(key).or_default();
            stratum.offered += of.offered;
            stratum.drawn.extend(of.drawn);
        }
    }

    /// Returns the pairs drawn, in an order that tells nothing. A document is in one pair at most. `stands_for`: the
    /// number of pairs of the corpus for each that was offered.
    pub fn finish(self, stands_for: f64) -> LabelTable {
        let mut left = self.strata.len();
        let mut wanted = self.wanted;
        let mut used = HashSet::new();
        let mut rows = BTreeMap::new();
        // Small strata first: what they lack is drawn from the others. With fewer pairs than strata, the largest
        // strata have one each.
        let mut strata: Vec<_> = self.strata.into_iter().collect();
        strata.sort_by_key(|(key, stratum)| (stratum.offered, *key));
        for ((class, _), Stratum { offered, drawn }) in strata {
            let most = wanted / left;
            let mut taken = Vec::new();
            for (place, ids) in drawn {
                if taken.len() < most && ids.iter().all(|id| !used.contains(id)) {
                    used.extend(ids.iter().cloned());
                    taken.push((place, ids));
                }
            }
            let weight = offered as f64 * stands_for / taken.len().max(1) as f64;
            (wanted, left) = (wanted - taken.len(), left - 1);
            for (place, ids) in taken {
                let length = CLASSES[class].0.to_owned();
                let weight = format!("{weight:.1}");
                rows.insert(place, LabelledRow { ids, length, weight, ..LabelledRow::default() });
            }
        }
        LabelTable { rows: rows.into_values().collect() }
    }
}
