//! The texts of web pages, which confined processes extract.

use super::extract::ExtractedText;
use crate::Error;
use crate::confined::{Bounds, ConfinedTask, Extractors};

/// Returns the texts of pages. One process extracts all, since starting one takes longer than most pages do; if it dies, each page gets a
/// process of its own, so that a page costs no other one. `path`: the file that they are of.
///
/// # Errors
/// When no process could be started.
pub(crate) fn texts_of_pages(
    pages: &[Vec<u8>],
    (extractors, bounds): (&Extractors, Bounds),
    path: &str,
) -> Result<Vec<ExtractedText>, Error> {
    let ask = |pages: &[Vec<u8>]| -> Result<Result<Vec<ExtractedText>, String>, Error> {
        // Pages that cannot be encoded are none for the extractor.
        let request = postcard::to_stdvec(pages).unwrap_or_default();
        let answer = extractors.ask(ConfinedTask::ExtractPages, request, bounds);
        let answer = answer.map_err(|error| cluster::Error::io(path, "extract the text of", error))?;
        Ok(answer.and_then(|texts| {
            let texts: Option<Vec<ExtractedText>> = postcard::from_bytes(&texts).ok();
            let texts = texts.filter(|texts| texts.len() == pages.len());
            texts.ok_or_else(|| "the extractor's answer is no text".to_owned())
        }))
    };
    if pages.is_empty() {
        return Ok(Vec::new());
    }
    match ask(pages)? {
        Ok(texts) => Ok(texts),
        Err(reason) if pages.len() == 1 => Ok(vec![Err(reason)]),
        Err(_) => {
            let alone =
                |page: &Vec<u8>| Ok(ask(std::slice::from_ref(page))?.and_then(|mut texts| texts.remove(0)));
            pages.iter().map(alone).collect()
        }
    }
}
