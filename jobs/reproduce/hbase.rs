//! The article on an index of 100 billion texts in HBase: its arithmetic, its candidates and the time of a query.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;
use operators::hash;
use serde_json::{Map, Value};

use super::page::{Claim, ClaimVerdict, PaperPage};
use super::trials::Trials;
use runtime::cli::terminal::grouped;
use runtime::report::chart::{Axis, Chart};
use runtime::report::parts::{PagePart, PageTable};

/// Number of queries whose candidates are counted.
const QUERIES: usize = 64;
/// Largest topic of the article.
const DOCUMENTS: u64 = 1 << 37;

/// Candidates of a query in the mean, among so many documents with random fingerprints.
struct QueryCandidates {
    documents: u64,
    /// Pairs in the four rows that the article reads.
    article: f64,
    /// Those that agree with the query in a block at its own place.
    in_place: f64,
    /// Candidates of two tables of 32 bits within one bit, as our index has them.
    ours: f64,
}

/// Makes the page.
pub(super) fn reproduce(trials: &mut Trials) -> Result<PaperPage> {
    let mut page = PaperPage {
        title: "Similarity and deduplication of 100 billion texts on HBase",
        corpus: "random fingerprints of 64 bits: the article takes them as spread evenly, too".to_owned(),
        claims: Vec::new(),
        parts: Vec::new(),
    };
    arithmetic(&mut page);
    candidates(trials, &mut page)?;
    time(trials, &mut page)?;
    page.parts.push(PagePart::Text(
        "The article's table and its observer are in `scripts/hbase`. `scripts/hbase/build` installs a real HBase, on which `tests/hbase` run them, with the \
         three faults that docs/papers/hbase.md names; their times are in docs/benchmarks/2026-11-29-hbase-sweep.txt."
            .to_owned(),
    ));
    Ok(page)
}

/// Adds the claims that can be worked out.
fn arithmetic(page: &mut PaperPage) {
    let in_row = DOCUMENTS * 4 / (1 << 16);
    let rows = [
        ("2^37 documents", "137.5 billion", grouped(DOCUMENTS), ClaimVerdict::HoldsInPart, "137.4 billion"),
        (
            "Pairs in a row",
            "8,388,608",
            grouped(in_row),
            ClaimVerdict::Holds,
            "four blocks share the rows, so a row has those of each",
        ),
        (
            "Pairs that a query reads",
            "33,554,432, about 33.56 million",
            grouped(4 * in_row),
            ClaimVerdict::Holds,
            "33.55 million; but see the candidates below",
        ),
        (
            "Sets of 10,000 in a row",
            "about 839",
            grouped(in_row.div_ceil(10_000)),
            ClaimVerdict::Holds,
            "838.9",
        ),
        ("Rows of ten topics", "655,360", grouped(10 << 16), ClaimVerdict::Holds, "ten times 2^16"),
        (
            "The data \"will not be too large\"",
            "no number",
            format!("{} TB", DOCUMENTS * 4 * 100 / 1_000_000_000_000),
            ClaimVerdict::DoesNotHold,
            "2^37 documents, four pairs each, 100 bytes a pair",
        ),
        (
            "Columns of design 1",
            "2^64, written 184467440737亿万",
            format!("{}", u128::from(u64::MAX) + 1),
            ClaimVerdict::DoesNotHold,
            "that is 1.8·10^19, and 亿万 makes it 1.8·10^23; a row has no more columns than there are documents",
        ),
    ];
    for (claim, published, measured, verdict, because) in rows {
        page.claims.push(Claim {
            claim: claim.to_owned(),
            published: published.to_owned(),
            measured,
            verdict,
            because: because.to_owned(),
            runs: Vec::new(),
        });
    }
}

fn blocks(fingerprint: u64) -> [u16; 4] {
    [48, 32, 16, 0].map(|shift| (fingerprint >> shift) as u16)
}

/// Counts candidates by looking at all fingerprints.
fn counted(documents: u64, seed: u64) -> QueryCandidates {
    let fingerprint = |number: u64| hash::spread(number ^ hash::spread(seed));
    let queries: Vec<u64> = (0..QUERIES as u64).map(|query| fingerprint(!query)).collect();
    // For each value of a block, how many times it is a row of a query.
    let mut rows = vec![0_u8; 1 << 16];
    queries.iter().flat_map(|query| blocks(*query)).for_each(|block| rows[usize::from(block)] += 1);
    let (mut article, mut in_place, mut ours) = (0, 0, 0);
    for number in 0..documents {
        let one = fingerprint(number);
        let read: u64 = blocks(one).iter().map(|block| u64::from(rows[usize::from(*block)])).sum();
        article += read;
        let within = |apart: u32| u64::from(apart.count_ones() <= 1);
        if read > 0 {
            let agreeing = queries.iter().map(|query| {
                blocks(*query).iter().zip(blocks(one)).filter(|(a, b)| **a == *b).count() as u64
            });
            in_place += agreeing.sum::<u64>();
        }
        // Halves within one bit share at least one of their two blocks.
        if read > 0 {
            ours += queries
                .iter()
                .map(|query| within((query ^ one) as u32) + within(((query ^ one) >> 32) as u32))
                .sum::<u64>();
        }
    }
    let mean = |count: u64| count as f64 / QUERIES as f64;
    QueryCandidates { documents, article: mean(article), in_place: mean(in_place), ours: mean(ours) }
}

/// Candidates by counting, and on a line to 2^37.
fn candidates(trials: &mut Trials, page: &mut PaperPage) -> Result<()> {
    let sizes = trials.sized(vec![1_000_000, 10_000_000], vec![1_000_000, 10_000_000, 100_000_000]);
    let seed = trials.seed;
    let (run, counts) = trials.measured("candidates by counting", |raw| {
        let counts: Vec<QueryCandidates> = sizes.into_iter().map(|documents| counted(documents, seed)).collect();
        for QueryCandidates { documents, article, in_place, ours } in &counts {
            *raw += &format!("{documents} documents: {article:.2} pairs read, {in_place:.2} in place, {ours:.4} candidates of ours\n");
        }
        Ok(counts)
    })?;
    let at_end = QueryCandidates {
        documents: DOCUMENTS,
        article: 16.0 * DOCUMENTS as f64 / 65_536.0,
        in_place: 4.0 * DOCUMENTS as f64 / 65_536.0,
        ours: 66.0 * DOCUMENTS as f64 / 2_f64.powi(32),
    };
    let last = &counts[counts.len() - 1];
    let scaled = |candidates: f64| candidates * DOCUMENTS as f64 / last.documents as f64;
    let near = |counted: f64, expected: f64| (counted / expected - 1.0).abs() < 0.1;
    page.claims.push(Claim {
        claim: "A query compares 33.5 million fingerprints of 2^37".to_owned(),
        published: "33,554,432".to_owned(),
        measured: format!(
            "{:.1} of {} documents, which is {:.1} million of 2^37; {:.1} million agree with the query in a block at its place; our index has {:.0} candidates",
            last.article,
            grouped(last.documents),
            scaled(last.article) / 1e6,
            scaled(last.in_place) / 1e6,
            at_end.ours
        ),
        verdict: ClaimVerdict::of_parts(&[near(scaled(last.article), at_end.article)]),
        because: "so many are read because the row key lacks the number of the block. Four tables of 16 bits need a quarter, and two tables of 32 bits within \
                  one bit, 33 keys each, a sixteen thousandth"
            .to_owned(),
        runs: vec![run],
    });
    let row = |row: &QueryCandidates| {
        vec![
            grouped(row.documents),
            format!("{:.1}", row.article),
            format!("{:.1}", row.in_place),
            format!("{:.4}", row.ours),
        ]
    };
    page.parts.push(PagePart::Table(PageTable {
        caption: format!("Candidates of a query, mean of {QUERIES}; the last row is worked out"),
        head: vec!["documents", "article", "at their place", "our index"],
        rows: counts.iter().chain([&at_end]).map(row).collect(),
    }));
    let line = |name: &str, value: fn(&QueryCandidates) -> f64| {
        (
            name.to_owned(),
            counts.iter().chain([&at_end]).map(|row| (row.documents as f64, value(row))).collect(),
        )
    };
    page.parts.push(PagePart::Figure(
        "Candidates of a query: counted, and worked out for 2^37.".to_owned(),
        Chart::Lines {
            title: "Candidates of a query".to_owned(),
            x: Axis::logarithmic("documents"),
            y: Axis::logarithmic("candidates"),
            lines: vec![
                line("article", |row| row.article),
                line("at their place", |row| row.in_place),
                line("our index", |row| row.ours),
            ],
        },
    ));
    Ok(())
}

/// Time of comparing, and of reading what is compared.
fn time(trials: &mut Trials, page: &mut PaperPage) -> Result<()> {
    const COMPARED: u64 = 10_000_000;
    const SET: u64 = 10_000;
    let sets = trials.sized(20, 100);
    let (run, (compare, parse, bytes)) =
        trials.measured("10 million Hamming distances, and sets of JSON", |raw| {
            let start = Instant::now();
            let query = black_box(hash::spread(7));
            let near =
                (0..COMPARED).filter(|number| (hash::spread(*number) ^ query).count_ones() <= 3).count();
            black_box(near);
            let compare = start.elapsed().as_secs_f64() * 1e3;
            let set: Map<String, Value> = (0..SET)
                .map(|number| {
                    (format!("{:064b}", hash::spread(number)), Value::String(format!("id{number:012}")))
                })
                .collect();
            let json = serde_json::to_string(&set)?;
            let start = Instant::now();
            let mut near = 0;
            for _ in 0..sets {
                let set: Map<String, Value> = serde_json::from_str(black_box(&json))?;
                let fingerprints = set.keys().filter_map(|key| u64::from_str_radix(key, 2).ok());
                near += fingerprints.filter(|fingerprint| (fingerprint ^ query).count_ones() <= 3).count();
            }
            black_box(near);
            let parse = start.elapsed().as_secs_f64() * 1e9 / (sets * SET) as f64;
            *raw += &format!(
                "{COMPARED} distances: {compare:.1} ms\nsets of {SET}: {} bytes, {parse:.0} ns a pair\n",
                json.len()
            );
            Ok((compare, parse, json.len() as f64))
        })?;
    let read = 33_554_432.0;
    page.claims.push(Claim {
        claim: "Ten million Hamming distances take some 300 ms".to_owned(),
        published: "300 ms".to_owned(),
        measured: format!("{compare:.0} ms"),
        verdict: ClaimVerdict::of_parts(&[compare <= 300.0]),
        because: "of fingerprints that lie in memory as numbers".to_owned(),
        runs: vec![run],
    });
    page.claims.push(Claim {
        claim: "So a query among 2^37 texts takes one second at most".to_owned(),
        published: "1.0068 s".to_owned(),
        measured: format!(
            "{:.1} s to parse and compare 33.5 million pairs ({parse:.0} ns each), which are {:.1} GB of JSON",
            parse * read / 1e9,
            bytes / SET as f64 * read / 1e9
        ),
        verdict: ClaimVerdict::of_parts(&[parse * read < 1.1e9]),
        because: "the article counts the comparisons alone. Its pairs are keys of 64 digits in sets of JSON, which must be read from disk, sent, and parsed first"
            .to_owned(),
        runs: vec![run],
    });
    page.claims.push(Claim {
        claim: "A set of 10,000 pairs has about 1 MB".to_owned(),
        published: "1 MB".to_owned(),
        measured: format!("{:.2} MB", bytes / 1e6),
        verdict: ClaimVerdict::of_parts(&[(0.7e6..1.3e6).contains(&bytes)]),
        because: "with ids of 14 characters".to_owned(),
        runs: vec![run],
    });
    Ok(())
}
