//! Files that are cut into pieces at any byte.

use super::*;
use crate::formats::parquet::file::File;

#[test]
fn any_pieces_give_every_row_once_and_in_order() {
    let file = encoded(&corpus(), row_groups_of(3));
    let whole = read_file(&file);
    assert_eq!((whole.docs.len(), whole.rejects.len()), (19, 1));
    assert_eq!(whole.docs[8], ("109".to_owned(), "第9篇".to_owned()));
    for count in [2, 3, 7, 64] {
        assert_eq!(read(&pieces(&file, count), &Reading::default()).unwrap(), whole, "{count} pieces");
    }
    for boundary in 0..file.len() as u64 {
        let [mut low, mut high] = [pieces(&file, 1).remove(0), pieces(&file, 1).remove(0)];
        (low.end, high.start) = (boundary, boundary);
        assert_eq!(read(&[low, high], &Reading::default()).unwrap(), whole, "cut at {boundary}");
    }
}

#[test]
fn a_row_group_is_cut_at_any_byte_and_gives_every_row_once() {
    let flat = corpus().project(&[0, 1, 3, 4]).unwrap();
    for rows in [7, 20] {
        let file = encoded(&flat, row_groups_of(rows));
        let whole = read_file(&file);
        assert_eq!((whole.docs.len(), whole.rejects.len()), (19, 1));
        for count in [2, 3, 7, 64] {
            let pieces = pieces(&file, count);
            let with_rows = pieces
                .iter()
                .filter(|piece| !File::open(piece, &Reading::default()).unwrap().groups.is_empty());
            assert!(with_rows.count() >= count.min(7) as usize / 2, "{count}");
            assert_eq!(read(&pieces, &Reading::default()).unwrap(), whole, "{count} pieces");
            let fates = (0..20).map(|row| if row == 7 { Fate::Rejected } else { Fate::Kept }).collect();
            let kept = divide(&pieces, fates).unwrap();
            let kept = kept.into_iter().map(|(_, part)| decoded(part.into()));
            assert_eq!(kept.map(|part| part.num_rows()).sum::<usize>(), 19);
        }
        for boundary in 0..file.len() as u64 {
            let [mut low, mut high] = [pieces(&file, 1).remove(0), pieces(&file, 1).remove(0)];
            (low.end, high.start) = (boundary, boundary);
            assert_eq!(read(&[low, high], &Reading::default()).unwrap(), whole, "cut at {boundary}");
        }
    }
}
