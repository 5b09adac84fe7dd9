//! Parts of an output: where the writers of `formats` put kept and removed records.
//!
//! `part.rs` writes one part after the other, `copy_writer.rs` divides copied records into kept and removed,
//! `decision_fields.rs` has the fields by which a record says why, and `removal_log.rs` writes `removed/_reasons/`. The traits are in `lib.rs`. This room uses `text` and knows no
//! format; `formats` uses it.

pub(crate) mod copy_writer;
pub(crate) mod cut_text;
pub(crate) mod decision_fields;
pub(crate) mod part;
pub(crate) mod removal_log;
