//! The method `exact`: texts match when they are equal after cleaning. They become one before any search, so
//! this method has none.

use std::fmt;

use super::parameters::{Parameters, WrongParameter, store_clean};
use crate::text::Clean;

/// Parameters of `exact`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExactSpec {
    /// Cleaning of the text.
    pub clean: Clean,
}

impl Parameters for ExactSpec {
    fn set(&mut self, key: &str, value: &str) -> Result<(), WrongParameter> {
        match key {
            "clean" => store_clean(&mut self.clean, value),
            _ => Err(WrongParameter::Unknown),
        }
    }
}

impl fmt::Display for ExactSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clean={}", self.clean)
    }
}
