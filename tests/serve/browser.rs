//! The page of a served index, in a real browser.

use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

use serde_json::json;

use super::http::{HttpServer, empty_index};
use crate::corpus::json_lines;
use crate::support::{Folder, run};

/// Returns the page as a browser shows it, once its script has run for a time.
fn shown(here: &Folder, address: &str, milliseconds: u32) -> String {
    let dom = run(here.browser(milliseconds).args(["--dump-dom", address]));
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
    let page = shown(&here, &linked(&server, text), 10_000);
    assert!(page.contains("One document matches."), "{page}");
    assert!(page.contains("<td>&lt;b&gt;seen&lt;/b&gt;</td><td>100.0 %</td>"), "{page}");
    let page = shown(&here, &linked(&server, "床前明月光疑是地上霜"), 10_000);
    assert!(page.contains("Nothing in this topic matches."), "{page}");
    let page = shown(&here, &format!("http://{}/", server.address), 10_000);
    assert!(page.contains("<h1>Have we seen this?</h1>") && page.contains("\"polite\"></section>"), "{page}");
    assert!(page.contains("<section id=\"view\" hidden"), "a server without views: {page}");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn the_page_shows_what_stays_and_what_changes_meanwhile() {
    let here = empty_index("auto");
    let server = HttpServer::start(&here, "--view");
    let text = "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。";
    let insert = |id: &str, text: &str| {
        let doc = json!({ "id": id, "text": text }).to_string();
        assert_eq!(server.post("/topics/default/insert", &doc).status, 200);
    };
    insert("<b>first</b>", text);
    insert("copy", text);
    assert_eq!(server.ask("GET", "/topics/default/view", &[], "").status, 503);
    let done = AtomicBool::new(false);
    // A minute of the page's time, of which it waits most; meanwhile copies come.
    let page = thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !done.load(Ordering::Relaxed) {
                number += 1;
                insert(&format!("later-{number}"), text);
            }
        });
        let page = shown(&here, &format!("http://{}/", server.address), 60_000);
        done.store(true, Ordering::Relaxed);
        page
    });
    assert!(page.contains("documents, of which 1 stay; 1 clusters"), "{page}");
    assert!(page.contains("<td>removed</td><td>&lt;b&gt;first&lt;/b&gt;</td>"), "{page}");
    assert!(page.contains(&format!("<td>{}</td>", "春眠不觉晓处处闻啼鸟夜来风雨声花落知多少")), "{page}");
    assert_eq!(server.end(), Some(0));
}
