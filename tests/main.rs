//! The tests of the whole program: each runs the built binary on files of its own and looks at what it
//! leaves.
//!
//! **Run one test**: `cargo test --release --test integration faults::lock` runs those whose names contain `faults::lock`, and
//! `-- --include-ignored` behind it also those that need a server. **Add one**: write a function with `#[test]` into the file whose
//! first comment promises what it checks, or make a file and declare it in the room. `support.rs` has what tests need:
//! `Folder::new().run("dedup in out").ends(0)`. A command with its whole output is a *golden case*: make a folder of `golden` with a
//! file `cmd` and the inputs, run `UPDATE=1 cargo test --release --test integration golden`, and read what it has recorded.
//! **Unit tests** stand at the end of each source file, or in `tests` beside it: `cargo test -p dedup-operators --lib`. **Laws**
//! (`operators/tests/laws`) compare every method with brute force.
//!
//! | room | promise |
//! |---|---|
//! | `answers` | nothing is removed without proof; the answer is the same for any workers, order and splits |
//! | `records` | records come out as they went in; a bad record costs that record |
//! | `nightly` | whatever came and was withdrawn in whichever order, the answer is that of one batch |
//! | `faults` | a killed run goes on and loses nothing; an output is seen whole or not at all; a list decides |
//! | `memory` | a run keeps to `--memory` |
//! | `models` | random operations by runs that have bad luck give what the simplest program gives |
//! | `processes`, `stores` | several processes and hosts; HDFS, S3 and Azure |
//! | `chunk` | files come back from a store as they were; block methods save what they say; nothing else than what repeats goes |
//! | `serve` | a served index answers as the command line does, and what it acknowledges lasts |
//! | `hbase` | an index in HBase loses nothing acknowledged, and two racing twins are never both new |
//! | `commands`, `golden`, `guide` | every command, what it prints, and the commands of the documents |
//! | `first` | a new user finds the help, and is told how to go on |
//! | `layers` | the rules of ARCHITECTURE.md for the source |
//!
//! | tests | need |
//! |---|---|
//! | `stores`, `faults::stores`, `chunk::store_servers`, `nightly::servers` | `scripts/hadoop/build`, `scripts/s3/build`, `scripts/azurite/build` |
//! | `hbase` | `scripts/hbase/build` |
//! | `codecs`, one of `pack` | `scripts/hadoop/build` |
//! | `launch::ssh` | `scripts/sshd/build` |
//! | one of `parquet`, one of `seeing` | `scripts/peers/build` |
//! | `text`, signals, `hosts` | `scripts/tools/build` |
//! | `serve::browser`, `commands::report` | `scripts/browser/build` |
//! | `hosts` | root, and a kernel that lets it make network and mount namespaces |
//! | one of `chunk::compare`, `corpora`, `hostile`, two of `parquet`, one of `nightly::servers` | the environment variable `DEDUP_TEST_DATA` |
//!
//! Without `DEDUP_TEST_DATA` these tests say that they skip.
#![allow(clippy::unwrap_used, reason = "a test whose files cannot be written or read should fail")]

mod answers;
mod chunk;
mod commands;
mod corpus;
mod faults;
mod first;
mod golden;
mod guide;
mod hbase;
mod layers;
mod memory;
mod models;
mod nightly;
mod processes;
mod random;
mod records;
mod serve;
mod servers;
mod stores;
mod support;
