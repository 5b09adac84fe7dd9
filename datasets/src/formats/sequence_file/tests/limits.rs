//! The length limit of records, and texts with illegal bytes.

use super::*;

fn reading(max_record_bytes: usize, bad_text: BadText) -> Reading {
    Reading { max_record_bytes, bad_text, ..Reading::default() }
}

fn read_limited(file: &[u8], cuts: &[u64], reading: &Reading) -> Vec<Seen> {
    pieces(file, cuts).iter().flat_map(|piece| read_as(piece, reading).unwrap()).collect()
}

/// Returns the kept part of a file of which all documents are kept.
fn kept(file: &[u8], cuts: &[u64], reading: &Reading) -> Vec<u8> {
    let folder = MemoryParts::default();
    let mut writer = SEQUENCE_FILE.writer(&folder, reading);
    let seen = read_limited(file, cuts, reading);
    let fate = |seen: &Seen| if matches!(seen, Seen::Doc(..)) { Fate::Kept } else { Fate::Rejected };
    let mut fates = seen.iter().map(fate);
    for piece in pieces(file, cuts) {
        writer.divide(&piece, &mut fates).unwrap();
    }
    assert_eq!(fates.next(), None);
    writer.finish().unwrap();
    folder.bytes("kept/0.seq")
}

#[test]
fn a_record_that_is_too_long_costs_itself_in_every_style() {
    // The record is longer than what is read ahead, and than what a piece reads behind its end.
    let long = "長".repeat(100_000);
    let limit = 5_000;
    for (kind, reason) in [
        (0, "a record of 300012 bytes, more than 5000; 300020 bytes passed over"),
        (1, "the value: more than 5000 bytes decompressed"),
        (2, "a record of 300012 bytes, more than 5000"),
    ] {
        let file = (0..9).fold(Made::new("LongWritable", "Text", kind, Codec::Zlib, 4), |file, record| {
            let text = if record == 5 { &long } else { "short" };
            file.add(&[0; 8], &serialised("Text", text))
        });
        let file = file.end();
        let reading = reading(limit, BadText::Reject);
        for cuts in [&[][..], &even_cuts(&file, 7), &even_cuts(&file, 64)] {
            let seen = read_limited(&file, cuts, &reading);
            assert_eq!(seen.len(), 9, "kind {kind}");
            let Seen::Reject(_, said) = &seen[5] else { panic!("{:?}", seen[5]) };
            assert_eq!(said, reason);
            let kept = read(&kept(&file, cuts, &reading), &[]);
            assert_eq!(kept, vec![Seen::Doc("0".to_owned(), "short".to_owned()); 8]);
        }
        assert!(
            read(&file, &[]).iter().all(|seen| matches!(seen, Seen::Doc(..))),
            "by default it may be longer"
        );
    }
}

/// A damaged length is longer than the limit, and is not believed: other records lie where the record would.
#[test]
fn a_damaged_length_above_the_limit_costs_the_records_up_to_the_next_marker() {
    let file = (0..60).fold(Made::new("LongWritable", "Text", 0, Codec::Zlib, 4), |file, record| {
        file.add(&[0; 8], &serialised("Text", &format!("text {record:02} {}", "長".repeat(200))))
    });
    let mut file = file.end();
    let text = file.windows(7).position(|bytes| bytes == b"text 10").unwrap();
    // Before the text come its length in three bytes, the key, and the lengths of the record and of the key.
    let length = text - 3 - 8 - 8;
    assert_eq!(file[length..length + 8], [0, 0, 2, 0x6b, 0, 0, 0, 8]);
    file[length..length + 4].copy_from_slice(&20_000u32.to_be_bytes());
    let reading = reading(5_000, BadText::Reject);
    let seen = read_limited(&file, &[], &reading);
    let read = seen.iter().filter(|seen| matches!(seen, Seen::Doc(..))).count();
    assert!(read >= 56, "{read} of 60: {seen:?}");
}

#[test]
fn the_lengths_of_a_block_are_added_up_before_memory_is_taken() {
    let mut block = Vec::new();
    put_block(&mut block, &[8], &[0; 8], &[0x8c, 0x7f, 0xff, 0xff, 0xff], &[0; 1 << 10]);
    let good = |file: Made| file.add(&[0; 8], &serialised("Text", "good")).block();
    let mut file = good(Made::new("LongWritable", "Text", 2, Codec::Zlib, 9));
    file.bytes.extend(block);
    let file = good(file).end();
    let seen = read(&file, &[]);
    assert_eq!(seen.len(), 3);
    let Seen::Reject(_, reason) = &seen[1] else { panic!("{seen:?}") };
    assert!(
        reason.starts_with("the keys and values of the block are 2147483655 bytes, more than 268435456;"),
        "{reason}"
    );
}

#[test]
fn a_block_is_as_long_as_its_writer_made_it_with_a_longest_record() {
    let limit = Reading::default().max_record_bytes;
    let longest = "x".repeat(limit - 5 - 8);
    let file = Made::new("LongWritable", "Text", 2, Codec::Zstd, 9)
        .add(&[0; 8], &serialised("Text", "short"))
        .add(&[0; 8], &serialised("Text", &longest))
        .end();
    let seen = read(&file, &[]);
    assert!(
        matches!(&seen[..], [Seen::Doc(_, short), Seen::Doc(_, long)] if short == "short" && *long == longest)
    );
}

fn put_block(out: &mut Vec<u8>, key_lengths: &[u8], keys: &[u8], value_lengths: &[u8], values: &[u8]) {
    out.extend([0xff; 4]);
    out.extend(SYNC);
    out.push(1);
    for part in [key_lengths, keys, value_lengths, values] {
        let mut compressed = Vec::new();
        Codec::Zlib.compress(part, &mut compressed).unwrap();
        out.push(compressed.len() as u8);
        out.extend(compressed);
    }
}

#[test]
fn illegal_bytes_are_replaced_if_asked_and_written_as_they_were() {
    for (kind, value) in [(0, "Text"), (1, "BytesWritable"), (2, "Text")] {
        let serialise = |bytes: &[u8]| match value {
            "Text" => [&[bytes.len() as u8], bytes].concat(),
            _ => [&(bytes.len() as u32).to_be_bytes(), bytes].concat(),
        };
        let file = Made::new("Text", value, kind, Codec::Snappy, 4)
            .add(b"\x01a", &serialise("新".as_bytes()))
            .add(b"\x01b", &serialise(b"\xe6\x96x\xff"))
            .add(b"\x02c\xff", &serialise(b"y"))
            .end();
        let rejected = read(&file, &[]);
        assert!(matches!(&rejected[..], [Seen::Doc(..), Seen::Reject(..), Seen::Reject(..)]), "{rejected:?}");
        let replace = reading(1 << 20, BadText::Replace);
        let doc = |id: &str, text: &str| Seen::Doc(id.to_owned(), text.to_owned());
        let expected = [doc("a", "新"), doc("b", "\u{fffd}x\u{fffd}"), doc("c\u{fffd}", "y")];
        assert_eq!(read_limited(&file, &[], &replace), expected);
        let mut batch = DocBatch::default();
        SEQUENCE_FILE.open(&pieces(&file, &[])[0], &replace).unwrap().fill(&mut batch).unwrap();
        assert_eq!(batch.replaced(), 2);
        assert_eq!(raw(&kept(&file, &[], &replace)), raw(&file));
    }
}
