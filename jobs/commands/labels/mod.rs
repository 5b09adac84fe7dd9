//! Files of labels, which say which documents are the same.

pub(crate) mod agreement;
pub(crate) mod draw;
pub(crate) mod table;

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use anyhow::{Result, bail};

use self::table::weight_of;
use runtime::cli::exit::WrongUse;

/// Options by which a file of labels is read.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct LabelOptions {
    /// Read the labels as pairs or as clusters [default: clusters where a line has two fields]
    ///
    /// pairs: each line has two ids and a label, with tabs between; further fields are for people. If no
    /// label is negative, the listed pairs are all true pairs of the corpus; otherwise only the listed pairs
    /// are judged. Pairs labelled ? are left out. Where the first line is a header that begins with a, b and
    /// label, only the listed pairs are judged, a column weight says how many pairs each stands for, and a
    /// column length how they are grouped. clusters: each line has an id and the name of its cluster.
    #[arg(long, value_name = "KIND")]
    labels_as: Option<LabelsAs>,
    /// Labels that mean the same document, such as cut,light [default: 1; 0 means another document]
    #[arg(long, value_name = "LABELS", value_delimiter = ',')]
    positive: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LabelsAs {
    Pairs,
    Clusters,
}

/// Labelled documents, numbered in the order in which the file names them.
#[derive(Debug, PartialEq)]
pub(crate) struct Labels {
    pub ids: Vec<String>,
    pub truth: Truth,
    /// Number of pairs labelled `?`, which are left out.
    pub unsure: usize,
}

/// Labelled pair.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JudgedPair {
    /// Numbers of the documents, the smaller one first.
    pub docs: (u32, u32),
    pub same: bool,
    /// Number of pairs of the corpus that it stands for.
    pub weight: f64,
    /// Length class that the file gives.
    pub class: Option<String>,
}

/// True pairs, by the numbers of the documents.
#[derive(Debug, PartialEq)]
pub(crate) enum Truth {
    /// Labelled pairs; nothing is known of other pairs.
    Judged(Vec<JudgedPair>),
    /// These pairs are the same, and no other pairs of the corpus are.
    Whole(Vec<(u32, u32)>),
    /// Each document and the first one of its cluster; other documents are not judged.
    Clusters(Vec<(u32, u32)>),
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let documents = self.ids.len();
        match &self.truth {
            Truth::Judged(pairs) => {
                let same = pairs.iter().filter(|pair| pair.same).count();
                let unsure = match self.unsure {
                    0 => String::new(),
                    unsure => format!(" (and {unsure} labelled ?, which are left out)"),
                };
                write!(
                    f,
                    "{} pairs of {documents} documents, {same} the same{unsure}; only these are judged",
                    pairs.len()
                )
            }
            Truth::Whole(pairs) => {
                write!(f, "{} pairs, and all others of the corpus are not the same", pairs.len())
            }
            Truth::Clusters(members) => {
                let clusters = members.iter().filter(|(doc, first)| doc == first).count();
                write!(f, "{documents} documents in {clusters} clusters; only these documents are judged")
            }
        }
    }
}

impl Labels {
    /// Reads the text of a file, which is called `name` in errors.
    pub fn parse(name: &str, text: &str, options: &LabelOptions) -> Result<Self> {
        let mut lines = LabelLines { name, numbers: HashMap::new(), ids: Vec::new(), unsure: 0 };
        let fields = |line: &'_ str| line.trim_end_matches('\r').split('\t').map(str::to_owned).collect();
        let rows: Vec<(usize, Vec<String>)> = (1..)
            .zip(text.lines())
            .filter(|(_, line)| !line.is_empty())
            .map(|(n, line)| (n, fields(line)))
            .collect();
        let Some((_, first)) = rows.first() else { bail!(WrongUse(format!("\"{name}\" holds no labels"))) };
        let kind = options.labels_as.unwrap_or(match first.len() {
            2 => LabelsAs::Clusters,
            _ => LabelsAs::Pairs,
        });
        let truth = match kind {
            LabelsAs::Clusters => lines.clusters(&rows)?,
            LabelsAs::Pairs => lines.pairs(&rows, &options.positive)?,
        };
        Ok(Labels { ids: lines.ids, truth, unsure: lines.unsure })
    }
}

/// Reader of the lines of a file.
struct LabelLines<'a> {
    name: &'a str,
    numbers: HashMap<String, u32>,
    ids: Vec<String>,
    unsure: usize,
}

/// Places of the columns of a file of pairs that are not always there.
#[derive(Default)]
struct LabelColumns {
    header: bool,
    weight: Option<usize>,
    class: Option<usize>,
}

impl LabelColumns {
    fn of(first: &[String]) -> Self {
        let header = first.iter().map(String::as_str).take(3).eq(["a", "b", "label"]);
        let place = |name: &str| first.iter().position(|column| header && column == name);
        LabelColumns { header, weight: place("weight"), class: place("length") }
    }
}

impl LabelLines<'_> {
    fn wrong<T>(&self, line: usize, reason: impl fmt::Display) -> Result<T> {
        bail!(WrongUse(format!("\"{}\", line {line}: {reason}", self.name)))
    }

    fn number(&mut self, id: &str) -> u32 {
        let next = self.ids.len() as u32;
        *self.numbers.entry(id.to_owned()).or_insert_with(|| {
            self.ids.push(id.to_owned());
            next
        })
    }

    fn clusters(&mut self, rows: &[(usize, Vec<String>)]) -> Result<Truth> {
        let (mut firsts, mut members) = (HashMap::new(), Vec::new());
        for (line, fields) in rows {
            let [id, cluster, ..] = &fields[..] else {
                return self.wrong(*line, "expected an id, a tab and the name of its cluster");
            };
            let known = self.ids.len();
            let doc = self.number(id);
            if (doc as usize) < known {
                return self.wrong(*line, format_args!("\"{id}\" is in a cluster already"));
            }
            members.push((doc, *firsts.entry(cluster).or_insert(doc)));
        }
        Ok(Truth::Clusters(members))
    }

    fn pairs(&mut self, rows: &[(usize, Vec<String>)], positive: &[String]) -> Result<Truth> {
        let mut labels = HashMap::<(u32, u32), bool>::new();
        let (mut pairs, mut words) = (Vec::new(), BTreeSet::new());
        let columns = rows.first().map(|(_, first)| LabelColumns::of(first)).unwrap_or_default();
        for (line, fields) in &rows[usize::from(columns.header)..] {
            let [a, b, ..] = &fields[..] else {
                return self.wrong(*line, "expected two ids and a label, with tabs between");
            };
            let word = fields.get(2).map_or("1", String::as_str);
            if word == "?" {
                self.unsure += 1;
                continue;
            }
            words.insert(word);
            let Some(weight) = columns.weight.map_or(Some(1.0), |at| weight_of(fields.get(at)?)) else {
                return self.wrong(*line, "the weight is no number above 0");
            };
            let class =
                columns.class.and_then(|at| fields.get(at).cloned()).filter(|class| !class.is_empty());
            let same = match word {
                word if !positive.is_empty() => positive.iter().any(|one| one == word),
                "1" => true,
                "0" => false,
                "" => return self.wrong(*line, "the pair is not labelled yet: go on with dedup-job label"),
                _ => {
                    let reason = format_args!(
                        "the label is \"{word}\"; say with --positive which labels mean the same"
                    );
                    return self.wrong(*line, reason);
                }
            };
            let (a, b) = (self.number(a), self.number(b));
            if a == b {
                return self.wrong(*line, "a document is paired with itself");
            }
            match labels.insert((a.min(b), a.max(b)), same) {
                None => pairs.push(JudgedPair { docs: (a.min(b), a.max(b)), same, weight, class }),
                Some(before) if before == same => {}
                Some(_) => return self.wrong(*line, "the pair has another label on an earlier line"),
            }
        }
        if let Some(unknown) = positive.iter().find(|word| !words.contains(word.as_str())) {
            let words: Vec<_> = words.into_iter().collect();
            let there = words.join(", ");
            bail!(WrongUse(format!("no label of \"{}\" is \"{unknown}\"; there are {there}", self.name)));
        }
        if pairs.is_empty() {
            bail!(WrongUse(format!("\"{}\" holds no pair that is labelled other than ?", self.name)));
        }
        Ok(if !columns.header && self.unsure == 0 && pairs.iter().all(|pair| pair.same) {
            Truth::Whole(pairs.into_iter().map(|pair| pair.docs).collect())
        } else {
            Truth::Judged(pairs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, labels_as: Option<LabelsAs>, positive: &[&str]) -> Result<Labels> {
        let positive = positive.iter().map(|&word| word.to_owned()).collect();
        Labels::parse("labels.tsv", text, &LabelOptions { labels_as, positive })
    }

    fn judged(a: u32, b: u32, same: bool) -> JudgedPair {
        JudgedPair { docs: (a, b), same, weight: 1.0, class: None }
    }

    #[test]
    fn a_header_names_weights_and_lengths() {
        let text = "a\tb\tlabel\tlabel1\tlength\tweight\nx\ty\t1\t1\tshort\t2.5\nx\tz\t?\t0\tlong\t1\n";
        let labels = parse(text, None, &[]).unwrap();
        let class = Some("short".to_owned());
        let pair = JudgedPair { class, weight: 2.5, ..judged(0, 1, true) };
        assert_eq!((labels.truth, labels.unsure), (Truth::Judged(vec![pair]), 1));
    }

    #[test]
    fn labels_are_known_by_their_fields() {
        let truth = |text, labels_as, positive: &[&str]| parse(text, labels_as, positive).unwrap().truth;
        assert_eq!(
            truth("a\tb\t1\nb\tc\t0\twhy\r\n", None, &[]),
            Truth::Judged(vec![judged(0, 1, true), judged(1, 2, false)])
        );
        assert_eq!(truth("a\tb\t1\n\nb\ta\t1", None, &[]), Truth::Whole(vec![(0, 1)]));
        assert_eq!(truth("a\tb\t1\nb\tc\t?\n", None, &[]), Truth::Judged(vec![judged(0, 1, true)]));
        assert_eq!(truth("a\tx\nb\ty\nc\tx\n", None, &[]), Truth::Clusters(vec![(0, 0), (1, 1), (2, 0)]));
        assert_eq!(truth("a\tx\nb\ty\n", Some(LabelsAs::Pairs), &[]), Truth::Whole(vec![(0, 1), (2, 3)]));
        let graded = truth("a\tb\tcut\na\tc\tother\n", None, &["cut"]);
        assert_eq!(graded, Truth::Judged(vec![judged(0, 1, true), judged(0, 2, false)]));
        let clusters = truth("a\tx\t7\n", Some(LabelsAs::Clusters), &[]);
        assert_eq!(clusters, Truth::Clusters(vec![(0, 0)]));
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, positive, expected) in [
            ("a\tb\t1\na\n", &[][..], "line 2: expected two ids"),
            ("a\tx\nb\n", &[], "line 2: expected an id"),
            ("a\tx\na\ty\n", &[], "line 2: \"a\" is in a cluster already"),
            ("a\tb\tcut\n", &[], "line 1: the label is \"cut\"; say with --positive"),
            ("a\tb\t1\nb\ta\t0\n", &[], "line 2: the pair has another label"),
            ("a\tb\tlabel\tweight\nx\ty\t1\t-1\n", &[], "line 2: the weight is no number"),
            ("a\ta\t1\n", &[], "line 1: a document is paired with itself"),
            ("a\tb\tcut\n", &["cat"], "no label of \"labels.tsv\" is \"cat\"; there are cut"),
            ("a\tb\tlabel\nx\ty\t\n", &[], "line 2: the pair is not labelled yet"),
            ("a\tb\t?\n", &[], "holds no pair that is labelled"),
            ("\n", &[], "holds no labels"),
        ] {
            let error = parse(text, None, positive).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
