//! Synthetic Chinese corpora in which the near-duplicates are known.

mod grams;
mod mixture;
mod posts;
mod random;

pub use mixture::SyntheticMixture;
pub use posts::{SyntheticPost, SyntheticPosts};

use std::ops::RangeInclusive;

use grams::Grams;
use random::Random;

/// A corpus that is the same for the same parameters, on any machine.
///
/// Each document is of one of these kinds, chosen at random:
///
/// | share | kind |
/// |---|---|
/// | about 71 % | a new text |
/// | 10 % | a copy of an earlier document (`identical`) |
/// | 7 % | a copy in other widths and with spaces, which cleaning removes (`whitespace`) |
/// | 8 % | a copy with small changes (`edited`) |
/// | 4 % | a decoy: pieces of an earlier document in another order, which is no near-duplicate |
#[derive(Clone, Copy, Debug)]
pub struct Synthetic {
    /// Number of documents.
    pub documents: u64,
    /// Seed of the random numbers. Another seed gives another corpus.
    pub seed: u64,
}

/// One document of a [`Synthetic`] corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntheticDoc {
    /// Its kind (such as `post`, `news` or `article`) and its number in the corpus, such as `post-0000017`.
    pub id: String,
    /// Text; of a [`Synthetic`] corpus 20 to 2,100 characters.
    pub text: String,
    /// Id of the earlier document that it repeats, and how: `identical`, `whitespace` or `edited`, and in a [`SyntheticMixture`] also
    /// `message` or `edition`.
    pub duplicate: Option<(String, &'static str)>,
}

/// Number of documents of a block: those that are made from one state of random numbers.
const BLOCK: u64 = 20_000;
/// Number of documents that may be repeated at a time; about 1 MB.
const WINDOW: usize = 1024;
/// Least similarity of an edited document to its original, as a fraction.
const EDITED: (usize, usize) = (4, 5);
/// Bound below which the similarity of a decoy to its original must lie, as a fraction.
const DECOY: (usize, usize) = (1, 2);

impl Synthetic {
    /// Returns the documents in order; each duplicate comes after its original. Memory: 1,024 documents.
    pub fn docs(self) -> impl Iterator<Item = SyntheticDoc> {
        (0..self.blocks()).flat_map(move |block| self.block(block))
    }

    /// Returns the number of blocks.
    pub fn blocks(self) -> u64 {
        self.documents.div_ceil(BLOCK)
    }

    /// Returns the documents of a block, in order. It repeats none of another block, so that blocks can be made beside each other.
    pub fn block(self, block: u64) -> impl Iterator<Item = SyntheticDoc> {
        let mut maker = Maker::new(Random(seed_of_block(self.seed, block)));
        numbers_of_block(self.documents, block).map(move |number| maker.doc(number))
    }
}

/// Returns the numbers of the documents of a block. The first document is number 1.
fn numbers_of_block(documents: u64, block: u64) -> RangeInclusive<u64> {
    let before = block * BLOCK;
    before + 1..=before.saturating_add(BLOCK).min(documents)
}

/// Returns the seed of a block: the first has that of the corpus, so small corpora are the same whatever the length of a block is.
fn seed_of_block(seed: u64, block: u64) -> u64 {
    if block == 0 { seed } else { Random(seed ^ Random(block).next()).next() }
}

#[derive(Clone, Copy)]
struct SyntheticKind {
    name: &'static str,
    least_chars: usize,
    most_chars: usize,
}

const POST: SyntheticKind = SyntheticKind { name: "post", least_chars: 20, most_chars: 130 };
const NEWS: SyntheticKind = SyntheticKind { name: "news", least_chars: 150, most_chars: 800 };
const ARTICLE: SyntheticKind = SyntheticKind { name: "article", least_chars: 800, most_chars: 1_940 };

struct Original {
    id: String,
    kind: SyntheticKind,
    text: String,
}

struct Maker {
    random: Random,
    words: Vec<&'static str>,
    window: Vec<Original>,
}

impl Maker {
    fn new(random: Random) -> Self {
        Maker { random, words: WORDS.split_whitespace().collect(), window: Vec::new() }
    }

    fn doc(&mut self, number: u64) -> SyntheticDoc {
        let choice = self.random.below(100);
        if choice < 71 || self.window.is_empty() {
            return self.original(number);
        }
        let at = self.random.below(self.window.len());
        let Original { id, kind, text } = &self.window[at];
        let (how, text) = match choice {
            71..81 => ("identical", text.clone()),
            81..88 => ("whitespace", respaced(&mut self.random, text)),
            88..96 => ("edited", edited(&mut self.random, text)),
            _ => match shuffled(&mut self.random, text) {
                Some(text) => {
                    return SyntheticDoc { id: format!("{}-{number:07}", kind.name), text, duplicate: None };
                }
                None => return self.original(number),
            },
        };
        SyntheticDoc { id: format!("{}-{number:07}", kind.name), text, duplicate: Some((id.clone(), how)) }
    }

    fn original(&mut self, number: u64) -> SyntheticDoc {
        let kind = match self.random.below(10) {
            0..6 => POST,
            6..9 => NEWS,
            _ => ARTICLE,
        };
        let id = format!("{}-{number:07}", kind.name);
        let text = self.text(kind);
        let original = Original { id: id.clone(), kind, text: text.clone() };
        self.random.keep(&mut self.window, WINDOW, original);
        SyntheticDoc { id, text, duplicate: None }
    }

    fn text(&mut self, kind: SyntheticKind) -> String {
        let wanted = self.random.between(kind.least_chars, kind.most_chars);
        let mut text = String::new();
        let mut chars = 0;
        let mut clauses = 0;
        while chars < wanted {
            if clauses > 0 {
                let end = ["，", "，", "，", "。", "。", "！", "？", "；"][self.random.below(8)];
                text.push_str(end);
                chars += 1;
                if end == "。" && kind.name == ARTICLE.name && self.random.below(5) == 0 {
                    text.push('\n');
                    chars += 1;
                }
            }
            for _ in 0..self.random.between(2, 6) {
                let from = text.len();
                match self.random.below(40) {
                    0 => text.push_str(&format!("{}年", self.random.between(1978, 2024))),
                    1 => text.push_str(&format!("{}", self.random.between(2, 9_999))),
                    _ => text.push_str(self.random.word(&self.words)),
                }
                chars += text[from..].chars().count();
            }
            clauses += 1;
        }
        text.push('。');
        text
    }
}

/// Returns the text in other widths and with spaces, otherwise unchanged.
fn respaced(random: &mut Random, text: &str) -> String {
    let mut changed = String::new();
    for char in text.chars() {
        let other = match char {
            '！' | '，' | '；' | '？' => char::from_u32(char as u32 - 0xfee0),
            '!'..='~' => char::from_u32(char as u32 + 0xfee0),
            _ => None,
        };
        changed.push(other.filter(|_| random.below(2) == 0).unwrap_or(char));
        if !char.is_alphanumeric() && random.below(2) == 0 {
            changed.push_str([" ", "\u{3000}", "  ", "\n"][random.below(4)]);
        }
    }
    changed.push('\u{3000}'); // in case nothing else has changed
    changed
}

/// Returns the text with some words added. (A word in place of another may say something else, and the text would be no
/// duplicate for its reader.) Tries fewer and fewer additions until the result is similar enough.
fn edited(random: &mut Random, text: &str) -> String {
    let words: Vec<&str> = ADDED.split_whitespace().collect();
    let original: Vec<char> = text.chars().collect();
    let grams = Grams::new(text);
    // A changed character costs up to five grams on each side of the fraction.
    for edits in (1..=random.between(1, 1 + original.len() / 45)).rev() {
        let mut changed = original.clone();
        for _ in 0..edits {
            let at = random.below(changed.len());
            let word = random.word(&words).chars();
            // A number stays one number.
            let number = |at: usize| changed.get(at).is_some_and(char::is_ascii_digit);
            if !number(at) {
                changed.splice(at..at, word.take(2));
            }
        }
        let changed: String = changed.into_iter().collect();
        if changed != text && grams.reach(&Grams::new(&changed), EDITED) {
            return changed;
        }
    }
    // One more character at the end costs one gram.
    format!("{text}{}", ['哈', '啊', '呀', '啦'][random.below(4)])
}

/// Returns pieces of the text in another order, or `None` when the result is too similar to the text.
fn shuffled(random: &mut Random, text: &str) -> Option<String> {
    let chars: Vec<char> = text.chars().collect();
    let piece_chars = random.between(3, 5);
    let mut pieces: Vec<&[char]> = chars.chunks(piece_chars).collect();
    for last in (1..pieces.len()).rev() {
        pieces.swap(last, random.below(last + 1));
    }
    let shuffled: String = pieces.concat().into_iter().collect();
    (!Grams::new(text).reach(&Grams::new(&shuffled), DECOY)).then_some(shuffled)
}

/// Words that an edited document has more than its original.
const ADDED: &str =
    "很 也 都 就 可能 应该 比较 最后 慢慢 经常 其实 终于 今天 大家 还是 特别 真的 已经 后来 当时 马上";

/// Common words, roughly by how often they should come.
const WORDS: &str = "
的 了 是 在 我 有 和 就 不 人 都 一个 也 很 到 说 要 去 你 会 着 没有 看 好 自己 这 我们 他 那 今天
中国 时间 大家 可以 已经 问题 工作 现在 因为 所以 但是 如果 觉得 知道 生活 公司 朋友 孩子 市场 发展
经济 社会 国家 政府 北京 上海 记者 报道 表示 认为 进行 情况 同时 其中 通过 目前 昨天 明天 一起 真的
喜欢 开始 最后 非常 比较 可能 应该 需要 希望 发现 选择 影响 重要 不同 许多 起来 出来 之后 之前 为什么
什么 怎么 这样 那么 还是 只有 虽然 然而 于是 甚至 尤其 特别 终于 突然 慢慢 一直 从来 偶尔 经常 其实
学生 老师 学校 教育 大学 考试 成绩 课程 家长 医院 医生 病人 健康 药物 治疗 手术 疫苗 身体 心情 睡觉
早上 晚上 中午 周末 春天 夏天 秋天 冬天 天气 下雨 下雪 阳光 空气 污染 环境 保护 森林 河流 大海 高山
火车 地铁 飞机 汽车 公路 司机 交通 堵车 机场 车站 旅行 酒店 风景 照片 相机 手机 电脑 网络 软件 微博
电影 音乐 歌手 演员 导演 票房 小说 作者 读者 出版 故事 历史 文化 传统 艺术 博物馆 展览 节日 春节 中秋
足球 篮球 比赛 球员 教练 冠军 联赛 进球 球迷 训练 奥运会 世界杯 运动 跑步 游泳 银行 贷款 利率 股票
基金 投资 收入 工资 价格 上涨 下跌 房价 楼市 土地 建筑 装修 客户 产品 质量 品牌 广告 销售 消费者 超市
餐厅 米饭 面条 火锅 烤鸭 水果 蔬菜 牛奶 咖啡 茶叶 味道 好吃 便宜 新鲜 农民 粮食 丰收 村庄 县城 城市
法院 法律 法官 警察 案件 合同 赔偿 责任 权利 证据 调查 处理 规定 办法 会议 代表 主席 总理 部长 专家
研究 科学 技术 实验 数据 数学 物理 化学 卫星 火箭 太空 机器人 人工智能 互联网 电子商务 新能源 可持续发展
二氧化碳 高速铁路 国内生产总值 改革开放 供不应求 实事求是 一心一意 春暖花开 乱七八糟 哭笑不得 恍然大悟
爸爸 妈妈 爷爷 奶奶 哥哥 妹妹 结婚 生日 礼物 回家 搬家 钥匙 窗户 桌子 杯子 衣服 鞋子 颜色 红色 蓝色
NBA GDP iPhone CEO WiFi app
";

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn corpus(documents: u64, seed: u64) -> Vec<SyntheticDoc> {
        Synthetic { documents, seed }.docs().collect()
    }

    /// Computes the similarity by the simplest correct code: hash sets of substrings.
    fn jaccard(a: &str, b: &str) -> f64 {
        let grams = |text: &str| -> std::collections::HashSet<String> {
            let chars: Vec<char> = text.chars().collect();
            chars.windows(5).map(|gram| gram.iter().collect()).collect()
        };
        let (a, b) = (grams(a), grams(b));
        let common = a.intersection(&b).count();
        common as f64 / (a.len() + b.len() - common) as f64
    }

    fn pairs(docs: &[SyntheticDoc], kind: &str) -> Vec<(String, String)> {
        let mut texts = HashMap::new();
        let mut pairs = Vec::new();
        for doc in docs {
            if let Some((original, how)) = &doc.duplicate {
                let original: &String = texts.get(original).expect("the original comes first");
                if *how == kind {
                    pairs.push((original.clone(), doc.text.clone()));
                }
            }
            assert!(texts.insert(doc.id.clone(), doc.text.clone()).is_none(), "{} twice", doc.id);
        }
        assert!(pairs.len() > docs.len() / 20, "{} {kind}", pairs.len());
        pairs
    }

    #[test]
    fn the_same_seed_gives_the_same_corpus() {
        assert_eq!(corpus(300, 7), corpus(300, 7));
        assert_eq!(corpus(300, 7)[..100], corpus(100, 7));
        // More than one block is as good: a smaller corpus is the beginning of a larger one, and no block repeats another one.
        let two = corpus(2 * BLOCK - 5, 7);
        assert_eq!(two[..BLOCK as usize + 100], corpus(BLOCK + 100, 7));
        assert_ne!(two[BLOCK as usize].text, two[0].text);
        pairs(&two[BLOCK as usize..], "edited");
        assert_ne!(corpus(300, 7), corpus(300, 8));
    }

    #[test]
    fn documents_have_20_to_2100_characters() {
        for doc in corpus(5_000, 1) {
            let chars = doc.text.chars().count();
            assert!((20..=2_100).contains(&chars), "{} has {chars}", doc.id);
        }
    }

    #[test]
    fn identical_duplicates_have_the_text_of_their_original() {
        assert!(pairs(&corpus(5_000, 2), "identical").iter().all(|(a, b)| a == b));
    }

    #[test]
    fn other_widths_and_spaces_change_no_letter() {
        let letters = |text: &str| -> String {
            let narrow = text.chars().map(|char| match char {
                '！'..='～' => char::from_u32(char as u32 - 0xfee0).unwrap(),
                other => other,
            });
            narrow.filter(|char| char.is_alphanumeric()).collect()
        };
        for (a, b) in pairs(&corpus(5_000, 3), "whitespace") {
            assert_ne!(a, b);
            assert_eq!(letters(&a), letters(&b));
        }
    }

    #[test]
    fn edited_duplicates_stay_similar_to_their_original() {
        let docs = corpus(5_000, 4);
        let pairs = pairs(&docs, "edited");
        let similarities: Vec<f64> = pairs.iter().map(|(a, b)| jaccard(a, b)).collect();
        assert!(pairs.iter().all(|(a, b)| a != b));
        assert!(similarities.iter().all(|&similarity| similarity >= 0.8), "{similarities:?}");
        assert!(similarities.iter().any(|&similarity| similarity < 0.85));
    }

    #[test]
    fn unrelated_documents_are_not_similar() {
        let docs: Vec<_> = corpus(2_000, 5).into_iter().filter(|doc| doc.duplicate.is_none()).collect();
        let sets: Vec<_> = docs.iter().map(|doc| grams::grams(&doc.text, |_| true)).collect();
        let mut closest = 0.0f64;
        for (at, a) in sets.iter().enumerate() {
            for b in &sets[..at] {
                if a.len().min(b.len()) * 5 < a.len().max(b.len()) * 4 {
                    continue; // cannot reach .8
                }
                let common = grams::common(a, b);
                closest = closest.max(common as f64 / (a.len() + b.len() - common) as f64);
            }
        }
        assert!(closest < 0.8, "{closest}");
    }

    #[test]
    fn a_decoy_is_made_of_the_same_characters_and_not_similar() {
        let text: String = "今天的天气非常好，我们一起去北京看比赛。".repeat(2);
        let decoy = shuffled(&mut Random(1), &text).unwrap();
        let sorted = |text: &str| {
            let mut chars: Vec<char> = text.chars().collect();
            chars.sort_unstable();
            chars
        };
        assert_eq!(sorted(&decoy), sorted(&text));
        assert!(jaccard(&text, &decoy) < 0.5);
    }
}
