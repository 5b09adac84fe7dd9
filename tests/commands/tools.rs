//! Tests of the tools on a finished output: `show`, `why`, `rethreshold`.

use std::fs;

use serde_json::Value;

use crate::answers::brute::similarity_of_grams;
use crate::corpus::{json_line, json_lines, of_formats};
use crate::support::{Folder, Random, Run, run};

const METHOD: &str = "simhash:features=char:5,hamming=15";

/// Makes a text, its near-duplicates with more and more characters changed, a copy, and two texts that match
/// nothing: one of its own, and one that shares a half.
fn texts() -> Vec<(&'static str, String)> {
    let mut random = Random(71);
    let text = random.text(300);
    let edited = |places: &[usize]| -> String {
        text.chars().enumerate().map(|(at, c)| if places.contains(&at) { '改' } else { c }).collect()
    };
    let half: String = text.chars().take(150).collect();
    vec![
        ("first", text.clone()),
        ("near", edited(&[60, 150])),
        ("nearer", edited(&[289])),
        ("other", random.text(300)),
        ("copy", text.clone()),
        ("farther", edited(&[50, 121, 200, 260])),
        ("half", half + &random.text(150)),
    ]
}

/// Makes the finished output `out` of these texts, in splits of some lines.
fn finished(options: &str) -> Folder {
    let here = Folder::new();
    here.write("a.jsonl", json_lines(texts()));
    here.run(&format!("dedup a.jsonl out --method {METHOD} --split-size 2K --quiet {options}")).ends(0);
    here
}

/// Returns the similarity of two of them, as the program prints it.
fn similarity(a: &str, b: &str) -> String {
    let text = |id: &str| texts().into_iter().find(|text| text.0 == id).unwrap().1.replace('，', ",");
    (similarity_of_grams(&text(a), &text(b)) as f64 / 1e6).to_string()
}

#[track_caller]
fn says(run: Run, lines: &[&str]) {
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    for line in lines {
        assert!(run.stdout.lines().any(|said| said == *line), "no line {line:?}: {}", run.stdout);
    }
}

#[test]
fn why_a_document_was_removed_or_kept() {
    let here = finished("");
    let of = |id: &str| format!("similarity {}", similarity("first", id));
    let near = format!("near was removed: it is similar to first, which was kept: {}", of("near"));
    says(
        here.run("why out near"),
        &[&near, "its cluster: 5 documents, of which 1 kept; it is named after first", "its pairs: 1"],
    );
    says(
        here.run("why out copy"),
        &["copy was removed: it is identical to first, which was kept", "its pairs: 1"],
    );
    says(
        here.run("why out first"),
        &["first was kept", "its pairs: 4", "    first and copy: similarity 1, hamming 0, identical"],
    );
    says(here.run("why out other"), &["other was kept: nothing that stays was found to match it"]);
    here.run("why out nobody").fails(2, &["\"out\"", "\"nobody\""]);

    let here = finished("--verify none");
    says(
        here.run("why out near"),
        &["near was removed: its fingerprint matches that of first, which was kept"],
    );
    let here = finished(&format!("--resolve components --verify jaccard:{}", similarity("first", "near")));
    says(here.run("why out farther"), &["farther was kept: nothing that stays was found to match it"]);
}

#[test]
fn why_two_documents_are_a_pair_or_none() {
    let here = finished("");
    let line = |a: &str, b: &str, end: &str| format!("similarity {}{end}", similarity(a, b));
    let alike = here.run("why out near first");
    let pair = here.table("out/pairs").into_iter().find(|row| row[0] == "first" && row[1] == "near").unwrap();
    let first_line = format!("first and near: {}, hamming {}", line("first", "near", ""), pair[2]);
    let bits = format!("fingerprints: {} bits differ, so they are a candidate", pair[2]);
    says(alike, &[&first_line, &bits]);

    let half = here.run("why out first half");
    assert!(half.stdout.contains(&line("first", "half", ", under the threshold 0.8")), "{half:?}");
    says(half, &["first and half are no pair", "once cleaned: 300 and 300 characters, different texts"]);
    let copies = here.run("why out near copy");
    assert!(copies.stdout.contains(&line("first", "near", ", not under the threshold 0.8")), "{copies:?}");
    assert!(copies.stdout.starts_with("near and copy match, but have no row"), "{copies:?}");
    says(
        here.run("why out copy first"),
        &[
            "first and copy: similarity 1, hamming 0, identical",
            "once cleaned: 300 and 300 characters, the same text",
        ],
    );
    here.run("why out near nobody").fails(2, &["\"nobody\""]);
    here.run("why out near near").fails(2, &["one document"]);
}

#[test]
fn why_says_how_each_method_finds_candidates() {
    let here = finished("");
    let dedup = "dedup a.jsonl out --quiet --overwrite --method";
    here.run(&format!("{dedup} jaccard:0.8,features=char:5")).ends(0);
    let similar = format!("similarity {}", similarity("first", "near"));
    let pair = format!("first and near: {similar}");
    says(here.run("why out near first"), &[&pair, "every pair that is similar enough is found"]);
    here.run(&format!("{dedup} minhash:jaccard=0.8,features=char:5")).ends(0);
    let alike = here.run("why out near first");
    assert!(alike.stdout.contains("of the bands 0 to 24, these agree: "), "{alike:?}");
    says(alike, &[&pair, "so they are a candidate"]);
    let other = here.run("why out other first");
    says(other, &["first and other are no pair", "none of the 25 bands agree", "so they are no candidate"]);
    here.run(&format!("{dedup} exact")).ends(0);
    says(here.run("why out copy first"), &["only equal texts match"]);
    says(here.run("why out near first"), &["first and near are no pair", "only equal texts match"]);
}

/// A text of middle length is compared as a short and as a long one, and may be found as either.
#[test]
fn why_never_denies_a_pair_that_was_found() {
    let here = Folder::new();
    let mut random = Random(5);
    let lines: String = (0..40)
        .map(|pair| {
            let text = random.text(50);
            let edited: String =
                text.chars().enumerate().map(|(at, c)| if at % 12 == 5 { '改' } else { c }).collect();
            json_line(format!("a{pair}"), &text) + &json_line(format!("b{pair}"), &edited)
        })
        .collect();
    here.write("a.jsonl", lines);
    here.run("-q dedup a.jsonl out --method auto:search=minhash,short=0.2,long=0.2,templates=same").ends(0);
    let pairs = here.rows("out/pairs");
    assert!(pairs.len() > 10, "{}", pairs.len());
    for pair in pairs {
        let Run { stdout, .. } = here.run(&format!("why out {} {}", pair[0], pair[1])).ends(0);
        assert!(stdout.contains("so they are a candidate"), "{stdout}");
    }
}

#[test]
fn pairs_are_shown_side_by_side() {
    let here = finished("--pairs firsts");
    let shown = here.run("show out --width 80").ends(0);
    assert!(!shown.stdout.contains('\u{1b}') && !shown.stdout.contains("identical"), "{shown:?}");
    assert_eq!(shown.stdout.matches(": similarity ").count(), 5);
    assert!(shown.stdout.contains("first (kept) ") && shown.stdout.contains("near (removed)"), "{shown:?}");
    let columns = |line: &str| line.chars().map(|c| if c >= '\u{2e80}' { 2 } else { 1 }).sum::<usize>();
    assert!(shown.stdout.lines().all(|line| columns(line) <= 80), "{shown:?}");

    let nearer = here.run("show out --id nearer -n 9 --width 200").ends(0).stdout;
    let changed = texts()[0].1.chars().nth(289).unwrap();
    assert!(nearer.contains(&format!("[-{changed}-]")) && nearer.contains("{+改+}"), "{nearer}");
    assert!(nearer.contains("… ") && !here.run("show out --id nearer --whole").stdout.contains('…'));
    here.run("show out --id nobody").fails(2, &["\"nobody\""]);
    assert!(here.run("show out --id copy").ends(0).stdout.contains("identical"));

    let coloured = run(here.command("show out -n 1").env("CLICOLOR_FORCE", "1")).ends(0).stdout;
    assert!(coloured.contains("\u{1b}[31m") && !coloured.contains("[-"), "{coloured}");
    let plain = run(here.command("show out -n 1").env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1")).stdout;
    assert_eq!(plain, here.run("show out -n 1").stdout);
}

#[test]
fn borderline_pairs_are_the_least_similar_ones() {
    let here = finished("");
    let mut pairs = here.table("out/pairs");
    pairs.sort_by(|a, b| a[3].parse::<f64>().unwrap().total_cmp(&b[3].parse().unwrap()));
    let shown = here.run("show out --borderline -n 3").ends(0).stdout;
    let heads: Vec<&str> = shown.lines().filter(|line| line.contains(": similarity ")).collect();
    let expected: Vec<String> = pairs[..3]
        .iter()
        .map(|row| format!("{} and {}: similarity {}, hamming {}", row[0], row[1], row[3], row[2]))
        .collect();
    assert_eq!(heads, expected);

    let here = finished("--verify none");
    let most = here.table("out/pairs").iter().map(|row| row[2].parse::<u32>().unwrap()).max().unwrap();
    let shown = here.run("show out --borderline -n 1").ends(0).stdout;
    assert!(shown.lines().next().unwrap().ends_with(&format!(": hamming {most}")), "{shown}");
}

#[test]
fn the_tools_find_the_input_from_any_directory_unless_it_has_changed() {
    let here = finished("--pairs firsts");
    fs::create_dir(here.path("elsewhere")).unwrap();
    let mut from_there = here.command("why ../out near first");
    assert_eq!(run(from_there.current_dir(here.path("elsewhere"))).code, Some(0));
    let mut from_there = here.command("rethreshold ../out higher --threshold 0.9 -q");
    assert_eq!(run(from_there.current_dir(here.path("elsewhere"))).code, Some(0));
    assert!(here.path("elsewhere/higher/_SUCCESS").exists());

    let text = fs::read_to_string(here.path("a.jsonl")).unwrap();
    here.write("a.jsonl", text.replace("\"near\"", "\"neat\""));
    here.run("show out --id near").fails(1, &["\"near\"", "did the input change"]);
    here.write("a.jsonl", text.clone() + "\n");
    for line in ["show out", "why out near first", "why out nobody", "rethreshold out more --threshold 0.9"] {
        here.run(line).fails(1, &["has changed", "a.jsonl", &format!("had {} bytes", text.len())]);
    }
    assert!(here.files("more").is_empty());
    fs::remove_file(here.path("a.jsonl")).unwrap();
    here.run("show out").fails(2, &["a.jsonl", "does not exist"]);
}

#[test]
fn what_is_no_finished_output_is_wrong_use() {
    let here = finished("");
    here.run("pack a.jsonl packed --bytes -q").ends(0);
    here.write("other/_SUCCESS", "{}");
    for job in ["show", "why", "rethreshold"] {
        let rest = match job {
            "why" => " near",
            "rethreshold" => " new --threshold 0.9",
            _ => "",
        };
        here.run(&format!("{job} nothing{rest}")).fails(2, &["\"nothing\"", "does not exist"]);
        here.run(&format!("{job} packed{rest}")).fails(2, &["\"packed\"", "no output of dedup"]);
        here.run(&format!("{job} other{rest}")).fails(2, &["\"other\"", "no output of dedup"]);
    }
}

/// Returns the content of `_SUCCESS` without times, and without what a run without a search cannot have.
fn success(here: &Folder, output: &str) -> Value {
    let mut success = here.success(output);
    for name in ["process", "seconds", "stages", "blocks", "run"] {
        success[name] = Value::Null;
    }
    // Those that sketches drop depend on the threshold of the search.
    success["counters"]["candidates"] = Value::Null;
    success["files"]["report.html"] = Value::Null;
    success
}

#[test]
fn a_higher_threshold_gives_what_a_new_run_would() {
    let here = of_formats();
    here.write("in/g.jsonl", json_lines(texts()));
    let dedup = format!("dedup in --quiet --split-size 64K --method {METHOD}");
    for (number, options) in [
        "--pairs firsts",
        "--pairs all --keep longest",
        "--resolve components",
        "--resolve components --pairs all",
    ]
    .iter()
    .enumerate()
    {
        let old = format!("old{number}");
        here.run(&format!("{dedup} {old} {options} --verify jaccard:0.3")).ends(3);
        for threshold in ["0.3", "0.85", "0.95", "1"] {
            here.run(&format!("{dedup} new {options} --overwrite --verify jaccard:{threshold} --workers 2"))
                .ends(3);
            here.run(&format!("rethreshold {old} re -q --overwrite --threshold {threshold} --workers 2"))
                .ends(3);
            let (new, re) = (here.output("new"), here.output("re"));
            assert_eq!(new.keys().collect::<Vec<_>>(), re.keys().collect::<Vec<_>>());
            let differs: Vec<_> =
                new.iter().filter(|(name, bytes)| re[*name] != **bytes).map(|file| file.0).collect();
            assert!(differs.is_empty(), "{options}, {threshold}: {differs:?}");
            assert_eq!(success(&here, "new"), success(&here, "re"), "{options}, {threshold}");
            let count = |output: &str| here.counter(output, "removed");
            assert!(
                threshold == "0.3" || count("re") < count(&old) && count("re") > 0,
                "{options}, {threshold}"
            );
        }
    }
    // The threshold is raised in steps, and with other options than those of the output.
    here.run("rethreshold old1 step -q --threshold 0.8").ends(3);
    here.run("rethreshold step re -q --overwrite --threshold 0.95 --resolve components --keep first").ends(3);
    here.run(&format!("{dedup} new --overwrite --pairs all --verify jaccard:0.95 --resolve components"))
        .ends(3);
    assert!(here.output("new") == here.output("re"));
    here.run("rethreshold old0 guarded --threshold 0.8 --max-cluster 1").fails(4, &["--max-cluster 1"]);
    here.run("rethreshold old0 step --threshold 0.8").fails(2, &["\"step\"", "--overwrite"]);
}

#[test]
fn a_method_that_measures_by_itself_has_its_threshold_raised() {
    let here = of_formats();
    for (old, new) in [
        ("auto:short=0.5,long=0.6", "auto:short=0.9,long=0.9"),
        ("jaccard:0.5,features=char:5", "jaccard:0.9,features=char:5"),
        // The output goes on to say by which bands its pairs were found.
        ("minhash:jaccard=0.5,features=char:5", "minhash:jaccard=0.9,features=char:5,bands=154,rows=4"),
    ] {
        here.run(&format!("dedup in old --quiet --overwrite --pairs firsts --method {old}")).ends(3);
        here.run(&format!("dedup in new --quiet --overwrite --pairs firsts --method {new}")).ends(3);
        here.run("rethreshold old re --quiet --overwrite --threshold 0.9").ends(3);
        assert!(here.output("new") == here.output("re"), "{old}");
        assert!(here.counter("re", "removed") < here.counter("old", "removed"));
        assert_eq!(here.success("new")["configuration"], here.success("re")["configuration"]);
        // These methods have no fingerprints that could differ.
        assert!(here.rows("re/pairs").iter().all(|row| row[2] == "null"));
        here.run("rethreshold old less --threshold 0.4").fails(2, &["from 0.5 on"]);
    }
}

#[test]
fn a_threshold_under_that_of_the_output_takes_a_new_run() {
    let here = finished("");
    here.run("rethreshold out new --threshold 0.79").fails(2, &["from 0.8 on", "new run"]);
    here.run("rethreshold out new --threshold 1.1").fails(2, &["--threshold", "from 0 to 1"]);
    here.run("rethreshold out new").fails(2, &["--threshold"]);
    let here = finished("--verify none");
    here.run("rethreshold out new --threshold 0.9").fails(2, &["no least similarity"]);
    assert!(here.files("new").is_empty());
}
