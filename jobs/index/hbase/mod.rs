//! An index in HBase, where one machine is too small: 64-bit fingerprints of documents, in one table.
//!
//! `layout.rs` says which cells a document has. `settings_row.rs` opens an index, and holds it to the method that it was
//! made with. `meeting.rs` finds the documents near a fingerprint, `query.rs` answers with them, `writing.rs` adds and
//! removes documents, and `race.rs` decides which of two documents that come at once is new. `any_index.rs` is what
//! the tools ask of it, and `scanning.rs` reads all documents. This room uses `hbase`, and of the index its settings, answers
//! and the trait; the tools open it when the name of an index begins with `hbase://`.

mod any_index;
mod layout;
mod meeting;
mod query;
mod race;
mod scanning;
mod settings_row;
mod writing;

use ::hbase::HBaseAddress;
use anyhow::Result;
use operators::text::features::Lexicon;

use self::settings_row::HBaseIndex;
use super::settings::IndexSettings;
use super::tools::any_index::Index;

/// Opens an index to read and change it.
pub(super) fn open(address: &HBaseAddress, lexicon: &Lexicon) -> Result<Box<dyn Index>> {
    Ok(Box::new(HBaseIndex::open(address, lexicon)?))
}

/// Makes an empty index, which others see after [`Index::finish_build`].
pub(super) fn build(
    address: &HBaseAddress,
    settings: IndexSettings,
    lexicon: &Lexicon,
) -> Result<Box<dyn Index>> {
    Ok(Box::new(HBaseIndex::build(address, settings, lexicon)?))
}
