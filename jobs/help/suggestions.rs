//! Words that people know of other programs, and what they are called here.

/// Options of other programs, in the place of those of `dedup`.
const OF_DEDUP: [(&[&str], &str); 26] = [
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
            "--hamming-distance",
            "--distance",
        ],
        "it is a parameter of the method: see dedup-job help methods",
    ),
    (&["--exact", "--minhash", "--simhash"], "it is a method: --method exact, minhash or simhash"),
    (&["--force", "-f", "--clobber"], "--overwrite replaces an output"),
    (
        &["-o", "--output", "--out", "--output-dir", "--output-path", "--outdir"],
        "the output is the last argument, without an option",
    ),
    (
        &["-i", "--input", "--inputs", "--input-path"],
        "inputs are arguments without an option, before the output",
    ),
    (
        &["--cluster", "--clusters"],
        "each output folder has its clusters in OUTPUT/clusters; --master says on which hosts a job runs",
    ),
    (&["--in-place", "--inplace"], "the input stays as it is: name another output"),
    (&["--reference", "--exclude", "--blocklist"], "--against REF removes from the input what is in REF"),
    (
        &["--include", "--pattern", "--glob"],
        "a pattern in quotation marks names some files of a folder, such as 'corpus/*.jsonl'",
    ),
    (&["--only-ids", "--ids-only", "--print-ids", "--ids"], "--only ids writes tables of ids"),
    (
        &["--drop-null", "--drop-nulls", "--skip-null", "--null"],
        "--null-text keep, drop or reject says what becomes of a null in the place of a text",
    ),
    (
        &["--save-rejected", "--rejects", "--skip-bad", "--skip-errors"],
        "records that cannot be read are listed in OUTPUT/rejects; --write-rejected writes them, too",
    ),
    (
        &["--write-removed", "--duplicates", "--save-duplicates"],
        "an output folder has the removed records in removed/; --removed FILE writes them beside a file",
    ),
    (&["--simulate", "--preview", "--dry", "--dryrun", "--no-op"], "--dry-run writes all but the records"),
    (&["--mark", "--tag", "--annotated"], "--annotate writes all records with what was decided about each"),
    (&["--stats", "--json"], "--summary-json FILE writes the numbers of the run"),
    (&["--csv", "--to", "--table-format"], "--output-format csv or jsonl writes the tables so"),
    (&["--keep-longest", "--longest"], "--keep longest lets the longest of those that match stay"),
    (&["--keep-first", "--first"], "the first of those that match stays, if no --keep says otherwise"),
    (
        &["--ignore-boilerplate", "--boilerplate"],
        "--ignore-lines N leaves lines that stand in N documents out of the comparison",
    ),
    (&["--compression", "--compress"], "records come out compressed as they went in"),
    (&["--recursive", "-r", "-R"], "folders are read with all that is in them"),
    (&["--config", "-c"], "there is no file of options: a shell script has them"),
    (&["--limit", "--subset", "--sample", "-n"], "all records are read: head and shuf draw some before"),
    (
        &["--lang", "--language", "--tokenizer"],
        "the features are a parameter of the method, such as minhash:features=word:5",
    ),
];

/// Options of other programs, in the place of those of any command that reads a corpus.
const OF_CORPUS: [(&[&str], &str); 10] = [
    (
        &[
            "-j",
            "--threads",
            "--jobs",
            "--num-proc",
            "--num-workers",
            "--parallel",
            "--cores",
            "-p",
            "-w",
            "--processes",
        ],
        "--workers N says how many threads work",
    ),
    (
        &["--text-column", "--text", "--column", "--text-key", "--text-col", "--field", "--content-field"],
        "--text-field names the field of the text",
    ),
    (&["--id-column", "--id-col", "--id-key", "--key", "--id"], "--id-field names the field of the id"),
    (
        &["--tmp", "--tmpdir", "--tmp-dir", "--temp", "--temp-dir", "--cache-dir"],
        "--local-dir is the folder for temporary files",
    ),
    (&["--mem", "--max-memory", "--executor-memory", "--ram"], "--memory SIZE limits the memory"),
    (&["--sep", "--separator"], "--delimiter is the character between the fields of CSV"),
    (&["--no-header", "--noheader"], "--header no says that the first record of CSV names no fields"),
    (&["--charset", "--codec"], "--encoding names the encoding of texts"),
    (&["--silent", "-s"], "--quiet says what is wrong and nothing else"),
    (&["--debug", "--log-level"], "--verbose tells more, and --events writes what happens to a file"),
];

/// Options that some commands have and others do not.
const OF_COMMANDS: [(&str, &[&str], &str); 7] = [
    ("eval", &["--labels"], "the labels are the last argument, without an option"),
    ("demo", &["--force", "--overwrite"], "name a folder that does not exist"),
    ("why", &["--id"], "the id is an argument, behind the output"),
    ("show", &["--threshold", "-t"], "--between LOW..HIGH shows pairs of such similarities"),
    ("show", &["--limit", "--top", "--count", "--n", "--head"], "-n N says how many pairs are shown"),
    ("report", &["-o", "--output", "--out", "--html"], "--to names the file of the page"),
    ("compare-methods", &["-o", "--output", "--out"], "--to names a folder that keeps the outputs"),
];

/// Commands of other programs.
const COMMANDS: [(&[&str], &str); 10] = [
    (
        &["run", "deduplicate", "dedupe", "clean", "minhash", "simhash", "exact"],
        "dedup finds near-duplicates and leaves a clean corpus",
    ),
    (&["completion"], "completions writes those of a shell"),
    (
        &["stats", "stat", "info", "summary", "head", "cat", "view"],
        "show prints pairs of an output, report makes a page of it, and check compares its files",
    ),
    (&["verify", "validate", "fsck"], "check compares the files of an output with the list in its _SUCCESS"),
    (&["compare-method"], "compare-methods runs several methods on one corpus"),
    (
        &["methods", "formats", "exit-codes", "exit-code", "format"],
        "dedup-job help methods, help formats and help exit-codes tell of these",
    ),
    (
        &["warc", "wet", "parquet", "csv", "jsonl"],
        "dedup reads it as any other format: dedup-job dedup INPUT OUTPUT",
    ),
    (&["diff"], "show prints the pairs of an output side by side, and why tells of one document"),
    (
        &["search", "query", "insert", "serve", "find"],
        "index keeps documents and answers whether near-duplicates are known",
    ),
    (&["ls", "list", "history"], "nightly stats --state FOLDER prints the nights of a state"),
];

/// Returns what an option of another program is called in a command.
pub fn of_option(command: &str, option: &str) -> Option<&'static str> {
    let name = option.split('=').next().unwrap_or_default().replace('_', "-");
    let is_named = |(others, _): &&(&[&str], &'static str)| others.contains(&&*name);
    let of_command = OF_COMMANDS.iter().find(|(of, others, _)| *of == command && others.contains(&&*name));
    let of_dedup = || OF_DEDUP.iter().find(is_named).filter(|_| command == "dedup").map(|(_, here)| *here);
    let of_corpus = || OF_CORPUS.iter().find(is_named).map(|(_, here)| *here);
    of_command.map(|(.., here)| *here).or_else(of_dedup).or_else(of_corpus)
}

/// Returns what a command of another program is called here.
pub fn of_command(command: &str) -> Option<&'static str> {
    let is_path = command.contains(['.', '/']);
    let named = COMMANDS.iter().find(|(others, _)| others.contains(&command)).map(|(_, here)| *here);
    named.or(is_path.then_some("the command comes first: dedup-job dedup INPUT OUTPUT"))
}

/// Whether a name that is there is so near that it may be the one that is meant.
pub fn is_near(typed: &str, there: &str) -> bool {
    strsim::damerau_levenshtein(typed, there) <= 1 + typed.chars().count() / 6
}
