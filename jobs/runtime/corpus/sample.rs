//! Samples of a corpus, for `explain` and `tune`.

use operators::text::{Clean, Cleaner};
use operators::{Doc, hash};

/// Sample of a corpus: the documents whose positions, or whose cleaned texts, have a low hash. It is the same
/// for any number of workers.
#[derive(Clone)]
pub struct Sample {
    seed: u64,
    /// Largest hash of a document in the sample.
    most: u64,
    /// For a sample of texts: it has all documents with one cleaned text, or none.
    texts: Option<Cleaner>,
}

impl Sample {
    /// Chooses about `wanted` of `documents` documents.
    pub fn of_documents(seed: u64, wanted: u64, documents: u64) -> Self {
        let most = (u128::from(u64::MAX) * u128::from(wanted)).checked_div(documents.into());
        let most = most.map_or(u64::MAX, |most| most.min(u64::MAX.into()) as u64);
        Sample { seed, most, texts: None }
    }

    /// Chooses about the share `wanted / documents` of the different texts.
    pub fn of_texts(seed: u64, wanted: u64, documents: u64, clean: Clean) -> Self {
        Sample { texts: Some(Cleaner::new(clean)), ..Sample::of_documents(seed, wanted, documents) }
    }

    /// Returns the share of the corpus, from 0 to 1.
    pub fn share(&self) -> f64 {
        self.most as f64 / u64::MAX as f64
    }

    /// Whether the document is in the sample.
    pub fn holds(&mut self, doc: &Doc) -> bool {
        let key = match &mut self.texts {
            Some(cleaner) => hash::bytes(cleaner.clean(doc.text).as_bytes()),
            None => doc.doc.0,
        };
        hash::spread(key ^ hash::spread(self.seed)) <= self.most
    }
}
