//! The store of `chunk put`: packs of chunks, snapshots of files, and an index of the chunks.
//!
//! A *chunk* is a piece of a file, and is named by the first 128 bits of its BLAKE3 hash. Packs hold each chunk once, in
//! frames that are compressed as a whole. A snapshot says of which chunks each file is made. Packs and snapshots never
//! change, and nobody needs more than them: the index only says which chunks are there already, and is made again from the
//! packs where it is missing.
//!
//! | file | does |
//! |---|---|
//! | `pack_layout.rs`, `pack_writer.rs`, `pack_reader.rs` | packs |
//! | `chunk_index.rs` | finds the place of a chunk |
//! | `snapshot.rs` | writes and reads snapshots |
//! | `store_folder.rs` | opens a store, and lists what is in it |
//! | `claims.rs` | keeps those who add chunks and those who remove them apart |
//! | `contents.rs` | reads the files of a snapshot |
//!
//! docs/design/chunk-store.md says why, docs/formats.md describes the files.

mod chunk_index;
mod claims;
mod contents;
mod pack_layout;
mod pack_reader;
mod pack_writer;
mod snapshot;
mod store_folder;

pub(super) use chunk_index::ChunkIndex;
pub(super) use claims::{PutClaim, freeze, frozen, frozen_packs, living_claims, time_of_store};
pub(super) use contents::ContentReader;
pub(super) use pack_layout::{ChunkId, ChunkPlace, MOST_CHUNKS, PackNumber};
pub(super) use pack_reader::{ChunkPack, OpenPacks};
pub(super) use pack_writer::ChunkPackWriter;
pub(super) use snapshot::{
    ChunkRun, SnapshotCounts, SnapshotFile, SnapshotManifest, SnapshotReader, SnapshotWriter,
};
pub(super) use store_folder::ChunkStore;
