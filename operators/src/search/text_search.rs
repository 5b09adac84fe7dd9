//! Searches and single texts: a search maps them, and says of two whether they meet.

use super::map_records::{StoredText, records};
use crate::hash::Identity;
use crate::record::Doc;
use crate::record::Priority;
use crate::record::{DocId, Record};
use crate::sets::similarity::Similarity;
use crate::text::cleaned::has_text;
use crate::text::ignored_lines::CleanedText;

/// The map stage of a search, and its answers about two single texts.
///
/// The map stage appends the *records* of each document to *sections* of bytes, which are stored for each split and
/// read section by section (docs/design/memory.md). A section is stored in pieces, and the bytes of a document are never
/// divided between two pieces. Single texts meet by the same records ([`MappedText`]), so `why`, `tune` and the index
/// see of a pair what the join of a run would see.
///
/// ```text
/// search        section 0             section 1      section 2 and on
/// Identities    identity, document
/// BitSearch     identity, document    fingerprint
/// BandSearch    identity, document    text           a band
/// PrefixTexts   identity, document    text
/// Zhou          fingerprint, words
/// ```
pub trait TextSearch: Send + Sync + 'static {
    /// Returns the number of sections. The first section has the identity of every document with a text and the document,
    /// except for `zhou2017`.
    fn sections(&self) -> usize;
    /// Whether the section [`StoredText::SECTION`] has every document with what is compared of its text, but perhaps of those that
    /// are identical to an earlier one.
    fn stores_texts(&self) -> bool {
        false
    }
    /// Whether only equal texts match, so that identities find all matches.
    fn only_equal(&self) -> bool {
        false
    }
    /// Returns the reason for which a text, as it was read, cannot be compared at all, so that its record is rejected.
    fn refuses(&self, text: &str) -> Option<String> {
        let _ = text;
        None
    }
    /// Begins a split. The records of a document depend on nothing but the documents before it in the split.
    fn begin_split(&mut self) {}
    /// Appends the records of a document with a text to the sections. `text`: its cleaned text.
    fn map_text(&mut self, doc: &Doc, text: CleanedText, sections: &mut [Vec<u8>]);
    /// Appends the records of a document to the sections. Returns whether it has a text. A document without text has no
    /// record by which another one could find it, so it is nobody's duplicate, and its text is stored as "".
    fn map(&mut self, doc: &Doc, text: CleanedText, sections: &mut [Vec<u8>]) -> bool {
        let has_text = has_text(text.whole);
        if has_text {
            self.map_text(doc, text, sections);
        } else if self.stores_texts() {
            StoredText::put(doc, "", &mut sections[StoredText::SECTION]);
        }
        has_text
    }

    /// Whether the search makes two texts a candidate, if their sketches do not rule a match out.
    fn are_candidates(&self, a: &MappedText, b: &MappedText) -> bool;
    /// Returns the number of bits in which the fingerprints of two texts differ; `None` if they have none.
    fn distance(&self, a: &MappedText, b: &MappedText) -> Option<u32> {
        let _ = (a, b);
        None
    }
    /// Returns the similarity of two texts and whether they match, if the search decides that in place of the rule.
    fn decide(&self, a: &MappedText, b: &MappedText) -> Option<(Similarity, bool)> {
        let _ = (a, b);
        None
    }
    /// Explains for people whether the search makes two texts a candidate.
    fn explain(&self, a: &MappedText, b: &MappedText) -> Explanation;
}

/// Answer of a search about two texts.
pub struct Explanation {
    /// One line for each step.
    pub steps: Vec<String>,
    /// Whether the two are a candidate; where the rule is never asked, whether they match.
    pub found: bool,
    /// Place of the rule in the explanation.
    pub rule: RuleTurn,
}

/// When the rule of the method measures two texts that a search explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleTurn {
    /// Before the search, which misses few pairs or none that the rule matches.
    First,
    /// After the search, which decides most pairs.
    Last,
    /// Never: the search decides alone.
    Never,
}

/// Records that the map stage makes of one text, as if it stood alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappedText {
    sections: Vec<Vec<u8>>,
}

impl MappedText {
    /// Maps a cleaned text, without the text itself. Its document is number 0.
    pub fn new(search: &mut dyn TextSearch, text: CleanedText) -> Self {
        let mut mapped = MappedText::default();
        mapped.map_again(search, text);
        if search.stores_texts() {
            mapped.sections[StoredText::SECTION] = Vec::new();
        }
        mapped
    }

    /// Replaces the records by those of another cleaned text. Cost: that of mapping it, without allocation once the sections have
    /// grown.
    pub(crate) fn map_again<S: TextSearch + ?Sized>(&mut self, search: &mut S, text: CleanedText) {
        self.sections.resize_with(search.sections(), Vec::new);
        self.sections.iter_mut().for_each(Vec::clear);
        search.begin_split();
        let doc = Doc { doc: DocId(0), id: "", text: "", priority: Priority::default() };
        search.map_text(&doc, text, &mut self.sections);
    }

    /// Returns the records of a section.
    pub(crate) fn records<R: Record>(&self, section: usize) -> impl Iterator<Item = R> {
        records(self.section(section))
    }

    /// Returns the bytes of a section.
    pub(super) fn section(&self, section: usize) -> &[u8] {
        &self.sections[section]
    }

    /// Returns the identity of the text, which is in the first section.
    pub(crate) fn identity(&self) -> Identity {
        self.records::<(Identity, DocId)>(0).next().unwrap_or_default().0
    }
}
