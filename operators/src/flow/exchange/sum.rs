//! All-reduce: adds up the counts of all workers, and the feature counters of several processes.

use timely::worker::Worker;

use super::shuffle::{Shuffle, shuffle};
use crate::sets::feature_counts::{CounterSlice, FeatureCounts};

/// Number of pieces of 1 KiB after which the engine works.
const ROUND: usize = 64;

/// Waits until all workers have finished counting, and gives every process the sum of all counts. `threads`:
/// the number of workers of each process, which share its counters.
///
/// Each piece is added up on one worker of one process (reduce-scatter), which then sends it to the other
/// processes (all-gather). A single process only waits. Memory: what travels, some 600 pieces.
pub fn sum(worker: &mut Worker, sketch: &FeatureCounts, threads: usize) {
    wait(worker);
    let (index, peers) = (worker.index(), worker.peers());
    if peers == threads {
        return;
    }
    // One thread of each process reads and writes a piece, because `peers` is a multiple of `threads`.
    let mine = (index % threads..sketch.pieces()).step_by(threads);
    let elsewhere = mine.filter(|at| at % peers != index).filter_map(|at| sketch.piece(at));
    let to_owners = elsewhere.map(|piece| (piece.at % peers as u64, piece));
    exchange(worker, to_owners, |piece| sketch.add(piece));
    let owned = (index..sketch.pieces()).step_by(peers).filter_map(|at| sketch.piece(at));
    let others = (index % threads..peers).step_by(threads).filter(|&other| other != index);
    let to_others = owned.flat_map(|piece| others.clone().map(move |other| (other as u64, piece)));
    exchange(worker, to_others, |piece| sketch.put(piece));
    wait(worker);
}

/// Sends pieces to workers, and gives those that arrive to `take`.
fn exchange(
    worker: &mut Worker,
    pieces: impl Iterator<Item = (u64, CounterSlice)>,
    take: impl Fn(&CounterSlice),
) {
    let mut shuffle = Shuffle::<(u64, CounterSlice)>::new(worker, "Sketch", |&(to, _)| to);
    for (sent, piece) in pieces.enumerate() {
        shuffle.send(piece);
        if sent % ROUND == ROUND - 1 {
            shuffle.round(worker);
            shuffle.take().iter().for_each(|(_, piece)| take(piece));
        }
    }
    shuffle.finish_each(worker, |(_, piece)| take(&piece));
}

/// Returns the sum of the counts of all workers.
pub fn total(worker: &mut Worker, count: usize) -> u64 {
    let [total] = totals(worker, [count]);
    total
}

/// Returns the sums of the counts of all workers, at the cost of one [`total`].
pub fn totals<const N: usize>(worker: &mut Worker, counts: [usize; N]) -> [u64; N] {
    let peers = worker.peers() as u64;
    let counts = counts.map(|count| count as u64);
    let to_each = (0..peers).map(|to| (to, counts));
    let arrived = shuffle(worker, "Count", to_each, |&(to, _): &(u64, [u64; N])| to);
    arrived.into_iter().fold([0; N], |sums, (_, counts)| std::array::from_fn(|at| sums[at] + counts[at]))
}

/// Waits until all workers have come here.
fn wait(worker: &mut Worker) {
    shuffle(worker, "Wait", [], |&nothing: &u64| nothing);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sets::feature_counts::Counting;
    use crate::{SpillBudget, hash};

    #[test]
    fn every_process_has_the_counts_of_all() {
        const THREADS: usize = 2;
        const PROCESSES: usize = 3;
        let sketches: Vec<_> =
            (0..PROCESSES).map(|_| Arc::new(FeatureCounts::of_corpus(1 << 20, None))).collect();
        let whole = Arc::new(FeatureCounts::of_corpus(1 << 20, None));
        let shared = sketches.clone();
        let all = Arc::clone(&whole);
        let guards = timely::execute(timely::Config::process(THREADS * PROCESSES), move |worker| {
            let own = &shared[worker.index() / THREADS];
            let mut counts =
                [own, &all].map(|sketch| Counting::new(Arc::clone(sketch), &SpillBudget::unused()));
            // Some features are counted by one worker, some by all, and one so often that its counter is
            // full.
            let features = (0..20_000_u64).filter(|i| i % 7 == worker.index() as u64 || i % 7 == 6);
            for feature in features.chain([1; 100]) {
                counts.iter_mut().for_each(|count| count.add([hash::spread(feature)].into_iter()));
            }
            counts.into_iter().for_each(Counting::finish);
            sum(worker, own, THREADS);
        });
        guards.unwrap().join().into_iter().for_each(|worker| worker.unwrap());
        for sketch in &sketches {
            let [ranks, of_whole] = [sketch, &whole].map(|sketch| {
                let features = (0..40_000).map(hash::spread);
                let mut counted: Vec<_> = features.map(|feature| (sketch.count(feature), feature)).collect();
                sketch.rank(&mut counted, usize::MAX);
                counted
            });
            assert_eq!(ranks, of_whole);
        }
        assert_eq!(whole.count(hash::spread(1)), 3);
    }
}
