//! Synthetic posts of some twenty characters, as of a microblog, in which it is known what brings the same message.

use super::{ADDED, Random, WORDS};

/// A corpus of posts that is the same for the same parameters, on any machine.
///
/// | share | kind |
/// |---|---|
/// | 64 % | a new message of 2 to 9 words |
/// | 12 % | an earlier message with the tail of a repost, `//@name:words` |
/// | 6 % | an earlier message with an emoji, a link or a name |
/// | 6 % | an earlier message with a word more |
/// | 6 % | an earlier message as it is |
/// | 6 % | a check-in: a fixed phrase with another place, which is a message of its own |
#[derive(Clone, Copy, Debug)]
pub struct SyntheticPosts {
    /// Number of posts.
    pub posts: u64,
    /// Seed of the random numbers. Another seed gives another corpus.
    pub seed: u64,
}

/// A post of [`SyntheticPosts`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntheticPost {
    /// Its number in the corpus, from 1, such as `post-0000017`.
    pub id: String,
    /// Text of 5 to 80 characters.
    pub text: String,
    /// Number of the message that it brings. Posts of one message are near-duplicates, and others are not.
    pub message: u64,
}

/// Number of messages that may come again at a time.
const WINDOW: usize = 2_048;
/// Names of people.
const NAMES: [&str; 8] = ["小明", "阿花", "老王", "Lily", "大宝", "北京小吃", "旅行者", "静静"];
/// Emoji as microblogs write them.
const EMOJI: [&str; 6] = ["[笑]", "[太阳]", "[泪]", "[心]", "[good]", "[哈哈]"];

impl SyntheticPosts {
    /// Returns the posts in order. Memory: 2,048 messages.
    pub fn posts(self) -> impl Iterator<Item = SyntheticPost> {
        let mut maker = PostMaker::new(self.seed);
        (1..=self.posts).map(move |number| maker.post(number))
    }
}

pub(super) struct PostMaker {
    random: Random,
    words: Vec<&'static str>,
    /// Characters of which rare words are made.
    chars: Vec<char>,
    /// Messages that may come again, by their numbers.
    window: Vec<(u64, String)>,
    messages: u64,
}

impl PostMaker {
    pub fn new(seed: u64) -> Self {
        let words: Vec<&str> = WORDS.split_whitespace().collect();
        let chars = words.concat().chars().collect();
        PostMaker { random: Random(seed), words, chars, window: Vec::new(), messages: 0 }
    }

    pub fn post(&mut self, number: u64) -> SyntheticPost {
        let choice = self.random.below(100);
        let id = format!("post-{number:07}");
        if choice < 70 || self.window.is_empty() {
            let text = if choice < 64 { self.message() } else { self.check_in() };
            self.messages += 1;
            let new = (self.messages, text.clone());
            self.random.keep(&mut self.window, WINDOW, new);
            return SyntheticPost { id, text, message: self.messages };
        }
        let (message, text) = self.window[self.random.below(self.window.len())].clone();
        let text = match choice {
            70..82 => self.reposted(&text),
            82..88 => self.decorated(&text),
            88..94 => self.lengthened(&text),
            _ => text,
        };
        SyntheticPost { id, text, message }
    }

    fn word(&mut self) -> String {
        match self.random.below(40) {
            0 => format!("{}年", self.random.between(1978, 2024)),
            1 => self.random.between(2, 9_999).to_string(),
            2..12 => (0..2).map(|_| self.chars[self.random.below(self.chars.len())]).collect(),
            _ => self.random.word(&self.words).to_owned(),
        }
    }

    fn message(&mut self) -> String {
        let clauses = self.random.between(1, 3);
        let mut text = String::new();
        for clause in 0..clauses {
            if clause > 0 {
                text.push('，');
            }
            (0..self.random.between(2, 5)).for_each(|_| text += &self.word());
        }
        text.push(['。', '！', '？', '~'][self.random.below(4)]);
        text
    }

    fn check_in(&mut self) -> String {
        let place = self.word() + &self.word();
        format!("我在{place}签到，大家快来看看")
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.random.below(NAMES.len())]
    }

    fn reposted(&mut self, text: &str) -> String {
        let mut reposted = text.to_owned();
        for _ in 0..self.random.between(1, 3) {
            let (name, word) = (self.name(), self.word());
            reposted += &format!("//@{name}:{word}");
        }
        reposted
    }

    fn decorated(&mut self, text: &str) -> String {
        match self.random.below(3) {
            0 => format!("{text}{}", EMOJI[self.random.below(EMOJI.len())]),
            1 => format!("{text}http://t.cn/{:x}", self.random.next() >> 40),
            _ => format!("@{} {text}", self.name()),
        }
    }

    fn lengthened(&mut self, text: &str) -> String {
        let words: Vec<&str> = ADDED.split_whitespace().collect();
        format!("{}{text}", words[self.random.below(words.len())])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn posts_are_short_and_messages_come_again() {
        let posts: Vec<_> = SyntheticPosts { posts: 5_000, seed: 1 }.posts().collect();
        let chars: usize = posts.iter().map(|post| post.text.chars().count()).sum();
        assert!((17..24).contains(&(chars / posts.len())), "{}", chars / posts.len());
        let mut first: HashMap<u64, &SyntheticPost> = HashMap::new();
        let mut again = 0;
        for post in &posts {
            let first = first.entry(post.message).or_insert(post);
            again += usize::from(first.id != post.id);
            assert!(
                post.text.contains(&first.text) || first.text.chars().count() > 3,
                "{post:?} of {first:?}"
            );
        }
        assert!((1_300..1_700).contains(&again), "{again} of {}", posts.len());
        let ids: Vec<&String> = posts.iter().map(|post| &post.id).collect();
        assert!(ids.is_sorted());
    }

    #[test]
    fn the_same_seed_gives_the_same_posts() {
        let posts = |posts, seed| SyntheticPosts { posts, seed }.posts().collect::<Vec<_>>();
        assert_eq!(posts(300, 7)[..100], posts(100, 7));
        assert_ne!(posts(300, 7), posts(300, 8));
    }
}
