//! Web pages.

use super::super::extract::extract_page;

fn text_of(page: Vec<u8>) -> Result<String, String> {
    extract_page(&page)
}

fn page(charset: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html><html><head><meta charset=\"{charset}\"><title>不读</title></head><body>{body}</body></html>"
    )
}

#[test]
fn each_block_of_a_page_is_a_line_without_scripts() {
    let body = "<script>var a = '<p>no</p>';</script><style>p { color: red }</style><h1>标题</h1>\
                <p>第一段，有<b>粗体</b>和<a href=\"x\">链接</a> &amp; &#x4e00;</p><ul><li>一</li></ul>\
                <table><tr><td>甲</td><td>乙</td></tr></table><!-- no -->";
    let text = text_of(page("utf-8", body).into_bytes()).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, ["标题", "第一段，有粗体和链接 & 一", "一", "甲", "乙"]);
    let long = "长".repeat(100_000);
    assert_eq!(text_of(page("utf-8", &format!("<p>{long}</p>")).into_bytes()).unwrap().trim_end(), long);
}

#[test]
fn the_encoding_of_a_page_is_the_declared_one_unless_it_is_wrong() {
    for (encoding, declared) in [
        (encoding_rs::GBK, "gb2312"),
        (encoding_rs::BIG5, "big5"),
        (encoding_rs::UTF_8, "UTF-8"),
        (encoding_rs::SHIFT_JIS, "shift_jis"),
        // Pages of this kind have another encoding than they say.
        (encoding_rs::GBK, "utf-8"),
    ] {
        let body = "<p>北京新京電文</p>".repeat(20);
        let text = text_of(encoding.encode(&page(declared, &body)).0.into_owned()).unwrap();
        assert!(text.starts_with("北京新京電文\n"), "{declared}: {text}");
    }
    let utf16 = format!("\u{feff}{}", page("utf-8", "<p>新华社</p>"));
    let utf16: Vec<u8> = utf16.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(text_of(utf16).unwrap().trim_end(), "新华社");
}

#[test]
fn a_page_without_text_and_what_is_no_page_are_refused() {
    let refused = |page: &[u8]| extract_page(page).unwrap_err();
    assert!(refused(page("utf-8", "<img src=\"a.png\">").as_bytes()).contains("no text"));
    assert!(refused(b"plain text that is called .html").contains("no web page"));
}
