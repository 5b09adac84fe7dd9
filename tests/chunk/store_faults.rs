//! A store survives deaths at any step, damage, and a prune beside a put.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::store::{docx, restored, snapshots, stats};
use crate::faults::clock::{ahead, library};
use crate::support::{Folder, Random, Tree, run, signal, wait_until_stopped};

/// Changes the folder `in`: adds, changes or removes a file.
fn change(here: &Folder, random: &mut Random) {
    let name = format!("in/{}.docx", random.below(4));
    match random.below(4) {
        0 => drop(fs::remove_file(here.path(&name))),
        1 => here.write(&name, random.text(3000)),
        _ => {
            let texts: Vec<String> = (0..100).map(|line| Random(line * line % 17).text(30)).collect();
            here.write(&name, docx(&texts[random.below(90)..]));
        }
    }
}

fn files(here: &Folder) -> Tree {
    here.contents("in").into_iter().map(|(name, bytes)| (format!("in/{name}"), bytes)).collect()
}

/// The names that a snapshot of a killed put might have are those that are not known yet.
fn learn(here: &Folder, known: &mut BTreeMap<String, Tree>, expected: &Tree) {
    for name in snapshots(here) {
        known.entry(name).or_insert_with(|| expected.clone());
    }
}

#[test]
fn whatever_is_put_forgotten_pruned_and_killed_the_snapshots_are_what_was_put() {
    for seed in 0..4 {
        let here = Folder::new();
        let mut random = Random(seed);
        here.write("in/first", "first");
        here.run("chunk put store in").ends(0);
        let mut known = BTreeMap::new();
        learn(&here, &mut known, &files(&here));
        for _ in 0..14 {
            change(&here, &mut random);
            let steps = ["create", "finish", "settle", "remove", "write"];
            let fault = format!("0 {} {} kill", steps[random.below(5)], 1 + random.below(9));
            let fault = if random.below(2) == 0 { fault } else { String::new() };
            let name = known.keys().nth(random.below(known.len())).cloned().unwrap_or_default();
            let line = match random.below(4) {
                0 if known.len() > 1 => format!("chunk forget store {name}"),
                1 => "chunk prune store".to_owned(),
                _ => "chunk put store in".to_owned(),
            };
            let ended = run(here.command(&line).env("DEDUP_FAULT", &fault));
            assert!(ended.code == Some(0) || !fault.is_empty(), "{line}: {ended:?}");
            if line.contains("forget") {
                known.retain(|name, _| snapshots(&here).contains(name));
            }
            learn(&here, &mut known, &files(&here));
            assert_eq!(snapshots(&here).len(), known.len(), "a snapshot is lost by {line}");
            here.run("chunk check store").ends(0);
        }
        for (name, expected) in &known {
            assert!(restored(&here, "store", name) == *expected, "{name} of seed {seed}");
        }
        here.run("chunk forget store --keep-last 0").ends(0);
        here.run("chunk prune store").ends(0);
        assert_eq!(stats(&here, "store")["packs"], 0);
    }
}

/// A put is stopped at each of its steps in turn, and meanwhile everything is forgotten and pruned.
#[test]
fn a_prune_takes_nothing_from_a_put_that_is_running() {
    let here = Folder::new();
    let mut random = Random(5);
    for file in 0..5 {
        here.write(&format!("in/{file}.txt"), random.text(5000));
    }
    let mut steps = 0;
    for step in 1.. {
        here.run("chunk put store in").ends(0);
        let first = snapshots(&here);
        let mut put = here
            .command("chunk put store in")
            .env("DEDUP_FAULT", format!("0 create {step} stop"))
            .spawn()
            .unwrap();
        wait_until_stopped(put.id());
        if put.try_wait().unwrap().is_some() {
            break;
        }
        here.run(&format!("chunk forget store {}", first.join(" "))).ends(0);
        here.run("chunk prune store").ends(0);
        signal(put.id(), "CONT");
        assert!(put.wait().unwrap().success());
        assert!(restored(&here, "store", "latest") == files(&here), "after step {step}");
        here.run("chunk prune store").ends(0);
        here.run("chunk check store --read-data").ends(0);
        assert!(restored(&here, "store", "latest") == files(&here), "after step {step}");
        steps = step;
    }
    assert!(steps > 2, "the put was stopped {steps} times");
}

/// A put that uses chunks of a forgotten snapshot is stopped at each of its steps. It looks like one of another machine that
/// was not heard of for a week, so a prune takes it for dead.
#[test]
fn a_put_that_a_prune_took_for_dead_ends_with_an_error_and_without_a_snapshot() {
    let here = Folder::new();
    let mut random = Random(7);
    for file in 0..3 {
        here.write(&format!("in/{file}.txt"), random.text(5000));
    }
    here.write("other/x", "x");
    let mut failed = 0;
    for step in 1.. {
        here.run("chunk put store in").ends(0);
        here.run("chunk forget store latest").ends(0);
        here.run("chunk put store other").ends(0);
        let before = snapshots(&here);
        let mut command = here.command("chunk put store in");
        command.env("DEDUP_FAULT", format!("0 create {step} stop")).stderr(Stdio::piped());
        let mut put = command.spawn().unwrap();
        wait_until_stopped(put.id());
        if put.try_wait().unwrap().is_some() {
            break;
        }
        let claims = here.contents("store/claims").into_iter().filter(|(name, _)| name.ends_with(".json"));
        for (name, claim) in claims {
            let name = format!("store/claims/{name}");
            let (body, _hash) = std::str::from_utf8(&claim).unwrap().trim_end().split_once('\n').unwrap();
            let mut claim: Value = serde_json::from_str(body).unwrap();
            claim["owner"]["boot"] = "another".into();
            let body = claim.to_string();
            here.write(&name, format!("{body}\n{}\n", blake3::hash(body.as_bytes())));
            let week_ago = SystemTime::now() - Duration::from_secs(8 * 24 * 3600);
            File::options().write(true).open(here.path(&name)).unwrap().set_modified(week_ago).unwrap();
        }
        here.run("chunk prune store").ends(0);
        signal(put.id(), "CONT");
        let ended = put.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&ended.stderr);
        here.run("chunk check store --read-data").ends(0);
        match ended.status.code() {
            Some(0) => assert!(restored(&here, "store", "latest") == files(&here), "step {step}: {error}"),
            code => {
                assert!(
                    code == Some(1) && error.contains("has taken this put for dead"),
                    "step {step}: {error}"
                );
                assert_eq!(snapshots(&here), before, "step {step}");
                failed += 1;
            }
        }
    }
    assert!(failed > 1, "{failed}");
}

/// A put whose clock is behind is warned of, and counts as the newest all the same.
#[test]
fn snapshots_are_kept_in_the_order_of_their_puts_whatever_the_clocks_say() {
    let here = Folder::new();
    let library = library(&here);
    let day = 24 * 3600;
    let mut names = Vec::new();
    for (version, seconds) in [0, 30 * day, -30 * day, 0].into_iter().enumerate() {
        here.write("in/x", format!("version {version}"));
        let put = run(ahead(&mut here.command("chunk put store in"), &library, seconds)).ends(0);
        assert_eq!(put.stderr.contains("the clock of this machine is behind"), version > 1, "{put:?}");
        names.extend(snapshots(&here).into_iter().filter(|name| !names.contains(name)).collect::<Vec<_>>());
    }
    let listed = here.run("chunk ls store --json").ends(0).stdout;
    let listed: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(listed.iter().map(|line| line["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
    here.run("chunk forget store --keep-last 2").ends(0);
    assert_eq!(snapshots(&here).into_iter().collect::<BTreeSet<_>>(), names[2..].iter().cloned().collect());
    assert_eq!(restored(&here, "store", "latest")["in/x"], b"version 3");
    // An age that no clock can tell forgets nothing.
    here.run("chunk forget store --older-than 99999999y").ends(0);
    assert_eq!(snapshots(&here).len(), 2);
}

#[test]
fn every_flipped_bit_is_named_and_costs_no_other_file() {
    let here = Folder::new();
    let mut random = Random(6);
    here.write("in/a.docx", docx(&[random.text(200)]));
    here.write("in/b.txt", random.text(200));
    here.run("chunk put store in").ends(0);
    here.run("chunk check store --read-data").ends(0);
    let all = here.contents("store");
    for (name, bytes) in &all {
        for _ in 0..8 {
            let mut damaged = bytes.clone();
            let at = random.below(bytes.len());
            damaged[at] ^= 1 << random.below(8);
            here.write(&format!("store/{name}"), &damaged);
            let check = here.run("chunk check store --read-data");
            assert!(matches!(check.code, Some(1 | 2)), "byte {at} of {name}: {check:?}");
            let last = name.rsplit('/').next().unwrap();
            assert!(
                format!("{}{}", check.stdout, check.stderr).contains(last.split('.').next().unwrap()),
                "byte {at} of {name}: {check:?}"
            );
            if name.starts_with("packs/") {
                fs::remove_dir_all(here.path("out")).ok();
                let restore = here.run("chunk restore store out").ends(1);
                assert!(restore.stderr.contains("is not restored"), "{restore:?}");
            }
        }
        here.write(&format!("store/{name}"), bytes);
    }
    here.run("chunk check store --read-data").ends(0);
    // A missing index is made again.
    fs::remove_dir_all(here.path("store/index")).unwrap();
    here.run("chunk put store in").ends(0);
    assert_eq!(stats(&here, "store")["packs"], 2);
}

#[test]
fn a_killed_forget_leaves_no_half_of_a_snapshot() {
    for step in 1..=3 {
        let here = Folder::new();
        here.write("in/a", "a");
        here.run("chunk put store in").ends(0);
        let forget = format!("chunk forget store {}", snapshots(&here)[0]);
        run(here.command(&forget).env("DEDUP_FAULT", format!("0 remove {step} kill")));
        here.run("chunk check store").ends(0);
    }
}

#[test]
fn files_of_the_index_that_others_replace_go_unless_a_put_may_read_them() {
    let here = Folder::new();
    let count = || fs::read_dir(here.path("store/index")).unwrap().count() / 2;
    let puts = |numbers: std::ops::Range<u64>| {
        for number in numbers {
            here.write("in/a.txt", Random(number).text(300));
            here.run("chunk put store in").ends(0);
        }
    };
    puts(0..20);
    let few = count();
    assert!(few < 10, "{few} files");
    let mut put = here.command("chunk put store in").env("DEDUP_FAULT", "0 create 2 stop").spawn().unwrap();
    wait_until_stopped(put.id());
    puts(20..40);
    let many = count();
    assert!(many >= few + 20, "{many} files beside a put");
    signal(put.id(), "CONT");
    assert!(put.wait().unwrap().success());
    puts(40..41);
    assert!(count() < 12, "{} files", count());
}

#[test]
fn a_damaged_snapshot_can_be_forgotten_and_hides_no_later_one() {
    let here = Folder::new();
    let put = |text: &str| {
        here.write("in/a", text);
        here.run("chunk put store in").ends(0);
        snapshots(&here).pop().unwrap()
    };
    let damage = |name: &str| here.write(&format!("store/snapshots/{name}.json"), "{}");
    let (first, second) = (put("first"), put("second"));
    damage(&first);
    assert!(restored(&here, "store", "latest") == files(&here));
    here.run("chunk prune store").ends(1);
    here.run(&format!("chunk forget store {first} --quiet")).ends(0);
    here.run("chunk check store --read-files").ends(0);
    here.run("chunk prune store").ends(0);
    let third = put("third");
    damage(&third);
    here.run("chunk restore store restored --overwrite").ends(1);
    here.run(&format!("chunk forget store {third}")).ends(0);
    assert!(here.run("chunk restore store restored --overwrite").ends(0).stderr.contains(&second));
}

/// A store that lies in what is put would hold itself.
#[test]
fn the_store_itself_is_not_put() {
    let here = Folder::new();
    here.write("in/x", "text");
    std::os::unix::fs::symlink(here.path("in"), here.path("link")).unwrap();
    for input in ["in", "link", "in/../in"] {
        here.run("chunk put in/store in/x").ends(0);
        let put = here.run(&format!("chunk put in/store {input}")).ends(0);
        assert!(put.stderr.contains("in/store\" is or lies in the store") || input == "link", "{put:?}");
        assert!(put.stderr.contains("left out") && put.stdout.contains(": 1 files"), "{put:?}");
    }
    for inside in ["in/store/packs", "in/store/chunks.json"] {
        let put = here.run(&format!("chunk put in/store {inside}")).ends(2);
        assert!(put.stderr.contains("lies in the store"), "{put:?}");
    }
}
