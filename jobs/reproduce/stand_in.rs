//! Generated corpora in the place of those of the papers, which could not be had.

use std::collections::HashMap;

use anyhow::{Result, bail};
use cluster::{Stores, text_of_path};
use datasets::{Synthetic, SyntheticPost, SyntheticPosts};
use operators::hash;
use serde_json::json;

use super::trials::Trials;
use crate::commands::labels::{JudgedPair, LabelOptions, Labels, Truth};
use batch::finished::Finished;
use runtime::cli::exit::WrongUse;
use runtime::cli::values::text_of_file;
use runtime::progress::Progress;

/// A generated corpus of posts, with what is known of each.
pub(super) struct Posts(Vec<SyntheticPost>);

impl Posts {
    pub fn new(posts: u64, seed: u64) -> Self {
        Posts(SyntheticPosts { posts, seed }.posts().collect())
    }

    /// Returns the first ones as JSON lines.
    pub fn json_lines(&self, first: usize) -> String {
        let line = |post: &SyntheticPost| format!("{}\n", json!({"id": post.id, "text": post.text}));
        self.0[..first.min(self.0.len())].iter().map(line).collect()
    }

    /// Returns the mean number of characters of a post.
    pub fn mean_chars(&self) -> f64 {
        let chars: usize = self.0.iter().map(|post| post.text.chars().count()).sum();
        chars as f64 / self.0.len().max(1) as f64
    }

    /// Returns the number of the message that a post brings. Posts of one message are duplicates.
    pub fn message(&self, id: &str) -> Option<u64> {
        let at = self.0.binary_search_by(|post| post.id.as_str().cmp(id)).ok()?;
        Some(self.0[at].message)
    }
}

/// Pairs of texts, each with whether the two are duplicates.
pub(super) struct LabelledTexts {
    pub pairs: Vec<(String, String, bool)>,
}

impl LabelledTexts {
    /// Reads labelled pairs of the corpus of the user.
    pub fn of_user(trials: &mut Trials, file: &str) -> Result<Self> {
        let labels = Labels::parse(file, &text_of_file(file)?, &LabelOptions::default())?;
        let Truth::Judged(judged) = &labels.truth else {
            bail!(WrongUse(format!("\"{file}\" does not say of pairs whether they are the same")));
        };
        let inputs = trials.quoted_input()?;
        let output = trials.work("read");
        trials.command(&format!("dedup {inputs} {output} --overwrite --quiet --method exact"), false)?;
        let finished =
            Finished::open(&Stores::new(), &text_of_path(trials.folder().join(&output).as_os_str()))?;
        let ids: Vec<&str> = labels.ids.iter().map(String::as_str).collect();
        let documents = finished.input(1)?.with_ids(&ids, &Progress::default())?;
        let texts: HashMap<_, _> =
            documents.into_iter().map(|document| (document.id, document.text)).collect();
        let text = |number: u32| texts.get(&labels.ids[number as usize]).cloned();
        let pair = |pair: &JudgedPair| Some((text(pair.docs.0)?, text(pair.docs.1)?, pair.same));
        Ok(LabelledTexts { pairs: judged.iter().filter_map(pair).collect() })
    }
}

/// Returns a generated text of `chars` characters.
pub(super) fn article_of(chars: usize, seed: u64) -> Vec<char> {
    let docs = Synthetic { documents: u64::MAX, seed }.docs().filter(|doc| doc.duplicate.is_none());
    docs.flat_map(|doc| doc.text.chars().collect::<Vec<_>>()).take(chars).collect()
}

/// Draws `count` pairs of posts that bring the same message, and as many that do not.
pub(super) fn labelled_posts(count: usize, seed: u64) -> LabelledTexts {
    let posts = Posts::new(20 * count as u64, seed).0;
    let mut first: HashMap<u64, &SyntheticPost> = HashMap::new();
    let mut pairs = Vec::new();
    for (at, post) in posts.iter().enumerate() {
        match first.get(&post.message) {
            Some(earlier) if earlier.text != post.text && pairs.len() < 2 * count => {
                pairs.push((earlier.text.clone(), post.text.clone(), true));
                let stranger = &posts[hash::spread(at as u64) as usize % posts.len()];
                pairs.push((post.text.clone(), stranger.text.clone(), stranger.message == post.message));
            }
            _ => drop(first.insert(post.message, post)),
        }
    }
    LabelledTexts { pairs }
}

/// The same of articles with small changes.
pub(super) fn labelled_articles(count: usize, seed: u64) -> LabelledTexts {
    let mut texts: Vec<(String, String)> = Vec::new();
    let mut pairs = Vec::new();
    for doc in (Synthetic { documents: 60 * count as u64, seed })
        .docs()
        .filter(|doc| doc.text.chars().count() >= 500)
    {
        if let Some((original, how)) = &doc.duplicate
            && *how == "edited"
            && let Some((_, text)) = texts.iter().find(|(id, _)| id == original)
        {
            pairs.push((text.clone(), doc.text.clone(), true));
            let stranger = &texts[hash::spread(pairs.len() as u64) as usize % texts.len()];
            pairs.push((doc.text.clone(), stranger.1.clone(), stranger.0 == *original));
        }
        if pairs.len() >= 2 * count {
            break;
        }
        texts.push((doc.id, doc.text));
        if texts.len() > 2_048 {
            texts.remove(0);
        }
    }
    LabelledTexts { pairs }
}

/// Returns a generated text of a class, which has 1.5 times `least` to 4.5 times `least` characters. Two thirds of it are like any
/// other, and the rest is of words of the class.
pub(super) fn class_text(class: u64, number: u64, least: u64, seed: u64) -> String {
    const WORDS_OF_CLASS: u64 = 60;
    let random = hash::spread(seed ^ hash::spread(number));
    let general = article_of((least + random % (2 * least)) as usize, random);
    let mut text = String::new();
    for (at, piece) in (0..).zip(general.chunks(4)) {
        text.extend(piece);
        let word = hash::spread((class << 32) | (hash::spread(random ^ at) % WORDS_OF_CLASS));
        let chars =
            [word, word >> 32].map(|bits| char::from_u32(0x4E00 + (bits % 3_000) as u32).unwrap_or('文'));
        text.extend(chars);
    }
    text
}
