//! Opens an index and a corpus, and asks about its documents.

use std::time::Duration;

use anyhow::Result;
use operators::text::features::Lexicon;
use serde_json::json;

use crate::args::{CorpusArgs, IndexArgs};
use crate::index_folder::IndexFolder;
use crate::load::{each_batch, open_corpus};
use crate::prepare::Preparer;
use crate::topics::PreparedDoc;
use runtime::Common;
use runtime::corpus::input::Input;

impl IndexArgs {
    /// Opens the index to change it.
    pub fn open(&self, common: &Common, lexicon: &Lexicon) -> Result<IndexFolder> {
        let index = IndexFolder::open(&self.index, lexicon, Duration::from_secs(self.wait))?;
        index.warn_of_torn(common);
        Ok(index)
    }

    /// Opens the index to read it.
    pub fn open_to_read(&self, common: &Common, lexicon: &Lexicon) -> Result<IndexFolder> {
        let index = IndexFolder::open_to_read(&self.index, lexicon)?;
        index.warn_of_torn(common);
        Ok(index)
    }

    /// Opens a corpus, and the index by the words that its texts are cut by. `open`: opens the index.
    pub fn open_both(
        &self,
        common: &Common,
        corpus: &CorpusArgs,
        open: impl FnOnce(&Self, &Common, &Lexicon) -> Result<IndexFolder>,
    ) -> Result<(Input, IndexFolder)> {
        let input = open_corpus(common, corpus)?;
        let lexicon = corpus.input.words.lexicon_below("")?;
        let index = open(self, common, &lexicon)?;
        index.settings.check_words(&self.index, &lexicon)?;
        Ok((input, index))
    }
}

/// Calls `answer` with the documents of a corpus on all workers, and `each` with what it returns, in the order of the
/// documents. Returns the number of rejected records.
pub(super) fn ask<T: Send>(
    common: &Common,
    (args, index): (&IndexArgs, &IndexFolder),
    corpus: &CorpusArgs,
    input: Input,
    answer: impl Fn(&[PreparedDoc]) -> Result<T> + Sync,
    each: impl FnMut(T) -> Result<()>,
) -> Result<u64> {
    let preparer = Preparer::of(index);
    let asked = json!({ "index": args.index, "inputs": corpus.inputs, "topic": corpus.topic });
    let (watch, progress) = input.watch(&common.progress, "index", &asked)?;
    let answer = |preparer: &mut Preparer, batch| answer(&preparer.prepare(&batch));
    watch.end(each_batch(&input, &progress, &preparer, answer, each))
}
