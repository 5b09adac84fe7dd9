//! Rounds: where very many documents share a key, only the matches are looked for that decide.
//!
//! The join has compared all documents whose keys are not crowded, and has noted the *crowd*: those with crowded keys, and those that
//! these have met. In each round some more of the crowd take part, the first in keep order, and ask some of those before
//! them that stay. What was asked is verified, and all workers decide greedily by the matches so far. When all take part and
//! have asked all, those that go are compared with all that stay and may be more similar than the one that they go for.
//! docs/design/0072 proves that the same documents stay, for the same ones, as if all pairs were compared.

use anyhow::Result;
use operators::flow::{FoundMatches, total};
use operators::search::crowds::Asks;
use timely::worker::Worker;

use super::crowd::decide;
use super::links::FoundLinks;
use super::mapped::Mapped;
use super::matched::{AskedRound, Matched};
use crate::dedup::earlier::Earlier;

/// Number of documents of the crowd that take part at the beginning.
const FIRST: usize = 256;
/// Growth of their number, when nearly all of those before are settled.
const GROWTH: usize = 8;
/// Part of those that take part that may not be settled when others follow, as a divisor.
const UNSETTLED_PART: u64 = 16;

impl Matched {
    /// Returns what the documents of the crowd ask for in the next round; `None` after the last one.
    pub fn next_round(
        &mut self,
        worker: &mut Worker,
        mapped: &Mapped,
        earlier: &impl Earlier,
    ) -> Result<Option<Asks>> {
        if !self.has_rounds {
            return Ok(None);
        }
        match self.last.take() {
            None => self.crowd.admit(FIRST.div_ceil(worker.peers())),
            Some(AskedRound { asks: Asks::Nearest, new, cut }) => {
                self.crowd.settle(&cut);
                let counts = [new, cut.len(), self.crowd.taking_part(), self.crowd.waiting()];
                let [new, cut, taking_part, waiting] = counts.map(|count| total(worker, count));
                if waiting > 0 && UNSETTLED_PART * cut <= taking_part {
                    self.crowd.admit(GROWTH);
                } else if new + cut == 0 {
                    return Ok(Some(Asks::Staying));
                }
            }
            Some(_) => return Ok(None),
        }
        self.decide(worker, mapped, earlier)?;
        Ok(Some(Asks::Nearest))
    }

    /// Decides by the matches so far which documents of the crowd stay. Sets those links aside that no round changes.
    fn decide(&mut self, worker: &mut Worker, mapped: &Mapped, earlier: &impl Earlier) -> Result<()> {
        let Matched { crowd, settled, open: links, names, .. } = self;
        let search = &mapped.search;
        let mut all = FoundMatches::new(worker, &search.spill);
        links.add_to(worker, &mut all)?;
        let mut docs = all.finish(worker)?;
        let sort = |doc| if crowd.place(doc).is_some() { OF_CROWD } else { "" };
        earlier.name(worker, &mut docs, |doc, _| sort(doc))?;
        if let Some(names) = names {
            names.scan(|doc, _, merit| Ok(docs.name(worker, doc, sort(doc), merit)?))?;
        }
        let mut open = FoundLinks::new(&search.spill);
        let decisions = docs.finish(worker)?.decide(worker, |batch, send| -> Result<()> {
            for (copies, pairs) in batch.clusters() {
                let of_pairs = pairs.iter().flat_map(|(pair, _)| [pair.low, pair.high]);
                let mut docs = copies.iter().flat_map(|copy| [copy.0, copy.1]).chain(of_pairs);
                let changes = docs.any(|doc| batch.id(doc) == OF_CROWD);
                let links = if changes { &mut open } else { &mut *settled };
                links.extend(copies, pairs);
            }
            decide(batch, search.sides, |doc| earlier.rank(mapped, doc, &|| batch.merit(doc)), send)
        })?;
        self.open = open;
        self.crowd.decided(decisions)
    }
}

/// Name of documents of the crowd while it is decided who stays. All others have no name.
const OF_CROWD: &str = "crowd";
