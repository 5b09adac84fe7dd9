//! `demo`: a synthetic corpus with known duplicates.
