//! Writes and reads SequenceFiles of Text keys and Text values, uncompressed: the least of Hadoop's format
//! that tests need.
//!
//! It is written from the layout that org.apache.hadoop.io.SequenceFile documents; the tests of `hdfs` use
//! Hadoop's own code.

const SYNC: [u8; 16] = *b"a sync marker 16";

/// Returns a file with a sync marker before every `every`-th record.
pub fn written(records: &[(String, String)], every: usize) -> Vec<u8> {
    let mut file = b"SEQ\x06".to_vec();
    for _ in 0..2 {
        file.extend(text("org.apache.hadoop.io.Text"));
    }
    // No compression of any kind, and no metadata.
    file.extend([0, 0, 0, 0, 0, 0]);
    file.extend(SYNC);
    for (at, (key, value)) in records.iter().enumerate() {
        if at > 0 && at % every == 0 {
            file.extend([0xff; 4]);
            file.extend(SYNC);
        }
        let (key, value) = (text(key), text(value));
        file.extend(((key.len() + value.len()) as u32).to_be_bytes());
        file.extend((key.len() as u32).to_be_bytes());
        file.extend([key, value].concat());
    }
    file
}

fn text(text: &str) -> Vec<u8> {
    let length = text.len();
    let mut bytes = match length {
        0..128 => vec![length as u8],
        128..256 => vec![0x8f, length as u8],
        _ => vec![0x8e, (length >> 8) as u8, length as u8],
    };
    bytes.extend(text.as_bytes());
    bytes
}

/// Returns the records of a whole file.
pub fn read(file: &[u8]) -> Vec<(String, String)> {
    let mut at = written(&[], 1).len();
    // Every such file has this head, but for the sync marker.
    assert!(file[..at - 16] == written(&[], 1)[..at - 16]);
    let sync = &file[at - 16..at];
    let mut records = Vec::new();
    while at < file.len() {
        let number = |at: &mut usize| {
            *at += 4;
            i32::from_be_bytes(file[*at - 4..*at].try_into().unwrap())
        };
        let length = number(&mut at);
        if length == -1 {
            assert!(&file[at..at + 16] == sync);
            at += 16;
            continue;
        }
        let key = at + 4;
        let end = at + 4 + length as usize;
        let value = key + number(&mut at) as usize;
        records.push((untext(&file[key..value]), untext(&file[value..end])));
        at = end;
    }
    records
}

fn untext(bytes: &[u8]) -> String {
    let start = match bytes[0] {
        0x8f => 2,
        0x8e => 3,
        _ => 1,
    };
    let read = String::from_utf8(bytes[start..].to_vec()).unwrap();
    assert!(text(&read) == bytes, "its length is not as Hadoop writes it");
    read
}
