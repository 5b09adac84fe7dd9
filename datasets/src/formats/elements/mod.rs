//! Files of text with a document in each element, which are read line by line: no XML parser takes them, since nothing in them is
//! escaped, or a root is missing, or damage must cost one document alone.
//!
//! `element_format.rs` finds the elements, reads and copies them; `sogou.rs`, `wiki.rs` and `mediawiki.rs` say what an element is.

mod element_format;
mod mediawiki;
mod sogou;
mod wiki;

pub(crate) use self::mediawiki::MEDIAWIKI;
pub(crate) use self::sogou::SOGOUCS;
pub(crate) use self::wiki::WIKIEXTRACTOR;
