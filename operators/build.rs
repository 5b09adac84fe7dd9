//! Packs jieba's dictionary for the segmenter (docs/design/features.md), and the tables of traditional characters and of
//! pronunciations (docs/design/identity.md).
//!
//! The dictionary is a file of the package jieba-rs, which does not export it. The package is a dependency of
//! this script, so it has been unpacked, and its own code says where: `load_dict` calls a reader of ours, which
//! asks the compiler for the file of its caller. `cargo metadata` would need every package of the workspace,
//! and a build has downloaded only those that it compiles. Where the compiler was told to write other paths
//! (`--remap-path-prefix`), the variable `JIEBA_DICTIONARY` names the file.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, BufRead, Read};
use std::ops::RangeInclusive;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::{env, fs};

use ferrous_opencc::OpenCC;
use ferrous_opencc::config::BuiltinConfig;
use pinyin::ToPinyin;

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
    let dictionary = lz4_flex::compress_prepend_size(blob.as_flattened());
    fs::write(out.join("dictionary.lz4"), dictionary)?;
    fs::write(out.join("simplified.bin"), simplified()?)?;
    fs::write(out.join("syllables.bin"), syllables())?;
    Ok(())
}

/// Characters whose traditional forms and pronunciations are known: the ideographs of the basic plane.
const IDEOGRAPHS: RangeInclusive<char> = '\u{3400}'..='\u{9FFF}';

/// Returns each traditional character and its simplified form, two bytes each, little-endian, in order. A character
/// whose simplified form is not one character of the basic plane is left out.
fn simplified() -> Result<Vec<u8>, Box<dyn Error>> {
    let convert = OpenCC::from_config(BuiltinConfig::T2s)?;
    let mut table = Vec::new();
    for traditional in IDEOGRAPHS {
        let simple = convert.convert(traditional.encode_utf8(&mut [0; 4]));
        let mut chars = simple.chars();
        if let (Some(simple), None) = (chars.next(), chars.next())
            && simple != traditional
            && let (Ok(from), Ok(to)) = (u16::try_from(traditional as u32), u16::try_from(simple as u32))
        {
            table.extend([from, to].map(u16::to_le_bytes).concat());
        }
    }
    Ok(table)
}

/// Returns two bytes for each ideograph: the number of its most frequent syllable without tone, or 0.
fn syllables() -> Vec<u8> {
    let mut numbers = BTreeMap::new();
    let number = |c: char| {
        let Some(syllable) = c.to_pinyin() else { return 0 };
        let next = numbers.len() as u16 + 1;
        *numbers.entry(syllable.plain()).or_insert(next)
    };
    IDEOGRAPHS.map(number).flat_map(u16::to_le_bytes).collect()
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

/// An empty reader that notes the source file of the first caller that asks it for a line.
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
