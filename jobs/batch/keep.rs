//! Keep orders: which of two matching documents stays.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use operators::search::crowds::place::Rank;
use operators::{DocId, Merit};

/// Rule for the document that stays of two that match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// The first of the corpus.
    #[default]
    First,
    /// The one with the most characters, and of equal ones the first.
    Longest,
    /// The one with the greatest number in this field, and of equal ones the first.
    Priority(String),
}

/// Place of a document in keep order: the least comes first.
pub type KeepRank = Rank;
/// Returns the place of a document in a keep order, for which it may ask for the document's merit.
pub type KeepOrder = Arc<dyn Fn(DocId, &dyn Fn() -> Merit) -> KeepRank + Send + Sync>;

impl Keep {
    /// Returns the place of a document in keep order.
    pub fn rank(&self, doc: DocId, merit: impl FnOnce() -> Merit) -> KeepRank {
        match self {
            Keep::First => (0, doc),
            Keep::Longest => (u64::MAX - merit().chars, doc),
            Keep::Priority(_) => (u64::MAX - merit().priority.0, doc),
        }
    }

    /// Returns the keep order.
    pub fn order(self) -> KeepOrder {
        Arc::new(move |doc, merit| self.rank(doc, merit))
    }

    /// Returns the field that holds the priority, if it decides.
    pub fn field(&self) -> Option<&str> {
        match self {
            Keep::Priority(field) => Some(field),
            Keep::First | Keep::Longest => None,
        }
    }
}

impl FromStr for Keep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("priority:")) {
            ("first", _) => Ok(Keep::First),
            ("longest", _) => Ok(Keep::Longest),
            (_, Some(field)) if !field.is_empty() => Ok(Keep::Priority(field.to_owned())),
            _ => Err("expected first, longest or priority:FIELD".to_owned()),
        }
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keep::First => f.write_str("first"),
            Keep::Longest => f.write_str("longest"),
            Keep::Priority(field) => write!(f, "priority:{field}"),
        }
    }
}
