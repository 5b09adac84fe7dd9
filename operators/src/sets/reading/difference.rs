//! The reasons that tell two texts apart, as people are told them.

use std::fmt;

use crate::Similarity;

/// A reason why two texts are different although they share most of their features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TellingDifference {
    /// They are of one template, by their numbers.
    Template,
    /// One denies what the other says.
    Denial,
    /// One says the opposite of the other.
    Opposite,
    /// One asks what the other says.
    Question,
    /// They have other numbers at the same place.
    Number,
    /// They have other signs at the same place.
    Sign,
    /// They have another word at the same place.
    Word,
    /// The same words stand in another order.
    Order,
    /// They have other names or words at several places, or a stretch of its own each.
    Stretches,
    /// Their titles name other things, which they are about.
    Subject,
    /// They point to other pages, or answer otherwise, in what was cut.
    Cut,
    /// As code or as a long text of words they share too few stretches.
    Runs(Similarity),
}

impl fmt::Display for TellingDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TellingDifference::Template => "they are of one template, with other numbers",
            TellingDifference::Denial => "one of them denies what the other says",
            TellingDifference::Opposite => "one of them says the opposite of the other",
            TellingDifference::Question => "one of them asks what the other says",
            TellingDifference::Number => "they have other numbers at the same place",
            TellingDifference::Sign => "they have other signs at the same place",
            TellingDifference::Word => "they have another word at the same place",
            TellingDifference::Order => "the same words stand in another order",
            TellingDifference::Stretches => "each has stretches of its own at the same places",
            TellingDifference::Subject => "their titles name other things",
            TellingDifference::Cut => "they point to other pages, or answer otherwise",
            TellingDifference::Runs(alike) => {
                return write!(f, "of their stretches of three units only {alike} are in both");
            }
        })
    }
}
