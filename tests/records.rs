//! Tests that records come out as they went in, in every format, and that a bad record costs that record.

mod codecs;
mod hostile;
mod input;
mod names;
mod office;
mod parquet;
mod parquet_mr;
mod partitions;
pub mod sequence;
mod text;
mod warc;
