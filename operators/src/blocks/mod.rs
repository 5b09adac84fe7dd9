//! Block-level deduplication: texts are cut into blocks, and a block that came before is not kept again.
//!
//! Each method is in a file: `exact` (blocks of one size, sentences, paragraphs, files), `rabin`, `gear`, `peng2017`, and
//! `paragraph_delta`, which uses `delta`; the last two share `paragraphs`. `ledger` counts what a method keeps. `disturbed` makes texts with known
//! duplicates, and `duplicate_score` scores what is found of them. This room uses `text`, `sets` and the hashes;
//! `jobs/chunk` uses it.

pub mod delta;
mod disturbed;
mod duplicate_score;
mod exact;
mod gear;
mod ledger;
mod paragraph_delta;
mod paragraphs;
pub mod peng2017;
mod rabin;
mod spec;
mod store;

pub use disturbed::Disturbed;
pub use duplicate_score::DuplicateScore;
pub use ledger::{BLOCK_BYTES, BlockLedger, REFERENCE_BYTES};
pub use spec::BlockSpec;
pub use store::{BlockMethod, BlockStore, FoundBlocks};

use crate::text::units::Unit;

/// Every block method, in the order in which a comparison lists them.
static METHODS: &[&dyn BlockMethod] = &[
    &exact::WholeFiles,
    &exact::FixedBlocks,
    &rabin::RabinBlocks,
    &gear::GearBlocks,
    &exact::UnitBlocks { specs: ["paragraph"], unit: Unit::Line },
    &exact::UnitBlocks { specs: ["sentence"], unit: Unit::Sentence },
    &peng2017::Peng2017,
    &paragraph_delta::ParagraphDelta,
];
