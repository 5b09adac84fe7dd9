//! Rounds: where very many documents share a key, only the matches are looked for that decide.
//!
//! In the first round each document of a crowded key asks the first one before it in keep order that may match it. What was
//! asked is verified, and all workers decide greedily by the matches so far. Those that stay ask on, twice as many in each
//! round, until every two of them that share a key were compared. docs/design/0072 proves that the same documents stay as if
//! all pairs were compared.

use anyhow::{Result, bail};
use foldhash::{HashMap, HashMapExt};
use operators::flow::{Candidates, FoundMatches, GatheredClusters, PrefixJoin, RankOf, total};
use operators::method::Method;
use operators::search::crowds::Asks;
use operators::{
    DocId, ExternalSort, MergeCursor, Pair, Reason, Resolve, Similarity, Sorted, SpillBudget, Spool,
    survivors,
};
use timely::worker::Worker;

use super::corpus_search::{CorpusSearch, SearchResult};
use super::map::IdenticalDocs;
use crate::corpus::name_spool::NameSpool;
use crate::dedup::keep::{Keep, KeepRank};
use crate::progress::{Stage, StageTimer};

/// Says which pairs a round asks for.
pub(super) struct Round<'a> {
    pub asks: Asks,
    /// Ranks of the documents that take part; `None` if all do, in the order of the corpus.
    pub ranks: Option<&'a RankOf<'a>>,
}

impl Round<'_> {
    /// Returns the first round. Unless the first document stays, nobody knows whom to ask before the documents were read.
    pub fn first(leaders: Option<&Keep>) -> Self {
        let asks = match leaders {
            None => Asks::All,
            Some(Keep::First) => Asks::First(1),
            Some(_) => Asks::First(0),
        };
        Round { asks, ranks: None }
    }
}

/// Holds what all rounds of a search have in common.
pub(super) struct Searched<'a> {
    pub method: &'a Method,
    pub copies: &'a IdenticalDocs,
    /// Prefixes of the documents, if the method searches by them.
    pub prefixes: Option<&'a PrefixJoin>,
}

impl CorpusSearch {
    /// Finds the clusters of this worker where keys are crowded. `pairs`, `crowd`: the candidates of the first round, and the
    /// documents of this worker that have crowded keys.
    pub(super) fn rounds(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        searched: &Searched,
        (pairs, crowd): (Sorted<Pair>, Vec<DocId>),
        found: &mut SearchResult,
    ) -> Result<GatheredClusters> {
        let copies = IdenticalDocs(searched.copies.0.clone()).of_input(self.sides);
        let mut names = NameSpool::new(&self.spill);
        let (mut asked, mut matches) = (AskedPairs::new(&self.spill), MatchSpool::new(&self.spill));
        let named = copies.named().chain(crowd.iter().copied());
        let fresh = asked.fresh(pairs, &crowd)?;
        found.candidates += self.compare(
            worker,
            at,
            searched.method,
            fresh,
            (named, Some(&mut names)),
            |_, pair, similarity| {
                matches.add(pair, similarity);
            },
        )?;
        let mut most = 1;
        loop {
            let staying = self.staying(worker, &matches, &copies, (&names, &crowd))?;
            at.enter(Stage::Compare);
            let round = Round { asks: Asks::First(most), ranks: Some(&|doc| staying.get(&doc).copied()) };
            let Candidates { pairs, crowd: cut, .. } =
                self.candidates(worker, searched, &mut None, &round)?;
            let fresh = asked.fresh(pairs, &crowd)?;
            at.enter(Stage::Verify);
            let mut new = 0;
            found.candidates += self.compare(
                worker,
                at,
                searched.method,
                fresh,
                ([].into_iter(), None),
                |_, pair, similarity| {
                    new += 1;
                    matches.add(pair, similarity);
                },
            )?;
            if total(worker, new) == 0 && cut.is_none() {
                break;
            }
            most *= 2;
        }
        at.enter(Stage::Resolve);
        let all = self.gather(worker, &matches, &copies)?;
        self.name_by(worker, all, names)
    }

    /// Returns all matches so far, those of identical documents too.
    fn gather(
        &self,
        worker: &mut Worker,
        matches: &MatchSpool,
        copies: &IdenticalDocs,
    ) -> Result<FoundMatches> {
        let mut all = FoundMatches::new(worker, &self.spill);
        matches.each(|pair, similarity| all.add_pair(worker, pair, Some(similarity)))?;
        copies.0.iter().for_each(|&(doc, first)| all.add_copy(worker, doc, first));
        Ok(all)
    }

    /// Decides by the matches so far which documents of the crowd stay. Returns the places of these in keep order.
    fn staying(
        &self,
        worker: &mut Worker,
        matches: &MatchSpool,
        copies: &IdenticalDocs,
        (names, crowd): (&NameSpool, &[DocId]),
    ) -> Result<HashMap<DocId, KeepRank>> {
        let keep = self.leaders.as_ref().unwrap_or(&Keep::First);
        let mut docs = self.gather(worker, matches, copies)?.finish(worker)?;
        let mut ranks = HashMap::with_capacity(crowd.len());
        names.scan(|doc, _, merit| {
            if crowd.binary_search(&doc).is_ok() {
                ranks.insert(doc, keep.rank(doc, || merit));
            }
            Ok(docs.name(worker, doc, "", merit)?)
        })?;
        let mut decisions = docs.finish(worker)?.decide(worker, |batch, send| -> Result<()> {
            let rank = |doc| keep.rank(doc, || batch.merit(doc));
            // Of identical documents the first one stands for all, with the rank of the best.
            let mut best: HashMap<DocId, KeepRank> = HashMap::new();
            for &(doc, first) in &batch.matches().copies {
                let of_class = best.entry(first).or_insert_with(|| rank(first));
                *of_class = rank(doc).min(*of_class);
            }
            for member in survivors(batch.matches(), Resolve::Greedy, self.sides, rank) {
                let goes = member.removed.is_some_and(|removed| removed.tie != Reason::Identical);
                let rank = best.get(&member.doc).copied();
                if goes || rank.is_some() {
                    send(member.doc, &postcard::to_allocvec(&rank.filter(|_| !goes))?);
                }
            }
            Ok(())
        })?;
        while let Some(((doc, _), decision)) = decisions.next_value()? {
            if ranks.remove(&doc).is_some() {
                ranks.extend(postcard::from_bytes::<Option<KeepRank>>(decision)?.map(|rank| (doc, rank)));
            }
        }
        Ok(ranks)
    }
}

/// Matches that this worker has found, of documents that are not identical. Memory: 48 bytes each, or the budget.
struct MatchSpool(Spool<u64>);

impl MatchSpool {
    fn new(spill: &SpillBudget) -> Self {
        MatchSpool(Spool::new(spill))
    }

    fn add(&mut self, Pair { low, high, distance }: Pair, similarity: Similarity) {
        self.0.push(low, &[high.0, distance.into(), similarity.as_millionths().into()]);
    }

    fn each(&self, mut each: impl FnMut(Pair, Similarity)) -> Result<()> {
        self.0.scan(|low, values| {
            let &[high, distance, similarity] = values else { bail!("matches on disk are damaged") };
            let pair = Pair { low, high: DocId(high), distance: distance as u32 };
            each(pair, Similarity::millionths(similarity as u32));
            Ok(())
        })
    }
}

/// Candidates that were compared before, sorted. Memory: 24 bytes each, or the budget.
struct AskedPairs {
    asked: Spool<u64>,
    spill: SpillBudget,
}

impl AskedPairs {
    fn new(spill: &SpillBudget) -> Self {
        AskedPairs { asked: Spool::new(spill), spill: spill.clone() }
    }

    /// Returns the candidates that were not compared before, and notes those of the crowd.
    fn fresh(&mut self, candidates: Sorted<Pair>, crowd: &[DocId]) -> Result<Sorted<Pair>> {
        let mut candidates = MergeCursor::new(candidates);
        let before = std::mem::replace(&mut self.asked, Spool::new(&self.spill));
        let mut fresh = ExternalSort::new(&self.spill).once();
        let asked = &mut self.asked;
        let key = |pair: &Pair| (pair.low, pair.high);
        let mut last = None;
        let mut take = |pair: Pair, asked: &mut Spool<u64>| {
            if last.replace(key(&pair)) == Some(key(&pair)) {
                return;
            }
            if crowd.binary_search(&pair.low).is_ok() {
                asked.push(pair.low, &[pair.high.0]);
            }
            fresh.push(pair);
        };
        before.scan(|low, highs| -> Result<()> {
            let known = (low, DocId(highs[0]));
            while let Some(pair) = candidates.next_if(|pair| key(pair) < known)? {
                take(pair, asked);
            }
            while candidates.next_if(|pair| key(pair) == known)?.is_some() {}
            asked.push(low, highs);
            Ok(())
        })?;
        while let Some(pair) = candidates.next_if(|_| true)? {
            take(pair, asked);
        }
        asked.check()?;
        Ok(fresh.finish()?)
    }
}
