//! Character grams, by which an edited text is held near to its original and a decoy away from it.

/// Number of characters of a gram.
const GRAM: usize = 5;

/// The character 5-grams of a text, with and without punctuation. A shorter text is one gram.
pub(super) struct Grams([Vec<u128>; 2]);

impl Grams {
    pub fn new(text: &str) -> Self {
        Grams([grams(text, |_| true), grams(text, char::is_alphanumeric)])
    }

    /// Whether the Jaccard similarity to another text is at least this fraction, with and without punctuation.
    pub fn reach(&self, other: &Grams, least: (usize, usize)) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| {
            let common = common(a, b);
            common * least.1 >= (a.len() + b.len() - common) * least.0
        })
    }
}

/// Returns the set of grams, sorted, each as the bits of its characters behind a 1, which tells lengths apart.
pub(super) fn grams(text: &str, keep: fn(char) -> bool) -> Vec<u128> {
    let chars: Vec<char> = text.chars().filter(|&char| keep(char)).collect();
    let bits = |gram: &[char]| gram.iter().fold(1, |bits, &char| bits << 21 | u128::from(char));
    let mut grams: Vec<_> = chars.windows(GRAM.min(chars.len().max(1))).map(bits).collect();
    grams.sort_unstable();
    grams.dedup();
    grams
}

/// Returns the number of grams that two sorted sets have in common.
pub(super) fn common(a: &[u128], b: &[u128]) -> usize {
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        common += usize::from(a[i] == b[j]);
        let (next_i, next_j) = (a[i] <= b[j], b[j] <= a[i]);
        i += usize::from(next_i);
        j += usize::from(next_j);
    }
    common
}
