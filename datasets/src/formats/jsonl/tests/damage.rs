//! Damaged files of JSON lines, plain and compressed.

use super::*;
use crate::testing::check_damaged_contents;

#[test]
fn damage_of_compressed_contents_is_one_failure_however_they_are_cut() {
    let line =
        |id: u64| format!("{{\"id\":{id},\"text\":\"{:x}\"}}\n", id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let lines: String = (0..8_000).map(line).collect();
    for (path, bytes) in [("/a.jsonl.gz", gzip(lines.as_bytes())), ("/a.jsonl.zst", zstd(lines.as_bytes()))] {
        check_damaged_contents(&JSONL, path, &bytes, lines.len() as u64);
    }
}

#[test]
fn shared_broken_files_give_their_known_counts() {
    for (name, docs, rejects, damaged) in [
        ("bom_crlf_nonl.jsonl", 5, 0, false),
        ("deep_nest.jsonl", 2, 1, false),
        ("gz_trailing_garbage.jsonl.gz", 10, 0, true),
        ("mixed_bad_lines.jsonl", 34, 20, false),
        ("multi_member.jsonl.gz", 20, 0, false),
        ("single_line_50MB.jsonl.gz", 3, 0, false),
        ("truncated.jsonl.gz", 1965, 0, true),
        ("u2028_in_text.jsonl", 4, 0, false),
        ("utf16le.jsonl", 3, 0, false),
    ] {
        let Some(bytes) = corpus_file(&format!("hostile/jsonl/{name}")) else { return };
        let (records, failed) = read_bytes(name, &bytes);
        let found = records.iter().filter(|record| matches!(record, Record::Doc { .. })).count();
        assert_eq!((found, records.len() - found, failed.is_some()), (docs, rejects, damaged), "{name}");
    }
}

#[test]
fn damage_of_a_small_compressed_file_has_its_place() {
    let lines: Vec<String> = (0..300).map(|id| format!("{{\"id\":{id},\"text\":\"第{id}条\"}}\n")).collect();
    let whole = gzip(lines.concat().as_bytes());
    let mut wrong_checksum = whole.clone();
    wrong_checksum[whole.len() - 8] ^= 1;
    for bytes in [&wrong_checksum, &whole[..whole.len() / 2], &whole[..whole.len() - 9]] {
        let (records, failed) = read_bytes("/a.jsonl.gz", bytes);
        let Some(Error::Data { offset, .. }) = failed else { panic!("{failed:?}") };
        assert!(records.len() > 100, "{}", records.len());
        assert_eq!(offset, lines[..records.len()].concat().len() as u64);
    }
}

#[test]
fn damage_costs_the_line_that_it_hits() {
    let lines: Vec<String> = (0..60).map(|id| format!("{{\"id\":{id},\"text\":\"第{id}条\"}}\n")).collect();
    let file = lines.concat();
    let (whole, _) = read_bytes("/a.jsonl", file.as_bytes());
    let mut ends = Vec::new();
    lines.iter().for_each(|line| ends.push(ends.last().unwrap_or(&0) + line.len()));
    for (mutant, damage) in mutants(file.as_bytes(), 2000) {
        let (records, failed) = read_bytes("/a.jsonl", &mutant);
        assert!(failed.is_none());
        let docs: Vec<_> = records.iter().filter(|record| matches!(record, Record::Doc { .. })).collect();
        assert!(docs.len() <= 60);
        let hit = ends.partition_point(|&end| end <= damage.start);
        // A damaged newline takes the next line with it.
        let last = if damage.len() > 1 { 60 } else { hit + usize::from(ends[hit] == damage.end) };
        for (number, record) in whole.iter().enumerate().filter(|(n, _)| *n < hit || *n > last) {
            assert!(docs.contains(&record), "line {number} is lost by damage at {damage:?}");
        }
        assert!(records.len() >= docs.len() + usize::from(damage.len() == 1 && docs.len() < 60));
    }
}

#[test]
fn damage_of_a_compressed_file_never_passes_in_silence() {
    let lines: String = (0..60).map(|id| format!("{{\"id\":{id},\"text\":\"第{id}条\"}}\n")).collect();
    let (whole, _) = read_bytes("/a.jsonl", lines.as_bytes());
    let mut checked = zstd::Encoder::new(Vec::new(), 3).unwrap();
    checked.include_checksum(true).unwrap();
    checked.write_all(lines.as_bytes()).unwrap();
    for (path, bytes) in [
        ("/a.gz", gzip(lines.as_bytes())),
        ("/a.zst", checked.finish().unwrap()),
        ("/a.bz2", bzip2(lines.as_bytes())),
    ] {
        let mut silent = 0;
        for (mutant, _) in mutants(&bytes, 2000).filter(|(mutant, _)| !mutant.is_empty()) {
            let (records, failed) = read_bytes(path, &mutant);
            match failed {
                // The records before the checksum were already returned and may be wrong, so the file is a
                // reject too.
                Some(error) => assert!(error.is_data(), "{path}: {error}"),
                // Damage to the times and names in a header does not change the text.
                None => {
                    assert!(records == whole, "{path} differs");
                    silent += 1;
                }
            }
        }
        assert!(silent < 200, "{path}: {silent} mutants are as good as the file");
    }
}

#[test]
fn a_long_window_of_zstandard_is_read_where_blocks_may_be_as_long() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(29).unwrap();
    encoder.write_all(b"{\"id\":1,\"text\":\"a\"}\n").unwrap();
    let blob = MemoryBlob::shared("/a.jsonl.zst", &encoder.finish().unwrap(), 1000);
    for (block_bytes, docs) in [(Reading::BLOCK_BYTES, 0), (1 << 29, 1), (usize::MAX >> 1, 1)] {
        let reading = Reading { block_bytes, ..Reading::default() };
        let (records, failed) = read(&JSONL, &pieces(&blob, &[]), &reading);
        assert_eq!(records.len(), docs, "{failed:?}");
        assert_eq!(failed.is_none(), docs == 1, "{failed:?}");
    }
}
