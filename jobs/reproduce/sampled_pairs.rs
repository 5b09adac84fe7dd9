//! Pairs of a finished output, drawn at random, with their texts, and the judgement of them.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Context, Result};
use cluster::{Stores, text_of_path};
use operators::hash;
use operators::method::{PairClassifier, Spec};
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;

use super::stand_in::Posts;
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
    let mut all = 0;
    let mut drawn = BTreeMap::new();
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

/// Judges pairs: whether the two are duplicates for a reader.
pub(super) struct Judge<'a> {
    /// Generated posts, whose messages are known; `None` for the texts of a user.
    pub posts: Option<&'a Posts>,
    /// Method that judges in the place of a reader.
    pub proxy: Spec,
}

impl Judge<'_> {
    /// Returns who judges, for people.
    pub fn said(&self) -> &'static str {
        match self.posts {
            Some(_) => "by the generator, which knows what each post brings",
            None => "by a proxy, the rule of `auto`, which no person has checked here",
        }
    }

    /// Returns for each pair whether the two are duplicates.
    pub fn judge(&self, pairs: &[SampledPair]) -> Result<Vec<bool>> {
        Ok(match self.posts {
            Some(posts) => {
                pairs.iter().map(|pair| posts.message(&pair.ids[0]) == posts.message(&pair.ids[1])).collect()
            }
            None => {
                let mut texts = PairClassifier::new(self.proxy.method(
                    &Lexicon::default(),
                    &Statistics::default(),
                    None,
                )?);
                let same = |pair: &SampledPair| {
                    let [a, b] = pair.texts.each_ref().map(|text| texts.add(text));
                    texts.classify(a, b).matches
                };
                pairs.iter().map(same).collect()
            }
        })
    }
}
