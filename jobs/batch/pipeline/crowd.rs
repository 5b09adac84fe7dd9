//! The crowd of a search: the documents that take part in all rounds after the first.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anyhow::Result;
use foldhash::HashMap;
use operators::flow::{ClusterBatch, PlaceOf, RecordSink, SortedValues};
use operators::search::crowds::place::{KeepPlace, Rank};
use operators::sets::{Rule, Sets};
use operators::{DocId, Reason, Record, Resolve, Sides, Similarity, SpillBudget, Spool, survivors};
use timely::worker::Worker;

/// Quarters of the documents of a worker that a crowd may be at most for its texts and records to be kept, in memory and on disk. For
/// larger crowds the map output is read again, most of which is theirs.
const IN_MEMORY: u64 = 1;
const ON_DISK: u64 = 3;
/// Bytes of memory of the texts and of the records of each section, of a crowd that is kept on disk.
const ON_DISK_BYTES: usize = 1 << 20;

/// Documents of this worker that take part in rounds. Memory: 210 bytes each; of a crowd of up to a quarter also the texts and the
/// records, or the budget.
pub(super) struct Crowd {
    /// In order.
    docs: Vec<DocId>,
    /// The first document of the family of each.
    families: Vec<DocId>,
    /// The place of each.
    places: Vec<KeepPlace>,
    /// Position of the document that was looked up last. Nearly always the next one is looked up.
    last: Cell<usize>,
    /// The documents in the order in which they take part: how many of their family come before each in keep order, its rank and its
    /// position.
    order: Vec<(u64, Rank, usize)>,
    /// How many of them take part, and of each family.
    admitted: usize,
    of_family: u64,
    /// The texts, if they are kept.
    texts: Option<Spool<u8>>,
    /// The records, if they are kept, as bytes, by the section of the map output from which they were read.
    records: Option<RefCell<BTreeMap<usize, Spool<u8>>>>,
    spill: SpillBudget,
}

impl Crowd {
    /// Begins with documents of which nothing is known. `of_worker`: number of all documents of this worker, if their texts can
    /// be read again.
    pub fn new(docs: Vec<(DocId, DocId)>, of_worker: Option<u64>, spill: &SpillBudget) -> Self {
        let (docs, families): (Vec<_>, Vec<_>) = docs.into_iter().unzip();
        let is_up_to = |quarters| of_worker.is_none_or(|all| 4 * docs.len() as u64 <= quarters * all);
        let spill = if is_up_to(IN_MEMORY) { spill.clone() } else { spill.at_most(ON_DISK_BYTES) };
        Crowd {
            texts: is_up_to(ON_DISK).then(|| Spool::new(&spill)),
            records: is_up_to(ON_DISK).then(RefCell::default),
            spill,
            places: vec![KeepPlace::default(); docs.len()],
            docs,
            families,
            last: Cell::default(),
            order: Vec::new(),
            admitted: 0,
            of_family: 0,
        }
    }

    /// Returns the documents, in order.
    pub fn docs(&self) -> &[DocId] {
        &self.docs
    }

    /// Returns the place of a document, if it is of the crowd. Cost: some ns if documents are looked up in order.
    pub fn place(&self, doc: DocId) -> Option<KeepPlace> {
        Some(self.places[self.position(doc)?])
    }

    fn position(&self, doc: DocId) -> Option<usize> {
        let docs = &self.docs;
        let last = self.last.get();
        let position = match docs.get(last..(last + 2).min(docs.len())) {
            Some(&[one, _]) if one == doc => last,
            Some(&[one, next]) if one < doc && doc <= next => (doc == next).then_some(last + 1)?,
            _ => docs.binary_search(&doc).ok()?,
        };
        self.last.set(position);
        Some(position)
    }

    /// Notes a document of the crowd. Documents must come in order. `stayed`: whether it is an earlier document that stayed. `text`: as it
    /// is compared. `sets`: of the text.
    pub fn note(
        &mut self,
        doc: DocId,
        (rank, stayed): (Rank, bool),
        text: &str,
        (sets, rule): (&Sets, &Rule),
    ) {
        let Some(position) = self.position(doc) else { return };
        self.places[position] = KeepPlace { stayed, ..KeepPlace::new(rank, sets, rule) };
        self.order.push((0, rank, position));
        if let Some(texts) = &mut self.texts {
            texts.push(doc, text.as_bytes());
        }
    }

    /// Returns the texts, if they are kept.
    pub fn texts(&self) -> Option<&Spool<u8>> {
        self.texts.as_ref()
    }

    /// Calls `each` with the records of those documents in a section that have a place, and with their places. `scan`: calls its
    /// argument with the records of all documents of this worker.
    pub fn records<R: Record>(
        &self,
        worker: &mut Worker,
        section: usize,
        (doc, place): (impl Fn(&R) -> DocId, &PlaceOf),
        mut scan: impl FnMut(&mut Worker, RecordSink<R>) -> Result<()>,
        mut each: impl FnMut(&mut Worker, (KeepPlace, R)),
    ) -> Result<()> {
        let Some(records) = &self.records else {
            return scan(worker, &mut |worker, record| {
                if let Some(place) = place(doc(&record)) {
                    each(worker, (place, record));
                }
            });
        };
        let mut records = records.borrow_mut();
        let records = match records.entry(section) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let mut of_crowd = Spool::new(&self.spill);
                let mut bytes = vec![0; R::BYTES];
                scan(worker, &mut |_, record| {
                    if self.position(doc(&record)).is_some() {
                        record.write(&mut bytes);
                        of_crowd.push(doc(&record), &bytes);
                    }
                })?;
                unknown.insert(of_crowd)
            }
        };
        records.scan(|doc, bytes| {
            if let Some(place) = place(doc) {
                each(worker, (place, R::read(bytes)));
            }
            Ok(())
        })
    }

    /// Lets the `first` documents of each family in keep order take part.
    pub fn begin(&mut self, first: u64) {
        let Crowd { order, families, .. } = self;
        order.sort_unstable_by_key(|&(_, rank, position)| (families[position], rank));
        for family in order.chunk_by_mut(|a, b| families[a.2] == families[b.2]) {
            (0..).zip(family).for_each(|(before, doc)| doc.0 = before);
        }
        order.sort_unstable();
        self.admit(first);
    }

    /// Lets `growth` times as many documents of each family take part, and at least one more if there is any.
    pub fn grow(&mut self, growth: u64) {
        let next = self.order.get(self.admitted).map_or(0, |next| next.0 + 1);
        self.admit(next.max(self.of_family * growth));
    }

    fn admit(&mut self, of_family: u64) {
        self.of_family = of_family;
        let before = self.admitted;
        self.admitted = self.order.partition_point(|next| next.0 < of_family);
        for &(_, _, position) in &self.order[before..self.admitted] {
            self.places[position].join();
        }
    }

    /// Returns the number of documents that take part.
    pub fn taking_part(&self) -> usize {
        self.admitted
    }

    /// Returns the number of documents that take no part yet.
    pub fn waiting(&self) -> usize {
        self.order.len() - self.admitted
    }

    /// Notes which of the documents that took part are settled: those that are not in the sorted list `cut`. For `in_vain`
    /// see [`KeepPlace::took_part`].
    pub fn settle(&mut self, cut: &[DocId], in_vain: bool) {
        for (doc, place) in self.docs.iter().zip(&mut self.places) {
            if place.takes_part() && place.stays() {
                place.took_part(cut.binary_search(doc).is_err(), in_vain);
            }
        }
    }

    /// Takes what was decided about the documents in the place of what was decided before.
    pub fn decided(&mut self, mut decisions: SortedValues) -> Result<()> {
        self.places.iter_mut().for_each(|place| place.gone = None);
        while let Some(((doc, _), decision)) = decisions.next_value()? {
            if let Some(position) = self.position(doc) {
                let place = &mut self.places[position];
                let (gone, rank) = postcard::from_bytes::<(Option<_>, Rank)>(decision)?;
                place.rank = rank;
                if let Some((similarity, leader)) = gone {
                    place.goes(similarity, leader);
                }
            }
        }
        Ok(())
    }
}

/// Decides some clusters greedily, and sends for [`Crowd::decided`] what was decided. Of identical documents the first one
/// stands for all, with the rank of the best.
pub(super) fn decide(
    batch: &ClusterBatch,
    sides: Sides,
    rank: impl Fn(DocId) -> Rank,
    send: &mut dyn FnMut(DocId, &[u8]),
) -> Result<()> {
    let mut best: HashMap<DocId, Rank> = HashMap::default();
    for &(doc, first) in &batch.matches().copies {
        let of_class = best.entry(first).or_insert_with(|| rank(first));
        *of_class = rank(doc).min(*of_class);
    }
    for member in survivors(batch.matches(), Resolve::Greedy, sides, &rank) {
        let gone = member.removed.and_then(|removed| match removed.tie {
            Reason::Similar(similarity) => {
                Some((similarity.unwrap_or(Similarity::LEAST), rank(removed.duplicate_of)))
            }
            _ => None,
        });
        let best = best.get(&member.doc).copied();
        if gone.is_some() || best.is_some() {
            let decision = (gone, best.unwrap_or_else(|| rank(member.doc)));
            send(member.doc, &postcard::to_allocvec(&decision)?);
        }
    }
    Ok(())
}
