//! The tests of the whole program: each runs the built binary on files of its own and looks at what it
//! leaves.
//!
//! | tests | need |
//! |---|---|
//! | `hdfs`, `hdfs_modes`, `faults::hdfs`, `codecs`, one of `pack` | `scripts/hadoop/build` |
//! | `object` | `scripts/s3/build`, `scripts/azurite/build` |
//! | `launch::ssh` | `scripts/sshd/build` |
//! | one of `parquet`, one of `seeing` | `scripts/peers/build` |
//! | `text`, signals, `hosts` | `scripts/tools/build` |
//! | `hosts` | root, and a kernel that lets it make network and mount namespaces |
//! | `corpora`, `hostile`, two of `parquet` | the environment variable `DEDUP_TEST_DATA` |
//!
//! Without `DEDUP_TEST_DATA` these tests say that they skip.
#![allow(clippy::unwrap_used, reason = "a test whose files cannot be written or read should fail")]

mod azurite;
mod bounds;
mod brute;
mod cli;
mod codecs;
mod compare;
mod corpora;
mod faults;
mod golden;
mod guards;
mod guide;
mod hadoop;
mod hdfs;
mod hdfs_modes;
mod hostile;
mod hosts;
mod input;
mod invariance;
mod labels;
mod launch;
mod layers;
mod lock;
mod manifest;
mod memory;
mod names;
mod object;
mod office;
mod output;
mod pack;
mod parquet;
mod progress_of_tools;
mod s3;
mod seeing;
mod sequence;
mod statistics;
mod support;
mod text;
mod tools;
mod zhou;
