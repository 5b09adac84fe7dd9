//! Shared by the tests: the built program in a folder of its own, texts, and readers of what it writes.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::Value;
use tempfile::TempDir;

pub use crate::random::Random;

/// Time far longer than any run takes: a program that is not done by then hangs.
const FOR_EVER: Duration = Duration::from_secs(600);

/// Files by their paths from a folder.
pub type Tree = BTreeMap<String, Vec<u8>>;

/// Folder in which the program is run.
pub struct Folder(TempDir);

/// Result of a run.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// Checks that the run failed with this code, one line on stderr that holds all of `words`, and nothing
    /// on stdout.
    #[track_caller]
    pub fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        let line = self.stderr.strip_suffix('\n').unwrap_or_else(|| panic!("no whole line: {self:?}"));
        assert!(line.starts_with("error: ") && !line.contains('\n'), "not one line: {self:?}");
        assert!(words.iter().all(|word| line.contains(word)), "{words:?} are not all in {self:?}");
        assert_eq!(self.stdout, "");
    }

    /// Checks the exit code.
    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }
}

impl Folder {
    pub fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Returns the program with the arguments of `line`, which are separated by spaces; names are those of
    /// this folder.
    pub fn command(&self, line: &str) -> Command {
        let mut command = self.start(env!("CARGO_BIN_EXE_dedup-job"));
        command.args(line.split_whitespace());
        command
    }

    /// Returns a shell with `line`, in which the program is `dedup-job`.
    pub fn shell(&self, line: &str) -> Command {
        let mut command = self.start("sh");
        let program = Path::new(env!("CARGO_BIN_EXE_dedup-job")).parent().unwrap().display().to_string();
        let path = env::var("PATH").unwrap();
        command.args(["-c", line]).env("PATH", format!("{program}:{path}"));
        command
    }

    /// Returns another program in this folder.
    fn start(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        // The tests ignore the clusters, clouds and colours of whoever runs them.
        for (name, _) in env::vars_os() {
            if ["HADOOP_", "AWS_", "GOOGLE_", "AZURE_", "NO_COLOR", "CLICOLOR"]
                .iter()
                .any(|of| name.to_string_lossy().starts_with(of))
            {
                command.env_remove(name);
            }
        }
        command.current_dir(self.0.path());
        command
    }

    /// Returns a browser without a window, in which a page has so many milliseconds before it is shown.
    pub fn browser(&self, milliseconds: u32) -> Command {
        let mut browser = self.start("chromium");
        browser.args(["--headless", "--no-sandbox", "--disable-gpu"]);
        browser.arg(format!("--virtual-time-budget={milliseconds}"));
        browser.arg(format!("--user-data-dir={}", self.path("profile").display()));
        browser
    }

    pub fn run(&self, line: &str) -> Run {
        run(&mut self.command(line))
    }

    /// Returns the files below `folder`, or `folder` itself if it is a file, with hidden ones, ordered by
    /// name. Empty if it does not exist.
    pub fn files(&self, folder: &str) -> Vec<PathBuf> {
        files(&self.path(folder))
    }

    /// Returns these files by their paths from there, byte for byte.
    pub fn contents(&self, folder: &str) -> Tree {
        let root = self.path(folder);
        let name = |file: &Path| file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        self.files(folder).into_iter().map(|file| (name(&file), fs::read(&file).unwrap())).collect()
    }

    /// Returns these files of an output, but `_SUCCESS` and the page, which name the times of the run.
    pub fn output(&self, folder: &str) -> Tree {
        let mut files = self.contents(folder);
        files.retain(|name, _| name != "_SUCCESS" && name != "report.html");
        files
    }

    /// Returns the concatenated parts of `folder` whose names end with `suffix`.
    pub fn bytes(&self, folder: &str, suffix: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in self.files(folder).iter().filter(|part| part.to_str().unwrap().ends_with(suffix)) {
            bytes.extend(fs::read(part).unwrap());
        }
        bytes
    }

    /// Returns the lines of these parts. The last line must be whole too.
    pub fn lines(&self, folder: &str, suffix: &str) -> Vec<String> {
        let text = String::from_utf8(self.bytes(folder, suffix)).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines().map(str::to_owned).collect()
    }

    /// Returns these lines as JSON.
    pub fn objects(&self, folder: &str, suffix: &str) -> Vec<Value> {
        self.lines(folder, suffix).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the rows of all Parquet parts of `folder`, without the names of the columns.
    pub fn rows(&self, folder: &str) -> Vec<Vec<String>> {
        let parts = self.files(folder);
        parts
            .iter()
            .filter(|part| part.extension().is_some_and(|e| e == "parquet"))
            .flat_map(|p| rows(p))
            .collect()
    }

    /// Returns the rows of `pairs` or `clusters` of an output without positions, which depend on the splits.
    pub fn table(&self, folder: &str) -> Vec<Vec<String>> {
        let parts = self.files(folder);
        let places = |name: &str| name.ends_with("place");
        parts.iter().flat_map(|part| rows_less(part, places)).collect()
    }

    /// Returns the content of `_SUCCESS` of an output.
    pub fn success(&self, output: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(output).join("_SUCCESS")).unwrap()).unwrap()
    }

    /// Returns one of the counters in `_SUCCESS`.
    #[track_caller]
    pub fn counter(&self, output: &str, name: &str) -> u64 {
        self.success(output)["counters"][name].as_u64().unwrap_or_else(|| panic!("no counter {name}"))
    }
}

/// Returns `unshare` with `options`, to be followed by the program that it starts in namespaces of its own.
///
/// # Panics
/// When this machine does not allow that; the message says what is missing.
pub fn unshare(options: &[&str]) -> Command {
    let tried = Command::new("unshare").args(options).arg("true").output();
    let tried =
        tried.unwrap_or_else(|error| panic!("unshare does not start ({error}): run scripts/hosts/build"));
    assert!(
        tried.status.success(),
        "this test needs namespaces of its own, which the kernel forbids here ({}): not in a chroot (scripts/fresh shows how to do \
         without one), and in a container with --privileged or a seccomp profile that allows unshare and mount; \
         where users may not make them, sysctl kernel.unprivileged_userns_clone=1 or root",
        String::from_utf8_lossy(&tried.stderr).trim()
    );
    let mut command = Command::new("unshare");
    command.args(options);
    command
}

/// Process that is killed when it goes out of scope.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

/// Runs a program to its end. One that hangs is killed, and fails the test.
#[track_caller]
pub fn run(command: &mut Command) -> Run {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let process = child.id();
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = ended.recv_timeout(FOR_EVER) else {
        signal(process, "KILL");
        panic!("no end after {FOR_EVER:?}: {command:?}");
    };
    let output = output.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Sends a signal such as `STOP` to a process that we started.
pub fn signal(process: u32, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &process.to_string()]).status().unwrap().success());
}

/// Waits until a process is stopped or has ended.
#[track_caller]
pub fn wait_until_stopped(process: u32) {
    let is_stopped = || status(process).is_none_or(|(_, state)| matches!(state, 'T' | 'Z'));
    wait_until("the process stops", Duration::from_secs(60), is_stopped);
}

/// Waits until `done` is true, and fails after `limit`.
#[track_caller]
pub fn wait_until(what: &str, limit: Duration, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !done() {
        assert!(Instant::now() < end, "not within {limit:?}: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the parent and the state of a process; `None` if it does not exist.
pub fn status(process: u32) -> Option<(u32, char)> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it may hold any characters.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((fields.next()?.parse().ok()?, state))
}

/// Whether a process has ended, also if nobody has waited for it yet.
pub fn gone(process: u32) -> bool {
    status(process).is_none_or(|(_, state)| state == 'Z')
}

/// Returns the processes that a process has started and whose end it has not yet seen.
pub fn children(process: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    children.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

/// Returns a file or folder of the shared test data; `None`, and a line that says so, if there is no such
/// data.
pub fn test_data(name: &str) -> Option<PathBuf> {
    let Some(data) = env::var_os("DEDUP_TEST_DATA") else {
        #[allow(clippy::explicit_write, reason = "what eprintln! writes is shown for failing tests only")]
        writeln!(io::stderr(), "skipped the test of {name}: DEDUP_TEST_DATA is not set").unwrap();
        return None;
    };
    Some(PathBuf::from(data).join(name))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = if folder.is_file() { vec![folder.to_owned()] } else { Vec::new() };
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        found.extend(if path.is_dir() { files(&path) } else { vec![path] });
    }
    found.sort();
    found
}

/// Returns the rows of a Parquet file: strings as they are, other values as numbers are written.
pub fn rows(file: &Path) -> Vec<Vec<String>> {
    rows_less(file, |_| false)
}

/// Returns these rows without the columns whose names are `left_out`.
fn rows_less(file: &Path, left_out: impl Fn(&str) -> bool) -> Vec<Vec<String>> {
    let text = |field: &Field| match field {
        Field::Str(text) => text.clone(),
        other => other.to_string(),
    };
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    let wanted = |row: &Row| -> Vec<String> {
        let columns = row.get_column_iter().filter(|(name, _)| !left_out(name));
        columns.map(|(_, field)| text(field)).collect()
    };
    rows.map(|row| wanted(&row.unwrap())).collect()
}

/// Sorts items, for comparing what may come in any order.
pub fn sorted<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort();
    items
}

/// Copies a folder with everything in it.
pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.as_ref().unwrap().path();
        let to = to.join(entry.unwrap().file_name());
        match path.is_dir() {
            true => copy_folder(&path, &to),
            false => drop(fs::copy(&path, &to).unwrap()),
        }
    }
}
