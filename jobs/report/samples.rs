//! Pairs and clusters of an output that the page shows, with their texts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use anyhow::Result;
use operators::{DocId, Similarity, hash};
use serde::Serialize;

use super::marked::{MarkedStretch, cut, marked};
use crate::corpus::input::Input;
use crate::dedup::finished::{Finished, MemberRow, PairRow};
use crate::progress::Progress;

/// Number of clusters that are shown, and of the members of each.
const CLUSTERS: usize = 10;
const MEMBERS: usize = 5;

/// Pairs and clusters that the page shows.
pub(super) struct ShownSamples {
    pub pairs: Vec<ShownPair>,
    pub clusters: Vec<ShownCluster>,
}

/// A pair with its differences marked.
#[derive(Serialize)]
pub(super) struct ShownPair {
    a: String,
    b: String,
    similarity: Option<f64>,
    hamming: Option<u32>,
    texts: [Vec<MarkedStretch>; 2],
}

/// A large cluster.
#[derive(Serialize)]
pub(super) struct ShownCluster {
    name: String,
    size: u64,
    members: Vec<ShownMember>,
}

#[derive(Serialize)]
struct ShownMember {
    id: String,
    kept: bool,
    text: String,
    left_out: usize,
}

impl ShownSamples {
    /// Chooses half of the pairs among those that are just similar enough, and half from all over the corpus, and reads their texts
    /// and those of the largest clusters.
    pub fn read(finished: &Finished, input: &Input, progress: &Progress, pairs: usize) -> Result<Self> {
        let pairs = chosen_pairs(finished, pairs)?;
        let clusters = largest_clusters(finished)?;
        let of_pairs = pairs.iter().flat_map(|pair| [pair.places.0, pair.places.1]);
        let of_clusters =
            clusters.iter().flat_map(|(_, _, members)| members.iter().map(|member| member.place));
        let places: Vec<DocId> = of_pairs.chain(of_clusters).collect();
        let documents = input.at(&places, progress)?;
        let texts: HashMap<DocId, String> =
            documents.into_iter().map(|document| (document.place, document.text)).collect();
        let text = |place: DocId| texts.get(&place).map_or("", String::as_str);
        let pair = |pair: PairRow| ShownPair {
            similarity: pair.similarity.map(Similarity::as_f64),
            hamming: pair.hamming,
            texts: marked(text(pair.places.0), text(pair.places.1)),
            a: pair.a,
            b: pair.b,
        };
        let member = |member: MemberRow| {
            let (shown, left_out) = cut(text(member.place));
            ShownMember { id: member.id, kept: member.removed.is_none(), text: shown.to_owned(), left_out }
        };
        let cluster = |(name, size, members): (String, u64, Vec<MemberRow>)| ShownCluster {
            name,
            size,
            members: members.into_iter().map(member).collect(),
        };
        Ok(ShownSamples {
            pairs: pairs.into_iter().map(pair).collect(),
            clusters: clusters.into_iter().map(cluster).collect(),
        })
    }
}

/// Returns pairs that are not identical, the least similar first.
fn chosen_pairs(finished: &Finished, count: usize) -> Result<Vec<PairRow>> {
    let (mut borderline, mut anywhere) = (BTreeMap::new(), BTreeMap::new());
    finished.pairs(|pair| {
        if pair.identical {
            return;
        }
        let (a, b) = pair.places;
        let spread = hash::spread(a.0 ^ hash::spread(b.0));
        borderline.insert((pair.similarity, Reverse(pair.hamming), a, b), pair.clone());
        anywhere.insert((spread, a, b), pair);
        if borderline.len() > count / 2 {
            borderline.pop_last();
        }
        if anywhere.len() > count - count / 2 {
            anywhere.pop_last();
        }
    })?;
    let all = borderline.into_values().chain(anywhere.into_values());
    let all: BTreeMap<_, _> =
        all.map(|pair| ((pair.similarity, Reverse(pair.hamming), pair.places), pair)).collect();
    Ok(all.into_values().collect())
}

/// Returns the largest clusters with their first members.
fn largest_clusters(finished: &Finished) -> Result<Vec<(String, u64, Vec<MemberRow>)>> {
    let mut sizes = BTreeMap::<String, u64>::new();
    finished.members(|member| *sizes.entry(member.cluster).or_default() += 1)?;
    let mut largest: Vec<(Reverse<u64>, String)> =
        sizes.into_iter().map(|(name, size)| (Reverse(size), name)).collect();
    largest.sort_unstable();
    largest.truncate(CLUSTERS);
    let mut members = HashMap::<String, Vec<MemberRow>>::new();
    finished.members(|member| {
        if largest.iter().any(|(_, name)| *name == member.cluster) {
            let of_cluster = members.entry(member.cluster.clone()).or_default();
            // Those that stay come first.
            of_cluster.push(member);
            of_cluster.sort_by_key(|member| (member.removed.is_some(), member.place));
            of_cluster.truncate(MEMBERS);
        }
    })?;
    let cluster = |(Reverse(size), name): (Reverse<u64>, String)| {
        let members = members.remove(&name).unwrap_or_default();
        (name, size, members)
    };
    Ok(largest.into_iter().map(cluster).collect())
}
