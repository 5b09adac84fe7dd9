//! The method and the run for which a search is made.

use crate::hash::Secret;
use crate::record::Sides;
use crate::sets::Rule;

/// Inputs of a search that a run knows and its method does not.
#[derive(Clone, Copy)]
pub struct SearchInputs {
    /// Secret of the identities.
    pub secret: Secret,
    /// Pairs that are looked for.
    pub sides: Sides,
    /// Whether lines may be left out of what is compared of a text.
    pub ignores_lines: bool,
}

impl SearchInputs {
    /// Returns the inputs of single texts, which are compared whole and with all others.
    pub fn of_texts(secret: Secret) -> Self {
        SearchInputs { secret, sides: Sides::default(), ignores_lines: false }
    }
}

/// The rule of a method, and the inputs of a run.
#[derive(Clone, Copy)]
pub struct SearchContext<'a> {
    /// Rule of the method.
    pub rule: &'a Rule,
    /// Whether candidates are verified by the rule; if not, every candidate matches.
    pub verified: bool,
    /// Inputs of the run.
    pub inputs: SearchInputs,
}

impl SearchContext<'_> {
    /// Returns the secret of the identities if documents are identical only when their cleaned texts are; `None` if equal
    /// fingerprints are enough. Texts that differ in ignored lines alone have one fingerprint, and are not identical.
    pub(super) fn by_text(&self) -> Option<Secret> {
        Some(self.inputs.secret).filter(|_| self.verified || self.inputs.ignores_lines)
    }
}
