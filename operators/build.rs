//! Packs jieba's dictionary for the segmenter (docs/design/0055).
//!
//! The dictionary is a file of the package jieba-rs, which does not export it. The package is a dependency of
//! this script, so it has been unpacked, and its own code says where: `load_dict` calls a reader of ours, which
//! asks the compiler for the file of its caller. `cargo metadata` would need every package of the workspace,
//! and a build has downloaded only those that it compiles. Where the compiler was told to write other paths
//! (`--remap-path-prefix`), the variable `JIEBA_DICTIONARY` names the file.

use std::error::Error;
use std::io::{self, BufRead, Read};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "src/text/segmenter/entry.rs"]
#[expect(dead_code, reason = "this script writes the table and does not look words up")]
mod entry;
#[path = "src/text/segmenter/packing.rs"]
mod packing;

fn main() -> Result<(), Box<dyn Error>> {
    let path = dictionary()?;
    println!("cargo::rerun-if-env-changed=JIEBA_DICTIONARY");
    // Cargo itself looks after this script and its modules.
    println!("cargo::rerun-if-changed={}", path.display());
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut words = Vec::new();
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let Some(word) = fields.next() else { continue };
        words.push((word, fields.next().map_or(Ok(0), str::parse)?));
    }
    words.sort();
    if words.is_empty() || words.windows(2).any(|two| two[0].0 == two[1].0) {
        return Err(format!("{} is empty, or has a word twice", path.display()).into());
    }
    let blob = packing::pack(&words).ok_or("the dictionary is too large")?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    fs::write(out.join("dictionary.bin"), blob.as_flattened())?;
    Ok(())
}

/// Returns the path of jieba's dictionary.
fn dictionary() -> Result<PathBuf, Box<dyn Error>> {
    if let Some(path) = env::var_os("JIEBA_DICTIONARY") {
        return Ok(path.into());
    }
    let mut asks = AsksItsCaller(None);
    jieba_rs::Jieba::empty().load_dict(&mut asks)?;
    let source = asks.0.ok_or("jieba-rs did not read its dictionary")?;
    let dictionary = Path::new(source).parent().ok_or("no folder of sources")?.join("data/dict.txt");
    // The path of a package inside of the workspace is relative to the workspace.
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?);
    let found = here.ancestors().map(|folder| folder.join(&dictionary)).find(|path| path.is_file());
    found.ok_or_else(|| {
        format!("{} is not there; JIEBA_DICTIONARY may name the file", dictionary.display()).into()
    })
}

/// A reader of nothing that notes from which file it was first asked for a line.
struct AsksItsCaller(Option<&'static str>);

impl Read for AsksItsCaller {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}

impl BufRead for AsksItsCaller {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(&[])
    }

    fn consume(&mut self, _: usize) {}

    #[track_caller]
    fn read_line(&mut self, _: &mut String) -> io::Result<usize> {
        self.0.get_or_insert(Location::caller().file());
        Ok(0)
    }
}
