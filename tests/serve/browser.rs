//! The page of a served index, in a real browser.

use std::fs;

use super::http::HttpServer;
use crate::corpus::json_lines;
use crate::support::{Folder, run};

/// Returns the page as a browser shows it, once its script has run.
fn shown(here: &Folder, address: &str) -> String {
    let dom = run(here.browser(10_000).args(["--dump-dom", address]));
    assert_eq!(dom.code, Some(0), "{}", dom.stderr);
    let screenshot = format!("--screenshot={}", here.path("page.png").display());
    run(here.browser(10_000).args([&screenshot, address]));
    assert!(fs::metadata(here.path("page.png")).unwrap().len() > 5000);
    dom.stdout
}

/// Returns the address of the page with a text.
fn linked(server: &HttpServer, text: &str) -> String {
    let encoded: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
    format!("http://{}/#text={encoded}", server.address)
}

#[test]
fn the_page_shows_the_matches_of_a_text() {
    let here = Folder::new();
    let text = "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。";
    here.write("a.jsonl", json_lines([("<b>seen</b>", text)]));
    here.run("--quiet index build ix a.jsonl").ends(0);
    let server = HttpServer::start(&here, "");
    let page = shown(&here, &linked(&server, text));
    assert!(page.contains("One document matches."), "{page}");
    assert!(page.contains("<td>&lt;b&gt;seen&lt;/b&gt;</td><td>100.0 %</td>"), "{page}");
    let page = shown(&here, &linked(&server, "床前明月光疑是地上霜"));
    assert!(page.contains("Nothing in this topic matches."), "{page}");
    let page = shown(&here, &format!("http://{}/", server.address));
    assert!(page.contains("<h1>Have we seen this?</h1>") && page.contains("\"polite\"></section>"), "{page}");
    assert_eq!(server.end(), Some(0));
}
