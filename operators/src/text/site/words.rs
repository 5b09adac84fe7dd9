//! Words of the site Weibo and names of HTML: what is recognised as no text of an author, since it is in a list.

use std::sync::LazyLock;

use foldhash::HashSet;

/// Names of emoticons as Weibo writes them in square brackets, and as other sites of its time did, without case. Source:
/// counts of bracketed words in posts; titles of links and languages were left out by hand.
const EMOTICONS: &str = "允悲 泪 心 哈哈 微笑 二哈 doge 笑cry 爱你 吃惊 吃驚 愛你 偷笑 跪了 嘻嘻 怒 摊手 汗 蜡烛 拜拜 衰 喵喵 悲伤 抓狂 \
花心 太开心 鼓掌 good 米奇比心 失望 害羞 可爱 围观 兔子 污 思考 可怜 微风 并不简单 哼 费解 爱心 挖鼻屎 挖鼻 吃瓜 笑而不语 憧憬 \
作揖 晕 酷 话筒 伤心 音乐 馋嘴 鲜花 羞嗒嗒 挤眼 月亮 去旅行 疑问 抱抱_旧 抱抱 耶 生病 ok 给力 囧 太阳 亲亲 怒骂 奥特曼 呵呵 赞 威武 \
黑线 坏笑 委屈 鄙视 吐 色 偷乐 捂脸 呲牙 笑哈哈 熊猫 阴险 白眼 嘘 拳头 弱 困 睡觉 睡 好喜欢 舔屏 闭嘴 中国赞 打脸 猪头 好爱哦 \
做鬼脸 嘿哈 蛋糕 打哈气 打哈欠 哈欠 绿丝带 玫瑰 流泪 感冒 浮云 求关注 飞机 得意地笑 得意 星星 惊恐 女孩儿 男孩儿 右哼哼 左哼哼 草泥马 \
神马 爱心传递 赞啊 落叶 旺柴 愉快 懒得理你 胜利 抱拳 小黄人剪刀手 小黄人坏笑 小黄人得意 小黄人微笑 皱眉 haha 顶 江南style 帅 大哭 发呆 \
照相机 哆啦a梦吃惊 哆啦a梦美味 哆啦a梦微笑 憨笑 骷髅 互粉 雪花 冰雪奇缘雪宝 拥抱 萌 干杯 din推撞 加油啊 咖啡 机智 瞧瞧 握手 泪流满面 噢耶 \
bed凌乱 下雨 手套 上火 尴尬 调皮 抠鼻 闭眼 发怒 喝多了 奸笑 温暖帽子 风扇 泪奔 超话 难过 雪 凋谢 心碎 伤心了 红包 发 福 喜 强 \
礼物 礼花 鞭炮 烟花 圣诞老人 圣诞树 圣诞帽 雪人 西瓜 汽车 自行车 沙尘暴 阳光 云 闪电 彩虹 足球 篮球 金牌 银牌 奖杯 最右 织 围脖 \
给你小心心 佩服 单身狗 敲打 裂开 苦涩 叹气 让我看看 翻白眼 666 社会社会 嫌弃 凝视 惊讶 恐惧 擦汗 囧囧 可怜兮兮 开心 大笑 生气 汗颜 \
悠闲 悠哉 乱入 骷髅头 拍照 酷酷 求饶 震惊 哭 笑 怒火 愤怒 撇嘴 呕吐 傲慢 饥饿 流汗 奋斗 咒骂 折磨 敲头 再见 勾引 差劲 爱情 飞吻 跳跳 \
发抖 怄火 转圈 磕头 回头 跳绳 投降 激动 街舞 献吻 加油 中国加油 武汉加油 点亮平安灯 炸鸡啤酒 抗击疫情 口罩 戴口罩 酸 融化 赢牛奶 \
cool happy cry sad love heart lol smile angry";

/// Words behind the icon of a video, and their author before them.
pub(super) const VIDEOS: [&str; 3] = ["的微博视频", "的秒拍视频", "的视频直播"];

/// Words behind the icon of a link.
pub(super) const LINKS: [&str; 3] = ["网页链接", "查看图片", "视频链接"];

/// Buttons that Weibo's pages show behind a long post, with the letter that scrapers make of their arrow.
pub(super) const BUTTONS: [&str; 4] = ["收起全文d", "展开全文c", "...展开全文c", "收起全文"];

/// Elements of HTML, without those that are words of other kinds of text alone.
const ELEMENTS: &str = "a abbr address area article aside audio b base bdi bdo big blockquote body br button canvas caption \
center cite code col colgroup data datalist dd del details dfn dialog dir div dl dt em embed fieldset figcaption figure font \
footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe img input ins kbd label legend li link main map \
mark marquee menu meta meter nav noscript object ol optgroup option output p param picture pre progress q rp rt ruby s samp \
script section select small source span strike strong style sub summary sup svg table tbody td template textarea tfoot th thead \
time title tr track tt u ul var video wbr";

/// Whether a word in square brackets is an emoticon.
pub(super) fn is_emoticon(name: &str) -> bool {
    static NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| EMOTICONS.split_whitespace().collect());
    has(&NAMES, name)
}

/// Whether a name is that of an element of HTML.
pub(super) fn is_element(name: &str) -> bool {
    static NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| ELEMENTS.split_whitespace().collect());
    has(&NAMES, name)
}

/// Whether names in lower case hold a name, without case. Most names are written in lower case.
fn has(names: &HashSet<&str>, name: &str) -> bool {
    names.contains(name) || names.contains(&*name.to_ascii_lowercase())
}
