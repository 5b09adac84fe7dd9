//! The sum of the sketches of several processes.

use std::collections::HashMap;

use timely::worker::Worker;

use super::shuffle::shuffle;
use crate::sketch::{Piece, Sketch};

/// Waits until all workers are done counting, and gives every process the counts of all. `threads`: the workers of
/// each process, which share its sketch.
///
/// Each piece is added up on one worker, and comes back to one of each process. One process only waits.
pub fn sum(worker: &mut Worker, sketch: &Sketch, threads: usize) {
    wait(worker);
    if worker.peers() == threads {
        return;
    }
    let (first, peers) = (worker.index() % threads, worker.peers());
    let mine = (first..sketch.pieces()).step_by(threads).filter_map(|at| sketch.piece(at));
    let mut sums = HashMap::<u64, Piece>::new();
    for piece in shuffle(worker, "Sketch", mine, |piece: &Piece| piece.at) {
        sums.entry(piece.at).and_modify(|sum| sum.add(&piece)).or_insert(piece);
    }
    let processes = (0..peers as u64).step_by(threads);
    let to_each = sums.values().flat_map(|&piece| processes.clone().map(move |to| (to, piece)));
    let to = move |(process, piece): &(u64, Piece)| process + piece.at % threads as u64;
    for (_, piece) in shuffle(worker, "Sketch", to_each, to) {
        sketch.put(&piece);
    }
    wait(worker);
}

/// Waits for all workers.
fn wait(worker: &mut Worker) {
    shuffle(worker, "Wait", [], |&nothing: &u64| nothing);
}
