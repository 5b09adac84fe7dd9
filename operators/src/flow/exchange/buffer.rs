//! Containers that cross worker boundaries: buffers of 64 KiB for records of a fixed size, and a `Vec` for
//! others.

use timely::bytes::arc::Bytes;
use timely::dataflow::channels::ContainerBytes;

use super::parcel::Freight;
use crate::record::Record;

const BUFFER_BYTES: usize = 64 << 10;
/// Number of bytes that are written at once, which is faster than all bytes or those of one record.
const WRITTEN_BYTES: usize = 4 << 10;

/// Records on their way to one worker.
///
/// Implemented by [`ExchangeBuffer`] for records of a fixed size, and by `Vec` for others.
pub trait Buffer<T>: Default + Freight {
    /// Greatest number of records of a buffer.
    const RECORDS: usize;
    /// Adds a record to a buffer with room for `room` records. Returns whether the buffer is now full.
    fn push(&mut self, record: T, room: usize) -> bool;
    /// Moves all records to `arrived`.
    fn unload(&mut self, arrived: &mut impl Extend<T>);
    /// Prepares the buffer for other records.
    fn clear(&mut self);
    /// Whether the buffer has no records that are to be sent.
    fn is_empty(&self) -> bool;
}

impl<T> Buffer<T> for Vec<T>
where
    Vec<T>: Clone + Send + ContainerBytes + 'static,
{
    const RECORDS: usize = 256;

    fn push(&mut self, record: T, room: usize) -> bool {
        put(self, record, room)
    }

    fn unload(&mut self, arrived: &mut impl Extend<T>) {
        arrived.extend(self.drain(..));
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }
}

/// Adds a record and returns whether the buffer is now full.
#[inline]
fn put<T>(records: &mut Vec<T>, record: T, room: usize) -> bool {
    if records.capacity() == 0 {
        records.reserve_exact(room);
    }
    records.push(record);
    records.len() >= room
}

/// Records side by side. Between threads the buffer itself moves. Between processes its records move as bytes
/// that are the same on every machine, and stay bytes until they are unloaded.
#[derive(Clone)]
pub struct ExchangeBuffer<R> {
    came: Option<Bytes>,
    records: Vec<R>,
}

impl<R> Default for ExchangeBuffer<R> {
    fn default() -> Self {
        ExchangeBuffer { came: None, records: Vec::new() }
    }
}

impl<R: Record> ExchangeBuffer<R> {
    fn came(&self) -> &[u8] {
        self.came.as_deref().unwrap_or_default()
    }
}

impl<R: Record> Buffer<R> for ExchangeBuffer<R> {
    const RECORDS: usize = BUFFER_BYTES / size_of::<R>();

    #[inline]
    fn push(&mut self, record: R, room: usize) -> bool {
        put(&mut self.records, record, room)
    }

    fn unload(&mut self, arrived: &mut impl Extend<R>) {
        if let Some(came) = self.came.take() {
            arrived.extend(came.chunks_exact(R::BYTES).map(R::read));
        }
        arrived.extend(self.records.drain(..));
    }

    fn clear(&mut self) {
        self.came = None;
        self.records.clear();
    }

    fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

impl<R: Record> ContainerBytes for ExchangeBuffer<R> {
    fn from_bytes(bytes: Bytes) -> Self {
        ExchangeBuffer { came: Some(bytes), records: Vec::new() }
    }

    fn length_in_bytes(&self) -> usize {
        const { assert!(R::BYTES.is_multiple_of(8), "the engine keeps its messages aligned to 8 bytes") };
        const { assert!(R::BYTES <= WRITTEN_BYTES, "at least one record is written at once") };
        self.came().len() + self.records.len() * R::BYTES
    }

    fn into_bytes<W: std::io::Write>(&self, writer: &mut W) {
        // The engine made the writer as long as `length_in_bytes` says, so a failure is a bug.
        #[expect(clippy::expect_used, reason = "the engine's trait has no way to fail")]
        let mut write = |bytes: &[u8]| writer.write_all(bytes).expect("the engine's buffer is long enough");
        write(self.came());
        let mut bytes = [0; WRITTEN_BYTES];
        for records in self.records.chunks(WRITTEN_BYTES / R::BYTES) {
            let bytes = &mut bytes[..records.len() * R::BYTES];
            bytes.chunks_exact_mut(R::BYTES).zip(records).for_each(|(to, record)| record.write(to));
            write(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{DocId, Pair, Row};
    use timely::bytes::arc::BytesMut;

    fn through_bytes<R: Record>(records: &[R]) -> Vec<R> {
        let mut rows = ExchangeBuffer::default();
        records.iter().for_each(|record| _ = rows.push(*record, 4));
        // Records that have come from elsewhere may be sent on.
        for _ in 0..2 {
            let mut bytes = Vec::new();
            rows.into_bytes(&mut bytes);
            assert_eq!(bytes.len(), rows.length_in_bytes());
            rows = ExchangeBuffer::from_bytes(BytesMut::from(bytes).freeze());
        }
        let mut arrived = Vec::new();
        rows.unload(&mut arrived);
        assert!(rows.is_empty() && rows.length_in_bytes() == 0);
        arrived
    }

    #[test]
    fn records_cross_a_process_boundary_unchanged() {
        let rows = [Row { fingerprint: u64::MAX - 1, doc: DocId::new(7, 9), sketch: 5 }, Row::default()];
        assert_eq!(through_bytes(&rows), rows);
        let wide = [Row { fingerprint: (1u64, u64::MAX), doc: DocId(3), sketch: 0 }];
        assert_eq!(through_bytes(&wide), wide);
        let wider = [Row { fingerprint: u128::MAX << 60 | 7, doc: DocId(4), sketch: 1 }];
        assert_eq!(through_bytes(&wider), wider);
        let pairs = [Pair::new(DocId(9), DocId::new(1, 1), 3)];
        assert_eq!(through_bytes(&pairs), pairs);
    }
}
