//! The container that crosses worker boundaries: records of a fixed size, in buffers of 64 KiB.

use timely::Accountable;
use timely::bytes::arc::Bytes;
use timely::container::{DrainContainer, PushInto, SizableContainer};
use timely::dataflow::channels::ContainerBytes;

use crate::record::Record;

const BUFFER_BYTES: usize = 64 << 10;

/// Records side by side. Between threads the buffer itself moves; between processes its records do, byte by
/// byte the same on every machine.
#[derive(Clone)]
pub struct Rows<R>(Vec<R>);

impl<R> Default for Rows<R> {
    fn default() -> Self {
        Rows(Vec::new())
    }
}

impl<R: Record> Accountable for Rows<R> {
    fn record_count(&self) -> i64 {
        self.0.len() as i64
    }
}

impl<R: Record> DrainContainer for Rows<R> {
    type Item<'a> = R;
    type DrainIter<'a> = std::vec::Drain<'a, R>;

    fn drain(&mut self) -> Self::DrainIter<'_> {
        self.0.drain(..)
    }
}

impl<R: Record> SizableContainer for Rows<R> {
    fn at_capacity(&self) -> bool {
        self.0.len() == self.0.capacity()
    }

    fn ensure_capacity(&mut self, stash: &mut Option<Self>) {
        if self.0.capacity() == 0 {
            *self = stash.take().unwrap_or_default();
            self.0.clear();
            self.0.reserve_exact(BUFFER_BYTES / size_of::<R>());
        }
    }
}

impl<R: Record> PushInto<R> for Rows<R> {
    #[inline]
    fn push_into(&mut self, record: R) {
        self.0.push(record);
    }
}

impl<R: Record> ContainerBytes for Rows<R> {
    fn from_bytes(bytes: Bytes) -> Self {
        Rows(bytes.chunks_exact(R::BYTES).map(R::read).collect())
    }

    fn length_in_bytes(&self) -> usize {
        const { assert!(R::BYTES.is_multiple_of(8), "the engine keeps its messages aligned to 8 bytes") };
        self.0.len() * R::BYTES
    }

    fn into_bytes<W: std::io::Write>(&self, writer: &mut W) {
        let mut bytes = vec![0; self.length_in_bytes()];
        bytes.chunks_exact_mut(R::BYTES).zip(&self.0).for_each(|(to, record)| record.write(to));
        // The writer is a buffer that the engine made as long as `length_in_bytes` says: a failure is a bug.
        #[expect(clippy::expect_used, reason = "the engine's trait has no way to fail")]
        writer.write_all(&bytes).expect("the engine's buffer is long enough");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{DocId, Pair, Row};
    use timely::bytes::arc::BytesMut;

    fn through_bytes<R: Record>(records: &[R]) -> Vec<R> {
        let rows = Rows(records.to_vec());
        let mut bytes = Vec::new();
        rows.into_bytes(&mut bytes);
        assert_eq!(bytes.len(), rows.length_in_bytes());
        Rows::from_bytes(BytesMut::from(bytes).freeze()).drain().collect()
    }

    #[test]
    fn records_cross_a_process_boundary_unchanged() {
        let rows = [Row { fingerprint: u64::MAX - 1, doc: DocId::new(7, 9) }, Row::default()];
        assert_eq!(through_bytes(&rows), rows);
        let wide = [Row { fingerprint: (1u64, u64::MAX), doc: DocId(3) }];
        assert_eq!(through_bytes(&wide), wide);
        let wider = [Row { fingerprint: u128::MAX << 60 | 7, doc: DocId(4) }];
        assert_eq!(through_bytes(&wider), wider);
        let pairs = [Pair::new(DocId(9), DocId::new(1, 1), 3)];
        assert_eq!(through_bytes(&pairs), pairs);
    }
}
