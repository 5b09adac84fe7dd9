//! Tests that kill a run at any point and resume it. The output must be that of an undisturbed run, and a
//! reader must always see a whole output or none.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{env, fs};

use super::{SPLITS, Whole, command, processes};
use crate::corpus::with_bad_line;
use crate::support::{Folder, Random, children, signal, sorted};

/// Number of kills, if the environment does not say it.
const KILLS: usize = 60;

/// Points of the program, and the least number of times that a run comes to each.
const POINTS: [(&str, usize); 8] = [
    ("create", 60),
    ("write", 120),
    ("finish", 60),
    ("rename", 12),
    ("settle", 12),
    ("remove", 8),
    ("exchange", 12),
    ("meet", 4),
];

/// Reader that looks at an output all the time.
pub struct Reader {
    stop: Arc<AtomicBool>,
    looks: Arc<AtomicU64>,
    /// Number of looks that saw an output, which was whole.
    wholes: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Reader {
    /// Starts the reader. `look` checks the output, and returns whether there is one.
    pub fn start(look: impl Fn() -> bool + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let [looks, wholes] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        let (stopped, looked, seen) = (Arc::clone(&stop), Arc::clone(&looks), Arc::clone(&wholes));
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                seen.fetch_add(u64::from(look()), Ordering::Relaxed);
                looked.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(2));
            }
        });
        Reader { stop, looks, wholes, thread }
    }

    /// Ends the reader. Returns the number of looks, and the number of looks that saw an output.
    pub fn end(self) -> [u64; 2] {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        let counts = [self.looks, self.wholes].map(|count| count.load(Ordering::Relaxed));
        assert!(counts[0] > 0);
        counts
    }
}

/// Checks an output of this machine, which must be one of those `allowed`. Returns whether there is one.
fn look(output: &Path, allowed: &[Arc<Whole>]) -> bool {
    let success = fs::read(output.join("_SUCCESS")).ok();
    let whole = Whole::read(output);
    // An output that was replaced while it was read proves nothing.
    if success.is_none() || success != fs::read(output.join("_SUCCESS")).ok() {
        return false;
    }
    let whole = whole.unwrap();
    assert!(allowed.iter().any(|one| **one == whole), "a part of an output was seen");
    true
}

/// Returns a process and all that it has started.
pub fn family(process: u32) -> Vec<u32> {
    [process].into_iter().chain(children(process).into_iter().flat_map(family)).collect()
}

/// Kills a process, which may have ended already.
pub fn kill_any(process: u32) {
    let mut kill = Command::new("kill");
    kill.args(["-s", "KILL", &process.to_string()]).stderr(Stdio::null()).status().unwrap();
}

/// Waits for the end of a job. Returns whether it ended well.
pub fn wait(mut job: Child) -> bool {
    let end = Instant::now() + Duration::from_secs(120);
    let family = family(job.id());
    loop {
        if let Some(status) = job.try_wait().unwrap() {
            return status.code() == Some(3);
        }
        if Instant::now() > end {
            family.into_iter().for_each(|process| signal(process, "KILL"));
            panic!("the job has no end");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the number of kills that the environment asks for, and the seed from which they are drawn.
pub fn kills_and_seed(usual: usize) -> (usize, u64) {
    let kills = env::var("DEDUP_KILLS").map_or(usual, |kills| kills.parse().unwrap());
    (kills, env::var("DEDUP_SEED").map_or(1, |seed| seed.parse().unwrap()))
}

struct Kill {
    method: &'static str,
    count: usize,
    overwrite: bool,
    how: How,
}

#[derive(Debug)]
enum How {
    Point(usize, &'static str, usize),
    /// One of the job's processes, after this number of milliseconds.
    Any(usize, usize),
}

impl How {
    fn name(&self) -> &'static str {
        match self {
            How::Point(_, point, _) => point,
            How::Any(..) => "any time",
        }
    }
}

fn kill(random: &mut Random) -> Kill {
    let count = 1 + random.below(2);
    let (point, most) = POINTS[random.below(POINTS.len())];
    let how = match random.below(4) {
        0 => How::Any(random.below(1500), random.below(6)),
        _ => How::Point(random.below(count), point, 1 + random.below(most)),
    };
    Kill {
        method: ["auto", "simhash", "minhash"][random.below(3)],
        count,
        overwrite: random.below(3) == 0,
        how,
    }
}

/// Runs a job until it dies or is done. Returns whether it died.
fn die(here: &Folder, line: &str, how: &How) -> bool {
    let mut command = command(here, line);
    if let How::Point(process, point, count) = how {
        command.env("DEDUP_FAULT", format!("{process} {point} {count} kill"));
    }
    let job = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    if let How::Any(milliseconds, which) = how {
        thread::sleep(Duration::from_millis(*milliseconds as u64));
        let family = family(job.id());
        kill_any(family[which % family.len()]);
    }
    !wait(job)
}

#[test]
fn a_killed_run_goes_on_and_nothing_is_lost_or_seen_in_part() {
    let (kills, seed) = kills_and_seed(KILLS);
    let here = with_bad_line();
    let output = here.path("out");
    let line = |method: &str, options: &str| {
        format!("{options} --workers 2 dedup in.jsonl out --method {method} {SPLITS}")
    };
    let undisturbed = |method: &str| {
        here.run(&line(method, "")).ends(3);
        let whole = Whole::read(&output).unwrap();
        // The reason of each removal is written into its line.
        let ids = |folder: &str| -> Vec<_> {
            here.objects(folder, ".jsonl").iter().map(|line| line["id"].to_string()).collect()
        };
        let found = sorted([ids("out/kept"), ids("out/removed")].concat());
        assert_eq!(found, sorted(ids("demo/corpus.jsonl")), "{method}");
        fs::remove_dir_all(&output).unwrap();
        Arc::new(whole)
    };
    let wholes = ["auto", "simhash", "minhash", "exact"].map(|method| (method, undisturbed(method)));
    let whole = |method: &str| Arc::clone(&wholes.iter().find(|whole| whole.0 == method).unwrap().1);

    let mut random = Random(seed);
    let (mut died, mut tried, mut resumed) = (0, 0, 0);
    let mut points = BTreeMap::new();
    let mut looks = [0; 2];
    while died < kills {
        tried += 1;
        assert!(tried < 20 * kills, "only {died} of {tried} died");
        let Kill { method, count, overwrite, how } = kill(&mut random);
        let what =
            format!("kill {died}, seed {seed}: {method}, {count} processes, overwrite {overwrite}, {how:?}");
        let options = format!("{} {}", processes(&here, count), if overwrite { "--overwrite" } else { "" });
        let line =
            line(method, &options.replace("--overwrite", "")) + if overwrite { " --overwrite" } else { "" };
        let mut allowed = vec![whole(method)];
        if overwrite {
            here.run("--workers 2 dedup in.jsonl out --method exact --split-size 96K --quiet").ends(3);
            allowed.push(whole("exact"));
        }
        let seen = output.clone();
        let reader = Reader::start(move || look(&seen, &allowed));
        let mut deaths = 0;
        while deaths < 1 + random.below(2) && die(&here, &line, &how) {
            deaths += 1;
        }
        if deaths > 0 {
            let run = crate::support::run(&mut command(&here, &line));
            // A run that dies after all was committed leaves nothing to do.
            let done = run.code == Some(2) && run.stderr.contains("exists");
            assert!(run.code == Some(3) || done, "{what}: {run:?}");
            resumed += usize::from(!done);
        }
        died += deaths;
        *points.entry(how.name()).or_insert(0) += deaths;
        let [looked, seen] = reader.end();
        looks = [looks[0] + looked, looks[1] + seen];
        let now = Whole::read(&output).unwrap_or_else(|| panic!("{what}: no output"));
        assert!(now == *whole(method), "{what}: another output");
        let left = fs::read_dir(&output).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = left.filter(|name| name == "_temporary").collect();
        assert!(left.is_empty() || deaths > 0 && !overwrite, "{what}: _temporary is left");
        fs::remove_dir_all(&output).unwrap();
    }
    println!("{died} deaths: {points:?}");
    println!(
        "{tried} outputs, each that of an undisturbed run: {resumed} runs went on to the end, 0 documents lost, 0 twice"
    );
    println!("{} looks meanwhile, {} of them at an output, 0 at a part of one", looks[0], looks[1]);
}

/// Finished map outputs are not made again.
#[test]
fn what_is_mapped_is_not_mapped_again() {
    let here = with_bad_line();
    let line = format!("--workers 2 dedup in.jsonl out --method simhash {SPLITS}");
    let maps = || -> Vec<_> {
        let files = here.files("out/_temporary").into_iter();
        let maps = files.filter(|file| file.parent().unwrap().ends_with("map"));
        maps.map(|file| {
            (file.file_name().unwrap().to_owned(), fs::metadata(&file).unwrap().modified().unwrap())
        })
        .collect()
    };
    assert!(die(&here, &line, &How::Point(0, "exchange", 1)));
    let first = maps();
    assert!(first.len() > 5, "{first:?}");
    assert!(die(&here, &line, &How::Point(0, "exchange", 2)));
    assert_eq!(maps(), first);
    here.run(&line).ends(3);
}
