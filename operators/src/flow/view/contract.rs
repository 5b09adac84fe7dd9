//! Clusters of matching documents, by contraction.

use differential_dataflow::operators::iterate::Variable;
use timely::order::Product;

use super::rows::{ByKey, NearRow, Rows, Tied, ViewVersion, reduced};
use crate::hash::spread;

/// More levels than any cluster has: each is expected to leave less than half of the documents that have edges.
const LEVELS: u8 = 64;

/// Time in the loop: a version, and a round.
type LoopTime = Product<ViewVersion, u32>;

/// Returns each match with the document that names its cluster. `near`: matches, each at both of its documents.
///
/// **Method.** On each level a document goes to the least of itself and its neighbours, in an order that is random for the level,
/// and the graph of those that are gone to, the *representatives*, is the next level. So the number of levels is about the logarithm
/// of a cluster's diameter, and a change of a match changes a few rows of each. A cluster whose documents all go to one has no edges
/// on the next level, and costs nothing there; half of the clusters of a corpus are pairs. (Kiveris and others, Connected Components
/// in MapReduce and Beyond, 2014; Bögeholz, Brand and Todor, In-database connected component analysis, 2020.)
///
/// ```text
/// level 0     1 - 2 - 3 - 4     5 - 6      2 goes to 1, 3 and 4 go to 4, 6 to 5
/// level 1     1 - 4                        4 goes to 1
/// clusters    1, 2, 3, 4        5, 6       of 3 - 4, level 0 says 4 and level 1 that 4 is called 1
/// ```
///
/// The first level stands outside of the loop, since most of the documents are on it. In the loop the keys are pairs of level and
/// document, so all levels stand side by side, and no round takes back what another has said; multiplicities take the place of
/// distinct edges. What a cluster is called on later levels is a correction of its rows, so it is looked up for those documents
/// alone that go to a representative with edges.
pub(super) fn by_cluster<'s>(
    near: &ByKey<'s, ViewVersion, u32, NearRow>,
) -> ByKey<'s, ViewVersion, u32, Tied> {
    let goes_to = reduced(near.clone(), "representatives", |doc: &u32, near: &[(&NearRow, i32)], made| {
        made.push((least(0, *doc, near.iter().map(|(near, _)| near.1)), 1));
    });
    let first_names = near.clone().join_core(goes_to.clone(), |&low, &(tie, high), &name| {
        (low <= high).then_some((Tied { low, high, tie }, name))
    });
    let lows = first_names.clone().filter(|(tied, _)| tied.low < tied.high);
    let lows =
        lows.map(|(tied, name)| (tied.high, name)).arrange_by_key_named("names of the lower documents");
    let edges = lows.join_core(goes_to.clone(), |_, &one, &other| {
        let both = [((1, one), other), ((1, other), one)];
        both.into_iter().filter(|((_, one), other)| one != other)
    });
    let roots = roots(edges).arrange_by_key_named("roots");

    // The documents that go to a representative are its neighbours and itself.
    let around = near.clone().join_core(roots.clone(), |&name, &(_, doc), &root| Some((doc, (name, root))));
    let around = around.filter(|(doc, (name, _))| doc != name);
    let around = around.concat(roots.as_collection(|&name, &root| (name, (name, root))));
    let renamed = around
        .arrange_by_key_named("documents near roots")
        .join_core(goes_to, |&doc, &(name, root), &of_doc| (name == of_doc).then_some((doc, (name, root))));
    let corrected =
        near.clone().join_core(renamed.arrange_by_key_named("renamed"), |&low, &(tie, high), &names| {
            (low <= high).then_some((Tied { low, high, tie }, names))
        });
    let named = first_names
        .concat(corrected.clone().map(|(tied, (name, _))| (tied, name)).negate())
        .concat(corrected.map(|(tied, (_, root))| (tied, root)));
    named.map(|(tied, name)| (name, tied)).arrange_by_key_named("matches by root")
}

/// Returns what each document that has edges on the first level is called in the end. `edges`: those of the first level, in both
/// directions, several times where documents have several.
fn roots<'s>(edges: Rows<'s, ViewVersion, ((u8, u32), u32)>) -> Rows<'s, ViewVersion, (u32, u32)> {
    let outer = edges.scope();
    outer.scoped::<LoopTime, _, _>("levels", |scope| {
        let round = Product::new(Default::default(), 1);
        let (further, further_edges) = Variable::new(scope, round);
        let edges = edges.enter(scope).concat(further_edges).arrange_by_key_named("edges");
        let goes_to =
            reduced(edges.clone(), "representatives", |&(level, doc), near: &[(&u32, i32)], made| {
                made.push((least(level, doc, near.iter().map(|(near, _)| **near)), 1));
            });
        let halves =
            edges.join_core(goes_to.clone(), |&(level, _), &near, &name| Some(((level, near), name)));
        let next = halves.arrange_by_key_named("names of neighbours").join_core(
            goes_to.clone(),
            |&(level, _), &one, &other| {
                assert!(level < LEVELS, "too many levels");
                (one != other).then_some(((level + 1, other), one))
            },
        );
        further.set(next);

        let (later, later_names) = Variable::new(scope, round);
        let first = goes_to.clone().as_collection(|&(level, doc), &name| (level, (name, doc)));
        let first = first.filter(|(level, _)| *level == 1).map(|(_, (name, doc))| ((2, name), doc));
        let names = first.concat(later_names);
        let renamed = names
            .clone()
            .arrange_by_key_named("names")
            .join_core(goes_to, |&(level, name), &doc, &next| Some((level, name, doc, next)));
        later.set(renamed.clone().map(|(level, _, doc, next)| ((level + 1, next), doc)));
        let out_of_date = renamed.map(|(_, name, doc, _)| (doc, name)).negate();
        names.map(|((_, name), doc)| (doc, name)).concat(out_of_date).leave(outer)
    })
}

/// Returns the least of a document and its neighbours in the order of a level.
fn least(level: u8, doc: u32, near: impl Iterator<Item = u32>) -> u32 {
    let order = |doc: &u32| (spread(u64::from(*doc) << 8 | u64::from(level)), *doc);
    near.chain([doc]).min_by_key(order).unwrap_or(doc)
}
