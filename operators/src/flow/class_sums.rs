//! Sums of classes: sends the counts of each document to the workers that add up its features.

use std::collections::HashMap;

use timely::worker::Worker;

use super::exchange::shuffle::Shuffle;

/// A feature, a class, and a count.
type Counted = (u64, (u64, u64));

/// Adds up how often each feature occurs in each class. A class is any number.
///
/// A feature is added up on one worker, so the memory of all workers together does not grow with their
/// number: some 50 bytes for each feature of each class.
pub struct ClassSums {
    shuffle: Shuffle<Counted>,
    sums: HashMap<(u64, u64), u64>,
}

impl ClassSums {
    /// Opens the exchange. All workers must do this at the same place in their order of shuffles.
    pub fn new(worker: &mut Worker) -> Self {
        let shuffle = Shuffle::new(worker, "ClassSums", |&(feature, _): &Counted| feature);
        ClassSums { shuffle, sums: HashMap::new() }
    }

    /// Adds the counts of a document to a class.
    pub fn add(&mut self, class: u64, counts: &[(u64, u64)]) {
        counts.iter().for_each(|&(feature, count)| self.shuffle.send((feature, (class, count))));
    }

    /// Ends a round of adding, and takes in what has arrived.
    pub fn round(&mut self, worker: &mut Worker) {
        self.shuffle.round(worker);
        add_up(&mut self.sums, self.shuffle.take());
    }

    /// Waits for all workers, and returns the feature, the class and the count of this worker's features, in
    /// any order.
    pub fn finish(self, worker: &mut Worker) -> Vec<(u64, u64, u64)> {
        let ClassSums { shuffle, mut sums } = self;
        add_up(&mut sums, shuffle.finish(worker));
        sums.into_iter().map(|((feature, class), count)| (feature, class, count)).collect()
    }
}

fn add_up(sums: &mut HashMap<(u64, u64), u64>, counted: Vec<Counted>) {
    for (feature, (class, count)) in counted {
        *sums.entry((feature, class)).or_default() += count;
    }
}
