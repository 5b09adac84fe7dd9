//! The keys that many texts have, with those texts alone that stay.

use std::sync::Arc;

use anyhow::Result;
use foldhash::HashMap;
use operators::method::{KeptKeys, KeyOfPass, TextKeys};

use crate::topics::{MetTexts, Topic, TopicReader};

/// Number of texts with a key above which it is crowded.
const FEW: usize = 32;

/// A key: its pass, and the least key that meets it.
type CrowdedKey = (u32, u128);

/// The texts of a topic that have crowded keys and stay, as far as that is known. The index has all texts of a family behind each of its
/// keys; to read them for each document of it would cost the square of the family.
///
/// A text whose document stays again is added again, since that document asks again. Memory: 8 bytes for each crowded key of
/// a text that stays.
#[derive(Default)]
pub(super) struct CrowdedKeys {
    by_key: HashMap<CrowdedKey, Vec<u64>>,
    /// Number of texts of all keys.
    texts: usize,
    /// Numbering of the topic by which texts are named.
    numbering: Option<Arc<()>>,
}

/// The texts that a text has met by its keys.
pub(super) struct MetByKeys {
    /// The keys of the text, in the order by which `met` names them.
    pub of_text: TextKeys,
    pub met: MetTexts,
    /// Whether the text is compared with those alone that stay, since very many have common keys.
    pub is_led: bool,
}

impl CrowdedKeys {
    /// Finds the texts that have common keys with a text. Of a crowded key these are the ones that may stay, and the index is not asked.
    /// `own`: the number of the text. `may_stay`: whether a text may stay, as far as that is known.
    pub fn meet(
        &mut self,
        reader: &mut TopicReader,
        kept: &KeptKeys,
        (of_text, own): (TextKeys, u64),
        may_stay: impl Fn(u64) -> bool,
    ) -> Result<MetByKeys> {
        self.renew(reader.topic());
        let (mut open, mut known, mut of_known) = (Vec::new(), Vec::new(), Vec::new());
        for key in &of_text.keys {
            match self.texts(kept, key, &may_stay) {
                Some(texts) => {
                    of_known.extend(texts.iter().map(|text| (*text, known.len())));
                    known.push(*key);
                }
                None => open.push(*key),
            }
        }
        let few = open.len();
        let of_open = TextKeys { keys: open, ..of_text };
        let mut met = reader.meet(&of_open, kept, None)?;
        self.begin_crowds(kept, &of_open, &met, may_stay);
        let is_led = !known.is_empty() || met.are_more_than(FEW, few);
        met.met.extend(of_known.into_iter().map(|(text, at)| (text, 0, few + at)));
        let of_text = TextKeys { keys: [&of_open.keys[..], &known].concat(), ..of_open };
        of_text.keys.iter().for_each(|key| self.add(kept, key, own));
        Ok(MetByKeys { of_text, met, is_led })
    }

    /// Forgets all texts if the topic has given them other numbers.
    fn renew(&mut self, topic: &Topic) {
        if self.numbering.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &topic.numbering)) {
            self.by_key.clear();
            self.texts = 0;
            self.numbering = Some(Arc::clone(&topic.numbering));
        }
    }

    /// Returns the texts with a key, if it is crowded. Those that may not stay any more are forgotten.
    fn texts(&mut self, kept: &KeptKeys, key: &KeyOfPass, may_stay: impl Fn(u64) -> bool) -> Option<&[u64]> {
        let texts = self.by_key.get_mut(&id(kept, key))?;
        let before = texts.len();
        texts.retain(|text| may_stay(*text));
        self.texts -= before - texts.len();
        Some(texts)
    }

    /// Notes which keys have met many texts, and those of them that may stay.
    fn begin_crowds(
        &mut self,
        kept: &KeptKeys,
        of: &TextKeys,
        met: &MetTexts,
        may_stay: impl Fn(u64) -> bool,
    ) {
        // Fingerprints within a distance have no keys of their own.
        if kept.distance().is_some() {
            return;
        }
        let mut counts = vec![0; of.keys.len()];
        met.met.iter().for_each(|(_, _, at)| counts[*at] += 1);
        for (at, key) in of.keys.iter().enumerate().filter(|(at, _)| counts[*at] > FEW) {
            let texts = met.met.iter().filter(|(text, _, of)| *of == at && may_stay(*text));
            let mut texts: Vec<u64> = texts.map(|(text, ..)| *text).collect();
            texts.sort_unstable();
            texts.dedup();
            self.texts += texts.len();
            self.by_key.insert(id(kept, key), texts);
        }
    }

    /// Adds a text to those with a key, if it is crowded.
    fn add(&mut self, kept: &KeptKeys, key: &KeyOfPass, text: u64) {
        if let Some(texts) = self.by_key.get_mut(&id(kept, key)).filter(|texts| !texts.contains(&text)) {
            texts.push(text);
            self.texts += 1;
        }
    }

    /// Returns about how many bytes it takes.
    pub fn bytes(&self) -> usize {
        64 * self.by_key.len() + 12 * self.texts
    }
}

fn id(kept: &KeptKeys, key: &KeyOfPass) -> CrowdedKey {
    (key.pass, kept.range(key.pass, key.key).0)
}
