//! Removal by the date that a field of the documents holds.

use std::collections::BTreeMap;

use anyhow::Result;
use chrono::{DateTime, Datelike};
use cluster::Group;
use operators::DocId;

use batch::finished::Finished;
use runtime::corpus::input::Input;
use runtime::corpus::splits::{self, SplitReader};
use runtime::output::summary::RemovedShare;
use runtime::progress::{Progress, Stage};

/// Number of months up to which each is a class of its own. Of more, the years are.
const MONTHS: usize = 36;

/// Name of the class of documents whose field holds no date.
pub(super) const NONE: &str = "no date";

/// Year and month.
type Month = (i32, u32);

/// Numbers of documents and of removed ones, by month. Those without a date have none.
type CountsByMonth = BTreeMap<Option<Month>, (u64, u64)>;

/// Returns the documents and the removed ones by the date in a field, the earliest first. Cost: one reading of the input, with 8 bytes
/// for each removed document.
pub(super) fn removed_by_date(
    finished: &Finished,
    mut input: Input,
    field: &str,
    progress: &Progress,
) -> Result<Vec<RemovedShare>> {
    let mut removed: Vec<DocId> = Vec::new();
    finished.members(|member| removed.extend(member.removed.map(|_| member.place)))?;
    removed.sort_unstable();
    input.reading.text = Some(field.to_owned());
    input.reading.numbers = true;
    let group = Group::alone(input.workers);
    let of_splits =
        splits::each_input_split(&input.plan, &group, (progress, Stage::Read), |at, number, split| {
            let mut counts = CountsByMonth::new();
            let mut reader = SplitReader::new(number, split, &input.reading, at);
            while let Some(batch) = reader.next_batch()? {
                for doc in batch.docs() {
                    let (documents, gone) = counts.entry(month_of(doc.text)).or_default();
                    *documents += 1;
                    *gone += u64::from(removed.binary_search(&doc.doc).is_ok());
                }
            }
            Ok(counts)
        })?;
    let mut all = CountsByMonth::new();
    for (month, (documents, gone)) in of_splits.into_iter().flatten() {
        let (all_documents, all_gone) = all.entry(month).or_default();
        *all_documents += documents;
        *all_gone += gone;
    }
    Ok(classes(all))
}

/// Returns the month of a date as it is commonly written: 2008-06-30, 2008/6/30, 2008年6月30日, 20080630, seconds or milliseconds since 1970, or
/// as in letters.
fn month_of(text: &str) -> Option<Month> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number: i64 = text.parse().ok()?;
        return match text.len() {
            8 | 14 => month(&text[..4], &text[4..6]),
            9..=11 => DateTime::from_timestamp_secs(number).map(month_of_time),
            12 | 13 => DateTime::from_timestamp_millis(number).map(month_of_time),
            _ => None,
        };
    }
    if let Ok(date) = DateTime::parse_from_rfc2822(text) {
        return Some(month_of_time(date));
    }
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let year = numbers.next().filter(|year| year.len() == 4)?;
    month(year, numbers.next()?)
}

fn month_of_time(time: impl Datelike) -> Month {
    (time.year(), time.month())
}

fn month(year: &str, month: &str) -> Option<Month> {
    let month = month.parse().ok().filter(|month| (1..=12).contains(month))?;
    Some((year.parse().ok()?, month))
}

/// Names months, or years if there are many months.
fn classes(counts: CountsByMonth) -> Vec<RemovedShare> {
    let by_year = counts.len() > MONTHS;
    let name = |month: Option<Month>| match month {
        None => NONE.to_owned(),
        Some((year, _)) if by_year => year.to_string(),
        Some((year, month)) => format!("{year}-{month:02}"),
    };
    let mut classes: Vec<RemovedShare> = Vec::new();
    for (month, (documents, removed)) in counts {
        let name = name(month);
        match classes.last_mut().filter(|class| class.name == name) {
            Some(class) => {
                class.documents += documents;
                class.removed += removed;
            }
            None => classes.push(RemovedShare { name, documents, removed }),
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_read_as_people_write_it() {
        let june = Some((2008, 6));
        for date in [
            "2008-06-30",
            " 2008/6/3 12:00",
            "2008年6月30日",
            "20080630",
            "20080630123456",
            "1214784000",
            "1214784000000",
            "Mon, 30 Jun 2008 00:00:00 +0000",
        ] {
            assert_eq!(month_of(date), june, "{date}");
        }
        for date in ["", "yesterday", "2008-13-01", "30-06-2008", "123"] {
            assert_eq!(month_of(date), None, "{date}");
        }
    }

    #[test]
    fn many_months_are_told_by_year() {
        let counts: CountsByMonth =
            (0..48).map(|month| (Some((2000 + month / 12, 1 + month as u32 % 12)), (2, 1))).collect();
        let classes = classes(counts);
        let shown: Vec<_> =
            classes.iter().map(|class| (&*class.name, class.documents, class.removed)).collect();
        assert_eq!(shown, [("2000", 24, 12), ("2001", 24, 12), ("2002", 24, 12), ("2003", 24, 12)]);
    }
}
