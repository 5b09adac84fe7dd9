//! Tests of the command line: wrong use, what is shown, and the commands other than `dedup`.

mod against;
mod cli;
mod compare;
mod guards;
mod index;
mod index_options;
mod keep;
mod labels;
mod pack;
mod progress;
mod report;
mod reproduce;
mod seeing;
mod shown;
mod tools;
