//! Topics of a post, such as `#spring#`, and what they count.
//!
//! The same remark under another topic is another post, but a topic often has more characters than the remark. So
//! all topics of a text count as a few features. Source: docs/design/auto.md.

use crate::hash;

/// Number of features by which all topics of a text count.
pub const TOPIC_FEATURES: usize = 3;

/// Seed of the hash by which features of topics are drawn. Signatures keep the features of the least values too, so
/// the sample needs a hash of its own.
const TOPIC_SEED: u64 = 0x746f_7069_6373;

/// Sample of the features of topics: those of the least hashes, so that similar topics have similar samples.
#[derive(Default)]
pub(super) struct TopicSample {
    /// Hash and feature of each, the least hash first.
    drawn: [Option<(u64, u64)>; TOPIC_FEATURES],
}

impl TopicSample {
    /// Offers a feature to the sample. It may be offered more than once.
    pub fn draw(&mut self, feature: u64) {
        let mut drawn = (hash::spread(feature ^ TOPIC_SEED), feature);
        for place in &mut self.drawn {
            match place {
                Some(held) if *held == drawn => return,
                Some(held) if *held > drawn => std::mem::swap(held, &mut drawn),
                Some(_) => {}
                None => return *place = Some(drawn),
            }
        }
    }

    /// Returns the features of the sample, each once.
    pub fn features(self) -> impl Iterator<Item = u64> {
        self.drawn.into_iter().flatten().map(|(_, feature)| feature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_features_of_the_least_hashes_in_any_order() {
        let sample = |features: &[u64]| {
            let mut sample = TopicSample::default();
            features.iter().for_each(|&feature| sample.draw(feature));
            sample.features().collect::<Vec<_>>()
        };
        let mut least: Vec<u64> = (0..50).collect();
        least.sort_by_key(|feature| hash::spread(feature ^ TOPIC_SEED));
        least.truncate(TOPIC_FEATURES);
        let (up, down): (Vec<u64>, Vec<u64>) = ((0..50).collect(), (0..50).rev().chain(0..50).collect());
        assert_eq!((sample(&up), sample(&down)), (least.clone(), least));
        assert_eq!(sample(&[7, 7]), [7]);
    }
}
