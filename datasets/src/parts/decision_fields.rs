//! Fields by which a written record says what was decided about it.

use std::io;

use serde::Serialize;

use crate::{Annotation, Removal};

/// Names of the fields that a removed record gets.
pub(crate) const OF_REMOVED: &[&str] = &["duplicate_of", "similarity", "cluster", "reason"];
/// Names of the fields that an annotated record gets.
pub(crate) const OF_ANNOTATED: &[&str] = &["duplicate_of", "similarity", "cluster", "reason", "keep"];

/// Suffix of a field's name where the record already has a field of that name.
const SUFFIX: &str = "_dedup";

/// Value of such a field.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum DecisionValue<'a> {
    Text(Option<&'a str>),
    Number(Option<f64>),
    Flag(bool),
}

/// The values of the fields of a record, in the order of their names.
pub(crate) type DecisionValues<'a> = Vec<DecisionValue<'a>>;

impl Removal {
    /// Returns the values of [`OF_REMOVED`].
    pub(crate) fn values(&self) -> DecisionValues<'_> {
        vec![
            DecisionValue::Text(Some(&self.duplicate_of)),
            DecisionValue::Number(self.similarity),
            DecisionValue::Text(Some(&self.cluster)),
            DecisionValue::Text(Some(&self.reason)),
        ]
    }
}

impl Annotation {
    /// Returns the values of [`OF_ANNOTATED`].
    pub(crate) fn values(&self) -> DecisionValues<'_> {
        let removal = self.removal.as_ref();
        vec![
            DecisionValue::Text(removal.map(|removal| &*removal.duplicate_of)),
            DecisionValue::Number(removal.and_then(|removal| removal.similarity)),
            DecisionValue::Text(self.cluster.as_deref()),
            DecisionValue::Text(removal.map(|removal| &*removal.reason)),
            DecisionValue::Flag(removal.is_none()),
        ]
    }
}

/// Returns whether [`free_names`] could choose this name.
pub(crate) fn is_like_a_field(name: &str) -> bool {
    OF_ANNOTATED.contains(&name.trim_end_matches(SUFFIX))
}

/// Returns names of fields that the record does not have. A taken name gets the suffix `_dedup`, if needed more than once.
pub(crate) fn free_names(names: &[&str], taken: impl Fn(&str) -> bool) -> Vec<String> {
    let free = |name: &&str| {
        let mut name = (*name).to_owned();
        while taken(&name) {
            name.push_str(SUFFIX);
        }
        name
    };
    names.iter().map(free).collect()
}

/// Appends the members `"duplicate_of":...,"similarity":...` and so on, under these names.
pub(crate) fn write_members(json: &mut Vec<u8>, names: &[String], values: &DecisionValues) -> io::Result<()> {
    for (at, (name, value)) in names.iter().zip(values).enumerate() {
        if at > 0 {
            json.push(b',');
        }
        serde_json::to_writer(&mut *json, name)?;
        json.push(b':');
        serde_json::to_writer(&mut *json, value)?;
    }
    Ok(())
}
