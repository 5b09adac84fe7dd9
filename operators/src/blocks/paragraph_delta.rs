//! Paragraphs as deltas against similar earlier ones.

use std::collections::HashMap;

use super::delta::Delta;
use super::exact::no_parameter;
use super::ledger::{BlockLedger, REFERENCE_BYTES};
use super::paragraphs::ParagraphStore;
use super::store::{BlockMethod, BlockStore, FoundBlocks};
use crate::sets::minhash::MinHash;
use crate::text::features::Features;

/// Number of slots of the signatures by which similar paragraphs are found.
const SLOTS: u32 = 8;
/// Length in characters of the grams of a paragraph, whose set represents it.
const GRAM: usize = 4;

/// Most deltas that are applied one after the other to restore a paragraph.
const MOST_DELTAS: u8 = 8;

/// `paragraph+delta`: each different paragraph is kept once, as a delta against the most similar earlier one.
///
/// A paragraph has a MinHash signature of 8 slots over its grams of characters. The base of its delta is the earlier
/// paragraph that has the most slots of the signature, the first of those that have equally many. A base may be a delta
/// itself, but restoring a paragraph applies at most 8 of them. A paragraph is kept as it is if no earlier one has any
/// of its slots, or if its delta and the reference to the base are longer than the paragraph.
///
/// Cost: for each different paragraph its grams, the paragraphs that have a slot in common, and one delta. Texts of one
/// template may have a slot in common by the thousand, so this is quadratic in the number of such paragraphs.
pub(super) struct ParagraphDelta;

impl BlockMethod for ParagraphDelta {
    fn name(&self) -> &'static str {
        "paragraph+delta"
    }

    fn form(&self) -> &'static str {
        "paragraph+delta"
    }

    fn examples(&self) -> &[&'static str] {
        &["paragraph+delta"]
    }

    fn open<'a>(&self, parameter: Option<&str>) -> Result<Box<dyn BlockStore<'a> + 'a>, String> {
        no_parameter(parameter)?;
        Ok(Box::new(DeltaStore::default()))
    }
}

/// Store of paragraphs as deltas.
///
/// Memory beside the data: 25 bytes for each different paragraph, and for each of its slots 4 bytes and up to 60 of the
/// tables.
#[derive(Default)]
struct DeltaStore<'a> {
    /// Numbers of the different paragraphs.
    known: HashMap<&'a str, u32>,
    /// Different paragraphs, in their order.
    paragraphs: Vec<&'a str>,
    /// Number of deltas that restoring each paragraph applies.
    depths: Vec<u8>,
    /// Numbers of the paragraphs that have each value in a slot.
    slots: HashMap<(u32, u64), Vec<u32>>,
    ledger: BlockLedger,
}

impl<'a> DeltaStore<'a> {
    /// Returns the number of the paragraph that has the most slots of a signature, the first of equal ones, among those that
    /// may be a base.
    fn nearest(&self, signature: &[(u32, u64)]) -> Option<u32> {
        let mut shared = HashMap::<u32, u32>::new();
        for slot in signature {
            self.slots
                .get(slot)
                .into_iter()
                .flatten()
                .for_each(|&number| *shared.entry(number).or_default() += 1);
        }
        let can_be_base = |&(number, _): &(u32, u32)| self.depths[number as usize] < MOST_DELTAS;
        let most = shared
            .into_iter()
            .filter(can_be_base)
            .max_by_key(|&(number, slots)| (slots, std::cmp::Reverse(number)));
        most.map(|(number, _)| number)
    }
}

/// Returns the slots of the signature of a paragraph with their values. White space alone has none.
fn signature(paragraph: &str) -> Vec<(u32, u64)> {
    let text = paragraph.trim();
    if text.is_empty() {
        return Vec::new();
    }
    let (mut set, mut values) = (Vec::new(), Vec::new());
    Features::Chars(GRAM).each(text, |feature| set.push(feature));
    MinHash::new(SLOTS, 1, 0).bands(&set, &mut values);
    (0..).zip(values).collect()
}

impl<'a> ParagraphStore<'a> for DeltaStore<'a> {
    fn number_of(&self, paragraph: &str) -> Option<u32> {
        self.known.get(paragraph).copied()
    }

    fn keep(&mut self, paragraph: &'a str, at: usize, found: &mut FoundBlocks) -> u32 {
        let signature = signature(paragraph);
        let base = self.nearest(&signature);
        let delta = base
            .map(|base| (base, Delta::new(self.paragraphs[base as usize].as_bytes(), paragraph.as_bytes())));
        let mut depth = 0;
        let number = match delta
            .filter(|(_, delta)| delta.bytes.len() + REFERENCE_BYTES as usize <= paragraph.len())
        {
            Some((base, delta)) => {
                found.taken.push(at..at + paragraph.len());
                found.left_out.extend(delta.copied.iter().map(|copied| at + copied.start..at + copied.end));
                self.ledger.refer(base);
                depth = self.depths[base as usize] + 1;
                self.ledger.keep(&delta.bytes)
            }
            None => self.ledger.keep(paragraph.as_bytes()),
        };
        self.paragraphs.push(paragraph);
        self.depths.push(depth);
        self.known.insert(paragraph, number);
        signature.into_iter().for_each(|slot| self.slots.entry(slot).or_default().push(number));
        number
    }

    fn counts(&self) -> &BlockLedger {
        &self.ledger
    }

    fn counts_mut(&mut self) -> &mut BlockLedger {
        &mut self.ledger
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::single_range_in_vec_init, reason = "these are lists of ranges")]

    use super::super::delta::restore;
    use super::*;

    #[test]
    fn a_changed_paragraph_is_kept_as_a_delta_against_the_first_similar_one() {
        let first = "今天的天气非常好，我们一起去北京看比赛，晚上再回家。\n";
        let other = "没有任何共同之处的另外一段文字，谈论音乐和电影。\n";
        let changed = "今天的天气非常好，我们一起去上海看比赛，晚上再回家。\n";
        let mut store = DeltaStore::default();
        let texts = [first, other, changed, changed];
        let found: Vec<_> = texts.iter().map(|text| store.add(text)).collect();
        assert_eq!(found[1], FoundBlocks::default());
        assert_eq!(found[2].taken, [0..changed.len()]);
        assert_eq!(found[2].left_out, [0..42, 48..changed.len()]);
        assert_eq!(found[3].left_out, [0..changed.len()]);
        let delta = &store.ledger().data()[first.len() + other.len()..];
        assert_eq!(restore(first.as_bytes(), delta).unwrap(), changed.as_bytes());
        assert!(delta.len() < 16, "{delta:?}");
        // A reference from each text, and one to the base.
        assert_eq!((store.ledger().blocks(), store.ledger().references()), (3, 5));
    }

    #[test]
    fn the_base_has_the_most_slots_and_is_the_first_of_those() {
        let shared = "今天的天气非常好，我们一起去北京看比赛，晚上再回家，明天继续工作，";
        let far = format!("{}换成完全不同的另一些话，说的是音乐和电影以及书。\n", &shared[..48]);
        let near = format!("{shared}后天休息。\n");
        let same_slots = format!(" {near}");
        let mut store = DeltaStore::default();
        store.add(&far);
        store.add(&near);
        store.add(&same_slots);
        let signature = signature(&format!("{shared}后天睡觉。\n"));
        assert!(
            store.slots.values().any(|numbers| numbers.contains(&0) && numbers.contains(&1)),
            "far shares a slot"
        );
        assert_eq!(store.nearest(&signature), Some(1));
        assert_eq!(store.nearest(&super::signature("毫不相干的一句话，什么都没有。")), None);
    }

    #[test]
    fn a_paragraph_that_changes_again_and_again_needs_few_deltas() {
        let mut text: Vec<char> = (0..200).map(|at| char::from_u32(0x4e00 + at * 7).unwrap()).collect();
        let versions: Vec<String> = (0..40)
            .map(|version| {
                text[version * 5] = '新';
                text.iter().collect::<String>() + "\n"
            })
            .collect();
        let mut store = DeltaStore::default();
        versions.iter().for_each(|version| drop(store.add(version)));
        assert_eq!(store.depths.iter().max(), Some(&MOST_DELTAS), "{:?}", store.depths);
        // Each version but the first is still a delta.
        assert!(store.depths[1..].iter().all(|&depth| depth > 0), "{:?}", store.depths);
    }

    #[test]
    fn short_and_empty_paragraphs_are_kept() {
        let mut store = DeltaStore::default();
        store.add("\n \n甲\n\n甲\n甲乙\n");
        assert_eq!(store.ledger().data(), "\n \n甲\n甲乙\n".as_bytes());
    }
}
