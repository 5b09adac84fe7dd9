//! Reads two texts side by side, unit by unit, and tells whether one of them says something that the other does not.
//!
//! Sets of features tell how much two texts share, and not what they differ in: 我支持 and 我不支持 share nearly all. So a pair
//! that is similar enough is read: its units are aligned (`alignment.rs`), and what differs (`place.rs`) is judged by what it is
//! and where it stands (`verdict.rs`, `titles.rs`, and `runs.rs` for code and longer texts). Units are words of scripts with
//! spaces, numbers, signs, and single characters of all other scripts (`units.rs`); tables of words stand in `words.rs`, and
//! numbers by which texts of one template are known in `numbers.rs`. This folder uses `text`, `hash` and the measure of `sets`.
//! docs/design/auto.md says why the rules are what they are, and what each is worth.

mod alignment;
mod difference;
mod numbers;
mod place;
mod runs;
mod titles;
mod units;
mod verdict;
mod words;

pub use difference::TellingDifference;
pub use numbers::{NumbersOfPair, least_shared};
pub use runs::least_in_common;
pub use units::{PackedText, ReadText};
pub use verdict::PairReader;
