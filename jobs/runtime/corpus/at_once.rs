//! Threads that share the work on many items: splits that are read, files that are hashed, requests to a store.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, anyhow};

/// Calls `work` for each of `items`, on up to `threads` threads, and returns the results in the order of the
/// items.
///
/// # Errors
/// Those of [`each_with`].
pub fn each<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    each_with(threads, items, |_| (), |(), item| work(item))
}

/// Calls `work` for each of `items`, on up to `threads` threads, and returns the results in the order of the
/// items. `state` makes what a thread keeps from item to item, from the number of the thread.
///
/// There are no more threads and states than items. A single thread is that of the caller. Memory: the
/// results, and some bytes for each item.
///
/// # Errors
/// After an error no further item is begun. Of several errors, that of the first item is returned.
pub fn each_with<T: Sync, S, R: Send>(
    threads: usize,
    items: &[T],
    state: impl Fn(usize) -> S + Sync,
    work: impl Fn(&mut S, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = &AtomicUsize::new(0);
    let worker = &|thread: usize| {
        let mut state = state(thread);
        let mut results = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return results };
            let result = work(&mut state, item);
            if result.is_err() {
                // The other threads find no item any more.
                next.store(items.len(), Ordering::Relaxed);
            }
            results.push((at, result));
        }
    };
    let mut results: Vec<(usize, Result<R>)> = match threads.min(items.len()) {
        0 => return Ok(Vec::new()),
        1 => worker(0),
        threads => thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || worker(thread))).collect();
            let panicked = |_| vec![(0, Err(anyhow!("a thread panicked")))];
            threads.into_iter().flat_map(|thread| thread.join().unwrap_or_else(panicked)).collect()
        }),
    };
    results.sort_unstable_by_key(|result| result.0);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..1000).collect();
        for threads in [1, 2, 7] {
            let doubled = each(threads, &items, |item| Ok(2 * item)).unwrap();
            assert!(doubled.into_iter().eq((0..1000).map(|item| 2 * item)));
        }
    }

    #[test]
    fn the_error_of_the_first_item_counts_and_ends_the_work() {
        let items: Vec<usize> = (0..100_000).collect();
        for threads in [1, 2, 7] {
            let begun = AtomicUsize::new(0);
            let failed = each(threads, &items, |&item| {
                begun.fetch_add(1, Ordering::Relaxed);
                if item >= 10 { bail!("item {item}") } else { Ok(()) }
            });
            assert_eq!(failed.unwrap_err().to_string(), "item 10");
            assert!(begun.into_inner() < items.len());
        }
    }

    #[test]
    fn there_are_no_more_states_than_items() {
        for items in [0, 1, 3] {
            let states = AtomicUsize::new(0);
            let count = |_| states.fetch_add(1, Ordering::Relaxed);
            each_with(5, &vec![(); items], count, |_, ()| Ok(())).unwrap();
            assert_eq!(states.into_inner(), items);
        }
    }
}
