//! Kills puts, forgets and prunes at any moment, and compares every snapshot with a copy of what was put. `scripts/soak chunk`
//! does it hundreds of times.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::store::{docx, restored, snapshots, stats};
use crate::faults::kills::{family, kill_any, kills_and_seed};
use crate::support::{Folder, Random, Tree};

/// Number of kills, if the environment does not say it.
const KILLS: usize = 12;
/// Most snapshots that are kept. Each of them is restored after every kill.
const MOST_SNAPSHOTS: usize = 5;

/// Changes some files of the folder `in`: documents, texts and bytes are written, changed, or removed.
fn change(here: &Folder, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let number = random.below(12);
        let name = format!("in/{}/{number}", number % 3);
        match random.below(6) {
            0 => drop(fs::remove_file(here.path(&name))),
            1 => here.write(&name, random.text(30_000)),
            2 => here.write(&name, random.bytes(100_000)),
            _ => {
                // A version of a document that others share paragraphs with.
                let mut texts: Vec<String> = (0..300).map(|line| Random(line).text(50)).collect();
                let at = random.below(300);
                texts[at] = random.text(50);
                here.write(&name, docx(&texts[random.below(200)..]));
            }
        }
    }
}

/// Runs a command, and kills one of its processes after a while. Returns whether it was killed before it had ended, and how
/// long it took.
fn kill_after(mut command: Command, random: &mut Random, most: Duration) -> (bool, Duration) {
    let begin = Instant::now();
    let mut tool = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    thread::sleep(Duration::from_micros(random.below(most.as_micros() as usize) as u64));
    if tool.try_wait().unwrap().is_none() {
        // A child that undoes deflate may be the one that dies.
        let family = family(tool.id());
        kill_any(family[if random.below(4) == 0 { random.below(family.len()) } else { 0 }]);
    }
    let status = tool.wait().unwrap();
    (!status.success(), begin.elapsed())
}

#[test]
fn every_snapshot_survives_kills_at_any_moment() {
    let (kills, seed) = kills_and_seed(KILLS);
    let (here, mut random) = (Folder::new(), Random(seed));
    let mut known = BTreeMap::<String, Tree>::new();
    here.write("in/first", "first");
    // Times that a put, a forget and a prune took last. A kill comes within twice this time, so about half of the tools end well.
    let mut took = [Duration::from_millis(400); 3];
    let (mut killed, mut tried, mut died) = (0, 0, [0; 3]);
    let (mut restores, mut files) = (0u64, 0u64);
    while killed < kills {
        tried += 1;
        assert!(tried < 20 * kills, "only {killed} of {tried} died");
        let at = match random.below(6) {
            0 | 1 if !known.is_empty() => 2,
            _ if known.len() >= MOST_SNAPSHOTS => 1,
            2 if known.len() > 1 => 1,
            _ => 0,
        };
        let victim = known.keys().nth(random.below(known.len())).cloned();
        let line = match at {
            0 => "chunk put store in".to_owned(),
            1 => format!("chunk forget store {}", victim.clone().unwrap()),
            _ => "chunk prune store".to_owned(),
        };
        if at == 0 {
            change(&here, &mut random);
        }
        let what = format!("kill {killed} of seed {seed}: {line}");
        let (is_dead, elapsed) = kill_after(here.command(&line), &mut random, took[at] * 2);
        killed += usize::from(is_dead);
        died[at] += usize::from(is_dead);
        if !is_dead {
            took[at] = elapsed;
        }
        // A put that died before it had made the store has lost nothing.
        if !here.path("store/chunks.json").exists() {
            continue;
        }
        let listed = snapshots(&here);
        if at == 1 {
            // A forget either has forgotten its snapshot or has not.
            known.retain(|name, _| listed.contains(name) || Some(name) != victim.as_ref());
        }
        let expected: Tree =
            here.contents("in").into_iter().map(|(name, bytes)| (format!("in/{name}"), bytes)).collect();
        for name in &listed {
            known.entry(name.clone()).or_insert_with(|| expected.clone());
        }
        assert_eq!(listed, known.keys().cloned().collect::<Vec<_>>(), "{what}");
        assert!(is_dead || at != 0 || known.values().any(|files| *files == expected), "{what}");
        here.run(if tried % 4 == 0 { "chunk check store --read-data" } else { "chunk check store" }).ends(0);
        for (name, tree) in &known {
            assert!(restored(&here, "store", name) == *tree, "{what}: {name} is another one");
            restores += 1;
            files += tree.len() as u64;
        }
    }
    println!("{killed} of {tried} tools died: puts {}, forgets {}, prunes {}", died[0], died[1], died[2]);
    println!("{restores} snapshots restored and compared with copies, {files} files, 0 files lost");
    here.run("chunk check store --read-data").ends(0);
    here.run("chunk forget store --keep-last 0").ends(0);
    here.run("chunk prune store").ends(0);
    assert_eq!(stats(&here, "store")["packs"], 0);
}
