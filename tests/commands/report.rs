//! Tests of `report`: a page that a browser shows, and tables without Parquet.

use std::fs;

use serde_json::{Value, json};

use crate::corpus::of_formats;
use crate::support::{Folder, run};

/// Returns the page as a browser shows it, at this width. Checks that its script says nothing and that it asks for nothing.
#[track_caller]
fn shown(here: &Folder, page: &str, width: u32) -> String {
    let mut browser = here.browser(5_000);
    let window = format!("--window-size={width},3000");
    let log = here.path("net.json");
    browser.args([&window, "--enable-logging=stderr", "--dump-dom"]);
    browser.arg(format!("--log-net-log={}", log.display()));
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
    assert_eq!(violations(&here, &page), "[]", "what people with a screen reader or a keyboard cannot use");
}

#[test]
fn removal_by_date_is_counted_where_a_field_has_dates() {
    let here = Folder::new();
    let days = ["2008-06-01", "2008-06-30", "2008-07-01", "someday"];
    let line = |(number, day): (usize, &str)| {
        format!("{}\n", json!({"id": number, "text": format!("一则{}新闻", "很长的".repeat(9)), "day": day}))
    };
    here.write("in.jsonl", days.into_iter().enumerate().map(line).collect::<String>());
    here.run("dedup in.jsonl out --quiet").ends(0);
    here.run("report out --date-field day").ends(0);
    let page = fs::read_to_string(here.path("report.html")).unwrap();
    let rows = page.split("Removed by date").nth(1).and_then(|rest| rest.split("</table>").next()).unwrap();
    let cells: Vec<&str> =
        rows.split('<').filter_map(|cell| cell.split_once('>')).map(|cell| cell.1.trim()).collect();
    let cells: Vec<&str> = cells.into_iter().filter(|cell| !cell.is_empty()).collect();
    let expected = ["no date", "1", "1", "100.0", "2008-06", "2", "1", "50.0", "2008-07", "1", "1", "100.0"];
    assert_eq!(cells[cells.len() - expected.len()..], expected, "{rows}");
    here.run("report out --date-field id").fails(2, &["no document has a date", "\"id\""]);
}

#[test]
fn the_page_of_a_night_has_those_before_it() {
    let here = Folder::new();
    for night in ["one", "two", "three"] {
        here.write(
            "in.jsonl",
            json!({"id": night, "text": "春眠不觉晓，处处闻啼鸟。夜来风雨声"}).to_string(),
        );
        here.run(&format!("nightly --state state --output {night} --night <{night}> in.jsonl --quiet"))
            .ends(0);
    }
    let page = |night: &str| fs::read_to_string(here.path(&format!("{night}/report.html"))).unwrap();
    assert!(!page("one").contains("<h2>Nights</h2>"), "a first night has none before it");
    let last = page("three");
    assert!(last.contains("The last 3 nights of the state"), "{last}");
    for night in ["one", "two", "three"] {
        assert!(
            last.contains(&format!("&lt;{night}&gt;</th><td class=\"number\">1</td>")),
            "{night}: {last}"
        );
    }
    assert!(last.contains("Kept and removed documents of 3 nights"));
    here.write("page.html", last);
    shown(&here, "page.html", 1280);
}

#[test]
fn eval_and_chunk_compare_write_pages_that_a_browser_shows() {
    let here = Folder::new();
    let text = "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。";
    let texts = [
        text.to_owned(),
        format!("{text}啊"),
        text.replace("春眠", "<b>冬眠"),
        "另外一则很长的消息".repeat(3),
    ];
    let line = |(id, text): (usize, &String)| format!("{}\n", json!({"id": id.to_string(), "text": text}));
    here.write("in.jsonl", texts.iter().enumerate().map(line).collect::<String>());
    here.write("labels.tsv", "0\t1\t1\n0\t2\t1\n0\t3\t0\n1\t3\t0\n");
    here.run("dedup in.jsonl out --method jaccard:0.6 --pairs firsts --quiet").ends(0);
    here.run("eval out labels.tsv --html eval.html").ends(0);
    here.run("chunk compare in.jsonl --sizes 1K,2K --trials 1 --insertions 2 --html chunk.html").ends(0);
    for (page, figures) in [("eval.html", 1), ("chunk.html", 5)] {
        let dom = shown(&here, page, 768);
        assert_eq!(dom.matches("<svg").count(), figures, "{page}: {dom}");
        let html = fs::read_to_string(here.path(page)).unwrap();
        assert_eq!(violations(&here, &html), "[]", "{page}");
    }
}

/// Returns the rules of accessibility that a page breaks, as axe finds them in a browser.
fn violations(here: &Folder, page: &str) -> String {
    let axe = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/browser/target/node_modules/axe-core/axe.min.js");
    let axe =
        fs::read_to_string(axe).expect("scripts/browser/build was not run").replace("</script", "<\\/script");
    let tell = "axe.run().then(found => document.title = `axe: ${JSON.stringify(found.violations.map(rule => rule.id))} of ${found.passes.length}`)";
    let checked = page.replace("</body>", &format!("<script>{axe}</script><script>{tell}</script></body>"));
    here.write("axe.html", checked);
    let address = format!("file://{}", here.path("axe.html").display());
    let dom = run(here.browser(30_000).args(["--dump-dom", &address])).stdout;
    let found = dom.split("<title>axe: ").nth(1).and_then(|rest| rest.split_once(" of "));
    let (rules, passed) = found.unwrap_or_else(|| panic!("axe did not end: {}", &dom[..200.min(dom.len())]));
    assert!(
        passed.split('<').next().is_some_and(|passed| passed.parse::<u32>().unwrap() > 20),
        "{passed:.20}"
    );
    rules.to_owned()
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
