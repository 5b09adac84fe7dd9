//! Keys of single texts, for an index to which documents come one by one.

use super::{Method, Search, SimHash};
use crate::fingerprint::Bits;
use crate::hash::{Identity, Secret};
use crate::record::{DocId, Row};
use crate::search::CandidateSearch;
use crate::search::bands::BandSearch;
use crate::search::blocks::BlockSearch;
use crate::search::kept::KeptSearch;
use crate::sets::minhash::MinHash;
use crate::sets::small_sketch::{SketchSieve, SmallSketch};
use crate::sets::{Rule, Sets};
use crate::text::cleaned::has_text;

/// Keys of one text in the passes of a search, and what is kept beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextKeys {
    /// Whether the text is nothing but white space, so that the document matches no other one.
    pub is_empty: bool,
    /// Hash of the cleaned text; of the fingerprint, if texts are not compared.
    pub identity: Identity,
    /// Keys, in the order of the passes. A text with two sets has two keys for each band, and an empty one has none.
    pub keys: Vec<KeyOfPass>,
    /// Sketches of the short and of the long set, or 0.
    pub sketches: [u64; 2],
}

/// Key of a text in one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyOfPass {
    /// Number of the pass.
    pub pass: u32,
    /// Kept key, as [`KeptSearch::kept_key`] makes it.
    pub key: u128,
    /// Sketch of the set that the key is made of.
    pub sketch: SmallSketch,
}

/// Makes the keys of texts, as the batch search of a method would keep them, and compares keys.
///
/// ```text
/// simhash     4 passes; two fingerprints meet if the first 16 bits of their keys are equal, and are a candidate if
///             they differ in at most 3 bits
/// auto        a pass for each band; two texts meet if the first 64 bits are equal, and are a candidate if their
///             sketches do not rule a match out
/// exact       no pass
/// ```
#[derive(Clone)]
pub struct KeptKeys {
    maker: KeyMaker,
    /// For each pass, the number of first bits on which keys must agree.
    key_bits: Vec<u32>,
    distance: Option<u32>,
    sieve: Option<SketchSieve>,
}

#[derive(Clone)]
enum KeyMaker {
    Identity(Secret),
    Fingerprint64(SimHash<u64>, BlockSearch<u64>, Option<Secret>),
    Fingerprint128(SimHash<u128>, BlockSearch<u128>, Option<Secret>),
    Bands(MinHash, Rule, Secret),
}

impl KeptKeys {
    /// Makes the keys of a method. `secret`: the secret of the identities. Returns `None` if the search of the method has
    /// no keys that can be kept, because they change with the corpus.
    pub fn new(method: &Method, secret: Secret) -> Option<Self> {
        let verified = Some(&method.rule).filter(|_| method.verified);
        let by_text = verified.map(|_| secret);
        Some(match &method.search {
            Search::Nothing => KeptKeys {
                maker: KeyMaker::Identity(secret),
                key_bits: Vec::new(),
                distance: None,
                sieve: None,
            },
            Search::SimHash64(simhash) => {
                let search = BlockSearch::new(simhash.join.clone(), verified);
                let (key_bits, distance) = (bits_of(&search), Some(simhash.join.distance()));
                let maker = KeyMaker::Fingerprint64(simhash.clone(), search, by_text);
                KeptKeys { maker, key_bits, distance, sieve: None }
            }
            Search::SimHash128(simhash) => {
                let search = BlockSearch::new(simhash.join.clone(), verified);
                let (key_bits, distance) = (bits_of(&search), Some(simhash.join.distance()));
                let maker = KeyMaker::Fingerprint128(simhash.clone(), search, by_text);
                KeptKeys { maker, key_bits, distance, sieve: None }
            }
            Search::Bands(minhash) => {
                let search = BandSearch::new(*minhash, &method.rule);
                let (key_bits, sieve) = (bits_of(&search), search.sieve().cloned());
                let maker = KeyMaker::Bands(*minhash, method.rule.clone(), secret);
                KeptKeys { maker, key_bits, distance: None, sieve }
            }
            Search::Prefix | Search::Zhou(_) => return None,
        })
    }

    /// Returns the least and the greatest key that meet a key of a pass.
    ///
    /// # Panics
    /// When there is no such pass.
    pub fn range(&self, pass: u32, key: u128) -> (u128, u128) {
        let rest = u128::MAX.checked_shr(self.key_bits[pass as usize]).unwrap_or(0);
        (key & !rest, key | rest)
    }

    /// Returns the largest number of bits in which the fingerprints of a candidate differ; `None` without
    /// fingerprints.
    pub fn distance(&self) -> Option<u32> {
        self.distance
    }

    /// Whether the sketches of a text do not rule out that it matches the text of a key that it has met.
    pub fn may_match(&self, of: &KeyOfPass, sketches: [u64; 2]) -> bool {
        let Some(sieve) = &self.sieve else { return true };
        sieve.may_match(of.sketch, of.sketch.of_the_same_kind(sketches))
    }

    /// Whether texts have keys beside their identity.
    pub fn has_keys(&self) -> bool {
        !self.key_bits.is_empty()
    }

    /// Whether the keys are those of fingerprints of 64 bits with four blocks of 16, of which one must be equal. The key
    /// of the first pass is then the whole fingerprint, and those of the others are the same bits with another block in
    /// front.
    pub fn have_four_blocks(&self) -> bool {
        matches!(self.maker, KeyMaker::Fingerprint64(..)) && self.key_bits == [16; 4]
    }

    /// Whether identities find equal texts that keys do not. Equal fingerprints have equal keys.
    pub fn need_identities(&self) -> bool {
        !matches!(self.maker, KeyMaker::Fingerprint64(_, _, None) | KeyMaker::Fingerprint128(_, _, None))
    }

    /// Whether sketches of texts are kept.
    pub fn has_sketches(&self) -> bool {
        self.sieve.is_some()
    }

    /// Returns the keys of a cleaned text. Cost: that of mapping the text.
    pub fn of(&mut self, text: &str) -> TextKeys {
        let of_text = match &mut self.maker {
            KeyMaker::Identity(secret) => TextKeys { identity: secret.identity(text), ..TextKeys::default() },
            KeyMaker::Fingerprint64(simhash, search, secret) => {
                of_fingerprint(simhash, search, *secret, text)
            }
            KeyMaker::Fingerprint128(simhash, search, secret) => {
                of_fingerprint(simhash, search, *secret, text)
            }
            KeyMaker::Bands(minhash, rule, secret) => of_bands(minhash, rule, *secret, text),
        };
        match has_text(text) {
            true => of_text,
            // Without keys no other document meets it.
            false => TextKeys { is_empty: true, keys: Vec::new(), ..of_text },
        }
    }

    /// Returns the keys of a fingerprint of 64 bits that was made elsewhere; `None` if the method has none, or compares
    /// texts.
    pub fn of_fingerprint(&self, fingerprint: u64) -> Option<TextKeys> {
        match &self.maker {
            KeyMaker::Fingerprint64(_, search, None) => {
                Some(of_word(search, fingerprint, fingerprint.halves().into()))
            }
            _ => None,
        }
    }
}

fn bits_of<S: KeptSearch>(search: &S) -> Vec<u32> {
    search.passes().iter().map(S::key_bits).collect()
}

fn of_fingerprint<W: Bits>(
    simhash: &mut SimHash<W>,
    search: &BlockSearch<W>,
    secret: Option<Secret>,
    text: &str,
) -> TextKeys {
    let fingerprint = simhash.fingerprint(text);
    let identity = match secret {
        Some(secret) => secret.identity(text),
        None => fingerprint.halves().into(),
    };
    of_word(search, fingerprint, identity)
}

fn of_word<W: Bits>(search: &BlockSearch<W>, fingerprint: W, identity: Identity) -> TextKeys {
    let row = Row { fingerprint, doc: DocId(0), sketch: 0 };
    let sketch = SmallSketch::default();
    let key = |(pass, table)| KeyOfPass { pass, key: BlockSearch::kept_key(table, &row), sketch };
    let keys = (0..).zip(&search.passes()).map(key).collect();
    TextKeys { identity, keys, ..TextKeys::default() }
}

fn of_bands(minhash: &MinHash, rule: &Rule, secret: Secret, text: &str) -> TextKeys {
    let mut of_text = TextKeys { identity: secret.identity(text), ..TextKeys::default() };
    let (mut sets, mut bands) = (Sets::default(), Vec::new());
    rule.unsorted(text, &mut sets);
    let both = sets.present().count() == 2;
    for (kind, set) in sets.present() {
        let sketch = SmallSketch::new(kind, set, both);
        sketch.put_among(&mut of_text.sketches);
        bands.clear();
        minhash.bands(set, &mut bands);
        of_text.keys.extend((0..).zip(&bands).map(|(pass, &band)| {
            let key = BandSearch::kept_key(&pass, &(band, (DocId(0), sketch)));
            KeyOfPass { pass, key, sketch }
        }));
    }
    of_text.keys.sort_by_key(|of| of.pass);
    of_text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::Spec;
    use crate::text::document_frequencies::Statistics;
    use crate::text::features::Lexicon;

    fn keys(spec: &str) -> Option<(KeptKeys, Method)> {
        let spec: Spec = spec.parse().unwrap();
        let method = spec.method(&Lexicon::default(), &Statistics::default(), None).unwrap();
        Some((KeptKeys::new(&method, Secret::of_words([1, 2]))?, method))
    }

    /// Two texts meet by their kept keys exactly when the search of the method makes them a candidate, but for the
    /// sieve.
    #[test]
    fn texts_meet_as_in_the_batch_search() {
        let texts = [
            "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。",
            "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知几何。",
            "春眠不觉晓，处处闻鸟啼。",
            "床前明月光，疑是地上霜。举头望明月，低头思故乡。",
            "abc",
        ];
        let mut met = 0;
        for spec in [
            "simhash:features=char:2",
            "simhash:bits=128,hamming=15,features=char:1",
            "auto",
            "minhash",
            "exact",
        ] {
            let (mut kept, mut method) = keys(spec).unwrap();
            for a in texts {
                for b in texts {
                    let (of_a, of_b) = (kept.of(a), kept.of(b));
                    let meets = of_a.keys.iter().any(|a| {
                        let (first, last) = kept.range(a.pass, a.key);
                        let distance = |b: &KeyOfPass| (a.key ^ b.key).count_ones();
                        let near = |b: &KeyOfPass| kept.distance().is_none_or(|most| distance(b) <= most);
                        let of_pass = of_b.keys.iter().filter(|b| b.pass == a.pass);
                        of_pass.filter(|b| (first..=last).contains(&b.key) && near(b)).count() > 0
                    });
                    let (keys_a, keys_b) = (method.keys(a), method.keys(b));
                    let candidate = method.are_candidates(&keys_a, &keys_b);
                    assert_eq!(
                        meets || of_a.identity == of_b.identity,
                        candidate || a == b,
                        "{spec} {a} {b}"
                    );
                    met += usize::from(meets && a != b);
                    if meets {
                        assert!(of_a.keys.iter().all(|of| a != b || kept.may_match(of, of_b.sketches)));
                    }
                }
            }
        }
        assert!(met > 2, "{met}");
    }

    #[test]
    fn methods_without_lasting_keys_are_refused() {
        for spec in ["jaccard:0.8", "zhou2017"] {
            assert!(keys(spec).is_none());
        }
    }
}
