//! Values: strings of bytes that travel to the worker of their key, and are read there in the order of keys.

use timely::worker::Worker;

use crate::flow::exchange::shuffle::SortingShuffle;
use crate::record::DocId;
use crate::spill::merge::MergeCursor;
use crate::{Error, ExternalSort, SpillBudget};

/// Key of a value. The first of the two documents selects the worker that the value goes to.
pub type ValueKey = (DocId, DocId);
/// Number of bytes of a value that travel in one piece.
const PIECE_BYTES: usize = 32;
/// A key, the number of the piece shifted by a byte with the number of bytes in use, and the bytes.
type ValuePiece = (ValueKey, (u64, [u8; PIECE_BYTES]));

/// Sends values, each with a key of its own, to the workers of their keys.
///
/// A value travels and is sorted in pieces of a fixed size, so it is spilled as other records are. Memory:
/// that of a [`SortingShuffle`], 56 bytes for each begun 32 bytes of a value.
pub struct ValueShuffle {
    pieces: SortingShuffle<ValuePiece>,
}

impl ValueShuffle {
    /// Opens a shuffle. All workers must do this at the same place in their order of shuffles. `to`: the worker of a value by the first
    /// document of its key, modulo the number of workers.
    pub fn new(worker: &mut Worker, name: &str, to: fn(DocId) -> u64, spill: &SpillBudget) -> Self {
        let arrived = ExternalSort::new(spill);
        let key = move |piece: &ValuePiece| to(piece.0.0);
        ValueShuffle { pieces: SortingShuffle::new(worker, name, key, arrived) }
    }

    /// Sends a value, which may be empty. No other value may have the same key.
    pub fn send(&mut self, worker: &mut Worker, key: ValueKey, value: &[u8]) {
        let (mut number, mut rest) = (0, value);
        loop {
            let (now, after) = rest.split_at(rest.len().min(PIECE_BYTES));
            let mut bytes = [0; PIECE_BYTES];
            bytes[..now.len()].copy_from_slice(now);
            self.pieces.send(worker, (key, (number << 8 | now.len() as u64, bytes)));
            (number, rest) = (number + 1, after);
            if rest.is_empty() {
                return;
            }
        }
    }

    /// Ends a round, so that others need not wait for a worker that has little to send.
    pub fn round(&mut self, worker: &mut Worker) {
        self.pieces.round(worker);
    }

    /// Ends the sending, and waits until all workers have done so.
    pub fn finish(self, worker: &mut Worker) -> Result<SortedValues, Error> {
        let pieces = MergeCursor::new(self.pieces.finish(worker)?);
        Ok(SortedValues { pieces, value: Vec::new() })
    }
}

/// Values that have arrived, in the order of their keys.
pub struct SortedValues {
    pieces: MergeCursor<ValuePiece>,
    value: Vec<u8>,
}

impl SortedValues {
    /// Returns the key of the next value.
    pub fn peek(&mut self) -> Result<Option<ValueKey>, Error> {
        Ok(self.pieces.peek()?.map(|(key, _)| key))
    }

    /// Takes the next value with its key.
    pub fn next_value(&mut self) -> Result<Option<(ValueKey, &[u8])>, Error> {
        let Some(key) = self.peek()? else { return Ok(None) };
        self.value.clear();
        while let Some((_, (number, bytes))) = self.pieces.next_if(|piece| piece.0 == key)? {
            self.value.extend_from_slice(&bytes[..(number & 0xff) as usize]);
        }
        Ok(Some((key, &self.value)))
    }

    /// Takes the values of the next split, which are those whose keys begin with a document of it. Returns the split, and the values with
    /// nothing between them, so a value must tell where it ends. Memory: these values.
    pub fn next_split(&mut self) -> Result<Option<(u32, Vec<u8>)>, Error> {
        let Some((first, _)) = self.peek()? else { return Ok(None) };
        let mut values = Vec::new();
        while self.peek()?.is_some_and(|(doc, _)| doc.split() == first.split()) {
            self.next_value()?.iter().for_each(|(_, value)| values.extend_from_slice(value));
        }
        Ok(Some((first.split(), values)))
    }
}

/// Adds a number to a value, in 7 bits a byte with the lowest first (LEB128).
pub(super) fn put_number(mut number: u64, to: &mut Vec<u8>) {
    while number >= 1 << 7 {
        to.push(number as u8 | 1 << 7);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Takes a number off the beginning of a value; 0 if the value is at its end.
pub(super) fn take_number(from: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let Some((&byte, rest)) = from.split_first() else { break };
        *from = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 1 << 7 {
            break;
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::reader_of;
    use crate::spill::budget::twins::Twin;

    #[test]
    fn numbers_come_back() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), 1 << 62, u64::MAX];
        let mut value = Vec::new();
        numbers.iter().for_each(|&number| put_number(number, &mut value));
        let rest = &mut &value[..];
        assert_eq!(numbers.map(|_| take_number(rest)), numbers);
        assert_eq!((rest.len(), take_number(rest)), (0, 0));
    }

    #[test]
    fn values_of_any_length_arrive_whole_and_in_order() {
        let value = |doc: u64| vec![doc as u8; (doc % 7 * 33 + doc / 90) as usize];
        for budget in [None, Some(10_000)] {
            let spill = Twin::default().budget(budget);
            let guards = timely::execute(timely::Config::process(2), move |worker| {
                let mut shuffle = ValueShuffle::new(worker, "Test", reader_of, &spill);
                for doc in (worker.index() as u64..100).step_by(2).chain([10_000 + worker.index() as u64]) {
                    let doc = doc * 7919 % 10_007;
                    shuffle.send(worker, (DocId::new(doc as u32 % 3, doc), DocId(doc)), &value(doc));
                }
                let mut values = shuffle.finish(worker).unwrap();
                let mut all = Vec::new();
                while let Some((key, bytes)) = values.next_value().unwrap() {
                    assert_eq!(key.0.split() as usize % 2, worker.index());
                    assert_eq!((key.0.record(), bytes), (key.1.0, &value(key.1.0)[..]));
                    all.push(key);
                }
                assert!(all.is_sorted());
                all.len()
            });
            let counts = guards.unwrap().join().into_iter().map(|count| count.unwrap());
            assert_eq!(counts.sum::<usize>(), 102);
        }
    }
}
