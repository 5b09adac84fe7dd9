//! Words that turn a statement round, and slips that leave it as it is.

use foldhash::HashSet;

use super::units::{TextUnit, UnitKind};
use crate::text::letters::char_set::CharSet;
use crate::text::letters::simplified::sound_alike;

/// Words that deny. Those of one character or of a script with spaces are units; the others are looked for in what differs.
const DENIALS: &str = "不 没 未 无 非 别 勿 莫 not no never none neither nor cannot without don doesn didn isn aren wasn weren won wouldn \
shouldn couldn нет не ни без нельзя nicht kein keine keinen nie pas jamais sans ne nunca sin tampoco não nem không chưa chẳng đừng \
inte ikke aldrig değil geen niet";
const DENIALS_OF_LETTERS: &[&str] =
    &["ไม่", "มิได้", "ない", "ませ", "なか", "なく", "ず", "않", "안", "못", "없", "아니"];
/// Denials of scripts whose words are told apart by white space, which is not compared: they are all that differs.
const WHOLE_DENIALS: &[&str] = &["لا", "لم", "لن", "ليس", "ليست", "غير", "ما", "नहीं", "न", "मत", "לא", "אין"];
/// Words that have a character of denial and deny nothing.
const HARMLESS: &[&str] = &[
    "特别",
    "分别",
    "区别",
    "级别",
    "性别",
    "个别",
    "差别",
    "告别",
    "别人",
    "别的",
    "别墅",
    "非常",
    "非洲",
    "未来",
    "无论",
    "无锡",
    "无线",
    "不过",
    "不断",
    "不仅",
    "不但",
    "不少",
    "不管",
    "不久",
    "不禁",
    "没收",
    "莫名",
    "莫斯科",
];
/// Words whose meaning is a denial.
const REFUSALS: &[&str] = &["禁止", "拒绝", "停止", "取消", "不再", "严禁", "谢绝"];

/// Words of which one means the opposite of the other, or another one of a row: days, seasons, directions.
const OPPOSITES: &str = "同意 反对,支持 反对,赞成 反对,上涨 下跌,涨 跌,升 降,增 减,增加 减少,买 卖,买入 卖出,允许 禁止,左 右,上 下,开 关,胜 负,赢 输,\
男 女,生 死,成功 失败,提前 推迟,提前 延后,早 晚,进 出,收入 支出,签收 退回,原告 被告,东 西,南 北,高 低,好 坏,好 差,快 慢,大 小,多 少,前 后,新 旧,真 假,\
有 无,有 没,冷 热,来 去,借 还,贵 便宜,正 负,正 反,强 弱,轻 重,长 短,宽 窄,远 近,难 易,安全 危险,合法 非法,公开 秘密,接受 拒绝,通过 驳回,阴 阳,内 外,\
开始 结束,开放 关闭,上午 下午,上午 晚上,昨天 今天,今天 明天,昨天 明天,春 夏,春 秋,春 冬,夏 秋,夏 冬,秋 冬,盈利 亏损,扩大 缩小,加强 削弱,入 出,涨 降,升 跌,\
录取 淘汰,合格 淘汰,获胜 落败,领先 落后,先 后,旺季 淡季,甲 乙,甲 丙,乙 丙,\
left right,up down,increase decrease,increased decreased,rise fall,rose fell,open closed,opened closed,buy sell,bought sold,before after,win \
lose,won lost,allow forbid,allowed forbidden,accept reject,accepted rejected,approved rejected,passed failed,succeeded failed,higher \
lower,more less,first last,north south,east west,hot cold,true false,yes no,on off,in out,male female,guilty innocent,monday tuesday,\
monday wednesday,monday thursday,monday friday,tuesday wednesday,tuesday thursday,tuesday friday,wednesday thursday,wednesday friday,\
thursday friday,saturday sunday,morning evening,вырос упал,выросли упали,открыт закрыт,увеличился уменьшился,купил продал";

/// Words that make a question of a statement, where they are all that differs.
const QUESTIONS: &[&str] =
    &["吗", "么", "吧", "か", "かな", "ไหม", "หรือไม่", "หรือเปล่า", "ли", "هل", "أ", "까", "나요", "니", "क्या"];

/// Words behind a name that say what it is the name of.
const KINDS_OF_NAMES: &str =
    "省 市 县 区 镇 乡 州 国 大学 学院 中学 小学 公司 集团 医院 银行 法院 university college county";

/// Particles, which colour a sentence and are added or omitted at will.
static PARTICLES: CharSet = CharSet::new("的了啊呀啦哦哇咯呢嘛哈呵唉哎嗯哟喔噢欸");

/// Characters that scanners and hands take for each other by their shape.
const ALIKE: &str = "己已巳 大太犬 未末 土士 人入 日曰 早旱 字宇 千干于 天夭 今令 鸟乌 免兔 栗粟 戊戌戍 崇祟 侯候 拔拨 折拆析 辩辨辫 帐账 那哪 王玉 木本 \
刀力 几九 贝见 午牛 田由甲 体休 住往 持特 待侍 治冶 刺剌 炙灸 斤斥 代伐 问间 闲闭 巨臣 园圆 摸模 清请情晴睛 抱泡 喝渴 狼狠 蓝篮 拣捡 壁璧 博搏 遣遗 幻幼 尤龙 \
洒酒 仓仑 沦沧 抢枪 竞竟 杨扬 场汤 稍捎 赚赔 即既 概慨 徒徙 汨汩 抡抢 孑孓 妹妺 市巿 祗祇 茶荼 亨享 卷券 恬怡 梁粱 含舍 苦若 拆折 厉历 副幅";

/// The tables of words, as tokens.
pub(super) struct WordTables {
    /// Sorted.
    denials: Vec<TextUnit>,
    /// Characters that refusals begin with, sorted.
    refusals: Vec<char>,
    /// Opposites, each pair in both orders.
    opposites: HashSet<(Vec<TextUnit>, Vec<TextUnit>)>,
    questions: HashSet<Vec<TextUnit>>,
    whole_denials: HashSet<Vec<TextUnit>>,
    alike: HashSet<(char, char)>,
    kinds_of_names: Vec<Vec<TextUnit>>,
}

impl WordTables {
    pub fn new() -> Self {
        let pairs = OPPOSITES.split(',').filter_map(|pair| pair.trim().split_once(' '));
        let both = pairs.flat_map(|(a, b)| [(tokens(a), tokens(b)), (tokens(b), tokens(a))]);
        let shapes = ALIKE.split_whitespace();
        let alike =
            shapes.flat_map(|group| group.chars().flat_map(move |a| group.chars().map(move |b| (a, b))));
        let mut denials: Vec<TextUnit> = DENIALS.split_whitespace().flat_map(tokens).collect();
        denials.sort_unstable();
        let mut refusals: Vec<char> = REFUSALS.iter().filter_map(|word| word.chars().next()).collect();
        refusals.sort_unstable();
        WordTables {
            denials,
            refusals,
            opposites: both.collect(),
            whole_denials: WHOLE_DENIALS.iter().map(|word| tokens(word)).collect(),
            questions: QUESTIONS.iter().map(|word| tokens(word)).collect(),
            alike: alike.collect(),
            kinds_of_names: KINDS_OF_NAMES.split_whitespace().map(tokens).collect(),
        }
    }

    /// Returns how often some units deny.
    pub fn denials(&self, units: &[TextUnit]) -> usize {
        let words = units.iter().filter(|unit| self.denials.binary_search(unit).is_ok()).count();
        let in_letters = units.iter().any(|unit| unit.kind() == UnitKind::Letter);
        let refuses = |unit: &TextUnit| unit.char().is_some_and(|c| self.refusals.binary_search(&c).is_ok());
        if words == 0 && !in_letters && !units.iter().any(refuses) {
            return 0;
        }
        let letters: String = units.iter().filter_map(|unit| unit.char()).collect();
        let of = |table: &[&str]| {
            let places = letters.char_indices().map(|(at, _)| &letters[at..]);
            places.map(|rest| table.iter().filter(|word| rest.starts_with(**word)).count()).sum::<usize>()
        };
        let harmless = if words > 0 { of(HARMLESS) } else { 0 };
        words.saturating_sub(harmless) + of(REFUSALS) + if in_letters { of(DENIALS_OF_LETTERS) } else { 0 }
    }

    /// Whether a stretch is a denial, with at most three letters of the form that the verb takes behind it.
    pub fn is_denial(&self, units: &[TextUnit]) -> bool {
        let denies = |denial: &Vec<TextUnit>| units.starts_with(denial) && units.len() <= denial.len() + 3;
        units.first().is_some_and(|unit| unit.kind() == UnitKind::Letter)
            && self.whole_denials.iter().any(denies)
    }

    /// Whether two stretches are opposites: as they stand, or with the same units around.
    pub fn are_opposite(&self, a: &[TextUnit], b: &[TextUnit]) -> bool {
        let shared = |a: &[TextUnit], b: &[TextUnit]| a.iter().zip(b).take_while(|(x, y)| x == y).count();
        let start = shared(a, b);
        let (a, b) = (&a[start..], &b[start..]);
        let end = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
        let (a, b) = (&a[..a.len() - end], &b[..b.len() - end]);
        // 上涨 and 下跌 may be aligned as 上 against 下 and 涨 against 跌.
        let whole = self.opposites.contains(&(a.to_vec(), b.to_vec()));
        whole
            || a.len() == b.len()
                && a.len() <= 2
                && a.iter().zip(b).all(|(&x, &y)| self.opposites.contains(&(vec![x], vec![y])))
    }

    /// Whether a stretch makes a question of the sentence.
    pub fn ask(&self, units: &[TextUnit]) -> bool {
        let word = |unit: &TextUnit| {
            unit.kind() == UnitKind::Word && self.questions.contains(std::slice::from_ref(unit))
        };
        self.questions.contains(units) || units.len() <= 3 && units.iter().any(word)
    }

    /// Whether units that follow a name say what it is the name of.
    pub fn is_kind_of_name(&self, behind: &[TextUnit]) -> bool {
        self.kinds_of_names.iter().any(|kind| behind.starts_with(kind))
    }

    /// Whether a Chinese stretch has a word of a question.
    pub fn contains_question(&self, units: &[TextUnit]) -> bool {
        units.iter().any(|unit| matches!(unit.char(), Some('吗' | '么' | '谁' | '呢')))
    }

    /// Whether a stretch consists of particles.
    pub fn are_particles(&self, units: &[TextUnit]) -> bool {
        units.iter().all(|unit| unit.char().is_some_and(|c| PARTICLES.contains(c)))
    }

    /// Whether one stretch is the other with characters that sound or look like its own: a slip of the pen or the scanner.
    pub fn is_slip(&self, a: &[TextUnit], b: &[TextUnit]) -> bool {
        let slips = |(x, y): (&TextUnit, &TextUnit)| {
            x == y
                || match (x.char(), y.char()) {
                    (Some(c), Some(d)) if x.kind() == UnitKind::Han && y.kind() == UnitKind::Han => {
                        (self.alike.contains(&(c, d)) || sound_alike(c, d))
                            && !self.opposites.contains(&(vec![*x], vec![*y]))
                    }
                    _ => false,
                }
        };
        a.len() == b.len() && a.len() <= 2 && a.iter().zip(b).all(slips)
    }
}

/// Returns the units of a word of the tables.
fn tokens(word: &str) -> Vec<TextUnit> {
    let mut read = super::ReadText::default();
    read.read(word);
    read.tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_all_scripts() {
        let words = WordTables::new();
        for (text, expected) in [
            ("不再", 2),
            ("not", 1),
            ("ไม่", 1),
            ("не", 1),
            ("今天", 0),
            ("特别", 0),
            ("未来不好", 1),
            ("禁止", 1),
            ("knot", 0),
        ] {
            assert_eq!(words.denials(&tokens(text)), expected, "{text}");
        }
        for (a, b, expected) in [
            ("上涨", "下跌", true),
            ("上", "下", true),
            ("大幅上涨", "大幅下跌", true),
            ("left", "right", true),
            ("tuesday", "thursday", true),
            ("上涨", "上升", false),
            ("买", "门", false),
        ] {
            assert_eq!(words.are_opposite(&tokens(a), &tokens(b)), expected, "{a} {b}");
        }
    }

    #[test]
    fn slips_sound_or_look_alike_and_say_no_opposite() {
        let words = WordTables::new();
        for (a, b, expected) in [
            ("门", "们", true),
            ("己", "已", true),
            ("在", "再", true),
            ("买", "卖", false),
            ("虎", "鼠", false),
            ("b", "d", false),
            ("旱字", "早宇", true),
        ] {
            assert_eq!(words.is_slip(&tokens(a), &tokens(b)), expected, "{a} {b}");
        }
        assert!(words.ask(&tokens("吗")) && !words.ask(&tokens("好")));
        assert!(words.are_particles(&tokens("啊啦")) && !words.are_particles(&tokens("啊好")));
    }
}
