//! Tests of `report`: a page that a browser shows, and tables without Parquet.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::corpus::of_formats;
use crate::support::{Folder, run};

/// Returns the page as a browser shows it, at this width. Checks that its script says nothing and that it asks for nothing.
#[track_caller]
fn shown(here: &Folder, page: &str, width: u32) -> String {
    let mut browser = Command::new("chromium");
    let profile = format!("--user-data-dir={}", here.path("profile").display());
    let (window, log) = (format!("--window-size={width},3000"), here.path("net.json"));
    browser.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=5000",
        &profile,
        &window,
    ]);
    browser.args(["--enable-logging=stderr", &format!("--log-net-log={}", log.display()), "--dump-dom"]);
    let address = format!("file://{}", here.path(page).display());
    let dom = run(browser.arg(&address));
    assert_eq!(dom.code, Some(0), "{}", dom.stderr);
    assert!(!dom.stderr.contains("CONSOLE"), "{}", dom.stderr);
    dom.stdout
}

#[test]
fn the_page_shows_the_run_and_text_is_no_markup() {
    let here = Folder::new();
    let attack =
        "<script>document.title = 'attacked'</script><img src=x onerror=\"document.title='attacked'\">";
    let text = format!(
        "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。{attack}床前明月光，疑是地上霜。举头望明月，低头思故乡。"
    );
    let docs =
        [("<b>one</b>", text.clone()), ("two'\"&", format!("{text}很")), ("three", "长".repeat(3_000_000))];
    let again = ("four", "长".repeat(3_000_000));
    let line = |(id, text): (&str, String)| format!("{}\n", json!({"id": id, "text": text}));
    let lines: String = docs.into_iter().chain([again]).map(line).collect();
    here.write("in.jsonl", format!("{lines}no json {attack}\n"));
    here.run("dedup in.jsonl out --method jaccard:0.5 --quiet").ends(3);
    let of_run = fs::read_to_string(here.path("out/report.html")).unwrap();
    here.run("report out").ends(0);
    let again = fs::read_to_string(here.path("report.html")).unwrap();
    assert_eq!(of_run, again, "the page of the run is the one that is written again");
    here.run("check out --full").ends(0);
    let bytes = fs::read(here.path("report.html")).unwrap();
    assert!(bytes.len() < 2_000_000, "{}", bytes.len());
    let page = String::from_utf8(bytes).unwrap();
    assert_eq!(page.matches("http://").count(), page.matches("http://www.w3.org/2000/svg").count());
    assert_eq!(page.matches("<script").count(), 1, "what documents say is no script");
    for width in [1280, 768, 390] {
        let dom = shown(&here, "report.html", width);
        assert!(dom.contains("<title>dedup-job: out</title>"), "nothing was run");
        assert!(dom.contains("&lt;script&gt;document.title") && dom.contains("&lt;b&gt;one&lt;/b&gt;"));
        assert!(dom.contains("characters more"), "a long text is cut");
        let effect = dom.split("id=\"effect\"").nth(1).and_then(|rest| rest.split("</p>").next());
        let effect = effect.unwrap_or_else(|| panic!("no slider: {dom}"));
        assert!(effect.contains(" of 1 similar documents would not go"), "{effect}");
    }
}

#[test]
fn the_tables_are_those_of_the_output() {
    let here = of_formats();
    here.run("dedup in out --method jaccard:0.8 --pairs firsts --quiet").ends(3);
    here.run("report out --csv tables --json lines").ends(0);
    assert!(!here.path("report.html").exists());
    let rows = |name: &str| csv::Reader::from_path(here.path(name)).unwrap().into_records().count() as u64;
    assert_eq!(rows("tables/pairs.csv"), here.counter("out", "pairs"));
    assert_eq!(rows("tables/clusters.csv"), here.rows("out/clusters").len() as u64);
    assert_eq!(here.lines("lines", "pairs.jsonl").len() as u64, rows("tables/pairs.csv"));
    let members = here.objects("lines", "clusters.jsonl");
    let removed = members.iter().filter(|member| member["kept"] == false);
    assert_eq!(removed.count() as u64, here.counter("out", "removed"));
    let counters: Value =
        serde_json::from_slice(&fs::read(here.path("lines/counters.json")).unwrap()).unwrap();
    assert_eq!(counters["kept"], here.counter("out", "kept"));
    let mut counters = csv::Reader::from_path(here.path("tables/counters.csv")).unwrap();
    assert!(counters.records().any(|row| row.unwrap()[0] == *"rejected"));
    here.run("report out --to page.html").ends(0);
    let page = fs::read_to_string(here.path("page.html")).unwrap();
    assert!(
        page.contains("Rejected records") && page.contains("pairs match"),
        "every match is listed, so the effect is known"
    );
    here.run("report in").fails(2, &["no finished output"]);
}
