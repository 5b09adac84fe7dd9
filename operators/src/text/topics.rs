//! Topics of a post, such as `#spring#`: where they stand in a cleaned text, and what they count.
//!
//! The same remark under another topic is another post, but a topic often has more characters than the remark. So
//! all topics of a text count as a few features. Source: docs/design/0013.

use memchr::memchr;

use crate::hash;

/// Stands before each topic, behind the body of a cleaned post. It is no letter, so no body has it.
pub(super) const TOPIC_MARK: char = '#';

/// Number of features by which all topics of a text count.
pub const TOPIC_FEATURES: usize = 3;

/// Seed of the hash by which features of topics are drawn. Signatures keep the features of the least values too, so
/// the sample needs a hash of its own.
const TOPIC_SEED: u64 = 0x746f_7069_6373;

/// Returns the body of a cleaned post, and its topics, each behind a mark, or nothing.
pub(super) fn body_and_topics(cleaned: &str) -> (&str, &str) {
    cleaned.split_at(memchr(TOPIC_MARK as u8, cleaned.as_bytes()).unwrap_or(cleaned.len()))
}

/// Returns the topics of a text that consists of topics, each behind a mark or between two.
pub(super) fn each_topic(marked: &str) -> impl Iterator<Item = &str> {
    marked.split(TOPIC_MARK).filter(|topic| !topic.is_empty())
}

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

    #[test]
    fn topics_stand_behind_the_body() {
        assert_eq!(body_and_topics("body#one#two"), ("body", "#one#two"));
        assert_eq!(body_and_topics("body"), ("body", ""));
        assert_eq!(each_topic("#one##two#").collect::<Vec<_>>(), ["one", "two"]);
    }
}
