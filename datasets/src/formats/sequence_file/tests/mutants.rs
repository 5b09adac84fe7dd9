//! Valid files with one byte changed, or cut short.

use std::collections::BTreeSet;
use std::ops::Range;

use super::made::CODECS;
use super::*;
use crate::testing::mutants;

const RECORDS: u64 = 24;

/// Returns a file whose records all differ, and the range of each record's stretch between sync markers.
fn written(version: u8, kind: u8, codec: Codec) -> (Vec<u8>, Vec<Range<usize>>) {
    let mut file = Made::old(version, "LongWritable", "Text", kind, codec, 5);
    for record in 0..RECORDS {
        file = file.add(&record.to_be_bytes(), &serialised("Text", &format!("第{record}條記錄")));
    }
    let file = file.end();
    let begin = header(&file).end as usize;
    let markers =
        header(&file).marker.map(|marker| memchr::memmem::find_iter(&file, &marker).collect::<Vec<_>>());
    let bounds = [vec![begin], markers.unwrap_or_default(), vec![file.len()]].concat();
    let mut records = SequenceRecords::open(&pieces(&file, &[])[0], &Reading::default()).unwrap();
    let mut stretches = Vec::new();
    while let Some(Raw::Record(record)) = records.next().unwrap() {
        let after = bounds.iter().position(|&bound| bound as u64 > record.offset).unwrap();
        stretches.push(bounds[after - 1]..bounds[after]);
    }
    assert_eq!(stretches.len() as u64, RECORDS);
    (file, stretches)
}

#[test]
fn damage_costs_the_stretch_or_block_that_it_lies_in_and_nothing_else() {
    let styles = [(6, 0, Codec::Zlib), (1, 0, Codec::Zlib), (3, 1, Codec::Zlib), (4, 2, Codec::Zlib)];
    let styles =
        styles.into_iter().chain(CODECS.into_iter().flat_map(|(codec, _)| [(6, 1, codec), (6, 2, codec)]));
    for (version, kind, codec) in styles {
        let (file, stretches) = written(version, kind, codec);
        let begin = header(&file).end as usize;
        for (mutant, damage) in mutants(&file, 2000) {
            let what = format!("version {version}, kind {kind}, {codec:?}, damaged at {damage:?}");
            let pieces = pieces(&mutant, &even_cuts(&mutant, 2));
            let seen: Result<Vec<_>, _> = pieces.iter().map(read_piece).collect();
            let seen = match seen {
                Ok(seen) => seen.concat(),
                Err(error) => {
                    assert!(error.is_data() && damage.start < begin, "{what}: {error}");
                    continue;
                }
            };
            // One damaged record may be read as two halves.
            assert!(seen.len() as u64 <= RECORDS + 1, "{what}: {} records", seen.len());
            let docs: BTreeSet<_> = seen
                .iter()
                .filter_map(|seen| match seen {
                    Seen::Doc(id, text) => Some((id.clone(), text.clone())),
                    Seen::Reject(..) => None,
                })
                .collect();
            assert!(docs.len() as u64 <= RECORDS, "{what}");
            if damage.start < begin {
                continue;
            }
            for (record, stretch) in stretches.iter().enumerate() {
                if stretch.end <= damage.start || damage.end <= stretch.start {
                    let whole = (record.to_string(), format!("第{record}條記錄"));
                    assert!(docs.contains(&whole), "{what}: record {record} in {stretch:?} is lost");
                }
            }
        }
    }
}
