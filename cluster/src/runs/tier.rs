//! Chooses the files that are merged, so that a lookup asks few of them.

/// Number of files that are merged at the least.
const LEAST_MERGED: usize = 4;
/// A file is merged with the newer ones unless it is more than this many times as large as all of them
/// together.
const FACTOR: u64 = 4;

/// Returns how many of the newest files are to be merged: those that are about equally large, if there are four or more,
/// and otherwise 0. `sizes`: the size of each, the oldest first. `small`: the size below which files count as equally
/// large.
///
/// ```text
/// sizes, the oldest first       then
/// 2000  400  70  6  5  5        2000  400  70  6  5  5     three of one size, since 70 is more than 4 x (6 + 5 + 5)
/// 2000  400  70  6  5  5  4     2000  400  90              70 is not more than 4 x (6 + 5 + 5 + 4)
/// ```
///
/// A row is rewritten once for each fourfold growth.
pub fn newest_tier(sizes: &[u64], small: u64) -> usize {
    let (mut count, mut sum) = (0, 0);
    for &next in sizes.iter().rev() {
        if count > 0 && next > FACTOR * small.max(sum) {
            break;
        }
        (count, sum) = (count + 1, sum + next);
    }
    if count >= LEAST_MERGED { count } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_files_of_about_one_size_are_merged() {
        assert_eq!(newest_tier(&[2000, 400, 70, 6, 5, 5], 1), 0);
        assert_eq!(newest_tier(&[2000, 400, 70, 6, 5, 5, 4], 1), 5);
        assert_eq!(newest_tier(&[400, 90, 3, 1, 1], 100), 5);
        assert_eq!(newest_tier(&[], 1), 0);
    }
}
