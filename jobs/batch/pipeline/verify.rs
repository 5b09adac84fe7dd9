//! Verification: compares candidates by the features of their documents, which are read again.

use std::iter;

use anyhow::Result;
use operators::flow::{Candidates, Matching, Verify, total};
use operators::search::crowds::Asks;
use operators::search::map_records::StoredText;
use operators::sets::{PackedSets, Rule, Sets};
use operators::text::ignored_lines::LineCleaner;
use operators::{DocId, Pair, Similarity, Sorted, Spool};
use timely::worker::Worker;

use super::earlier::{Earlier, live_rank};
use super::join::Joined;
use super::links::IdenticalDocs;
use super::mapped::Mapped;
use super::matched::{Matched, Round};
use runtime::corpus::split::Split;
use runtime::corpus::splits::SplitReader;
use runtime::progress::{Stage, StageTimer};

/// Compares the candidates of a join, and notes the documents of the crowd. If the rule of the method does not decide, every
/// candidate matches.
pub(super) fn verify(
    worker: &mut Worker,
    at: &StageTimer,
    mapped: &Mapped,
    Joined { mut pairs, loads, crowd, prefixes }: Joined,
    copies: IdenticalDocs,
    earlier: &mut dyn Earlier,
) -> Result<Matched> {
    at.enter(Stage::Verify);
    let search = &mapped.search;
    let copies = copies.of_input(search.sides);
    let mut matched = Matched::new(worker, mapped, loads, crowd, prefixes)?;
    let Matched { round, crowd, asked, open, names, compared, .. } = &mut matched;
    if let Some(names) = names {
        if matches!(round, Round::First) {
            pairs = asked.fresh(pairs)?;
        }
        let of_crowd = crowd.docs().to_vec();
        let named = copies.named().chain(of_crowd.iter().copied());
        let note = |StoredText { doc, id, merit, text }: StoredText, sets: Option<&Sets>| {
            if !earlier.has(doc) {
                names.add(doc, id, merit);
            }
            if let Some(sets) = sets {
                let rank = live_rank(search, earlier, doc, &|| merit);
                crowd.note(doc, (rank, earlier.has_stayed(doc)), text, (sets, &search.method.rule));
            }
        };
        let each = |_: &mut Worker, pair, similarity| open.add(pair, Some(similarity));
        *compared = compare(worker, at, mapped, earlier, (pairs, named, &of_crowd), note, each)?;
    } else {
        pairs.each(|pair| {
            *compared += 1;
            open.add(pair, None);
        })?;
    }
    open.add_copies(copies);
    earlier.add_stored(worker, open)?;
    Ok(matched)
}

/// Compares the candidates of a round that were not compared before.
pub(super) fn verify_round(
    worker: &mut Worker,
    at: &StageTimer,
    mapped: &Mapped,
    matched: &mut Matched,
    asks: Asks,
    Candidates { pairs, cut, .. }: Candidates,
    earlier: &dyn Earlier,
) -> Result<()> {
    at.enter(Stage::Verify);
    let Matched { crowd, asked, open, compared, round, .. } = matched;
    let pairs = asked.fresh(pairs)?;
    let mut new = 0;
    let mut each = |_: &mut Worker, pair, similarity| {
        new += 1;
        open.add(pair, Some(similarity));
    };
    let mut pairs = InTurns::new(pairs);
    while let Some(pairs) = pairs.next(worker)? {
        *compared += match crowd.texts() {
            Some(texts) => compare_kept(worker, mapped, pairs, texts, &mut each)?,
            None => compare(worker, at, mapped, earlier, (pairs, iter::empty(), &[]), |_, _| (), &mut each)?,
        };
    }
    *round = if asks == Asks::Nearest { Round::Asked { new, cut } } else { Round::Over };
    Ok(())
}

/// Number of candidates of a worker that are compared at once, unless they are on disk. Each takes 48 bytes meanwhile, and the texts
/// of their documents are read once for all of them.
const AT_ONCE: usize = 1 << 20;

/// Candidates in parts that are compared one after the other.
struct InTurns {
    /// The rest; `None` after the last part.
    rest: Option<Sorted<Pair>>,
}

impl InTurns {
    fn new(pairs: Sorted<Pair>) -> Self {
        InTurns { rest: Some(pairs) }
    }

    /// Returns the next part of this worker, which may be empty; `None` if no worker has one. All workers must call it.
    fn next(&mut self, worker: &mut Worker) -> Result<Option<Sorted<Pair>>> {
        let (part, rest) = match self.rest.take() {
            // The last of them come first, so that the memory of the others need not be moved.
            Some(Sorted::InMemory(mut pairs)) if pairs.len() > AT_ONCE => {
                let part = pairs.split_off(pairs.len() - AT_ONCE);
                pairs.shrink_to_fit();
                (Some(Sorted::InMemory(part)), Some(Sorted::InMemory(pairs)))
            }
            pairs => (pairs, None),
        };
        self.rest = rest;
        let more = total(worker, usize::from(part.is_some())) > 0;
        Ok(more.then(|| part.unwrap_or(Sorted::InMemory(Vec::new()))))
    }
}

/// Source from which documents are read again.
#[derive(Clone, Copy)]
enum TextSource<'a> {
    /// The input, which gives texts as they are. The timer counts the reading.
    Input(&'a StageTimer<'a>),
    /// The map output, which gives what is compared of cleaned texts.
    MapOutput,
}

/// Makes the sets of texts, and packs them to be sent.
struct SetPacker<'a> {
    rule: &'a Rule,
    sets: Sets,
    packed: Vec<u64>,
}

impl<'a> SetPacker<'a> {
    fn new(rule: &'a Rule) -> Self {
        SetPacker { rule, sets: Sets::default(), packed: Vec::new() }
    }

    /// Returns the comparison of packed sets.
    fn matching(&self) -> Matching {
        let rule = self.rule.clone();
        Box::new(move |a, b| rule.matches(PackedSets(a), PackedSets(b)))
    }

    /// Returns the sets of a text, and the same packed.
    fn pack(&mut self, text: &str) -> (&Sets, &[u64]) {
        self.packed.clear();
        self.rule.sets(text, &mut self.sets);
        self.sets.pack(&mut self.packed);
        (&self.sets, &self.packed)
    }
}

/// Compares candidates by the rule of the method, and gives those that match to `each`. Returns the number of candidates
/// that this worker has decided. Calls `note` with the documents of candidates and those of `named`, which are named too, and
/// with the sets of those of the crowd, a sorted list.
fn compare(
    worker: &mut Worker,
    at: &StageTimer,
    mapped: &Mapped,
    earlier: &dyn Earlier,
    (pairs, named, crowd): (Sorted<Pair>, impl Iterator<Item = DocId>, &[DocId]),
    mut note: impl FnMut(StoredText, Option<&Sets>),
    each: impl FnMut(&mut Worker, Pair, Similarity),
) -> Result<u64> {
    let search = &mapped.search;
    let mut cleaner = LineCleaner::new(search.method.cleaner.clone(), search.ignored.clone());
    let source = if mapped.stores_texts { TextSource::MapOutput } else { TextSource::Input(at) };
    let mut packer = SetPacker::new(&search.method.rule);
    let (mut verify, mut needs) = Verify::new(worker, pairs, named, packer.matching(), &search.spill)?;
    let of_crowd = |doc: DocId| crowd.binary_search(&doc).is_ok();
    earlier.texts(worker, &mut needs, &of_crowd, &mut |worker, text, parts| {
        let (sets, packed) = packer.pack(text.text);
        if of_crowd(text.doc) {
            note(text, Some(sets));
        }
        parts.iter().for_each(|&part| verify.send(worker, part, text.doc, packed));
        verify.read(worker, text.text.len());
    })?;
    for (number, split) in mapped.splits(worker) {
        let Some(first) = needs.next_of(number)? else { continue };
        let each = |worker: &mut Worker, text: StoredText| {
            if let Some(parts) = needs.of(text.doc)? {
                let of_crowd = of_crowd(text.doc);
                if !of_crowd && parts.is_empty() {
                    note(text, None);
                } else {
                    let compared = match source {
                        TextSource::Input(_) => cleaner.compared(text.text),
                        TextSource::MapOutput => text.text,
                    };
                    let (sets, packed) = packer.pack(compared);
                    note(StoredText { text: compared, ..text }, of_crowd.then_some(sets));
                    parts.iter().for_each(|&part| verify.send(worker, part, text.doc, packed));
                }
            }
            verify.read(worker, text.text.len());
            Ok(needs.next_of(number)?)
        };
        match source {
            TextSource::Input(at) => input_of(worker, at, mapped, split, first, each)?,
            TextSource::MapOutput => mapped.texts_of(worker, number, each)?,
        }
    }
    drop(needs);
    Ok(verify.finish(worker, each)?)
}

/// Does what [`compare`] does with texts that the crowd has kept. `texts`: in the order of documents.
fn compare_kept(
    worker: &mut Worker,
    mapped: &Mapped,
    pairs: Sorted<Pair>,
    texts: &Spool<u8>,
    each: impl FnMut(&mut Worker, Pair, Similarity),
) -> Result<u64> {
    let mut packer = SetPacker::new(&mapped.search.method.rule);
    let (mut verify, mut needs) =
        Verify::new(worker, pairs, iter::empty(), packer.matching(), &mapped.search.spill)?;
    texts.scan(|doc, text| -> Result<()> {
        if let Some(parts) = needs.of(doc)? {
            let (_, packed) = packer.pack(str::from_utf8(text)?);
            parts.iter().for_each(|&part| verify.send(worker, part, doc, packed));
        }
        verify.read(worker, text.len());
        Ok(())
    })?;
    drop(needs);
    Ok(verify.finish(worker, each)?)
}

/// Calls `each` with documents of a split, from the input. `first`: the first document that is needed.
/// `each` returns the next one; where none is needed any more, the rest of the split is not read.
pub(super) fn input_of(
    worker: &mut Worker,
    at: &StageTimer,
    mapped: &Mapped,
    split: &Split,
    first: DocId,
    mut each: impl FnMut(&mut Worker, StoredText) -> Result<Option<DocId>>,
) -> Result<()> {
    let number = first.split();
    at.split(number, split.uri(), || {
        let mut reader = SplitReader::new(number, split, &mapped.search.run.reading, at);
        let mut needed = Some(first);
        while let Some(doc) = needed {
            reader.pass_files_before(doc);
            let Some(batch) = reader.next_batch()? else { break };
            for doc in batch.docs() {
                let merit = doc.merit();
                needed = each(worker, StoredText { doc: doc.doc, id: doc.id, merit, text: doc.text })?;
            }
        }
        Ok(())
    })
}
