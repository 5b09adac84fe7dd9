//! The plan of a job: which bytes of which files make up each split.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};
use cluster::{InputFile, Stores, has_hidden_part, path_of_text, real_path};
use datasets::{Cuts, FORMATS, Format, UNKNOWN, format_named, unknown_format};
use operators::{DocId, Sides, SpillBudget};
use serde_json::Value;

use super::at_once::each;
use super::input_files::{InputFiles, RealPaths, training_and_test};
use super::sample::Sample;
use super::split::Split;
use super::unopened_piece::UnopenedPiece;
use crate::cli::exit::WrongUse;
use crate::cli::piped::PipedInputs;
use crate::progress::{ProgressOptions, Watched};

/// Version of the rule by which records get their places, which an output and its later readers must share.
/// Since 2, row groups are cut, and compressed files have more splits; since 3, large compressed files and CSV
/// files are cut; since 4, a split is of one partition.
pub const PLACES: u32 = 4;
/// Number of bytes at the start of a file by which its format is recognised.
pub const HEAD_BYTES: usize = 4096;
/// Number of files that are looked at at once.
const RECOGNISERS: usize = 16;
/// Sizes of splits that are chosen for the input, in bytes of records: the least and the largest.
const SPLIT_BYTES: [u64; 2] = [8 << 20, 32 << 20];
/// Number of splits that a small input is cut into. More would keep more workers busy, but each cut of a row
/// group has a page of each column decoded twice.
const SPLITS: u64 = 16;
/// Number of splits of the whole input from which on compressed files need not be cut.
const BUSY_SPLITS: u64 = 64;
/// Most bytes of contents of compressed files that are cut, and so written to the local folder.
const CONTENTS_BYTES: u64 = 32 << 30;

/// Splits of all inputs, in the order of their paths. The plan is the same for any order of the inputs and
/// any number of workers.
///
/// ```text
/// split size 32M: a.jsonl of 70M, b.jsonl of 1M, c.jsonl of 2M, d.csv of 5M, e.parquet of 20M
/// split 0    a.jsonl, bytes 0 to 23.3M
/// split 1    a.jsonl, bytes 23.3M to 46.6M
/// split 2    a.jsonl, bytes 46.6M to 70M
/// split 3    b.jsonl and c.jsonl          small files of one format share a split
/// split 4    d.csv
/// split 5    e.parquet, bytes 0 to 10M        a compressed byte counts for three
/// split 6    e.parquet, bytes 10M to 20M
/// ```
///
/// A compressed file of text is cut by its decompressed contents, into pieces of a 64th of the input or more.
/// Such contents are at most 32 GiB in all; the files behind stay whole.
///
/// The files and splits of a reference come before those of the input, and no split has files of both, or of two
/// partitions of a table: the parts of the split get the folder of its partition.
pub struct Plan {
    /// Splits in the order of the corpus; the number of the first is `first_split`.
    pub splits: Vec<Split>,
    /// Files that the splits are cut from, in the order of their paths on each side.
    pub files: Vec<InputFile>,
    /// Number of splits of the reference.
    pub reference_splits: u32,
    /// Number of files of the reference.
    pub reference_files: usize,
    /// Expected number of bytes of the records of all files, once they are decompressed.
    pub text_bytes: u64,
    /// Number of the first split. It is 0, unless documents of earlier nights come before those of the plan.
    pub first_split: u32,
    /// The inputs that are pipes, which have copies as long as the plan is there.
    pub piped: PipedInputs,
}

impl Plan {
    /// Finds the input files and cuts them into splits. Small files of one format share a split.
    ///
    /// `against`: the reference; empty if there is none.
    ///
    /// `split_bytes`: expected number of bytes of the records of a split, once they are decompressed. By
    /// default a 16th part of the input, but at least 8 MiB and at most 32 MiB, so that there are splits for
    /// many workers. `local`: folder for the contents of compressed files that are cut.
    pub fn new(
        stores: &Stores,
        against: &[String],
        inputs: &[String],
        format: Option<&str>,
        split_bytes: Option<u64>,
        local: &Path,
    ) -> Result<Self> {
        Plan::of_files(InputFiles::find(stores, against, inputs)?, format, split_bytes, local)
    }

    /// Cuts files that were found into splits, as [`Plan::new`] does.
    pub fn of_files(
        InputFiles { files, reference: reference_files }: InputFiles,
        format: Option<&str>,
        split_bytes: Option<u64>,
        local: &Path,
    ) -> Result<Self> {
        let forced = format.map(named).transpose()?;
        let mut splits: Vec<Split> = Vec::new();
        let mut room = 0;
        let formats = match forced {
            Some(format) => vec![format; files.len()],
            None => recognise(&files)?,
        };
        let expected = |(file, format): (&InputFile, &&'static dyn Format)| {
            file.bytes.saturating_mul(format.expansion(&file.path))
        };
        let text_bytes = files.iter().zip(&formats).map(expected).fold(0, u64::saturating_add);
        let split_bytes =
            split_bytes.unwrap_or_else(|| text_bytes.div_ceil(SPLITS).clamp(SPLIT_BYTES[0], SPLIT_BYTES[1]));
        let contents_bytes = split_bytes.max(text_bytes / BUSY_SPLITS);
        let mut contents_left = CONTENTS_BYTES;
        let local = SpillBudget::new(local, None);
        let mut reference_splits = 0;
        for (number, (file, format)) in files.iter().zip(formats).enumerate() {
            if number == reference_files {
                (room, reference_splits) = (0, splits.len() as u32);
            }
            let bytes = expected((file, &format));
            let whole = UnopenedPiece::whole(file);
            match splits.last_mut() {
                Some(split) if bytes <= room && number != reference_files && split.may_take(file, format) => {
                    split.pieces.push(whole);
                    room -= bytes;
                    continue;
                }
                _ => {}
            }
            let (count, contents) = match format.cuts(&file.path) {
                Cuts::File => (bytes.div_ceil(split_bytes).max(1), 0),
                Cuts::Contents if bytes > contents_bytes => {
                    let contents = whole.contents_bytes()?;
                    if contents <= contents_left {
                        (contents.div_ceil(contents_bytes), contents)
                    } else {
                        (1, 0)
                    }
                }
                Cuts::Nowhere | Cuts::Contents => (1, 0),
            };
            if splits.len() as u64 + count > DocId::MAX_SPLITS as u64 {
                bail!(WrongUse(format!(
                    "the input has more than {} splits; choose a larger --split-size",
                    DocId::MAX_SPLITS
                )));
            }
            let pieces = match contents > contents_bytes {
                true => whole.cut_contents(contents_bytes, count, &local),
                false => whole.cut(count),
            };
            contents_left -= contents;
            splits.extend(pieces.into_iter().map(|piece| Split {
                format,
                pieces: vec![piece],
                is_reference: number < reference_files,
                sample: None,
            }));
            room = if count == 1 { split_bytes.saturating_sub(bytes) } else { 0 };
        }
        Ok(Plan { splits, files, reference_splits, reference_files, text_bytes, ..Plan::nothing() })
    }

    /// Makes one split of the first file of the input, which is the only one.
    pub fn in_one_split(mut self) -> Self {
        let whole = self.files_by_side().1.first().map(UnopenedPiece::whole);
        let first = self.reference_splits as usize;
        self.splits.truncate(first + 1);
        if let (Some(split), Some(whole)) = (self.splits.get_mut(first), whole) {
            split.pieces = vec![whole];
        }
        self
    }

    /// Makes the plan of an input without files.
    pub fn nothing() -> Self {
        Plan {
            splits: Vec::new(),
            files: Vec::new(),
            reference_splits: 0,
            reference_files: 0,
            text_bytes: 0,
            first_split: 0,
            piped: PipedInputs::default(),
        }
    }

    /// Returns the splits with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (u32, &Split)> {
        (self.first_split..).zip(&self.splits)
    }

    /// Returns the split with a number.
    ///
    /// # Panics
    /// When the plan has no such split.
    pub fn split(&self, number: u32) -> &Split {
        &self.splits[(number - self.first_split) as usize]
    }

    /// Returns the first input file that is, or lies below, a path of a store. Links and `..` in local paths
    /// are followed.
    pub fn file_below(&self, prefix: &str, folder: &str) -> Option<&InputFile> {
        let mut of_store = self.files.iter().filter(|file| file.store.prefix() == prefix);
        if !prefix.is_empty() {
            return of_store.find(|file| Path::new(&file.path).starts_with(folder));
        }
        let folder = real_path(&path_of_text(folder));
        let mut paths = RealPaths::default();
        of_store.find(|file| paths.of(&file.path).starts_with(&folder))
    }

    /// Returns the prefixes of the stores of the input.
    pub fn prefixes(&self) -> BTreeSet<&str> {
        self.files.iter().map(|file| file.store.prefix()).collect()
    }

    /// Returns which side of the corpus a document is on. `within`: whether two documents of the input may be a pair.
    pub fn sides(&self, within: bool) -> Sides {
        Sides::new(self.reference_splits, within)
    }

    /// Returns the number of the first split of the input.
    pub fn first_of_input(&self) -> u32 {
        self.first_split + self.reference_splits
    }

    /// Returns the splits of the input.
    pub fn input_splits(&self) -> &[Split] {
        &self.splits[self.reference_splits as usize..]
    }

    /// Whether the split of that number is of the reference.
    pub fn is_reference(&self, split: u32) -> bool {
        split < self.first_of_input()
    }

    /// Returns the name of the side of a file of this plan.
    pub fn side_of(&self, file: &InputFile) -> &'static str {
        let (reference, _) = self.files_by_side();
        if reference.iter().any(|other| std::ptr::eq(other, file)) { "reference" } else { "input" }
    }

    /// Returns the files of the reference, and those of the input.
    pub fn files_by_side(&self) -> (&[InputFile], &[InputFile]) {
        self.files.split_at(self.reference_files)
    }

    /// Returns two files of the input that look like the training and the test data of one data set, between which
    /// duplicates would be removed.
    pub fn training_and_test(&self) -> Option<(&InputFile, &InputFile)> {
        training_and_test(self.files_by_side().1)
    }

    /// Returns the names of the input files that keep their names in the output.
    pub fn kept_names(&self) -> impl Iterator<Item = &str> {
        let keep = self.input_splits().iter().filter(|split| split.format.file_is_record());
        keep.flat_map(|split| split.pieces.iter().map(UnopenedPiece::name))
    }

    /// Returns an error if a file would have a name in the output that every reader skips.
    pub fn refuse_hidden_names(&self) -> Result<()> {
        match self.kept_names().find(|name| has_hidden_part(name)) {
            Some(name) => bail!(WrongUse(format!(
                "the output would hold \"{name}\" under this name, and every reader would skip it, since a part of it begins \
                 with \"_\" or \".\": rename it, or name the folder that holds it as the input"
            ))),
            None => Ok(()),
        }
    }

    /// Restricts all splits to a sample.
    pub fn sample(&mut self, sample: &Sample) {
        self.splits.iter_mut().for_each(|split| split.sample = Some(sample.clone()));
    }

    /// Returns what is shown of a job that reads this input.
    ///
    /// # Errors
    /// [`WrongUse`] when a file of metrics or events is an input.
    pub fn watched(
        &self,
        options: &ProgressOptions,
        job: &'static str,
        output: &str,
        configuration: &Value,
        process: usize,
    ) -> Result<Watched> {
        if let Some((option, file)) = options.input(|file| self.file_below("", file).is_some()) {
            bail!(WrongUse(format!("{option} would write to the input \"{file}\"")));
        }
        let (input_files, splits) = (self.files.len() as u64, self.splits.len() as u64);
        let input_bytes = self.bytes();
        let version = env!("CARGO_PKG_VERSION");
        let output = output.to_owned();
        let configuration = configuration.clone();
        let left_if_ended = None;
        Ok(Watched {
            version,
            job,
            output,
            process,
            configuration,
            input_files,
            input_bytes,
            splits,
            left_if_ended,
        })
    }

    /// Returns the number of bytes of all input files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// Returns the format of that name.
fn named(name: &str) -> Result<&'static dyn Format> {
    let names = || FORMATS.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
    format_named(name)
        .ok_or_else(|| WrongUse(format!("no format is called \"{name}\"; there are {}", names())).into())
}

/// Returns the format of each file.
///
/// Nearly all of the time goes into waiting for the store, so the format of several files is asked for at
/// once.
///
/// # Errors
/// [`WrongUse`] if the format of no file is known; those of the stores.
pub fn recognise(files: &[InputFile]) -> Result<Vec<&'static dyn Format>> {
    let formats = each(RECOGNISERS, files, recognised)?;
    match files.first() {
        Some(file) if formats.iter().all(Option::is_none) => {
            let path = file.full_path();
            bail!(WrongUse(format!("\"{path}\" is {}", unknown_format(&path))))
        }
        _ => Ok(formats.into_iter().map(|format| format.unwrap_or(&UNKNOWN)).collect()),
    }
}

/// Returns the format of a file, by its name and the bytes at its start; `None` if it is none that is known.
pub fn recognised(file: &InputFile) -> Result<Option<&'static dyn Format>> {
    let blob = file.open(None)?;
    let mut head = vec![0; HEAD_BYTES];
    let length = blob.read_full_at(0, &mut head)?;
    Ok(FORMATS.iter().copied().find(|format| format.recognises(&file.path, &head[..length])))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// Plans files of these names and lengths, in MiB, and returns the number of splits.
    fn splits(files: &[(&str, u64)], split_bytes: Option<u64>) -> usize {
        let folder = tempfile::tempdir().unwrap();
        for (name, mebibytes) in files {
            // Without data, and so recognised by its name.
            File::create(folder.path().join(name)).unwrap().set_len(mebibytes << 20).unwrap();
        }
        let inputs = [folder.path().to_str().unwrap().to_owned()];
        Plan::new(&Stores::new(), &[], &inputs, None, split_bytes, folder.path()).unwrap().splits.len()
    }

    #[test]
    fn splits_are_planned_by_what_files_decompress_to() {
        assert_eq!(splits(&[("a.jsonl", 64)], Some(32 << 20)), 2);
        assert_eq!(splits(&[("a.parquet", 64)], Some(32 << 20)), 6);
        assert_eq!(splits(&[("a.jsonl.gz", 64)], Some(32 << 20)), 6, "by its contents");
        assert_eq!(splits(&[("a.jsonl.gz", 6), ("b.jsonl.gz", 6)], Some(32 << 20)), 2);
        assert_eq!(splits(&[("a.jsonl", 6), ("b.jsonl", 6)], Some(32 << 20)), 1);
    }

    #[test]
    fn by_default_a_small_input_has_splits_for_many_workers() {
        for (mebibytes, expected) in [(1, 1), (16, 2), (64, 8), (128, 16), (320, 16), (1024, 32)] {
            assert_eq!(splits(&[("a.jsonl", mebibytes)], None), expected, "{mebibytes} MiB");
        }
    }
}
