//! The newest documents of a topic, which are in the log and in no segment yet.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter;

use foldhash::fast::RandomState;
use operators::hash::{self, Identity};
use operators::method::KeptKeys;
use smallvec::SmallVec;

use super::change::{KeptText, NewDoc};
use crate::index::fingerprints::keys_of_word;

/// Number of bytes that a document takes besides its id, its text and its keys.
const DOC_BYTES: usize = 200;
/// Number of bytes that a key takes.
const KEY_BYTES: usize = 80;
/// Number of keys that a chain has room for once it has a second one.
const LEAST_CHAIN: usize = 8;

/// Documents in memory, with the same tables as a segment.
///
/// Keys of one pass whose chosen bits are equal lie beside each other. Memory: some 80 bytes a key, and 200 bytes, the id
/// and the text of a document.
#[derive(Default)]
pub(in crate::index) struct MemoryTable {
    docs: BTreeMap<u64, MemoryDoc>,
    texts: BTreeMap<u64, KeptText>,
    /// The newest text of each identity.
    identities: HashMap<Identity, u64, RandomState>,
    /// The text before it with the same identity. A log has such texts if they came before and after a flush that did not
    /// end.
    earlier: HashMap<u64, u64>,
    /// Documents of each text but the first one, of texts in memory or in segments.
    copies: BTreeSet<(u64, u64)>,
    /// Keys by the hash of pass and chosen bits.
    met: HashMap<u64, SmallVec<[MemoryKey; 1]>, RandomState>,
    bytes: usize,
}

/// A document.
pub(in crate::index) struct MemoryDoc {
    pub time: u64,
    pub id: Box<str>,
    pub text: u64,
}

#[derive(Clone, Copy)]
struct MemoryKey {
    /// The kept key, whose halves stand apart because they take less room so.
    high: u64,
    low: u64,
    text: u64,
    pass: u32,
}

impl MemoryTable {
    /// Adds a document. `keys`: says which keys meet.
    pub fn insert(&mut self, doc: NewDoc, keys: &KeptKeys) {
        let NewDoc { number, time, id, text, kept } = doc;
        self.bytes += DOC_BYTES + id.len();
        self.docs.insert(number, MemoryDoc { time, id: id.into(), text });
        let Some(kept) = kept else {
            self.copies.insert((text, number));
            return;
        };
        match kept.keys.first() {
            Some(&(_, word, _)) if keys.have_four_blocks() => {
                (0..)
                    .zip(keys_of_word(word))
                    .for_each(|(pass, key)| self.add_key(keys, text, (pass, key, 0)));
            }
            _ => kept.keys.iter().for_each(|key| self.add_key(keys, text, *key)),
        }
        self.bytes += kept.text.len();
        if let Some(earlier) = self.identities.insert(kept.identity, text) {
            self.earlier.insert(text, earlier);
        }
        self.texts.insert(text, kept);
    }

    fn add_key(&mut self, keys: &KeptKeys, text: u64, (pass, high, low): (u32, u64, u64)) {
        let (first, _) = keys.range(pass, u128::from(high) << 64 | u128::from(low));
        let met = self.met.entry(hash_of(pass, first)).or_default();
        if met.len() == met.capacity() {
            // Keys whose chain has a second one are mostly those of blocks, which many fingerprints share.
            met.grow((2 * met.len()).max(LEAST_CHAIN));
        }
        met.push(MemoryKey { high, low, text, pass });
        self.bytes += KEY_BYTES;
    }

    /// Removes a document. Its text stays, as in a segment.
    pub fn remove(&mut self, number: u64) {
        if let Some(doc) = self.docs.remove(&number) {
            self.copies.remove(&(doc.text, number));
        }
    }

    /// Removes all documents with numbers less than `oldest`.
    pub fn expire(&mut self, oldest: u64) {
        let gone: Vec<u64> = self.docs.range(..oldest).map(|(&number, _)| number).collect();
        gone.into_iter().for_each(|number| self.remove(number));
    }

    /// Whether no document is in the table.
    pub fn is_empty(&self) -> bool {
        self.docs.is_empty()
    }

    /// Returns about how many bytes the table takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the texts of an identity, the newest first.
    pub fn texts_of(&self, identity: Identity) -> impl Iterator<Item = u64> {
        let newest = self.identities.get(&identity).copied();
        iter::successors(newest, |text| self.earlier.get(text).copied())
    }

    /// Calls `each` with the keys of a pass from `first` to `last`, and their texts.
    pub fn meet(&self, pass: u32, (first, last): (u128, u128), mut each: impl FnMut(u128, u64)) {
        for of in self.met.get(&hash_of(pass, first)).into_iter().flatten() {
            let key = u128::from(of.high) << 64 | u128::from(of.low);
            if of.pass == pass && (first..=last).contains(&key) {
                each(key, of.text);
            }
        }
    }

    /// Returns what is kept of a text.
    pub fn kept(&self, text: u64) -> Option<&KeptText> {
        self.texts.get(&text)
    }

    /// Returns a document.
    pub fn doc(&self, number: u64) -> Option<&MemoryDoc> {
        self.docs.get(&number)
    }

    /// Returns the documents in order.
    pub fn docs(&self) -> impl Iterator<Item = (u64, &MemoryDoc)> {
        self.docs_from(0)
    }

    /// Returns the documents from a number on, in order.
    pub fn docs_from(&self, number: u64) -> impl Iterator<Item = (u64, &MemoryDoc)> {
        self.docs.range(number..).map(|(&number, doc)| (number, doc))
    }

    /// Returns the texts of documents in the table, in order.
    pub fn texts(&self) -> impl Iterator<Item = (u64, &KeptText)> {
        let has_docs = |text: &u64| self.docs.contains_key(text) || self.copies_of(*text).next().is_some();
        self.texts.iter().map(|(&text, kept)| (text, kept)).filter(move |(text, _)| has_docs(text))
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

fn hash_of(pass: u32, first: u128) -> u64 {
    hash::spread(hash::spread((first >> 64) as u64 ^ u64::from(pass)) ^ first as u64)
}
