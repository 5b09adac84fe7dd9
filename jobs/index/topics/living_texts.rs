//! Finds the texts that stay when segments are merged.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::segment::SegmentCursors;
use super::table::IndexTable;

/// The documents that are neither deleted nor expired.
#[derive(Clone, Copy)]
pub(super) struct LivingDocs<'a> {
    /// Documents with lower numbers have expired.
    pub oldest: u64,
    pub deleted: &'a BTreeSet<u64>,
}

impl LivingDocs<'_> {
    /// Whether a document is one of them.
    pub fn has(self, number: u64) -> bool {
        number >= self.oldest && !self.deleted.contains(&number)
    }
}

/// The texts of segments that are merged. A text goes once its first document and all others are deleted or expired, and
/// when an earlier one is equal, whose documents its own then are.
///
/// ```text
/// before      text 3, documents 3 5      text 900, documents 900 901 950
/// after       text 3, documents 3 5 900 901 950
/// ```
///
/// A document does not look for its text in segments when it comes, so each flush may have brought one text more.
///
/// Memory: some 30 bytes for each text whose first document is gone, or that is equal to an earlier one, and 16 bytes for
/// each document of the latter.
pub(super) struct LivingTexts<'a> {
    docs: LivingDocs<'a>,
    cursors: Vec<SegmentCursors>,
    /// Texts whose first document is gone, and whether all others are gone too.
    headless: BTreeMap<u64, bool>,
    /// Texts that are equal to an earlier one, and that one.
    joined: BTreeMap<u64, u64>,
    /// The latest identity, and the first text that has it.
    latest: Option<([u64; 2], u64)>,
}

impl<'a> LivingTexts<'a> {
    /// Begins. `docs`: those of the segments that stay; `cursors`: those of the segments.
    pub fn new(docs: LivingDocs<'a>, cursors: Vec<SegmentCursors>) -> Self {
        LivingTexts { docs, cursors, headless: BTreeMap::new(), joined: BTreeMap::new(), latest: None }
    }

    /// Whether a text stays with the identity that it has. Texts are asked about in the order of identities, and of texts,
    /// before [`LivingTexts::stays`] is asked about any.
    pub fn stays_with(&mut self, identity: [u64; 2], text: u64) -> Result<bool> {
        if self.is_dead(text)? {
            return Ok(false);
        }
        match self.latest {
            Some((latest, first)) if latest == identity && first != text => {
                self.joined.insert(text, first);
                Ok(false)
            }
            _ => {
                self.latest = Some((identity, text));
                Ok(true)
            }
        }
    }

    /// Whether a text stays.
    pub fn stays(&mut self, text: u64) -> Result<bool> {
        Ok(!self.joined.contains_key(&text) && !self.is_dead(text)?)
    }

    /// Returns the text that the documents of a text have after the merge.
    pub fn text_of(&self, text: u64) -> u64 {
        self.joined.get(&text).copied().unwrap_or(text)
    }

    /// Returns the rows of the table of copies that joined texts make, in order.
    pub fn joined_copies(&mut self) -> Result<Vec<[u64; 2]>> {
        let mut rows = Vec::new();
        for (&text, &first) in &self.joined {
            rows.extend(self.docs.has(text).then_some([first, text]));
            each_copy(&mut self.cursors, text, |number| {
                rows.extend(self.docs.has(number).then_some([first, number]));
                true
            })?;
        }
        rows.sort_unstable();
        Ok(rows)
    }

    /// Whether the number of a document that is deleted goes on being the name of a text.
    pub fn names_a_text(&self, number: u64) -> bool {
        self.headless.get(&number) == Some(&false) && !self.joined.contains_key(&number)
    }

    /// Whether no document of a text is left.
    fn is_dead(&mut self, text: u64) -> Result<bool> {
        if self.docs.has(text) {
            return Ok(false);
        }
        if let Some(&is_dead) = self.headless.get(&text) {
            return Ok(is_dead);
        }
        let mut is_dead = true;
        each_copy(&mut self.cursors, text, |number| {
            is_dead &= !self.docs.has(number);
            is_dead
        })?;
        self.headless.insert(text, is_dead);
        Ok(is_dead)
    }
}

/// Calls `each` with the documents of a text but the first one, until it returns false.
fn each_copy(cursors: &mut [SegmentCursors], text: u64, mut each: impl FnMut(u64) -> bool) -> Result<()> {
    cursors.iter_mut().try_for_each(|cursors| cursors.rows(IndexTable::Copies, &[text], |row| each(row[1])))
}
