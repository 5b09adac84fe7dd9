//! What people type who know other programs, and what it is called here.

/// Options of other programs.
const OPTIONS: [(&[&str], &str); 11] = [
    (
        &["--threshold", "--jaccard", "--similarity", "-t"],
        "the threshold is a parameter of the method, such as --method jaccard:0.9; rethreshold raises that of an output",
    ),
    (
        &[
            "--ngram",
            "--ngram-size",
            "--ngrams",
            "--shingle",
            "--shingle-size",
            "--num-perm",
            "--bands",
            "--hamming",
        ],
        "it is a parameter of the method: see dedup-job help methods",
    ),
    (&["--force", "-f", "--clobber"], "--overwrite replaces an output"),
    (
        &["-o", "--output", "--out", "--output-dir", "--output-path"],
        "the output is the last argument, without an option",
    ),
    (
        &["-i", "--input", "--inputs", "--input-path"],
        "inputs are arguments without an option, before the output",
    ),
    (
        &["-j", "--threads", "--jobs", "--num-proc", "--num-workers", "--parallel", "--cores", "-p"],
        "--workers N says how many threads work",
    ),
    (
        &["--cluster", "--clusters"],
        "each output folder has its clusters in OUTPUT/clusters; --master says on which hosts a job runs",
    ),
    (
        &["--text-column", "--text", "--column", "--text-key", "--field", "--content-field"],
        "--text-field names the field of the text",
    ),
    (&["--id-column", "--id", "--id-key", "--key"], "--id-field names the field of the id"),
    (&["--tmp", "--tmpdir", "--temp-dir", "--cache-dir"], "--local-dir is the folder for temporary files"),
    (&["--debug", "--log-level"], "--verbose tells more, and --events writes what happens to a file"),
];

/// Commands of other programs.
const COMMANDS: [(&[&str], &str); 6] = [
    (
        &["run", "deduplicate", "clean", "minhash", "simhash", "exact"],
        "dedup finds near-duplicates and leaves a clean corpus",
    ),
    (&["completion"], "completions writes those of a shell"),
    (
        &["stats", "stat", "info", "summary", "head", "cat", "view"],
        "show prints pairs of an output, report makes a page of it, and check compares its files",
    ),
    (&["diff"], "show prints the pairs of an output side by side, and why tells of one document"),
    (
        &["search", "query", "insert", "serve"],
        "index keeps documents and answers whether near-duplicates are known",
    ),
    (&["ls", "list", "history"], "nightly stats --state FOLDER prints the nights of a state"),
];

/// Returns what an option of another program is called here.
pub fn of_option(option: &str) -> Option<&'static str> {
    let name = option.split('=').next().unwrap_or_default();
    OPTIONS.iter().find(|(others, _)| others.contains(&name)).map(|(_, here)| *here)
}

/// Returns what a command of another program is called here.
pub fn of_command(command: &str) -> Option<&'static str> {
    COMMANDS.iter().find(|(others, _)| others.contains(&command)).map(|(_, here)| *here)
}
