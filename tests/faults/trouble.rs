//! Bad luck of a run: it dies, falls asleep on another host while others go on, has a clock that is days off, or lists folders
//! slowly.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::clock::{ahead, library};
use crate::support::{
    Folder, Random, Run, Running, children, gone, run, signal, status, unshare, wait_until,
};

const DAY: i64 = 24 * 60 * 60;
/// Points of the program at which it dies or falls asleep.
const POINTS: [&str; 6] = ["create", "write", "settle", "finish", "rename", "remove"];
/// Most times that a run comes to such a point.
const MOST: usize = 40;
/// Most deaths before a run is let go to its end.
const DEATHS: usize = 3;

/// Draws what happens to runs, and counts it.
pub struct Trouble {
    random: Random,
    /// Library that sets clocks and slows listings.
    library: PathBuf,
    folder: Folder,
    /// Days that the clock of the last command was ahead.
    pub days_ahead: i64,
    /// Number of runs that died, and of those that fell asleep and woke.
    pub counts: [usize; 2],
}

impl Trouble {
    pub fn new(seed: u64) -> Self {
        let folder = Folder::new();
        Trouble { random: Random(seed), library: library(&folder), folder, days_ahead: 0, counts: [0; 2] }
    }

    /// Runs the program to its end. Before that it may die, and be started again; or it falls asleep, the same is done on
    /// another host, and it wakes.
    pub fn run(&mut self, here: &Folder, line: &str) -> Run {
        match self.random.below(4) {
            0 => match self.fall_asleep(here, line) {
                Err(ended) => ended,
                Ok(asleep) => {
                    let ended = self.survive(here, line);
                    asleep.wake();
                    ended
                }
            },
            1 => run(&mut self.command(here, line)),
            _ => self.survive(here, line),
        }
    }

    /// Runs the program until it ends by itself.
    fn survive(&mut self, here: &Folder, line: &str) -> Run {
        for _ in 0..self.random.below(DEATHS + 1) {
            let fault = self.fault("kill");
            let ended = run(self.command(here, line).env("DEDUP_FAULT", fault));
            if ended.code.is_some() {
                return ended;
            }
            self.counts[0] += 1;
        }
        run(&mut self.command(here, line))
    }

    /// Starts the program as on another host, in namespaces of its own, and waits until it falls asleep. Returns how it ends if
    /// that comes first.
    pub fn fall_asleep(&mut self, here: &Folder, line: &str) -> Result<Asleep, Run> {
        let fault = self.fault("stop");
        let command = self.command(here, line);
        let mut host = unshare(&["--pid", "--fork", "--mount-proc", "--kill-child"]);
        // The kernel does not let the first process of a namespace stop itself, so a shell comes first.
        host.args(["sh", "-c", "\"$@\"; exit $?", "sh"]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => host.env(name, value),
                None => host.env_remove(name),
            };
        }
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| self.folder.path(name));
        host.stdout(File::create(&stdout).unwrap()).stderr(File::create(&stderr).unwrap());
        host.current_dir(here.path("")).env("DEDUP_FAULT", fault);
        let mut asleep = Asleep { host: Running(host.spawn().unwrap()), program: 0, stdout, stderr };
        let id = asleep.host.0.id();
        wait_until("the run falls asleep or ends", Duration::from_secs(60), || {
            let programs = children(id).into_iter().flat_map(children);
            asleep.program =
                programs.filter(|&of| status(of).is_some_and(|(_, state)| state == 'T')).max().unwrap_or(0);
            asleep.program > 0 || gone(id)
        });
        if asleep.program == 0 {
            return Err(asleep.ended());
        }
        self.counts[1] += 1;
        Ok(asleep)
    }

    /// Returns the program with a clock and a disk of this run.
    pub fn command(&mut self, here: &Folder, line: &str) -> Command {
        let mut command = here.command(line);
        self.days_ahead = [0, 0, 1, -1, 8, -8][self.random.below(6)];
        ahead(&mut command, &self.library, self.days_ahead * DAY);
        command.env("LISTING_MS", ["0", "0", "2", "10"][self.random.below(4)]);
        // A lock of another host is taken over in less than the usual ten seconds.
        command.env("DEDUP_FAULT_LOOK_MS", "1");
        command
    }

    fn fault(&mut self, action: &str) -> String {
        // Runs come to all points a few times, and to some of them often.
        let most = 1 + self.random.below(MOST);
        let point = POINTS[self.random.below(POINTS.len())];
        let time = 1 + self.random.below(most);
        format!("0 {point} {time} {action}")
    }
}

/// A run that sleeps. It is killed when it goes out of scope.
pub struct Asleep {
    host: Running,
    program: u32,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Asleep {
    /// Wakes the run, and returns how it ends.
    pub fn wake(mut self) -> Run {
        signal(self.program, "CONT");
        self.ended()
    }

    fn ended(&mut self) -> Run {
        let mut code = None;
        wait_until("the run ends", Duration::from_secs(120), || {
            code = self.host.0.try_wait().unwrap();
            code.is_some()
        });
        let text = |path| fs::read_to_string(path).unwrap();
        Run { code: code.unwrap().code(), stdout: text(&self.stdout), stderr: text(&self.stderr) }
    }
}
