//! The identities of texts, by the numbers of these.

use std::collections::HashMap;

use anyhow::Result;
use operators::hash::Identity;
use operators::method::KeptKeys;

use super::memory::MemoryText;
use super::segment::Segment;
use super::table::IndexTable;
use super::topic::Topic;

/// The identities of the texts of a topic: that of a text itself, or twice its fingerprint.
///
/// A segment has them in their own order, so the first question for a text of a segment reads those of all of its texts.
///
/// Memory: some 40 bytes for each text of the segments that were asked for.
pub(crate) struct TextIdentities {
    keys: KeptKeys,
    /// Identity of an empty text, which matches no other one; `None` where such a text has no key.
    empty: Option<Identity>,
    by_segment: HashMap<u64, HashMap<u64, Identity>>,
}

impl TextIdentities {
    /// Makes them for the keys of an index that keeps no texts.
    pub fn new(mut keys: KeptKeys) -> Self {
        let empty = (!keys.has_keys()).then(|| keys.of("").identity);
        TextIdentities { keys, empty, by_segment: HashMap::new() }
    }

    /// Returns the identity of a text; `None` if it is empty, or not there any more.
    ///
    /// # Errors
    /// Those of the store, and [`cluster::Error::Damaged`].
    pub fn of(&mut self, topic: &Topic, text: u64) -> Result<Option<Identity>> {
        let in_memory = topic.tables().find_map(|table| table.text(text));
        let identity = match in_memory {
            Some(text) => self.in_memory(text),
            None => {
                let at = topic.segments.partition_point(|segment| segment.entry.end <= text);
                let Some(segment) = topic.segments.get(at) else { return Ok(None) };
                let number = segment.entry.number;
                if !self.by_segment.contains_key(&number) {
                    // Merged segments are not asked for any more.
                    self.by_segment
                        .retain(|number, _| topic.segments.iter().any(|of| of.entry.number == *number));
                    self.by_segment.insert(number, self.read(segment)?);
                }
                self.by_segment[&number].get(&text).copied()
            }
        };
        Ok(identity.filter(|_| identity != self.empty))
    }

    /// Forgets what was read of segments.
    pub fn forget(&mut self) {
        self.by_segment.clear();
    }

    fn in_memory(&self, text: MemoryText) -> Option<Identity> {
        match self.keys.has_keys() {
            true => text.keys.first().and_then(|key| self.of_key(key.key())),
            false => Some(text.identity),
        }
    }

    fn of_key(&self, key: u128) -> Option<Identity> {
        self.keys.fingerprint_of(key).map(|fingerprint| (fingerprint, fingerprint))
    }

    /// Reads the identities of a segment.
    fn read(&self, segment: &Segment) -> Result<HashMap<u64, Identity>> {
        let mut identities = HashMap::new();
        if let Some(file) = &segment.files()?.fingerprints {
            // A word is the key of the first pass, which has the bits of the fingerprint in another order.
            file.each_entry(|word, text| {
                identities
                    .extend(self.of_key(u128::from(word) << u64::BITS).map(|identity| (text, identity)));
            })?;
            return Ok(identities);
        }
        let mut cursors = segment.cursors()?;
        match self.keys.has_keys() {
            // Rows of the first pass, which is number 0.
            true => cursors.rows(IndexTable::Keys, &[0], |words| {
                let of_key = self.of_key(u128::from(words[1]) << 64 | u128::from(words[2]));
                identities.extend(of_key.map(|identity| (words[3], identity)));
                true
            })?,
            false => cursors.rows(IndexTable::Identities, &[], |words| {
                identities.insert(words[2], (words[0], words[1]));
                true
            })?,
        }
        segment.give_back(cursors);
        Ok(identities)
    }
}
