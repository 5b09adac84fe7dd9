//! Runs a native peer on a corpus: `native PEER CORPUS OUT`.
//!
//! CORPUS has a text on each line. OUT gets a cluster on each line, as the numbers of its texts. Each peer is
//! called as its own documentation does, on one thread, and does all it offers; none of them verifies a pair
//! against the texts.

use std::fs;

use all_pairs_hamming::ChunkedJoiner;
use find_simdoc::CosineSearcher;
use gaoya::minhash::{MinHashIndex, MinHasher, MinHasher32, calculate_minhash_params};
use gaoya::text::shingle_text;
use jieba_rs::Jieba;
use xxhash_rust::xxh3::xxh3_64;

/// Largest distance: three of 64 bits, as the joiners want it.
const RADIUS: f64 = 3.0 / 64.0;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [peer, corpus, out] = &arguments[..] else { panic!("native PEER CORPUS OUT") };
    let corpus = fs::read_to_string(corpus).expect("corpus");
    let texts: Vec<&str> = corpus.split_terminator('\n').collect();

    let mut clusters = Clusters { parents: (0..texts.len()).collect() };
    match peer.as_str() {
        "find-simdoc" => find_simdoc(&texts, &mut clusters),
        "all-pairs-hamming" => all_pairs_hamming(&texts, &mut clusters),
        "gaoya" => gaoya(&texts, &mut clusters),
        _ => panic!("find-simdoc, all-pairs-hamming or gaoya"),
    }
    fs::write(out, clusters.lines()).expect("clusters");
}

/// Joins documents whose 64-bit SimHashes of character 5-grams differ in at most 3 bits.
fn find_simdoc(texts: &[&str], clusters: &mut Clusters) {
    let searcher = CosineSearcher::new(5, None, Some(42)).expect("searcher");
    let searcher = searcher.build_sketches(texts, 1).expect("sketches");
    for (a, b, _) in searcher.search_similar_pairs(RADIUS) {
        clusters.join(a, b);
    }
}

/// Joins documents with all-pairs-hamming, by plain SimHashes of jieba-rs's words that differ in at most 3
/// bits.
fn all_pairs_hamming(texts: &[&str], clusters: &mut Clusters) {
    let jieba = Jieba::new();
    let mut joiner = ChunkedJoiner::<u64>::new(1);
    for text in texts {
        let mut sums = [0i32; 64];
        for word in jieba.cut(text, false) {
            let hash = xxh3_64(word.word.as_bytes());
            for (bit, sum) in sums.iter_mut().enumerate() {
                *sum += (hash >> bit & 1) as i32 * 2 - 1;
            }
        }
        let simhash = sums.iter().enumerate().fold(0, |hash, (bit, &sum)| hash | u64::from(sum > 0) << bit);
        joiner.add([simhash]).expect("one chunk");
    }
    for (a, b, _) in joiner.similar_pairs(RADIUS) {
        clusters.join(a, b);
    }
}

/// Joins documents by MinHash of 128 values over character 5-grams, banded for 0.8. Candidates are checked by
/// their signatures.
fn gaoya(texts: &[&str], clusters: &mut Clusters) {
    let (bands, width) = calculate_minhash_params(0.8, 128);
    let hasher = MinHasher32::new(bands * width);
    let mut index = MinHashIndex::new(bands, width, 0.8);
    for (row, text) in texts.iter().enumerate() {
        index.insert(row, hasher.create_signature(shingle_text(text, 5)));
    }
    for row in 0..texts.len() {
        for &other in index.query_by_id(&row) {
            clusters.join(row, other);
        }
    }
}

/// Union-find; the root of a cluster is its smallest row.
struct Clusters {
    parents: Vec<usize>,
}

impl Clusters {
    fn root(&mut self, mut row: usize) -> usize {
        while self.parents[row] != row {
            self.parents[row] = self.parents[self.parents[row]];
            row = self.parents[row];
        }
        row
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b)] = a.min(b);
    }

    fn lines(mut self) -> String {
        let mut members = vec![Vec::new(); self.parents.len()];
        for row in 0..self.parents.len() {
            members[self.root(row)].push(row.to_string());
        }
        members.iter().filter(|rows| rows.len() > 1).map(|rows| rows.join(" ") + "\n").collect()
    }
}
