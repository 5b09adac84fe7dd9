//! Units of texts (lines, sentences, paragraphs) that occur more than once in a corpus, or are near an earlier one.
//!
//! This room uses `record`, `spill` and the similarity of `sets`; `chunk clean` uses it.

mod near_units;
mod repeats;

pub use self::near_units::{FirstUnit, NearUnit, each_first, each_renamed};
pub use self::repeats::{KeptUnit, RepeatedUnit, UnitOccurrence, UnitPlace, each_repeat};
