//! CSV with other characters than commas and double quotes.

use super::*;

#[test]
fn every_dialect_is_read_alike_in_every_encoding_and_however_it_is_cut() {
    // Later bytes of these characters in GB18030 are a bar, a backslash and a tilde.
    let values = ["薩甠, 畖; 咘|榏", "珅\n\"榯\" 榺~", "槳\\\t说'好'", "", "一二三"];
    for (delimiter, quote, escape, marked) in [
        (b',', b'"', None, false),
        (b';', b'"', Some(b'\\'), false),
        (b'|', b'"', None, true),
        (b'\t', b'\'', None, false),
        (b'|', b'~', Some(b'\\'), false),
    ] {
        let dialect = dialect::Dialect { delimiter, quote, escape };
        let mut file = if marked { format!("sep={}\n", char::from(delimiter)) } else { String::new() };
        for (number, value) in ["text"].iter().chain(values.iter().cycle().take(40)).enumerate() {
            if number == 0 {
                file += "id";
            } else {
                file += &number.to_string();
            }
            file.push(char::from(delimiter));
            dialect.push(&mut file, value);
            file.push('\n');
        }
        let given = |byte| Some(CsvChar(byte));
        let csv = CsvReading {
            delimiter: None,
            quote: given(quote),
            escape: escape.map(CsvChar),
            no_header: false,
        };
        let expected: Vec<Record> =
            (1..=40).map(|number| doc(&number.to_string(), values[(number - 1) % values.len()])).collect();
        let gb18030 = "gb18030".parse().ok();
        for (bytes, encoding) in encoded(&file).iter().zip([None, gb18030, None]) {
            let reading = Reading { csv, encoding, ..Reading::default() };
            let blob = MemoryBlob::shared("/a.csv", bytes, 100);
            let end = bytes.len() as u64;
            for cuts in [&[][..], &[end / 2], &[end / 5, end / 4, end / 3, end - 9]] {
                let (records, failed) = read(&CSV, &pieces(&blob, cuts), &reading);
                assert!(failed.is_none(), "{dialect:?}: {failed:?}");
                assert_eq!(records, expected, "{dialect:?} {cuts:?}");
            }
        }
    }
}
