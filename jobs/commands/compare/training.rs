//! The first reading: sums up each class, and chooses the documents for testing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::{Result, bail};
use cluster::Group;
use datasets::{MissingField, Reading};
use operators::classify::{ClassSum, Classes, Division, counts};
use operators::flow::ClassSums;
use operators::text::Cleaner;
use operators::text::features::Features;
use operators::{DocId, hash};
use serde::{Deserialize, Serialize};
use timely::worker::Worker;

use runtime::cli::exit::WrongUse;
use runtime::corpus::plan::Plan;
use runtime::corpus::splits::{self, SplitReader};
use runtime::output::map_output::MapOutputs;
use runtime::output::rejects::{Rejects, SplitRejectsWriter};
use runtime::progress::{Progress, Stage};

/// First reading of a planned corpus.
pub(super) struct Training {
    pub plan: Arc<Plan>,
    /// Reads the field with the label in the place of the document's id.
    pub reading: Reading,
    /// Whether the label is the first folder of a path.
    pub folders: bool,
    /// Names of the classes by those of the labels; `None` if these are the classes.
    pub label_map: Option<LabelMap>,
    pub features: Features,
    pub cleaner: Cleaner,
    pub division: Division,
    pub progress: Arc<Progress>,
    /// Map outputs that the rejects are written to.
    pub outputs: MapOutputs,
}

/// Result of all workers together.
pub(super) struct Trained {
    /// Classes, numbered as in `labels`.
    pub classes: Classes,
    /// All labels, also those of test documents only, in the order of their characters.
    pub labels: Vec<Label>,
    /// Documents for testing with the numbers of their labels, sorted.
    pub tests: Vec<(DocId, u32)>,
    pub rejects: Rejects,
    pub read: Read,
}

/// Label of a class, and the number of documents that it was trained with.
#[derive(Clone, Debug)]
pub(super) struct Label {
    pub name: String,
    pub training: u64,
}

/// Counts of what was read, without rejected records.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Read {
    pub docs: u64,
    pub text_bytes: u64,
    pub replaced: u64,
    /// Number of documents without a label.
    pub unlabelled: u64,
    /// First file without the fields that were asked for, and its split.
    pub without_field: Option<(u32, MissingField)>,
}

/// Result of one worker. Labels are known by their hashes.
#[derive(Default, Deserialize, Serialize)]
struct TrainingPart {
    sums: Vec<(u64, u64, u64)>,
    /// Name of each label, and number of its training documents.
    labels: HashMap<u64, (String, u64)>,
    tests: Vec<(DocId, u64)>,
    rejects: Rejects,
    read: Read,
}

impl Training {
    /// Reads the corpus on the workers of all processes. Each process gets the whole result.
    ///
    /// Memory: that of [`ClassSums`], then that of [`Classes`]; 16 bytes for each document for testing.
    pub fn run(self, group: &Group) -> Result<Trained> {
        let parts = group.run(move |worker| self.on_worker(worker))?;
        Ok(join(group.all_reduce(parts, |all| anyhow::Ok(all.into_iter().flatten().collect::<Vec<_>>()))?))
    }

    fn on_worker(&self, worker: &mut Worker) -> Result<TrainingPart> {
        let mut part = TrainingPart::default();
        let mut cleaner = self.cleaner.clone();
        let (index, peers) = (worker.index(), worker.peers());
        let mut sums = ClassSums::new(worker);
        let at = self.progress.worker_at(index, Stage::Map);
        for (number, split) in splits::splits_of(&self.plan, index, peers) {
            let mut rejects = SplitRejectsWriter::new(&self.outputs, number);
            let without = at.split(number, split.uri(), || {
                let mut reader = SplitReader::new(number, split, &self.reading, &at);
                while let Some(mut batch) = reader.next_batch()? {
                    part.read.docs += batch.docs().len() as u64;
                    part.read.text_bytes += batch.text_bytes() as u64;
                    part.read.replaced += batch.replaced();
                    rejects.take(&mut batch)?;
                    for doc in batch.docs() {
                        let label = label(doc.id, self.folders);
                        let mapped =
                            |label| self.label_map.as_ref().map_or(Some(label), |map| map.class_of(label));
                        let Some(label) = label.and_then(mapped) else {
                            part.read.unlabelled += 1;
                            continue;
                        };
                        let class = hash::bytes(label.as_bytes());
                        let (_, training) = part.labels.entry(class).or_insert_with(|| (label.to_owned(), 0));
                        if self.division.tests(doc.text) {
                            part.tests.push((doc.doc, class));
                        } else {
                            *training += 1;
                            sums.add(class, &counts(&self.features, cleaner.clean(doc.text)));
                        }
                    }
                    sums.round(worker);
                }
                Ok(reader.without_field())
            })?;
            part.rejects.join(rejects.finish()?);
            let without = without.map(|missing| (number, missing));
            part.read.without_field = part.read.without_field.take().or(without);
        }
        part.sums = sums.finish(worker);
        Ok(part)
    }
}

/// Names of classes by the labels that documents have.
#[derive(Clone, Debug, Default)]
pub(super) struct LabelMap(HashMap<String, String>);

impl LabelMap {
    /// Reads lines of a label, a tab and the name of its class. Empty lines are left out.
    pub fn parse(text: &str, file: &str) -> Result<Self> {
        let mut map = LabelMap::default();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let Some((label, class)) = line.split_once('\t') else {
                bail!(WrongUse(format!("\"{file}\", line {number}: no tab between a label and a class")))
            };
            let label = label.trim().trim_matches('.').to_lowercase();
            let class = class.trim().to_owned();
            if map.0.insert(label, class.clone()).is_some_and(|other| other != class) {
                bail!(WrongUse(format!("\"{file}\", line {number}: another class for the same label")));
            }
        }
        Ok(map)
    }

    /// Returns the class of a label: that of the whole label, or for hosts that of the longest domain above it that is listed.
    fn class_of(&self, label: &str) -> Option<&str> {
        let lower = label.to_lowercase();
        let mut rest = lower.as_str();
        loop {
            if let Some(class) = self.0.get(rest) {
                return Some(class);
            }
            rest = rest.split_once('.')?.1;
        }
    }
}

/// Returns the label in an id or in the value of a field: the host of a URL, the first folder of a path, else
/// all of it.
fn label(value: &str, folders: bool) -> Option<&str> {
    let url = value.strip_prefix("http://").or_else(|| value.strip_prefix("https://"));
    let label = match url {
        Some(url) => {
            let authority = url.split(['/', '?', '#']).next().unwrap_or_default();
            let host = authority.rsplit('@').next().unwrap_or_default();
            host.split(':').next()
        }
        None if folders => value.split_once('/').map(|(folder, _)| folder),
        None => Some(value),
    };
    label.map(str::trim).filter(|label| !label.is_empty())
}

/// Joins the results of all workers.
fn join(parts: Vec<TrainingPart>) -> Trained {
    let mut labels = BTreeMap::<String, u64>::new();
    for (name, training) in parts.iter().flat_map(|part| part.labels.values()) {
        *labels.entry(name.clone()).or_default() += training;
    }
    let labels: Vec<_> = labels.into_iter().map(|(name, training)| Label { name, training }).collect();
    let numbers: HashMap<u64, u32> =
        labels.iter().map(|label| hash::bytes(label.name.as_bytes())).zip(0..).collect();
    let (mut sums, mut tests, mut rejects, mut read) =
        (Vec::new(), Vec::new(), Rejects::default(), Read::default());
    for part in parts {
        let sum = |(feature, class, count)| ClassSum { feature, class: numbers[&class], count };
        sums.extend(part.sums.into_iter().map(sum));
        tests.extend(part.tests.iter().map(|(doc, class)| (*doc, numbers[class])));
        rejects.join(part.rejects);
        read.docs += part.read.docs;
        read.text_bytes += part.read.text_bytes;
        read.replaced += part.read.replaced;
        read.unlabelled += part.read.unlabelled;
        let both = read.without_field.into_iter().chain(part.read.without_field);
        read.without_field = both.min_by_key(|(split, _)| *split);
    }
    tests.sort_unstable();
    Trained { classes: Classes::new(labels.len() as u32, sums), labels, tests, rejects, read }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_the_class_of_the_longest_domain_that_is_listed() {
        let map = LabelMap::parse("sohu.com\tnews\nbaobao.sohu.com\tbaby\n\n", "map").unwrap();
        for (host, class) in [
            ("club.baobao.sohu.com", Some("baby")),
            ("baobao.sohu.com", Some("baby")),
            ("IT.Sohu.com", Some("news")),
            ("example.org", None),
        ] {
            assert_eq!(map.class_of(host), class, "{host}");
        }
        let error = LabelMap::parse("a\tb\nc d\n", "map").unwrap_err().to_string();
        assert!(error.contains("\"map\", line 2"), "{error}");
    }

    #[test]
    fn a_label_is_a_folder_a_host_or_a_value() {
        for (value, folders, expected) in [
            ("Art/0001.txt", true, Some("Art")),
            ("Art/a/0001.txt", true, Some("Art")),
            ("0001.txt", true, None),
            ("/0001.txt", true, None),
            ("http://sports.sohu.com/20080101/n1.shtml", true, Some("sports.sohu.com")),
            ("https://news.sohu.com:80/", false, Some("news.sohu.com")),
            ("http://user:word@art.example.org/", false, Some("art.example.org")),
            ("a/b", false, Some("a/b")),
            (" news ", false, Some("news")),
            ("", false, None),
        ] {
            assert_eq!(label(value, folders), expected, "{value}");
        }
    }
}
