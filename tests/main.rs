//! The tests of the whole program: each runs the built binary on files of its own and looks at what it leaves.
//!
//! Those of `hdfs` need `scripts/hadoop/build`, those of `corpora` the environment variable `DEDUP_TEST_DATA`.
#![allow(clippy::unwrap_used, reason = "a test whose files cannot be written or read should fail")]

mod brute;
mod cli;
mod corpora;
mod hadoop;
mod hdfs;
mod hostile;
mod invariance;
mod layers;
mod output;
mod pack;
mod sequence;
mod support;
