//! Opens an index and a corpus, and asks about its documents.

use std::time::Duration;

use anyhow::Result;
use operators::text::features::Lexicon;
use serde_json::json;

use super::any_index::Index;
use crate::args::{CorpusArgs, IndexArgs};
#[cfg(feature = "hbase")]
use crate::hbase;
use crate::index_folder::IndexFolder;
use crate::load::{each_batch, open_corpus};
use crate::prepare::Preparer;
use crate::topics::PreparedDoc;
#[cfg(feature = "hbase")]
use ::hbase::HBaseAddress;
use runtime::Common;
use runtime::corpus::input::Input;
use runtime::output::rejects::Rejects;
use runtime::progress::Progress;

/// Use for which an index is opened.
#[derive(Clone, Copy)]
pub(super) enum Use {
    Read,
    Change,
}

impl IndexArgs {
    /// Opens the index, wherever it lies.
    pub(super) fn open(&self, common: &Common, lexicon: &Lexicon, to: Use) -> Result<Box<dyn Index>> {
        #[cfg(feature = "hbase")]
        if let Some(address) = HBaseAddress::parse(&self.index) {
            return hbase::open(&address?, lexicon);
        }
        Ok(Box::new(match to {
            Use::Read => self.open_to_read(common, lexicon)?,
            Use::Change => self.open_to_change(common, lexicon)?,
        }))
    }

    /// Opens an index in a folder to change it.
    pub fn open_to_change(&self, common: &Common, lexicon: &Lexicon) -> Result<IndexFolder> {
        let index = IndexFolder::open(&self.index, lexicon, Duration::from_secs(self.wait))?;
        index.warn_of_torn(common);
        Ok(index)
    }

    /// Opens an index in a folder to read it.
    pub fn open_to_read(&self, common: &Common, lexicon: &Lexicon) -> Result<IndexFolder> {
        let index = IndexFolder::open_to_read(&self.index, lexicon)?;
        index.warn_of_torn(common);
        Ok(index)
    }

    /// Opens a corpus, and the index by the words that its texts are cut by.
    pub(super) fn open_both(
        &self,
        common: &Common,
        corpus: &CorpusArgs,
        to: Use,
    ) -> Result<(Input, Box<dyn Index>)> {
        let input = open_corpus(common, corpus)?;
        let lexicon = corpus.input.words.lexicon_below("")?;
        let index = self.open(common, &lexicon, to)?;
        index.settings().check_words(&self.index, &lexicon)?;
        Ok((input, index))
    }
}

/// Calls `answer` with the documents of a corpus on all workers, and `each` with what it returns, in the order of the
/// documents. `index`: its name. Returns the rejected records.
pub(super) fn ask<T: Send>(
    common: &Common,
    (index, preparer): (&str, &Preparer),
    corpus: &CorpusArgs,
    input: &Input,
    answer: impl Fn(&[PreparedDoc]) -> Result<T> + Sync,
    each: impl FnMut(T) -> Result<()>,
) -> Result<Rejects> {
    let answer = |preparer: &mut Preparer, batch| answer(&preparer.prepare(&batch));
    with_progress(common, index, corpus, input, |progress| {
        each_batch(input, progress, preparer, answer, each)
    })
}

/// Does work with the documents of a corpus while its progress is shown. `index`: the name of the index that it is for.
pub(super) fn with_progress<T>(
    common: &Common,
    index: &str,
    corpus: &CorpusArgs,
    input: &Input,
    work: impl FnOnce(&Progress) -> Result<T>,
) -> Result<T> {
    let asked = json!({ "index": index, "inputs": corpus.inputs, "topic": corpus.topic });
    let (watch, progress) = input.watch(&common.progress, "index", &asked)?;
    watch.end(work(&progress))
}
