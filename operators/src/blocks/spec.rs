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
    use super::*;

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
