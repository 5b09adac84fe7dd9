//! Figures of the index in HBase, which docs/design/hbase.md has. `--nocapture` shows them.

use std::time::{Duration, Instant};

use hbase::{GatewayLimits, HBaseAddress, HBaseTable, TableRow};

use super::{documents, empty_index, shared};
use crate::corpus::demo;
use crate::support::{Folder, Random};

/// Number of documents of the corpus, and of those that are asked about.
const DOCUMENTS: u32 = 20_000;
const ASKED: usize = 2000;
/// Number of rows of a query.
const ROWS: usize = 66;

/// Runs a command, and prints how long it takes for each of some documents.
fn timed(here: &Folder, what: &str, documents: usize, line: &str) {
    let start = Instant::now();
    here.run(line).ends(0);
    let seconds = start.elapsed().as_secs_f64();
    let each = 1000.0 * seconds / documents as f64;
    let rate = documents as f64 / seconds;
    println!("{what}: {documents} documents in {seconds:.1} s, {each:.2} ms each, {rate:.0} a second");
}

/// Asks for random rows, of which all but `present` do not exist. Prints the times, and returns their median.
fn requests(table: &HBaseTable, rows: &[Vec<u8>], present: usize) -> Duration {
    let mut random = Random(3);
    let mut times = Vec::new();
    for _ in 0..1500 {
        let row = |at: usize| {
            let mut row = rows[random.below(rows.len())].clone();
            if at >= present {
                let key = row.len() - 4;
                row[key..].copy_from_slice(&random.bytes(4));
                row[0] = random.below(64) as u8;
            }
            TableRow::First(row, 10_000)
        };
        let asked: Vec<TableRow> = (0..ROWS).map(row).collect();
        let start = Instant::now();
        table.rows(&asked).unwrap();
        times.push(start.elapsed());
    }
    // The gateway is warm by then.
    let times = &mut times[500..];
    times.sort();
    let median = times[times.len() / 2];
    let rare = times[times.len() * 99 / 100];
    println!(
        "{ROWS} rows in one request, {present} of them present: median {median:?}, 99th percentile {rare:?}"
    );
    median
}

#[test]
#[ignore = "needs scripts/hbase/build"]
fn a_query_takes_less_than_ten_milliseconds() {
    let here = demo(DOCUMENTS, 1);
    let asked = here.lines("demo", "corpus.jsonl")[..ASKED].join("\n") + "\n";
    here.write("asked.jsonl", asked);
    let all = DOCUMENTS as usize;
    let [index, other] = [(); 2].map(|()| empty_index(&here, shared()));
    for turn in ["insert, first", "insert, second"] {
        timed(&here, turn, all, &format!("--quiet index insert {index} demo/corpus.jsonl"));
    }
    for turn in ["query, first", "query, second"] {
        timed(&here, turn, ASKED, &format!("--quiet --workers 1 index query {index} asked.jsonl"));
    }
    for turn in ["query --insert, of new documents", "query --insert, of known documents"] {
        timed(&here, turn, all, &format!("--quiet index query --insert {other} demo/corpus.jsonl"));
    }
    assert_eq!(documents(&here, &index), [2 * u64::from(DOCUMENTS), 0]);
    let address = HBaseAddress::parse(&index).unwrap().unwrap();
    let table = HBaseTable::new(&address, GatewayLimits::default());
    let mut rows = Vec::new();
    for partition in 0..64 {
        // Rows of the first table of the topic.
        let start = [&[partition][..], b"default", &[0, 0]].concat();
        let end = [&[partition][..], b"default", &[0, 1]].concat();
        let found = table.scan(&start..&end, None, 200).unwrap();
        rows.extend(found.into_iter().map(|row| row[0].row.clone()));
    }
    assert!(rows.len() > 2000, "{}", rows.len());
    for present in [2, ROWS] {
        let median = requests(&table, &rows, present);
        assert!(median < Duration::from_millis(10), "{median:?}");
    }
}
