//! Documents and texts in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter;

use foldhash::fast::RandomState;
use operators::Priority;
use operators::hash::Identity;
use operators::method::KeptKeys;

use super::fingerprints::MemoryFingerprints;
use super::keys::{MemoryKey, MemoryKeys};
use crate::topics::change::NewDoc;

/// About how many bytes a document takes besides its id, and a text besides its keys and the text itself.
const DOC_BYTES: usize = 40;
const TEXT_BYTES: usize = 100;
/// About how many bytes a document of a text that another one has brought takes in the list of them.
const COPY_BYTES: usize = 24;
/// About how many bytes the priority of a document takes.
const PRIORITY_BYTES: usize = 24;

/// Documents in memory, with the same tables as a segment.
///
/// Documents come in the order of their numbers, without a gap, and a text has the number of its first document. So both
/// lie in lists, and their ids and texts behind each other:
///
/// ```text
/// number      6,000,000  6,000,001  6,000,002
/// docs        "a"        "b"        "c"           which has the text of "a"
/// texts       0          1
/// ```
///
/// Memory: some 280 bytes and the id for a document with a fingerprint, 250 bytes, the id, the text and 44 bytes for each key
/// for others.
#[derive(Default)]
pub(crate) struct MemoryTable {
    /// Number of the first document.
    first: u64,
    docs: Vec<DocRow>,
    /// Number of documents that were not removed.
    living: usize,
    /// Ids of all documents.
    ids: String,
    /// Texts in the order of their numbers.
    texts: Vec<TextRow>,
    /// Cleaned texts of all of them.
    cleaned: String,
    /// The newest text of each identity, by its place in `texts`.
    identities: HashMap<Identity, u32, RandomState>,
    /// Documents of each text but the first one.
    copies: BTreeSet<(u64, u64)>,
    /// Priorities of the documents that have one.
    priorities: BTreeMap<u64, Priority>,
    keys: MemoryKeys,
    fingerprints: MemoryFingerprints,
}

struct DocRow {
    time: u64,
    text: u64,
    id_end: usize,
    /// Place of the text that the document has brought.
    own_text: Option<u32>,
    is_removed: bool,
}

struct TextRow {
    number: u64,
    identity: Identity,
    sketches: [u64; 2],
    keys_end: usize,
    cleaned_end: usize,
    /// Place of the text before it with the same identity. A log has such texts if they came before and after a flush that
    /// did not end.
    earlier: Option<u32>,
}

/// A document.
#[derive(Clone, Copy)]
pub(crate) struct MemoryDoc<'a> {
    pub number: u64,
    pub time: u64,
    pub id: &'a str,
    pub text: u64,
}

/// All that is kept of a text, whose number is that of its first document.
#[derive(Clone, Copy)]
pub(crate) struct MemoryText<'a> {
    pub number: u64,
    pub identity: Identity,
    pub sketches: [u64; 2],
    pub keys: &'a [MemoryKey],
    /// Cleaned text; empty if the index keeps no texts.
    pub text: &'a str,
}

impl MemoryTable {
    /// Adds a document. `keys`: says which keys meet.
    pub fn insert(&mut self, doc: NewDoc, keys: &KeptKeys) {
        let NewDoc { number, time, id, text, kept } = doc;
        if self.docs.is_empty() {
            self.first = number;
        }
        debug_assert_eq!(number, self.first + self.docs.len() as u64, "a document is missing");
        self.ids.push_str(&id);
        self.living += 1;
        let own_text = kept.is_some().then_some(self.texts.len() as u32);
        self.docs.push(DocRow { time, text, id_end: self.ids.len(), own_text, is_removed: false });
        let Some((kept, place)) = kept.zip(own_text) else {
            self.copies.insert((text, number));
            return;
        };
        for &(pass, high, low) in &kept.keys {
            let key = MemoryKey { high, low, pass, text: place };
            if keys.have_four_blocks() {
                // It is the fingerprint.
                self.fingerprints.add(high, place);
                self.keys.keep(key);
            } else {
                self.keys.add(key, keys.range(pass, key.key()).0);
            }
        }
        self.cleaned.push_str(&kept.text);
        self.texts.push(TextRow {
            number: text,
            identity: kept.identity,
            sketches: kept.sketches,
            keys_end: self.keys.len(),
            cleaned_end: self.cleaned.len(),
            earlier: self.identities.insert(kept.identity, place),
        });
    }

    /// Gives a document a priority.
    pub fn prioritize(&mut self, number: u64, priority: Priority) {
        self.priorities.insert(number, priority);
    }

    /// Removes a document. Its text stays, as in a segment.
    pub fn remove(&mut self, number: u64) {
        let Some(at) = self.place_of(number) else { return };
        let doc = &mut self.docs[at];
        if !std::mem::replace(&mut doc.is_removed, true) {
            self.living -= 1;
            self.copies.remove(&(doc.text, number));
            self.priorities.remove(&number);
        }
    }

    /// Removes all documents with numbers less than `oldest`.
    pub fn expire(&mut self, oldest: u64) {
        let end = oldest.min(self.first + self.docs.len() as u64);
        (self.first..end).for_each(|number| self.remove(number));
    }

    /// Whether no document is in the table.
    pub fn is_empty(&self) -> bool {
        self.living == 0
    }

    /// Returns about how many bytes the table takes.
    pub fn bytes(&self) -> usize {
        let (docs, texts, copies) = (self.docs.len(), self.texts.len(), self.copies.len());
        let priorities = PRIORITY_BYTES * self.priorities.len();
        let rows = DOC_BYTES * docs + TEXT_BYTES * texts + COPY_BYTES * copies + priorities;
        rows + self.ids.len() + self.cleaned.len() + self.keys.bytes() + self.fingerprints.bytes()
    }

    /// Returns the numbers of the texts of an identity, the newest first.
    pub fn texts_of(&self, identity: Identity) -> impl Iterator<Item = u64> {
        let newest = self.identities.get(&identity).map(|&place| &self.texts[place as usize]);
        let texts = iter::successors(newest, |text| text.earlier.map(|place| &self.texts[place as usize]));
        texts.map(|text| text.number)
    }

    /// Calls `each` with the keys of a pass from `first` to `last`, and the numbers of their texts.
    pub fn meet(&self, pass: u32, range: (u128, u128), mut each: impl FnMut(u128, u64)) {
        for key in self.keys.meet(pass, range) {
            each(key.key(), self.texts[key.text as usize].number);
        }
    }

    /// Calls `each` with the distance and the number of the text of each fingerprint that differs from `word` in at most
    /// `most` bits, which may come several times.
    pub fn near(&self, word: u64, most: u32, mut each: impl FnMut(u32, u64)) {
        self.fingerprints.near(word, most, |distance, text| each(distance, self.texts[text as usize].number));
    }

    /// Returns a text.
    pub fn text(&self, number: u64) -> Option<MemoryText<'_>> {
        let place = self.docs[self.place_of(number)?].own_text?;
        Some(self.text_at(place as usize))
    }

    fn text_at(&self, place: usize) -> MemoryText<'_> {
        let row = &self.texts[place];
        let before = place.checked_sub(1).map(|before| &self.texts[before]);
        let (keys, cleaned) = before.map_or((0, 0), |before| (before.keys_end, before.cleaned_end));
        MemoryText {
            number: row.number,
            identity: row.identity,
            sketches: row.sketches,
            keys: self.keys.slice(keys..row.keys_end),
            text: &self.cleaned[cleaned..row.cleaned_end],
        }
    }

    /// Returns a document.
    pub fn doc(&self, number: u64) -> Option<MemoryDoc<'_>> {
        self.doc_at(self.place_of(number)?)
    }

    /// Returns the document at a place, unless it was removed.
    fn doc_at(&self, place: usize) -> Option<MemoryDoc<'_>> {
        let row = &self.docs[place];
        let start = place.checked_sub(1).map_or(0, |before| self.docs[before].id_end);
        let id = &self.ids[start..row.id_end];
        let doc = MemoryDoc { number: self.first + place as u64, time: row.time, id, text: row.text };
        (!row.is_removed).then_some(doc)
    }

    fn place_of(&self, number: u64) -> Option<usize> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        (place < self.docs.len()).then_some(place)
    }

    /// Returns the documents in order.
    pub fn docs(&self) -> impl Iterator<Item = MemoryDoc<'_>> {
        self.docs_from(0)
    }

    /// Returns the documents from a number on, in order.
    pub fn docs_from(&self, number: u64) -> impl Iterator<Item = MemoryDoc<'_>> {
        let end = self.docs.len();
        let start = usize::try_from(number.saturating_sub(self.first)).unwrap_or(end).min(end);
        (start..end).filter_map(|place| self.doc_at(place))
    }

    /// Returns the texts of documents in the table, in order.
    pub fn texts(&self) -> impl Iterator<Item = MemoryText<'_>> {
        let has_docs = |text: &MemoryText| {
            self.doc(text.number).is_some() || self.copies_of(text.number).next().is_some()
        };
        (0..self.texts.len()).map(|place| self.text_at(place)).filter(has_docs)
    }

    /// Returns the priority of a document; the default if it has none.
    pub fn priority(&self, number: u64) -> Priority {
        self.priorities.get(&number).copied().unwrap_or_default()
    }

    /// Returns all documents that have a priority, in order.
    pub fn priorities(&self) -> impl Iterator<Item = (u64, Priority)> {
        self.priorities.iter().map(|(number, priority)| (*number, *priority))
    }

    /// Returns all copies, by text and document.
    pub fn copies(&self) -> impl Iterator<Item = (u64, u64)> {
        self.copies.iter().copied()
    }

    /// Returns the documents of a text but the first one.
    pub fn copies_of(&self, text: u64) -> impl Iterator<Item = u64> {
        self.copies.range((text, 0)..=(text, u64::MAX)).map(|&(_, number)| number)
    }
}
