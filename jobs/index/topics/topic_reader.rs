//! Looks up the documents of a topic, in memory and in all segments.

use anyhow::{Context, Result};
use cluster::runs::RunRow;
use operators::Priority;
use operators::hash::Identity;
use operators::method::{KeptKeys, TextKeys};

use super::memory::MemoryDoc;
use super::met_texts::{IndexCandidate, MetTexts, meet_segment};
use super::query_work::QueryWork;
use super::segment::SegmentCursors;
use super::table::IndexTable;
use super::topic::Topic;
use nightly::state::key_of_id;
use runtime::cli::exit::while_running;

/// Largest number of texts that are candidates of one query.
const MOST_CANDIDATES: usize = 10_000;

/// A reader of a topic, with a cursor for each table of each segment.
pub(crate) struct TopicReader<'a> {
    topic: &'a Topic,
    /// Number behind the last document that it sees.
    end: u64,
    /// Cursors of each segment, in the order of the segments.
    cursors: Vec<SegmentCursors>,
    /// Counts of what the queries so far have looked at; `other_reads` is not counted here.
    work: QueryWork,
}

/// A document of a topic.
pub(crate) struct IndexedDoc {
    pub number: u64,
    pub id: String,
    /// Time of the insertion, in seconds since 1970.
    pub time: u64,
    pub text: u64,
}

impl IndexedDoc {
    /// Takes a document from its row of the table of documents.
    fn of_row(row: &RunRow) -> Result<Self> {
        let id = str::from_utf8(row.bytes).context("an id of the index is not UTF-8")?.to_owned();
        let number = row.words[0];
        Ok(IndexedDoc { number, id, time: row.words[1], text: number - row.words[2] })
    }

    fn of_memory(doc: MemoryDoc) -> Self {
        let MemoryDoc { number, time, id, text } = doc;
        IndexedDoc { number, id: id.to_owned(), time, text }
    }
}

impl Drop for TopicReader<'_> {
    fn drop(&mut self) {
        for (segment, cursors) in self.topic.segments.iter().zip(self.cursors.drain(..)) {
            segment.give_back(cursors);
        }
    }
}

impl<'a> TopicReader<'a> {
    /// Begins to read the documents that are durable.
    ///
    /// # Errors
    /// Those of [`Topic::open_files`].
    pub fn new(topic: &'a Topic) -> Result<Self> {
        TopicReader::up_to(topic, topic.end_of_shown())
    }

    /// Begins to read for the writer of the topic, who sees documents that are not durable yet.
    ///
    /// # Errors
    /// Those of [`Topic::open_files`].
    pub fn of_writer(topic: &'a Topic) -> Result<Self> {
        TopicReader::up_to(topic, topic.next())
    }

    fn up_to(topic: &'a Topic, end: u64) -> Result<Self> {
        let cursors = topic.segments.iter().map(|segment| segment.cursors()).collect::<Result<_>>();
        let cursors = cursors.map_err(while_running)?;
        Ok(TopicReader { topic, end, cursors, work: QueryWork::default() })
    }

    /// Returns the topic.
    pub fn topic(&self) -> &Topic {
        self.topic
    }

    /// Whether a document that has a row is one that the reader sees, neither deleted nor expired.
    fn sees(&self, number: u64) -> bool {
        number < self.end && self.topic.is_alive(number)
    }

    /// Whether it sees the first document with a text.
    fn sees_first(&self, text: u64) -> bool {
        text < self.end && self.topic.has_first(text)
    }

    /// Returns what the queries so far have looked at.
    pub fn work(&self) -> QueryWork {
        QueryWork { other_reads: self.reads() - self.work.key_reads, ..self.work }
    }

    fn reads(&self) -> u64 {
        self.cursors.iter().map(|cursors| cursors.reads).sum()
    }

    /// Finds the texts that may match a text with these keys. Returns whether some were left out, because there are
    /// more than [`MOST_CANDIDATES`]. `within`: the largest number of bits in which fingerprints may differ.
    ///
    /// Cost: that of [`meet`](Self::meet) and [`sieve`](Self::sieve).
    pub fn candidates(
        &mut self,
        of: &TextKeys,
        kept: &KeptKeys,
        within: Option<u32>,
    ) -> Result<(Vec<IndexCandidate>, bool)> {
        let met = self.meet(of, kept, within)?;
        self.sieve(of, kept, met, |_| true)
    }

    /// Finds the texts that have one of these keys, or a near one, and those that are equal.
    ///
    /// Cost: for each key and segment a seek, and the keys that it meets.
    pub fn meet(&mut self, of: &TextKeys, kept: &KeptKeys, within: Option<u32>) -> Result<MetTexts> {
        let reads_before = self.reads();
        let mut number_reads = 0;
        let mut equal = self.equal_texts(of.identity)?;
        equal.sort_unstable();
        let most_bits = kept.distance().map(|most| within.map_or(most, |within| within.min(most)));
        // Text, distance, and the place of the key that has met it.
        let (mut met, mut is_cut): (Vec<(u64, u32, usize)>, bool) = (Vec::new(), false);
        for (at, key) in of.keys.iter().enumerate() {
            let range = kept.range(key.pass, key.key);
            let distance = |other: u128| {
                let distance = most_bits.map_or(0, |_| (key.key ^ other).count_ones());
                Some(distance).filter(|distance| most_bits.is_none_or(|most| *distance <= most))
            };
            for table in self.topic.tables() {
                table.meet(key.pass, range, |other, text| {
                    met.extend(distance(other).map(|distance| (text, distance, at)));
                });
            }
            for cursors in &mut self.cursors {
                let (is_cut_here, keys) =
                    meet_segment(cursors, key.pass.into(), range, distance, |distance, text| {
                        met.push((text, distance, at));
                    })?;
                is_cut |= is_cut_here;
                self.work.met += keys;
            }
        }
        if let (Some(key), Some(most)) = (of.keys.first(), most_bits) {
            let word = (key.key >> 64) as u64;
            for table in self.topic.tables() {
                table.near(word, most, |distance, text| met.push((text, distance, 0)));
            }
            let files = self.topic.segments.iter().map(|segment| Ok(segment.files()?.fingerprints.as_ref()));
            let files: Vec<_> = files.collect::<Result<_>>()?;
            for (file, cursors) in files.iter().zip(&mut self.cursors) {
                file.map_or(Ok(()), |file| file.begin(word, &mut cursors.scratch))?;
            }
            for (file, cursors) in files.iter().zip(&mut self.cursors) {
                let Some(file) = file else { continue };
                let near = file.near(most, &mut cursors.scratch, |distance, text| {
                    met.push((text, distance, 0));
                })?;
                is_cut |= near.is_cut;
                self.work.met += near.met;
                cursors.reads += near.reads + near.number_reads;
                number_reads += near.number_reads;
            }
        }
        self.work.queries += 1;
        self.work.key_reads += self.reads() - reads_before - number_reads;
        Ok(MetTexts { equal, met, is_cut })
    }

    /// Returns those of the texts with keys in common that may match by their sketches. `is_wanted`: whether a text is looked at.
    ///
    /// Cost: sorting the texts that are wanted, and for each a seek among the sketches.
    pub fn sieve(
        &mut self,
        of: &TextKeys,
        kept: &KeptKeys,
        MetTexts { equal, mut met, mut is_cut }: MetTexts,
        is_wanted: impl Fn(u64) -> bool,
    ) -> Result<(Vec<IndexCandidate>, bool)> {
        met.retain(|(text, ..)| is_wanted(*text));
        met.sort_unstable();
        let mut found = Vec::new();
        for same in met.chunk_by(|a, b| a.0 == b.0) {
            let (text, distance, _) = same[0];
            if equal.binary_search(&text).is_ok() || !self.has_docs(text)? {
                continue;
            }
            if found.len() == MOST_CANDIDATES {
                is_cut = true;
                break;
            }
            if kept.has_sketches() {
                let sketches = self.sketches(text)?;
                if !same.iter().any(|&(_, _, at)| kept.may_match(&of.keys[at], sketches)) {
                    continue;
                }
            }
            found.push(IndexCandidate { text, distance, is_equal: false });
        }
        self.work.candidates += found.len() as u64;
        found.extend(equal.into_iter().map(|text| IndexCandidate { text, distance: 0, is_equal: true }));
        Ok((found, is_cut))
    }

    /// Returns the texts with an identity. There may be several, since a document does not look for its text in the
    /// segments when it comes.
    fn equal_texts(&mut self, identity: Identity) -> Result<Vec<u64>> {
        let in_memory = self.topic.tables().flat_map(|table| table.texts_of(identity));
        let mut texts: Vec<u64> = in_memory.collect();
        for cursors in &mut self.cursors {
            cursors.rows(IndexTable::Identities, &[identity.0, identity.1], |words| {
                texts.push(words[2]);
                true
            })?;
        }
        Ok(texts)
    }

    fn sketches(&mut self, text: u64) -> Result<[u64; 2]> {
        if let Some(kept) = self.topic.tables().find_map(|table| table.text(text)) {
            return Ok(kept.sketches);
        }
        let mut sketches = [0; 2];
        if let Some(cursors) = self.of_number(text) {
            cursors.rows(IndexTable::Sketches, &[text], |words| {
                sketches = [words[1], words[2]];
                false
            })?;
        }
        Ok(sketches)
    }

    /// Returns the cleaned text of a text. It is empty if the index keeps no texts.
    pub fn text(&mut self, text: u64) -> Result<String> {
        if let Some(kept) = self.topic.tables().find_map(|table| table.text(text)) {
            return Ok(kept.text.to_owned());
        }
        let Some(cursors) = self.of_number(text) else { return Ok(String::new()) };
        let Some(cursor) = cursors.at(IndexTable::Texts, &[text])? else { return Ok(String::new()) };
        match cursor.peek_row()?.filter(|row| row.words[0] == text) {
            Some(row) => {
                Ok(str::from_utf8(row.bytes).context("a text of the index is not UTF-8")?.to_owned())
            }
            None => Ok(String::new()),
        }
    }

    /// Returns a document that is neither deleted nor expired.
    pub fn doc(&mut self, number: u64) -> Result<Option<IndexedDoc>> {
        if !self.sees(number) {
            return Ok(None);
        }
        if let Some(doc) = self.topic.tables().find_map(|table| table.doc(number)) {
            return Ok(Some(IndexedDoc::of_memory(doc)));
        }
        let Some(cursors) = self.of_number(number) else { return Ok(None) };
        let Some(cursor) = cursors.at(IndexTable::Documents, &[number])? else { return Ok(None) };
        let row = cursor.peek_row()?.filter(|row| row.words[0] == number);
        row.map(|row| IndexedDoc::of_row(&row)).transpose()
    }

    /// Returns the priority of a document that [`doc`](Self::doc) returns; the default if it has none.
    pub fn priority(&mut self, number: u64) -> Result<Priority> {
        if let Some(table) = self.topic.tables().find(|table| table.doc(number).is_some()) {
            return Ok(table.priority(number));
        }
        let (mut priority, Some(cursors)) = (Priority::default(), self.of_number(number)) else {
            return Ok(Priority::default());
        };
        cursors.rows(IndexTable::Priorities, &[number], |words| {
            priority = Priority(words[1]);
            false
        })?;
        Ok(priority)
    }

    /// Adds the numbers of documents with a text that are neither deleted nor expired to `numbers`, oldest first, up to
    /// `most` of them.
    pub fn docs_of(&mut self, text: u64, most: usize, numbers: &mut Vec<u64>) -> Result<()> {
        let end = numbers.len() + most;
        if self.sees_first(text) && numbers.len() < end {
            numbers.push(text);
        }
        self.each_copy(text, |number| {
            if numbers.len() < end {
                numbers.push(number);
            }
            numbers.len() < end
        })
    }

    /// Whether any document with the text is neither deleted nor expired.
    fn has_docs(&mut self, text: u64) -> Result<bool> {
        let mut found = self.sees_first(text);
        if !found {
            self.each_copy(text, |_| {
                found = true;
                false
            })?;
        }
        Ok(found)
    }

    /// Calls `each` with the documents of a text but the first one that are neither deleted nor expired, oldest first,
    /// until it returns false. They are where the text is, since a document does not look for its text in segments.
    fn each_copy(&mut self, text: u64, mut each: impl FnMut(u64) -> bool) -> Result<()> {
        let (topic, end) = (self.topic, self.end);
        let sees = |number: u64| number < end && topic.is_alive(number);
        if let Some(table) = topic.tables().find(|table| table.text(text).is_some()) {
            table.copies_of(text).filter(|number| sees(*number)).all(each);
            return Ok(());
        }
        let Some(cursors) = self.of_number(text) else { return Ok(()) };
        cursors.rows(IndexTable::Copies, &[text], |words| !sees(words[1]) || each(words[1]))
    }

    /// Returns the documents of segments with an id.
    pub fn docs_with_id(&mut self, id: &str) -> Result<Vec<u64>> {
        let hash = key_of_id(id.as_bytes());
        let mut numbers = Vec::new();
        for cursors in &mut self.cursors {
            cursors.rows(IndexTable::Ids, &[hash], |words| {
                numbers.push(words[1]);
                true
            })?;
        }
        let mut found = Vec::new();
        for number in numbers {
            found.extend(self.doc(number)?.filter(|doc| doc.id == id).map(|doc| doc.number));
        }
        Ok(found)
    }

    /// Returns the first document, if any, from a number on.
    pub fn doc_from(&mut self, number: u64) -> Result<Option<IndexedDoc>> {
        for (segment, cursors) in self.topic.segments.iter().zip(&mut self.cursors) {
            if segment.entry.end <= number {
                continue;
            }
            let Some(cursor) = cursors.at(IndexTable::Documents, &[number])? else { continue };
            if let Some(row) = cursor.peek_row()? {
                return IndexedDoc::of_row(&row).map(Some);
            }
        }
        Ok(self.topic.docs_in_memory_from(number).next().map(IndexedDoc::of_memory))
    }

    /// Returns the first document, if any, from a number on that is neither deleted nor expired.
    pub fn living_doc_from(&mut self, mut number: u64) -> Result<Option<IndexedDoc>> {
        while let Some(doc) =
            self.doc_from(number.max(self.topic.oldest))?.filter(|doc| doc.number < self.end)
        {
            if self.sees(doc.number) {
                return Ok(Some(doc));
            }
            number = doc.number + 1;
        }
        Ok(None)
    }

    /// Calls `each` with every document that is neither deleted nor expired, in order.
    pub fn each_doc(&mut self, mut each: impl FnMut(IndexedDoc) -> Result<()>) -> Result<()> {
        let mut next = 0;
        while let Some(doc) = self.living_doc_from(next)? {
            next = doc.number + 1;
            each(doc)?;
        }
        Ok(())
    }

    /// Returns the cursors of the segment that a document or text is in.
    fn of_number(&mut self, number: u64) -> Option<&mut SegmentCursors> {
        let at = self.topic.segments.partition_point(|segment| segment.entry.end <= number);
        self.cursors.get_mut(at)
    }
}
