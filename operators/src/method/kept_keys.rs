//! Keys of single texts, for an index to which documents come one by one.

use super::Method;
use crate::hash::{Identity, Secret};
use crate::search::{FingerprintKeys, KeyedSearch, MappedText, SearchInputs, SearchVisitor, TextSearch};
use crate::sets::small_sketch::{SketchSieve, SmallSketch};
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
    /// Kept key, as [`KeyedSearch::kept_key`] makes it.
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
pub struct KeptKeys {
    maker: Box<dyn KeyMaker>,
    /// For each pass, the number of first bits on which keys must agree.
    key_bits: Vec<u32>,
    fingerprints: Option<FingerprintKeys>,
    sieve: Option<SketchSieve>,
}

impl Clone for KeptKeys {
    fn clone(&self) -> Self {
        let KeptKeys { maker, key_bits, fingerprints, sieve } = self;
        KeptKeys {
            maker: maker.boxed(),
            key_bits: key_bits.clone(),
            fingerprints: *fingerprints,
            sieve: sieve.clone(),
        }
    }
}

impl KeptKeys {
    /// Makes the keys of a method. `secret`: the secret of the identities. Returns `None` if the search of the method has
    /// no keys that can be kept, because they change with the corpus.
    pub fn new(method: &Method, secret: Secret) -> Option<Self> {
        method.search.visit(&method.context(SearchInputs::of_texts(secret)), MakeKeys)
    }

    /// Returns the least and the greatest key that meet a key of a pass.
    ///
    /// # Panics
    /// When there is no such pass.
    pub fn range(&self, pass: u32, key: u128) -> (u128, u128) {
        let rest = u128::MAX.checked_shr(self.key_bits[pass as usize]).unwrap_or(0);
        (key & !rest, key | rest)
    }

    /// Describes the fingerprints that the keys are made of; `None` without fingerprints.
    pub fn fingerprints(&self) -> Option<FingerprintKeys> {
        self.fingerprints
    }

    /// Returns the largest number of bits in which the fingerprints of a candidate differ; `None` without
    /// fingerprints.
    pub fn distance(&self) -> Option<u32> {
        self.fingerprints.map(|of| of.distance)
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
        self.fingerprints.is_some_and(|of| of.bits == u64::BITS) && self.key_bits == [16; 4]
    }

    /// Whether identities find equal texts that keys do not. Equal fingerprints have equal keys.
    pub fn need_identities(&self) -> bool {
        !self.fingerprints.is_some_and(|of| of.identify)
    }

    /// Whether sketches of texts are kept.
    pub fn has_sketches(&self) -> bool {
        self.sieve.is_some()
    }

    /// Returns the keys of a cleaned text. Cost: that of mapping the text.
    pub fn of(&mut self, text: &str) -> TextKeys {
        let of_text = self.maker.keys(text);
        match has_text(text) {
            true => of_text,
            // Without keys no other document meets it.
            false => TextKeys { is_empty: true, keys: Vec::new(), ..of_text },
        }
    }

    /// Returns the keys of a fingerprint of 64 bits that was made elsewhere; `None` if the method has none, or compares
    /// texts.
    pub fn of_fingerprint(&self, fingerprint: u64) -> Option<TextKeys> {
        self.maker.keys_of_fingerprint(fingerprint)
    }

    /// Returns the fingerprint of 64 bits whose key in the first pass this is; `None` if there is none, or texts are compared.
    pub fn fingerprint_of(&self, key: u128) -> Option<u64> {
        self.maker.fingerprint_of(key)
    }
}

/// Makes the keys of texts by a search: [`RecordKeys`], or [`IdentityKeys`] for `exact`.
trait KeyMaker: Send + Sync {
    fn keys(&mut self, text: &str) -> TextKeys;
    fn keys_of_fingerprint(&self, fingerprint: u64) -> Option<TextKeys>;
    fn fingerprint_of(&self, key: u128) -> Option<u64>;
    fn boxed(&self) -> Box<dyn KeyMaker>;
}

/// Keys of the records of a search.
struct RecordKeys<S: KeyedSearch> {
    search: S,
    passes: Vec<S::Pass>,
    /// Records of the last text.
    mapped: MappedText,
}

impl<S: KeyedSearch> RecordKeys<S> {
    /// Adds the key of a record in a pass, and its sketch if sketches are kept.
    fn add(&self, pass: usize, record: &S::Record, to: &mut TextKeys) {
        let sketch = self.search.sieve().map_or(SmallSketch::default(), |_| S::sketch(record));
        sketch.put_among(&mut to.sketches);
        let key = S::kept_key(&self.passes[pass], record);
        to.keys.push(KeyOfPass { pass: pass as u32, key, sketch });
    }
}

impl<S: KeyedSearch> KeyMaker for RecordKeys<S> {
    fn keys(&mut self, text: &str) -> TextKeys {
        self.mapped.map_again(&mut self.search, text.into());
        let mut keys = TextKeys { identity: self.mapped.identity(), ..TextKeys::default() };
        for (number, pass) in self.passes.iter().enumerate() {
            let records = self.mapped.records(S::section(pass));
            records.for_each(|record| self.add(number, &record, &mut keys));
        }
        keys
    }

    fn keys_of_fingerprint(&self, fingerprint: u64) -> Option<TextKeys> {
        let record = self.search.record_of(fingerprint)?;
        let mut keys = TextKeys { identity: (fingerprint, fingerprint), ..TextKeys::default() };
        (0..self.passes.len()).for_each(|number| self.add(number, &record, &mut keys));
        Some(keys)
    }

    fn fingerprint_of(&self, key: u128) -> Option<u64> {
        self.search.fingerprint_of(self.passes.first()?, key)
    }

    fn boxed(&self) -> Box<dyn KeyMaker> {
        let (search, passes) = (self.search.clone(), self.passes.clone());
        Box::new(RecordKeys { search, passes, mapped: MappedText::default() })
    }
}
/// Identities alone, for a search that finds only equal texts.
struct IdentityKeys<S> {
    search: S,
    /// Records of the last text.
    mapped: MappedText,
}

impl<S: TextSearch + Clone> KeyMaker for IdentityKeys<S> {
    fn keys(&mut self, text: &str) -> TextKeys {
        self.mapped.map_again(&mut self.search, text.into());
        TextKeys { identity: self.mapped.identity(), ..TextKeys::default() }
    }

    fn keys_of_fingerprint(&self, _: u64) -> Option<TextKeys> {
        None
    }

    fn fingerprint_of(&self, _: u128) -> Option<u64> {
        None
    }

    fn boxed(&self) -> Box<dyn KeyMaker> {
        Box::new(IdentityKeys { search: self.search.clone(), mapped: MappedText::default() })
    }
}

/// Makes the keys of a search, unless they change with the corpus.
struct MakeKeys;

impl SearchVisitor for MakeKeys {
    type Output = Option<KeptKeys>;

    fn visit<S: TextSearch + Clone>(self, search: S) -> Option<KeptKeys> {
        search.only_equal().then(|| KeptKeys {
            maker: Box::new(IdentityKeys { search, mapped: MappedText::default() }),
            key_bits: Vec::new(),
            fingerprints: None,
            sieve: None,
        })
    }

    fn visit_keyed<S: KeyedSearch>(self, search: S) -> Option<KeptKeys> {
        let passes = search.passes();
        Some(KeptKeys {
            key_bits: passes.iter().map(S::key_bits).collect(),
            fingerprints: search.fingerprints(),
            sieve: search.sieve().cloned(),
            maker: Box::new(RecordKeys { search, passes, mapped: MappedText::default() }),
        })
    }
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
            let (mut kept, method) = keys(spec).unwrap();
            let mut search = method.text_search();
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
                    let [mapped_a, mapped_b] = [a, b].map(|text| MappedText::new(&mut *search, text.into()));
                    let candidate = search.are_candidates(&mapped_a, &mapped_b);
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
