//! Tests of `chunk`: block-level deduplication.

mod compare;
