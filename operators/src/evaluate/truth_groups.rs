//! Groups of documents that belong together, by labels or by the result of a run.

use crate::decide::find;

/// Documents that belong together, by their numbers: every two documents of one class, and every two
/// documents of two classes that are paired.
///
/// Identical documents and clusters are classes, so that millions of pairs need not be held. Memory: some 60
/// bytes a document, and 8 for each pair of classes.
#[derive(Clone, Debug, Default)]
pub struct TruthGroups {
    class: Vec<u32>,
    members: Vec<Vec<u32>>,
    paired: Vec<Vec<u32>>,
}

impl TruthGroups {
    /// Makes the groups of `documents` documents. `same`: documents that belong to one class. `pairs`:
    /// documents whose classes are paired.
    ///
    /// # Panics
    /// When a number is not below `documents`.
    pub fn new(documents: usize, same: &[(u32, u32)], pairs: &[(u32, u32)]) -> Self {
        let class = components(documents, same);
        let (mut members, mut paired) = (vec![Vec::new(); documents], vec![Vec::new(); documents]);
        (0..).zip(&class).for_each(|(doc, &class)| members[class as usize].push(doc));
        for &(a, b) in pairs {
            let (a, b) = (class[a as usize], class[b as usize]);
            if a != b {
                paired[a as usize].push(b);
                paired[b as usize].push(a);
            }
        }
        for others in &mut paired {
            others.sort_unstable();
            others.dedup();
        }
        TruthGroups { class, members, paired }
    }

    /// Drops the documents whose number is not below `documents`.
    pub fn first(mut self, documents: usize) -> Self {
        self.class.truncate(documents);
        for members in &mut self.members {
            members.truncate(members.partition_point(|&doc| (doc as usize) < documents));
        }
        self
    }

    /// Returns the number of documents.
    pub fn documents(&self) -> usize {
        self.class.len()
    }

    /// Returns the number of the class of a document.
    pub fn class(&self, doc: u32) -> u32 {
        self.class[doc as usize]
    }

    /// Whether two documents belong together.
    pub fn related(&self, a: u32, b: u32) -> bool {
        let (a, b) = (self.class[a as usize], self.class[b as usize]);
        a == b || self.paired[a as usize].binary_search(&b).is_ok()
    }

    /// Returns the other documents that a document belongs together with.
    pub fn of(&self, doc: u32) -> impl Iterator<Item = u32> {
        let class = self.class[doc as usize];
        let classes = std::iter::once(class).chain(self.paired[class as usize].iter().copied());
        classes.flat_map(|class| &self.members[class as usize]).copied().filter(move |&other| other != doc)
    }

    /// Returns every pair of documents that belong together, once, the smaller number first.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.class.len() as u32)
            .flat_map(|doc| self.of(doc).map(move |other| (doc, other)).filter(|p| p.0 < p.1))
    }

    /// Returns the number of pairs of documents that belong together.
    pub fn count(&self) -> u64 {
        let size = |class: usize| self.members[class].len() as u64;
        let of_class = |class: usize| {
            let others: u64 = self.paired[class].iter().map(|&other| size(other as usize)).sum();
            size(class) * (size(class).saturating_sub(1) + others)
        };
        (0..self.members.len()).map(of_class).sum::<u64>() / 2
    }

    /// Returns for each document the smallest number in its component, which contains all documents that it
    /// reaches over any number of others.
    pub fn components(&self) -> Vec<u32> {
        let between = (0..).zip(&self.paired).flat_map(|(a, others)| others.iter().map(move |&b| (a, b)));
        let ties: Vec<_> = (0..).zip(self.class.iter().copied()).chain(between).collect();
        let mut component = components(self.members.len(), &ties);
        component.truncate(self.class.len());
        component
    }
}

/// Returns for each of `count` numbers the smallest number in its component.
fn components(count: usize, ties: &[(u32, u32)]) -> Vec<u32> {
    let mut parent: Vec<u32> = (0..count as u32).collect();
    for &(a, b) in ties {
        let (a, b) = (find(&mut parent, a), find(&mut parent, b));
        parent[a.max(b) as usize] = a.min(b);
    }
    (0..count as u32).map(|of| find(&mut parent, of)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_two_of_paired_classes_go_together() {
        let partners = TruthGroups::new(6, &[(0, 1), (3, 4)], &[(1, 3), (4, 0), (4, 5)]);
        let all: Vec<_> = partners.pairs().collect();
        assert_eq!(all, [(0, 1), (0, 3), (0, 4), (1, 3), (1, 4), (3, 4), (3, 5), (4, 5)]);
        assert_eq!(partners.count(), 8);
        assert_eq!(partners.components(), [0, 0, 2, 0, 0, 0]);
        let few = partners.first(4);
        assert_eq!(few.pairs().collect::<Vec<_>>(), [(0, 1), (0, 3), (1, 3)]);
        assert_eq!((few.count(), few.components()), (3, vec![0, 0, 2, 0]));
    }
}
