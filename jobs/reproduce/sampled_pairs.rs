//! Pairs of a finished output, drawn at random, with their texts.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Context, Result};
use cluster::{Stores, text_of_path};
use operators::hash;

use batch::finished::{Finished, PairRow};
use runtime::progress::Progress;

/// A pair of a finished output.
pub(super) struct SampledPair {
    pub ids: [String; 2],
    pub texts: [String; 2],
}

/// Draws pairs, identical ones too. Returns the number of all pairs, and those drawn.
pub(super) fn sample_pairs(output: &Path, count: usize, seed: u64) -> Result<(u64, Vec<SampledPair>)> {
    let finished = Finished::open(&Stores::new(), &text_of_path(output.as_os_str()))?;
    let (mut all, mut drawn) = (0, BTreeMap::new());
    finished.pairs(|pair| {
        let (a, b) = pair.places;
        drawn.insert((hash::spread(a.0 ^ hash::spread(b.0 ^ hash::spread(seed))), a, b), pair);
        all += 1;
        if drawn.len() > count {
            drawn.pop_last();
        }
    })?;
    let places: Vec<_> = drawn.values().flat_map(|pair| [pair.places.0, pair.places.1]).collect();
    let documents = finished.input(1)?.at(&places, &Progress::default())?;
    let texts: HashMap<_, _> =
        documents.into_iter().map(|document| (document.place, document.text)).collect();
    let of_pair = |pair: PairRow| {
        let text = |place| texts.get(&place).cloned().context("a document of a pair was not found again");
        Ok(SampledPair { texts: [text(pair.places.0)?, text(pair.places.1)?], ids: [pair.a, pair.b] })
    };
    Ok((all, drawn.into_values().map(of_pair).collect::<Result<_>>()?))
}
