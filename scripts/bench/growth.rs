//! Makes corpora of any size whose texts are like those of a real corpus, for `scripts/bench/growth` and
//! `scripts/bench/posts`.
//!
//! `growth CORPUS DOCUMENTS [LEAST MOST] >corpus.jsonl`; CORPUS has a text on each line. With LEAST and MOST the
//! texts have so many characters. A new text copies some characters
//! of the corpus, goes on behind another place with the same last three characters, and so on, until it has
//! the length of a random text of the corpus. So grams are as frequent as in the corpus, stock phrases too,
//! but long passages are not repeated. Of ten documents three repeat one of the last 100,000 new texts: two as
//! it is, one with a small change. The share of duplicates is therefore the same for every size.

use std::io::{BufWriter, Write, stdout};

/// Number of characters that decide where a text goes on.
const CONTEXT: usize = 3;
/// Number of new texts that may be repeated.
const WINDOW: usize = 100_000;

struct Random(u64);

impl Random {
    /// Returns a number below `bound` (xorshift64*, Vigna 2016).
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)) * bound as u128) >> 64) as usize
    }
}

/// The characters of a corpus, and the places of each context.
struct Model {
    chars: Vec<char>,
    /// Offset of each text in `chars`, and the end.
    texts: Vec<usize>,
    /// For each hash of a context, the offset in `places` of the places behind it.
    starts: Vec<u32>,
    places: Vec<u32>,
}

impl Model {
    fn of(corpus: &str) -> Self {
        let mut chars = Vec::new();
        let mut texts = vec![0];
        for line in corpus.lines().filter(|line| !line.is_empty()) {
            chars.extend(line.chars());
            texts.push(chars.len());
        }
        let hashes = || chars.windows(CONTEXT).map(hash);
        let mut starts = vec![0u32; (1 << BITS) + 1];
        hashes().for_each(|hash| starts[hash + 1] += 1);
        (0..1 << BITS).for_each(|hash| starts[hash + 1] += starts[hash]);
        let mut next = starts.clone();
        let mut places = vec![0; chars.len()];
        hashes().enumerate().for_each(|(at, hash)| {
            places[next[hash] as usize] = (at + CONTEXT) as u32;
            next[hash] += 1;
        });
        Model { chars, texts, starts, places }
    }

    /// Makes a text of the length of any text, or with `lengths` characters.
    fn text(&self, lengths: Option<(usize, usize)>, random: &mut Random) -> Vec<char> {
        let like = random.below(self.texts.len() - 1);
        let wanted = match lengths {
            Some((least, most)) => least + random.below(most - least + 1),
            None => self.texts[like + 1] - self.texts[like],
        };
        let mut text = Vec::with_capacity(wanted);
        let mut at = random.below(self.chars.len());
        while text.len() < wanted {
            let copied = (2 + random.below(6)).min(wanted - text.len()).min(self.chars.len() - at);
            text.extend(&self.chars[at..at + copied]);
            at += copied;
            if let Some(context) = text.len().checked_sub(CONTEXT) {
                let hash = hash(&text[context..]);
                let from = self.starts[hash] as usize;
                let to = self.starts[hash + 1] as usize;
                if from < to {
                    at = self.places[from + random.below(to - from)] as usize;
                }
            }
            if at >= self.chars.len() {
                at = random.below(self.chars.len());
            }
        }
        text
    }
}

/// Number of bits of the hash of a context.
const BITS: u32 = 24;

fn hash(context: &[char]) -> usize {
    let mixed = context.iter().fold(0u64, |all, &c| (all ^ c as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29));
    (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - BITS)) as usize
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let model = Model::of(&std::fs::read_to_string(&arguments[1]).expect("the corpus"));
    let documents: u64 = arguments[2].parse().expect("a number of documents");
    let length = |at: usize| arguments.get(at).map(|length| length.parse().expect("a number of characters"));
    let lengths = length(3).zip(length(4));
    let mut random = Random(0x0DDB_1A5E);
    let mut window = Vec::<Vec<char>>::new();
    let mut out = BufWriter::new(stdout().lock());
    for number in 0..documents {
        let text = match random.below(10) {
            7 | 8 if !window.is_empty() => window[random.below(window.len())].clone(),
            9 if !window.is_empty() => {
                let mut text = window[random.below(window.len())].clone();
                for _ in 0..1 + text.len() / 100 {
                    let at = random.below(text.len());
                    text[at] = model.chars[random.below(model.chars.len())];
                }
                text
            }
            _ => {
                let text = model.text(lengths, &mut random);
                match window.len() {
                    WINDOW => window[random.below(WINDOW)] = text.clone(),
                    _ => window.push(text.clone()),
                }
                text
            }
        };
        let escaped: String = text
            .iter()
            .flat_map(|&c| match c {
                '"' | '\\' => vec!['\\', c],
                c if c < ' ' => vec![' '],
                c => vec![c],
            })
            .collect();
        writeln!(out, "{{\"id\": \"{number}\", \"text\": \"{escaped}\"}}").expect("the output");
    }
}
