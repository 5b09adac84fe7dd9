//! Lines that are too long, joined, or of an empty file.

use super::*;
use crate::Reading;
use crate::testing::{MemoryBlob, pieces};

fn at_most(max_record_bytes: usize) -> Reading {
    Reading { max_record_bytes, ..Reading::default() }
}

#[test]
fn a_line_that_is_too_long_is_passed_over_and_the_next_ones_are_right() {
    let long = "x".repeat(600_000);
    for (max_bytes, read_ahead_bytes) in [(10, 100), (300_000, 100_000), (599_999, 1 << 20)] {
        for (file, next) in [(format!("ab\n{long}\ncd"), 600_004), (format!("ab\n{long}"), 0)] {
            let blob = MemoryBlob::shared("/a", file.as_bytes(), read_ahead_bytes);
            let mut lines = Lines::open(&pieces(&blob, &[])[0], &at_most(max_bytes)).unwrap();
            assert_eq!(lines.next().unwrap().unwrap(), Line { offset: 0, bytes: b"ab\n", whole: true });
            let head = &long.as_bytes()[..lines.line().bytes.len().max(80).min(max_bytes + 1)];
            let line = lines.next().unwrap().unwrap();
            assert_eq!((line.offset, line.whole), (3, false));
            assert!(head.starts_with(line.bytes) || line.bytes.starts_with(head));
            let line = lines.next().unwrap();
            assert_eq!(line.is_some(), next > 0);
            if let Some(line) = line {
                assert_eq!(line, Line { offset: next, bytes: b"cd", whole: true });
            }
            assert!(lines.next().unwrap().is_none());
        }
    }
}

#[test]
fn the_buffer_of_a_long_line_is_given_back() {
    let file = format!("{}\n{}", "x".repeat(40 << 20), "short\n".repeat(1 << 20));
    let blob = MemoryBlob::shared("/a", file.as_bytes(), 1 << 20);
    let mut lines = Lines::open(&pieces(&blob, &[])[0], &Reading::default()).unwrap();
    assert_eq!(lines.next().unwrap().unwrap().bytes.len(), (40 << 20) + 1);
    while lines.advance().unwrap() {}
    assert_eq!(lines.offset, file.len() as u64);
    assert!(lines.buffer.capacity() <= Lines::KEPT_BYTES);
}

#[test]
fn an_empty_file_has_no_lines_whatever_its_name() {
    for path in ["/a", "/a.gz", "/a.zst"] {
        let blob = MemoryBlob::shared(path, b"", 9);
        assert!(Lines::open(&pieces(&blob, &[])[0], &Reading::default()).unwrap().next().unwrap().is_none());
    }
}

#[test]
fn lines_can_be_joined_and_parted_again() {
    let blob = MemoryBlob::shared("/a", "\u{feff}ab\ncd\nef\ng".as_bytes(), 3);
    let mut lines = Lines::open(&pieces(&blob, &[])[0], &at_most(12)).unwrap();
    assert_eq!(lines.next().unwrap().unwrap().bytes, b"ab\n");
    assert_eq!(lines.extend().unwrap(), Extended::Longer);
    assert_eq!(lines.extend().unwrap(), Extended::Longer);
    assert_eq!(lines.line().bytes, b"ab\ncd\nef\n");
    assert_eq!(lines.extend().unwrap(), Extended::TooLong);
    lines.cut(3);
    assert_eq!(lines.line().bytes, b"ab\n");
    assert_eq!(lines.next().unwrap().unwrap(), Line { offset: 6, bytes: b"cd\n", whole: true });
    while lines.extend().unwrap() == Extended::Longer {}
    assert_eq!(lines.line().bytes, b"cd\nef\ng");
    assert!(lines.next().unwrap().is_none());
}
