//! Specs of block methods: `fsp:4K`, `peng2017:bits=160`.

use std::fmt;

use super::METHODS;
use super::store::{BlockMethod, BlockStore};
use crate::Error;

/// Block method with its parameter, as a user writes it: a name, and perhaps a colon and the parameter.
#[derive(Clone)]
pub struct BlockSpec {
    text: String,
    method: &'static dyn BlockMethod,
}

impl BlockSpec {
    /// Reads a spec.
    ///
    /// # Errors
    /// [`Error::BadSpec`] if no method has the name, or the method has no such parameter.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let name = text.split_once(':').map_or(text, |(name, _)| name);
        let Some(&method) = METHODS.iter().find(|method| method.name() == name) else {
            return Err(bad(text, format!("expected {}", BlockSpec::forms())));
        };
        let spec = BlockSpec { text: text.to_owned(), method };
        spec.open()?;
        Ok(spec)
    }

    /// Returns the forms of all specs for people: `file, fsp:SIZE, …`.
    pub fn forms() -> String {
        let forms: Vec<_> = METHODS.iter().map(|method| method.form()).collect();
        forms.join(", ")
    }

    /// Returns the specs of a comparison of all methods.
    pub fn all() -> Vec<Self> {
        let specs = METHODS.iter().flat_map(|&method| {
            method.examples().iter().map(move |text| BlockSpec { text: (*text).to_owned(), method })
        });
        specs.collect()
    }

    /// Opens an empty store.
    ///
    /// # Errors
    /// [`Error::BadSpec`], but not for a spec that was parsed.
    pub fn open<'a>(&self) -> Result<Box<dyn BlockStore<'a> + 'a>, Error> {
        let parameter = self.text.split_once(':').map(|(_, parameter)| parameter);
        self.method
            .open(parameter)
            .map_err(|expected| bad(&self.text, format!("expected {}, {expected}", self.method.form())))
    }
}

fn bad(spec: &str, reason: String) -> Error {
    Error::BadSpec { spec: spec.to_owned(), reason }
}

impl fmt::Display for BlockSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for BlockSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Whether the bytes of `text` from `start` to `end` stand before `start` too, in it or in an earlier text.
    fn is_repeated(earlier: &[String], text: &str, start: usize, end: usize) -> bool {
        let block = &text.as_bytes()[start..end];
        let occurs = |text: &[u8]| text.windows(block.len()).any(|window| window == block);
        // An empty text is a block without bytes.
        block.is_empty()
            || occurs(&text.as_bytes()[..end - 1])
            || earlier.iter().any(|text| occurs(text.as_bytes()))
    }

    proptest! {
        /// Every byte of a text is kept or left out, and what is left out stands in an earlier block.
        #[test]
        fn no_method_leaves_out_what_is_new(texts in vec("[ab。\n]{0,80}", 1..6)) {
            let small = ["fsp:3", "gear:256", "rabin:256"].map(|spec| BlockSpec::parse(spec).unwrap());
            for spec in BlockSpec::all().into_iter().chain(small) {
                let mut store = spec.open().unwrap();
                let mut left_out = 0;
                for (at, text) in texts.iter().enumerate() {
                    let found = store.add(text);
                    for range in &found.left_out {
                        prop_assert!(is_repeated(&texts[..at], text, range.start, range.end), "{} {:?}", spec, range);
                        let is_inside = |taken: &std::ops::Range<usize>| taken.start <= range.start && range.end <= taken.end;
                        prop_assert!(found.taken.iter().any(is_inside), "{} {:?}", spec, range);
                        left_out += range.len() as u64;
                    }
                    prop_assert!(found.left_out.is_sorted_by(|a, b| a.end <= b.start), "{} {:?}", spec, found);
                }
                let ledger = store.ledger();
                prop_assert_eq!(ledger.bytes_in(), texts.iter().map(|text| text.len() as u64).sum::<u64>());
                // A delta also keeps its instructions.
                let kept = ledger.bytes_in() - left_out;
                let is_delta = spec.to_string() == "paragraph+delta";
                prop_assert!(ledger.data_bytes() == kept || is_delta && ledger.data_bytes() > kept, "{}", spec);
            }
        }
    }

    #[test]
    fn every_spec_of_a_comparison_parses() {
        let specs: Vec<_> = BlockSpec::all().iter().map(BlockSpec::to_string).collect();
        assert!(specs.iter().all(|spec| BlockSpec::parse(spec).is_ok()), "{specs:?}");
        assert!(specs.contains(&"peng2017:bits=160".to_owned()), "{specs:?}");
    }

    #[test]
    fn a_wrong_spec_names_what_was_expected() {
        let reason = |text: &str| BlockSpec::parse(text).unwrap_err().to_string();
        assert!(reason("fps:4K").contains("fsp:SIZE"), "{}", reason("fps:4K"));
        for wrong in ["fsp", "fsp:0", "fsp:4Q", "gear:1", "rabin:100", "peng2017:bits=64", "file:1"] {
            assert!(reason(wrong).contains(wrong.split(':').next().unwrap()), "{}", reason(wrong));
        }
    }
}
