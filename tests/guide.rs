//! Tests of the READMEs and of the pages of docs/guide, in English and in Chinese: a reader can run their commands.
//!
//! The lines of a page's ```` ```console ```` blocks that begin with `$ ` run one after the other in a new folder.
//! Each must exit with 0, or with 3 if it ends with `# exit code 3`. Other lines of these blocks show output,
//! which is not compared.

mod formats;

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Folder, run};

/// Most lines of README.md.
const MOST_LINES: usize = 150;
/// Most characters of a line of README.md.
const MOST_CHARACTERS: usize = 120;
/// End of a command that rejects records.
const REJECTS: &str = "# exit code 3";

/// Returns the READMEs and the pages of the guide, in English and in Chinese.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guides = ["docs/guide", "docs/guide/zh"].map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let files = guides.into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut pages: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    pages.sort();
    pages.extend(["README.md", "README.zh.md"].map(|name| root.join(name)));
    pages
}

/// Returns the commands of a page, each with the number of its line.
fn commands(page: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut console = false;
    for (at, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), line.strip_prefix("$ ")) {
            (Some(language), _) => console = language == "console",
            (None, Some(command)) if console => found.push((at + 1, command)),
            _ => {}
        }
    }
    found
}

#[test]
fn every_command_of_the_guide_runs() {
    let mut failures = Vec::new();
    let mut count = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        let folder = Folder::new();
        for (line, command) in commands(&page) {
            let result = run(&mut folder.shell(command));
            let expected = if command.ends_with(REJECTS) { 3 } else { 0 };
            if result.code != Some(expected) {
                let name = path.file_name().unwrap().display();
                failures.push(format!(
                    "{name}, line {line}: {command}\nexit code {:?}, expected {expected}\n{}{}",
                    result.code, result.stdout, result.stderr
                ));
            }
            count += 1;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(count > 50, "{count} commands");
}

/// Returns the command of a line of a crontab as cron gives it to the shell: a `%` ends it, unless a backslash stands before
/// it (crontab(5)).
fn command_of_cron(line: &str) -> String {
    let command = line.splitn(6, ' ').last().unwrap();
    let hidden = command.replace("\\%", "\0");
    hidden.split('%').next().unwrap().replace('\0', "%")
}

#[test]
fn the_line_for_the_crontab_runs_the_nights() {
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide/nightly.md")).unwrap();
    let line = page.lines().find(|line| line.starts_with("15 4 * * * ")).unwrap();
    let here = Folder::new();
    here.write("nn/crawl/dt=1/a.jsonl", "{\"id\":\"a\",\"text\":\"今天\"}\n");
    here.write("nn/crawl/dt=1/_SUCCESS", "");
    let root = here.path("").display().to_string();
    let command = command_of_cron(line).replace("hdfs://", &root).replace("/var/metrics/", &root);
    assert!(command.contains("--max-removed 40% --state"), "{command}");
    run(&mut here.shell(&command)).ends(0);
    assert!(here.path("nn/clean/dt=1/_SUCCESS").exists() && here.path("dedup.prom").exists());
}

#[test]
fn the_readme_is_short() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    assert!(readme.lines().count() <= MOST_LINES, "{} lines", readme.lines().count());
    for (at, line) in readme.lines().enumerate() {
        let characters = line.chars().count();
        assert!(characters <= MOST_CHARACTERS, "line {} has {characters} characters", at + 1);
    }
}
