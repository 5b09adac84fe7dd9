//! The keys that many texts have, with those texts alone that stay.

use std::sync::Arc;

use foldhash::HashMap;
use operators::method::{KeptKeys, KeyOfPass};

use crate::index::topics::Topic;

/// Number of texts with a key above which it is crowded.
pub(super) const FEW: usize = 32;

/// A key: its pass, and the least key that meets it.
type CrowdedKey = (u32, u128);

/// The texts of a topic that have crowded keys and stay, as far as that is known. The index has all texts of a family behind each of its
/// keys; to read them for each document of it would cost the square of the family.
///
/// A text whose document stays again is [added](CrowdedKeys::add) again, since that document asks again. Memory: 8 bytes for each crowded key of
/// a text that stays.
#[derive(Default)]
pub(super) struct CrowdedKeys {
    by_key: HashMap<CrowdedKey, Vec<u64>>,
    /// Number of texts of all keys.
    texts: usize,
    /// Numbering of the topic by which texts are named.
    numbering: Option<Arc<()>>,
}

impl CrowdedKeys {
    /// Forgets all texts if the topic has given them other numbers.
    pub fn renew(&mut self, topic: &Topic) {
        if self.numbering.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &topic.numbering)) {
            self.by_key.clear();
            self.texts = 0;
            self.numbering = Some(Arc::clone(&topic.numbering));
        }
    }

    /// Returns the texts with a key, if it is crowded. Those that may not stay any more are forgotten.
    pub fn texts(
        &mut self,
        kept: &KeptKeys,
        key: &KeyOfPass,
        may_stay: impl Fn(u64) -> bool,
    ) -> Option<&[u64]> {
        let texts = self.by_key.get_mut(&id(kept, key))?;
        let before = texts.len();
        texts.retain(|text| may_stay(*text));
        self.texts -= before - texts.len();
        Some(texts)
    }

    /// Notes that a key is crowded, and the texts with it that may stay.
    pub fn begin(&mut self, kept: &KeptKeys, key: &KeyOfPass, texts: Vec<u64>) {
        self.texts += texts.len();
        self.by_key.insert(id(kept, key), texts);
    }

    /// Adds a text to those with a key, if it is crowded.
    pub fn add(&mut self, kept: &KeptKeys, key: &KeyOfPass, text: u64) {
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
