//! Clusters of matching documents, and the documents of each cluster that survive.
//!
//! All work is done on one thread and needs nothing but the pairs. Memory at the peak: 56 bytes for each
//! document that matches another and 16 for each pair (measured: 48 to 58, and 18). The result takes 32 of
//! the bytes of a document.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::record::Sides;
use crate::record::{DocId, Pair};
use crate::sets::similarity::Similarity;

/// Rule by which it is decided which documents of a cluster stay.
///
/// Documents are the nodes of a graph and matches are its edges; a cluster is a connected component.
/// Identical documents are one node. Nodes are visited in *keep order*, such as the order of the input.
/// `Greedy` lets a node stay unless a node that stays has removed it already, and a node that stays removes
/// all its later neighbours. `Components` lets the first node of each component stay and removes all others.
///
/// Example: documents 1, 2 and 3 in this order, matches 1-2 with similarity 0.9 and 2-3 with similarity 0.8.
///
/// ```text
/// document   greedy                                components
/// 1          stays, removes 2                      stays
/// 2          goes, similar to 1                    goes, similar to 1
/// 3          stays: its only match has gone        goes, connected to 1 by the chain 1-2-3
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Resolve {
    /// A document goes only if it matches one that stays. The documents that stay are the lexicographically
    /// first maximal independent set in keep order: no two of them match, and each document that goes matches
    /// one of them.
    #[default]
    Greedy,
    /// One document of each connected component stays. Others may go by a chain of matches.
    Components,
}

impl FromStr for Resolve {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let resolve = [Resolve::Greedy, Resolve::Components].into_iter().find(|r| r.to_string() == text);
        resolve.ok_or_else(|| format!("expected greedy or components, not \"{text}\""))
    }
}

impl fmt::Display for Resolve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A match of two documents that are not identical, with its similarity where it was measured.
pub type NearPair = (Pair, Option<Similarity>);

/// Documents that match, the input of [`survivors`].
#[derive(Debug, Default)]
pub struct Matches {
    /// Each further document of a class of identical ones, with the first document of that class.
    pub copies: Vec<(DocId, DocId)>,
    /// Pairs of first documents of their classes, with their similarity where it was measured.
    pub pairs: Vec<NearPair>,
}

impl Matches {
    /// Returns the documents that match another one, each once and in order.
    fn docs(&self) -> Vec<DocId> {
        let of_copies = self.copies.iter().flat_map(|&(doc, first)| [doc, first]);
        let of_pairs = self.pairs.iter().flat_map(|(pair, _)| [pair.low, pair.high]);
        let mut docs: Vec<DocId> = of_copies.chain(of_pairs).collect();
        docs.sort_unstable();
        docs.dedup();
        docs.shrink_to_fit();
        docs
    }
}

/// A document of a cluster of two or more, and whether it stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// First document of the cluster, which names it.
    pub cluster: DocId,
    /// Document that the entry is about.
    pub doc: DocId,
    /// Reason why the document goes; `None` if it stays.
    pub removed: Option<Removed>,
}

/// Reason why a document goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Removed {
    /// Document that stays in its place.
    pub duplicate_of: DocId,
    /// Relation between the two.
    pub tie: Reason,
}

/// Relation between a removed document and the one that stays in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub enum Reason {
    /// The two are identical.
    Identical,
    /// The two match. The similarity is present where it was measured.
    Similar(Option<Similarity>),
    /// The two are in one component, but were not found to match.
    Chain,
}

impl Reason {
    /// Returns the similarity of two documents that are not identical, where it was measured.
    pub fn similarity(self) -> Option<Similarity> {
        match self {
            Reason::Similar(similarity) => similarity,
            Reason::Identical | Reason::Chain => None,
        }
    }
}

/// Decides which documents of `matches` stay. Returns all of them, ordered by cluster and then by document.
///
/// `sides`: documents of the reference come first in keep order, and all of them stay. Where no two documents of the
/// input are a pair, clusters without a document of the reference are left out, so identical ones of the input stay.
///
/// `rank`: the keep order, in which the least rank comes first. Cost: sorting the documents and the pairs.
///
/// Example with the documents r and s of the reference, and 3 and 4 of the input, which are identical:
///
/// ```text
/// matches                    within               not within
/// r-3 0.8, s-3 0.9, 4 = 3    3 and 4 go, by s     3 and 4 go, by s
/// 4 = 3                      4 goes, by 3         both stay
/// ```
pub fn survivors<K: Ord>(
    matches: &Matches,
    resolve: Resolve,
    sides: Sides,
    rank: impl Fn(DocId) -> K,
) -> Vec<Member> {
    let mut graph = Graph::new(matches, sides, &|doc| (!sides.is_reference(doc), rank(doc)));
    match resolve {
        Resolve::Greedy => graph.greedy(),
        Resolve::Components => graph.components(),
    }
    let mut members = graph.members();
    // Without `within`, a class of the input that is left in a cluster matches the reference, so all of it
    // goes.
    members.retain(|member| sides.within() || sides.is_reference(member.cluster));
    members
}

/// Documents by index, in corpus order. Identical documents form a class, which is named by its first
/// document.
struct Graph {
    /// Result for each document. Until all is decided, only the entry of a class's first document is in use,
    /// and holds the decision about the class.
    members: Vec<Member>,
    /// For each document, the index of the first document of its class.
    class: Vec<u32>,
    /// For each class, the index of its best document in keep order.
    best: Vec<u32>,
    /// For each class, the index of the first document of its component.
    cluster: Vec<u32>,
    /// All classes, best first.
    order: Vec<u32>,
    /// All pairs, sorted by `from`.
    edges: Vec<Edge>,
    sides: Sides,
}

/// A pair of classes, seen from the class that comes first in keep order.
struct Edge {
    /// Position of that class in `order`.
    from: u32,
    /// Index of the other class.
    to: u32,
    similarity: Option<Similarity>,
}

impl Graph {
    fn new<K: Ord>(matches: &Matches, sides: Sides, rank: &impl Fn(DocId) -> K) -> Self {
        let docs = matches.docs();
        let index = |doc: DocId| docs.partition_point(|&other| other < doc) as u32;
        let all = || 0..docs.len() as u32;

        let mut class: Vec<u32> = all().collect();
        let mut best = class.clone();
        for &(doc, first) in &matches.copies {
            let (doc, first) = (index(doc), index(first));
            class[doc as usize] = first;
            if rank(docs[doc as usize]) < rank(docs[best[first as usize] as usize]) {
                best[first as usize] = doc;
            }
        }
        let mut order: Vec<u32> = all().filter(|&doc| class[doc as usize] == doc).collect();
        order.sort_by_cached_key(|&class| rank(docs[best[class as usize] as usize]));
        let mut positions = vec![0; docs.len()];
        (0..).zip(&order).for_each(|(at, &class)| positions[class as usize] = at);

        let mut cluster: Vec<u32> = all().collect();
        let edge = |&(pair, similarity): &NearPair| {
            let (low, high) = (index(pair.low), index(pair.high));
            let (a, b) = (find(&mut cluster, low), find(&mut cluster, high));
            cluster[a.max(b) as usize] = a.min(b);
            let (low_position, high_position) = (positions[low as usize], positions[high as usize]);
            let to = if low_position < high_position { high } else { low };
            Edge { from: low_position.min(high_position), to, similarity }
        };
        let mut edges: Vec<Edge> = matches.pairs.iter().map(edge).collect();
        edges.sort_unstable_by_key(|edge| edge.from);
        all().for_each(|class| cluster[class as usize] = find(&mut cluster, class));
        drop(positions);
        let members = docs.iter().map(|&doc| Member { cluster: doc, doc, removed: None }).collect();
        Graph { members, class, best, cluster, order, edges, sides }
    }

    fn greedy(&mut self) {
        for edges in self.edges.chunk_by(|a, b| a.from == b.from) {
            let from = self.order[edges[0].from as usize];
            if self.members[from as usize].removed.is_some() {
                continue;
            }
            let duplicate_of = self.members[self.best[from as usize] as usize].doc;
            for edge in edges {
                // If several earlier documents that stay match, the most similar is named, and of equal ones
                // the first in keep order.
                let tie = Reason::Similar(edge.similarity);
                let removed = &mut self.members[edge.to as usize].removed;
                if removed.is_none_or(|removed| removed.tie < tie) {
                    *removed = Some(Removed { duplicate_of, tie });
                }
            }
        }
    }

    fn components(&mut self) {
        // For each component, the position in `order` of the class that stays.
        let mut stays = vec![u32::MAX; self.members.len()];
        for (position, &class) in (0..).zip(&self.order) {
            let stays = &mut stays[self.cluster[class as usize] as usize];
            *stays = position.min(*stays);
            if *stays < position && !self.sides.is_reference(self.members[class as usize].doc) {
                let best = self.best[self.order[*stays as usize] as usize];
                let duplicate_of = self.members[best as usize].doc;
                self.members[class as usize].removed = Some(Removed { duplicate_of, tie: Reason::Chain });
            }
        }
        for edge in &self.edges {
            let from = self.order[edge.from as usize];
            let is_first = edge.from == stays[self.cluster[edge.to as usize] as usize];
            if !is_first && !self.is_reference(from) {
                continue;
            }
            // A cluster may have several documents of the reference, which all stay. The most similar is named.
            let tie = Reason::Similar(edge.similarity);
            let duplicate_of = self.members[self.best[from as usize] as usize].doc;
            let removed = self.members[edge.to as usize].removed.as_mut();
            if let Some(removed) = removed.filter(|removed| removed.tie == Reason::Chain || removed.tie < tie)
            {
                *removed = Removed { duplicate_of, tie };
            }
        }
    }

    /// Whether a class has a document of the reference. If it does, its first document is one.
    fn is_reference(&self, class: u32) -> bool {
        self.sides.is_reference(self.members[class as usize].doc)
    }

    /// Copies the decision about each class to its documents, and sorts the result.
    fn members(self) -> Vec<Member> {
        let Graph { mut members, class, best, cluster, sides, .. } = self;
        // Going backwards, the first document of a class is overwritten last, when no other one needs its
        // entry.
        for doc in (0..members.len()).rev() {
            let class = class[doc] as usize;
            let identical =
                || Removed { duplicate_of: members[best[class] as usize].doc, tie: Reason::Identical };
            let removed = members[class].removed.unwrap_or_else(identical);
            let cluster = members[cluster[class] as usize].doc;
            let doc = &mut members[doc];
            let stays = |removed: &Removed| removed.duplicate_of == doc.doc || sides.is_reference(doc.doc);
            doc.removed = Some(removed).filter(|removed| !stays(removed));
            doc.cluster = cluster;
        }
        members.sort_unstable();
        members
    }
}

/// Finds the root of a component, and halves the path to it (union-find). `parent`: for each number one above
/// it; a root is above itself.
pub(crate) fn find(parent: &mut [u32], mut class: u32) -> u32 {
    while parent[class as usize] != class {
        let above = parent[parent[class as usize] as usize];
        parent[class as usize] = above;
        class = above;
    }
    class
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn pair(a: u64, b: u64, hundredths: usize) -> (Pair, Option<Similarity>) {
        (Pair::new(DocId(a), DocId(b), 1), Some(Similarity::ratio(hundredths, 100)))
    }

    fn removed(members: &[Member]) -> Vec<(u64, u64, Reason)> {
        members.iter().filter_map(|m| m.removed.map(|r| (m.doc.0, r.duplicate_of.0, r.tie))).collect()
    }

    #[test]
    fn a_chain_loses_its_middle_or_all_but_one() {
        let matches = Matches { copies: vec![], pairs: vec![pair(1, 2, 90), pair(2, 3, 80)] };
        let near = |hundredths| Reason::Similar(Some(Similarity::ratio(hundredths, 100)));
        let greedy = survivors(&matches, Resolve::Greedy, Sides::default(), |doc| doc);
        assert_eq!(removed(&greedy), [(2, 1, near(90))]);
        assert!(greedy.iter().all(|member| member.cluster == DocId(1)));
        let components = survivors(&matches, Resolve::Components, Sides::default(), |doc| doc);
        assert_eq!(removed(&components), [(2, 1, near(90)), (3, 1, Reason::Chain)]);
    }

    #[test]
    fn the_best_of_identical_documents_stays_and_the_nearest_is_named() {
        let copies = vec![(DocId(5), DocId(4)), (DocId(6), DocId(4))];
        let matches = Matches { copies, pairs: vec![pair(1, 9, 80), pair(4, 9, 95)] };
        let rank = |doc: DocId| (doc != DocId(6), doc);
        let members = survivors(&matches, Resolve::Greedy, Sides::default(), rank);
        let near = Reason::Similar(Some(Similarity::ratio(95, 100)));
        assert_eq!(removed(&members), [(4, 6, Reason::Identical), (5, 6, Reason::Identical), (9, 6, near)]);
    }

    #[test]
    fn the_reference_stays_and_the_input_goes_only_by_what_is_looked_for() {
        let (r, s, input) = (DocId(1), DocId(2), |number| DocId::new(1, number));
        // Documents 3 and 4 are identical, and so are 5, 6 and r, and 9 and 10; 7 and 8 match each other alone.
        let pair = |a, b, hundredths| (Pair::new(a, b, 0), Some(Similarity::ratio(hundredths, 100)));
        let copies = vec![(input(4), input(3)), (input(5), r), (input(6), r), (input(10), input(9))];
        let pairs = vec![pair(r, input(3), 80), pair(s, input(3), 90), pair(input(7), input(8), 99)];
        let gone = |within, resolve, longest: DocId| {
            let mut matches = Matches { copies: copies.clone(), pairs: pairs.clone() };
            matches.pairs.truncate(if within { 3 } else { 2 });
            let sides = Sides::new(1, within);
            let members = survivors(&matches, resolve, sides, |doc| (doc != longest, doc));
            assert!(within || members.iter().all(|member| member.cluster == r), "{members:?}");
            removed(&members)
        };
        let near = Reason::Similar(Some(Similarity::ratio(90, 100)));
        let by_reference = [(3, 2, near), (4, 2, near), (5, 1, Reason::Identical), (6, 1, Reason::Identical)]
            .map(|(doc, of, tie)| (input(doc).0, of, tie));
        for resolve in [Resolve::Greedy, Resolve::Components] {
            for longest in [r, input(4), input(8)] {
                assert_eq!(gone(false, resolve, longest), by_reference);
                assert_eq!(gone(true, resolve, longest)[..4], by_reference);
                assert_eq!(gone(true, resolve, longest).len(), 6, "7 or 8 goes too, and so does 10");
            }
        }
    }

    proptest! {
        #[test]
        fn greedy_is_sound_complete_and_first(edges in vec((0u64..30, 0u64..30), 0..60), seed in any::<u64>()) {
            let edges: Vec<_> = edges.into_iter().filter(|(a, b)| a != b).collect();
            let matches = Matches { copies: vec![], pairs: edges.iter().map(|&(a, b)| pair(a, b, 90)).collect() };
            let rank = |doc: DocId| (crate::hash::spread(doc.0 ^ seed), doc);
            let members = survivors(&matches, Resolve::Greedy, Sides::default(), rank);
            // The definition: in keep order, a document stays unless a neighbour stays already.
            let mut order: Vec<u64> = members.iter().map(|member| member.doc.0).collect();
            order.sort_by_key(|&doc| rank(DocId(doc)));
            let mut stay: Vec<u64> = Vec::new();
            for doc in order {
                if !edges.iter().any(|&(a, b)| (a == doc && stay.contains(&b)) || (b == doc && stay.contains(&a))) {
                    stay.push(doc);
                }
            }
            for member in members {
                prop_assert_eq!(member.removed.is_none(), stay.contains(&member.doc.0));
                if let Some(removed) = member.removed {
                    let (a, b) = (member.doc.0, removed.duplicate_of.0);
                    prop_assert!(edges.contains(&(a, b)) || edges.contains(&(b, a)));
                    prop_assert!(stay.contains(&b));
                }
            }
        }
    }
}
