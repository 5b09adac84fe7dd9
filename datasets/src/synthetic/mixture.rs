//! A synthetic corpus as hard as a crawl: posts and reposts, headlines, reports of one template, a family of near-equal pages, news, and
//! long articles in several editions.

use super::posts::PostMaker;
use super::{
    ARTICLE, BLOCK, Maker, NEWS, Random, SyntheticDoc, SyntheticKind, edited, numbers_of_block, respaced,
    seed_of_block,
};

/// A corpus that is the same for the same parameters, on any machine. It stands in for corpora that have no public address:
/// most documents are short, one in twelve repeats another one as it is, and long articles have most of the text.
///
/// | share | kind | duplicates |
/// |---|---|---|
/// | 52 % | `post`: 5 to 80 characters | three in ten bring an earlier message again, as in [`SyntheticPosts`](super::SyntheticPosts) |
/// | 16 % | `title`: a headline of 6 to 20 characters | a quarter are copies |
/// | 12 % | `news`: 150 to 800 characters | a seventh are copies, a tenth edited |
/// | 8 % | `report`: one of 40 templates with other numbers | none |
/// | 6 % | `page`: one text of 120 characters of which two differ | all but those that differ most are near-equal to some other |
/// | 6 % | `article`: 800 to 8,000 characters | half are later editions of an earlier one |
#[derive(Clone, Copy, Debug)]
pub struct SyntheticMixture {
    /// Number of documents.
    pub documents: u64,
    /// Seed of the random numbers. Another seed gives another corpus.
    pub seed: u64,
}

/// Number of documents of each kind that may be repeated at a time.
const WINDOW: usize = 512;
/// Number of templates of reports.
const TEMPLATES: usize = 40;
const TITLE: SyntheticKind = SyntheticKind { name: "title", least_chars: 6, most_chars: 16 };
const LONG: SyntheticKind = SyntheticKind { name: ARTICLE.name, least_chars: 800, most_chars: 7_000 };
const REPORT: SyntheticKind = SyntheticKind { name: "report", least_chars: 30, most_chars: 60 };
const PAGE: SyntheticKind = SyntheticKind { name: "page", least_chars: 118, most_chars: 118 };

/// An earlier document: its id and its text.
type EarlierText = (String, String);

impl SyntheticMixture {
    /// Returns the documents in order; each duplicate comes after its original. Memory: some MB.
    pub fn docs(self) -> impl Iterator<Item = SyntheticDoc> {
        (0..self.blocks()).flat_map(move |block| self.block(block))
    }

    /// Returns the number of blocks.
    pub fn blocks(self) -> u64 {
        self.documents.div_ceil(BLOCK)
    }

    /// Returns the documents of a block, in order. It repeats none of another block but templates and the page of the family, so that
    /// blocks can be made beside each other.
    pub fn block(self, block: u64) -> impl Iterator<Item = SyntheticDoc> {
        let mut texts = Maker::new(Random(self.seed));
        let templates = (0..TEMPLATES)
            .map(|_| std::array::from_fn(|_| texts.text(REPORT).replace(|c: char| c.is_ascii_digit(), "")));
        let templates = templates.collect();
        let page = texts.text(PAGE);
        let seed = seed_of_block(self.seed, block);
        if block > 0 {
            texts.random = Random(seed);
        }
        let posts = PostMaker::new(seed ^ 1);
        let mut maker = MixtureMaker {
            texts,
            posts,
            templates,
            page,
            titles: Vec::new(),
            news: Vec::new(),
            articles: Vec::new(),
            messages: Vec::new(),
        };
        numbers_of_block(self.documents, block).map(move |number| maker.doc(number))
    }
}

struct MixtureMaker {
    texts: Maker,
    posts: PostMaker,
    /// The three fixed parts of each template.
    templates: Vec<[String; 3]>,
    page: String,
    titles: Vec<EarlierText>,
    news: Vec<EarlierText>,
    articles: Vec<EarlierText>,
    /// The id of the first post of each message.
    messages: Vec<Option<String>>,
}

impl MixtureMaker {
    fn doc(&mut self, number: u64) -> SyntheticDoc {
        match self.texts.random.below(100) {
            0..52 => self.post(number),
            52..68 => self.title(number),
            68..80 => self.news(number),
            80..88 => self.report(number),
            88..94 => self.page(number),
            _ => self.article(number),
        }
    }

    fn post(&mut self, number: u64) -> SyntheticDoc {
        let post = self.posts.post(number);
        let message = post.message as usize;
        self.messages.resize(self.messages.len().max(message + 1), None);
        let first = &mut self.messages[message];
        let duplicate = first.clone().map(|first| (first, "message"));
        first.get_or_insert_with(|| post.id.clone());
        SyntheticDoc { id: post.id, text: post.text, duplicate }
    }

    fn title(&mut self, number: u64) -> SyntheticDoc {
        let copied = self.texts.random.below(4) == 0;
        let id = format!("{}-{number:07}", TITLE.name);
        if copied && let Some((first, text)) = pick(&mut self.texts.random, &self.titles) {
            return SyntheticDoc { id, text: text.clone(), duplicate: Some((first.clone(), "identical")) };
        }
        let text = self.texts.text(TITLE);
        self.texts.random.keep(&mut self.titles, WINDOW, (id.clone(), text.clone()));
        SyntheticDoc { id, text, duplicate: None }
    }

    fn news(&mut self, number: u64) -> SyntheticDoc {
        let choice = self.texts.random.below(100);
        let id = format!("{}-{number:07}", NEWS.name);
        let earlier = pick(&mut self.texts.random, &self.news).cloned();
        if let Some((first, text)) = earlier.filter(|_| choice < 24) {
            let random = &mut self.texts.random;
            let (how, text) = match choice {
                0..10 => ("identical", text),
                10..14 => ("whitespace", respaced(random, &text)),
                _ => ("edited", edited(random, &text)),
            };
            return SyntheticDoc { id, text, duplicate: Some((first, how)) };
        }
        let text = self.texts.text(NEWS);
        self.texts.random.keep(&mut self.news, WINDOW, (id.clone(), text.clone()));
        SyntheticDoc { id, text, duplicate: None }
    }

    fn report(&mut self, number: u64) -> SyntheticDoc {
        let random = &mut self.texts.random;
        let [head, middle, tail] = &self.templates[random.below(TEMPLATES)];
        let mut figure = |most: usize| random.between(100, most);
        let text = format!("{head}{}{middle}{}{tail}{}", figure(9_999), figure(99_999), figure(999_999));
        SyntheticDoc { id: format!("{}-{number:07}", REPORT.name), text, duplicate: None }
    }

    /// Returns a page of the family. Whether two of it are near depends on the places that differ, so none is said to be a duplicate.
    fn page(&mut self, number: u64) -> SyntheticDoc {
        let mut text: Vec<char> = self.page.chars().collect();
        for _ in 0..2 {
            let word = self.texts.random.word(&self.texts.words).chars().next();
            let at = self.texts.random.below(text.len());
            text[at] = word.unwrap_or('的');
        }
        let id = format!("{}-{number:07}", PAGE.name);
        SyntheticDoc { id, text: text.into_iter().collect(), duplicate: None }
    }

    /// Returns an article, or a later edition of one: some of its clauses are left out, and some are new.
    fn article(&mut self, number: u64) -> SyntheticDoc {
        let id = format!("{}-{number:07}", LONG.name);
        let edition = self.texts.random.below(2) == 0;
        let earlier = pick(&mut self.texts.random, &self.articles).cloned();
        if let Some((first, text)) = earlier.filter(|_| edition) {
            let mut later = String::new();
            for clause in text.split_inclusive('。') {
                match self.texts.random.below(40) {
                    0 => {}
                    1 => later += &(self.texts.text(TITLE) + clause),
                    _ => later += clause,
                }
            }
            return SyntheticDoc { id, text: later, duplicate: Some((first, "edition")) };
        }
        let text = self.texts.text(LONG);
        self.texts.random.keep(&mut self.articles, WINDOW, (id.clone(), text.clone()));
        SyntheticDoc { id, text, duplicate: None }
    }
}

/// Returns one of the earlier documents, if there are any.
fn pick<'e>(random: &mut Random, earlier: &'e [EarlierText]) -> Option<&'e EarlierText> {
    if earlier.is_empty() { None } else { Some(&earlier[random.below(earlier.len())]) }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use super::*;

    #[test]
    fn the_mixture_has_the_kinds_it_says_and_each_duplicate_comes_after_its_original() {
        let docs: Vec<SyntheticDoc> = SyntheticMixture { documents: 20_000, seed: 1 }.docs().collect();
        assert_eq!(docs[..500], SyntheticMixture { documents: 500, seed: 1 }.docs().collect::<Vec<_>>());
        let (mut kinds, mut seen) = (BTreeMap::<&str, u64>::new(), HashMap::new());
        let (mut identical, mut duplicates) = (0, 0);
        let mut texts = HashMap::new();
        for doc in &docs {
            *kinds.entry(doc.id.split('-').next().unwrap()).or_default() += 1;
            identical += u64::from(texts.insert(doc.text.as_str(), ()).is_some());
            if let Some((first, how)) = &doc.duplicate {
                let first: &SyntheticDoc = seen[first.as_str()];
                duplicates += 1;
                assert!(*how != "identical" || first.text == doc.text, "{doc:?}");
            }
            assert!(seen.insert(doc.id.as_str(), doc).is_none(), "{} twice", doc.id);
        }
        let shares = ["article", "news", "page", "post", "report", "title"].map(|kind| kinds[kind] / 200);
        assert!(
            shares
                .iter()
                .zip([6, 12, 6, 52, 8, 16])
                .all(|(share, wanted): (&u64, u64)| share.abs_diff(wanted) <= 1),
            "{kinds:?}"
        );
        assert!((1_500..1_800).contains(&identical), "{identical}");
        assert!((5_000..8_000).contains(&duplicates), "{duplicates}");
    }
}
