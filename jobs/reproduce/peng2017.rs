//! Peng 2017: Figures 4 to 6, and the threshold of 70 bits.

use anyhow::{Context, Result};
use operators::hash;
use operators::method::{PairClassifier, Spec};
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;
use serde_json::Value;

use super::page::{Claim, ClaimVerdict, PaperPage, listed};
use super::stand_in::article_of;
use super::trials::{RunNumber, Trials};
use runtime::report::chart::{Axis, Chart};
use runtime::report::parts::{PagePart, PageTable};

/// Methods of Figures 5 and 6, with their names in the figures.
const METHODS: [(&str, &str); 6] = [
    ("fsp:4K", "FS"),
    ("rabin:4K", "CDC"),
    ("peng2017:bits=128", "SimHash, 128 bits"),
    ("peng2017:bits=160", "SimHash, 160 bits"),
    ("peng2017:bits=128:similar=removed", "128 bits, similar paragraphs removed"),
    ("peng2017:bits=160:similar=removed", "160 bits, similar paragraphs removed"),
];
/// Number of characters of the strings of Figure 4 by characters and words, and how many of them are changed.
const CHARS: usize = 800;
const CHANGED: [usize; 7] = [0, 20, 50, 100, 200, 400, 800];

/// Makes the page.
pub(super) fn reproduce(trials: &mut Trials) -> Result<PaperPage> {
    let corpus = match trials.input.is_empty() {
        true => "generated texts of three sizes, each with a copy in which ten pieces of 1 to 20 characters are inserted (the paper: files that it \
                 does not name, \"with disturbances inserted at random\")"
            .to_owned(),
        false => "the user's texts, and copies of parts of them in which ten pieces are inserted".to_owned(),
    };
    let mut page = PaperPage {
        title: "Peng 2017: deduplication of Chinese text with SimHash",
        corpus,
        claims: Vec::new(),
        parts: Vec::new(),
    };
    let json = trials.work("figures.json");
    let inputs = trials.quoted_input()? + " ";
    let inputs = inputs.trim_start();
    let methods = METHODS.map(|(method, _)| format!("--methods '{method}'")).join(" ");
    let (sizes, times) = trials.sized(("16K,128K,1M", 2), ("16K,256K,4M", 3));
    let seed = trials.seed;
    let line = format!(
        "chunk compare {inputs}{methods} --sizes {sizes} --trials {times} --level 3 --seed {seed} --json {json}"
    );
    let (run, _) = trials.command(&line, false)?;
    let text = std::fs::read_to_string(trials.folder().join(&json))?;
    let figures: Value =
        serde_json::from_str(&text).context("could not read the figures of chunk compare")?;
    threshold(&mut page, &figures, run);
    figure_4(trials, &mut page, &figures, run)?;
    figure_5(&mut page, &figures, run);
    figure_6(&mut page, &figures, run);
    draw_figures_5_and_6(&mut page, &figures);
    Ok(page)
}

fn rows<'a>(figures: &'a Value, of: &str) -> impl Iterator<Item = &'a Value> {
    figures[of].as_array().into_iter().flatten()
}

fn number(row: &Value, of: &str) -> f64 {
    row[of].as_f64().unwrap_or(f64::NAN)
}

/// Adds what the paper says of its threshold.
fn threshold(page: &mut PaperPage, figures: &Value, run: RunNumber) {
    let of = |sentences: f64, shared: f64, bits: f64| {
        rows(figures, "distances").find(|row| {
            (number(row, "sentences"), number(row, "shared"), number(row, "bits"))
                == (sentences, shared, bits)
        })
    };
    let half: Vec<f64> = [(2.0, 1.0), (4.0, 2.0), (10.0, 5.0)]
        .iter()
        .filter_map(|&(sentences, shared)| Some(number(of(sentences, shared, 128.0)?, "mean")))
        .collect();
    let strangers: Vec<f64> = [2.0, 4.0, 10.0]
        .iter()
        .filter_map(|&sentences| Some(number(of(sentences, 0.0, 128.0)?, "mean")))
        .collect();
    let similar: Vec<f64> = [1.0, 2.0, 4.0, 10.0]
        .iter()
        .filter_map(|&sentences| Some(number(of(sentences, 0.0, 128.0)?, "percent_similar")))
        .collect();
    let said = |values: &[f64]| listed(values.iter().map(|value| format!("{value:.1}")));
    page.claims.push(Claim {
        claim: "Texts that are half alike are 50 to 70 bits apart, so paragraphs below 70 are similar".to_owned(),
        published: "50 to 70; threshold 70".to_owned(),
        measured: format!(
            "half of 2, 4, 10 sentences shared: {} bits of 128 in the mean; none shared: {}. Of unrelated paragraphs of 1, 2, 4, 10 sentences {} % are \
             below 70",
            said(&half),
            said(&strangers),
            said(&similar)
        ),
        verdict: ClaimVerdict::of_parts(&[
            half.iter().all(|mean| (50.0..=70.0).contains(mean)),
            similar.iter().all(|percent| *percent < 50.0),
        ]),
        because: "unrelated texts are half of 128 bits apart, which is within the range. With 160 bits they would be some 80 apart, but texts that are half alike 40 to 50".to_owned(),
        runs: vec![run],
    });
    let row = |row: &Value| {
        ["sentences", "shared", "bits", "mean", "standard_deviation", "percent_similar"]
            .map(|of| format!("{:.1}", number(row, of)).replace(".0", ""))
            .to_vec()
    };
    page.parts.push(PagePart::Table(PageTable {
        caption: "Distances of 2,000 pairs of paragraphs of each kind".to_owned(),
        head: vec!["sentences", "shared", "bits", "mean", "standard deviation", "% below 70"],
        rows: rows(figures, "distances").map(row).collect(),
    }));
}

/// Similarities in percent of a string and its copy, by the number of changed characters ([`CHANGED`]).
type ChangedSimilarities = [f64; CHANGED.len()];

/// Measures the similarity of a string and its changed copy, by characters and by words, in the mean of several strings.
fn measured_by_features(
    trials: &mut Trials,
) -> Result<(RunNumber, Vec<(&'static str, ChangedSimilarities)>)> {
    let texts = trials.sized(10, 50);
    let seed = trials.seed;
    trials.measured("Figure 4 by characters and words", |raw| {
        let mut all = Vec::new();
        for features in ["char:1", "char:2", "jieba"] {
            let spec: Spec = format!("simhash:bits=128,features={features}").parse()?;
            let mut sums = [0.0; CHANGED.len()];
            for number in 0..texts {
                let mut pairs =
                    PairClassifier::new(spec.method(&Lexicon::default(), &Statistics::default(), None)?);
                let text = article_of(CHARS, seed + number);
                let other = article_of(CHARS, !(seed + number));
                let first = pairs.add(&text.iter().collect::<String>());
                for (sum, changed) in sums.iter_mut().zip(CHANGED) {
                    let mut copy = text.clone();
                    let mut places: Vec<usize> = (0..CHARS).collect();
                    places.sort_by_key(|place| hash::spread(*place as u64 ^ hash::spread(number)));
                    places[..changed].iter().for_each(|&place| copy[place] = other[place]);
                    let copy = pairs.add(&copy.iter().collect::<String>());
                    let apart = pairs.classify(first, copy).distance.unwrap_or(128);
                    *sum += 100.0 * (1.0 - f64::from(apart) / 128.0) / texts as f64;
                }
            }
            for (changed, similarity) in CHANGED.iter().zip(sums) {
                *raw += &format!("{features}: {changed} of {CHARS} characters changed: {similarity:.1} %\n");
            }
            all.push((features, sums));
        }
        Ok(all)
    })
}

/// Adds Figure 4: the similarity of a string and its changed copy.
fn figure_4(trials: &mut Trials, page: &mut PaperPage, figures: &Value, run: RunNumber) -> Result<()> {
    let by_sentences: Vec<(f64, f64, f64)> = rows(figures, "changed_strings")
        .filter(|row| number(row, "sentences") == 40.0)
        .map(|row| {
            (
                number(row, "changed"),
                number(row, "percent_by_hash"),
                row["percent_by_simhash"][0].as_f64().unwrap_or(f64::NAN),
            )
        })
        .collect();
    let (of_chars, by_features) = measured_by_features(trials)?;
    let straight = |points: &[(f64, f64)]| {
        // The middle of a straight line is the mean of its ends.
        let first = points[0];
        let last = points[points.len() - 1];
        points
            .iter()
            .all(|(x, y)| (first.1 + (last.1 - first.1) * (x - first.0) / (last.0 - first.0) - y).abs() < 5.0)
    };
    let sentences: Vec<(f64, f64)> = by_sentences.iter().map(|row| (row.0, row.2)).collect();
    let readings: Vec<(&str, Vec<(f64, f64)>)> = by_features
        .iter()
        .map(|(features, sums)| {
            (*features, CHANGED.iter().map(|changed| *changed as f64).zip(*sums).collect())
        })
        .collect();
    page.claims.push(Claim {
        claim: "Figure 4: one changed byte takes the similarity by hash to 0 %".to_owned(),
        published: "0 %".to_owned(),
        measured: format!("MD5: {} %", listed(by_sentences.iter().map(|row| format!("{:.0}", row.1)))),
        verdict: ClaimVerdict::of_parts(&[by_sentences.iter().all(|row| (row.0 == 0.0) == (row.1 == 100.0))]),
        because: "equal hashes count as 100 %, all others as 0".to_owned(),
        runs: vec![run],
    });
    let said = |points: &[(f64, f64)]| listed(points.iter().map(|point| format!("{:.0}", point.1)));
    page.claims.push(Claim {
        claim: "Figure 4: the similarity by SimHash falls on a straight line as more characters differ".to_owned(),
        published: "\"it falls, and in a straight line\"".to_owned(),
        measured: format!(
            "percent by sentences (0 to 40 of 40 changed): {}; by {}",
            said(&sentences),
            readings
                .iter()
                .map(|(features, points)| format!("{features} ({} of {CHARS} changed): {}", listed(CHANGED), said(points)))
                .collect::<Vec<_>>()
                .join("; by ")
        ),
        verdict: ClaimVerdict::of_parts(&std::iter::once(&sentences).chain(readings.iter().map(|reading| &reading.1)).map(|points| straight(points)).collect::<Vec<_>>()),
        because: "the angle of two vectors falls as the square root at first, so the curve is steep for few changes, and it ends where unrelated \
                  texts are: 50 % if they share no feature"
            .to_owned(),
        runs: vec![run, of_chars],
    });
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = vec![(
        "sentences".to_owned(),
        sentences.iter().map(|point| (100.0 * point.0 / 40.0, point.1)).collect(),
    )];
    lines.extend(readings.iter().map(|(features, points)| {
        (
            (*features).to_owned(),
            points.iter().map(|point| (100.0 * point.0 / CHARS as f64, point.1)).collect(),
        )
    }));
    page.parts.push(PagePart::Figure(
        "Figure 4: similarity of a string and its changed copy, by the features that vote.".to_owned(),
        Chart::Lines {
            title: "Similarity by fingerprints of 128 bits, percent".to_owned(),
            x: Axis::linear("characters (or sentences) that are changed, percent"),
            y: Axis::linear("percent"),
            lines,
        },
    ));
    Ok(())
}

/// Returns a value of a method for each size of texts.
fn by_size(figures: &Value, method: &str, value: &str) -> Vec<f64> {
    let rows =
        rows(figures, "sizes").filter_map(|size| rows(size, "methods").find(|row| row["method"] == method));
    rows.map(|row| number(row, value)).collect()
}

/// Returns the sizes of texts, for people.
fn sizes(figures: &Value) -> impl Iterator<Item = String> {
    rows(figures, "sizes").map(|size| format!("{:.0} KB", number(size, "text_bytes") / 1024.0))
}

/// Returns values for people, with a dash for one that is not known.
fn said(values: &[f64]) -> String {
    listed(values.iter().map(|value| if value.is_nan() { "-".to_owned() } else { format!("{value:.1}") }))
}

/// Adds what Figure 5 claims: how much is saved.
fn figure_5(page: &mut PaperPage, figures: &Value, run: RunNumber) {
    let [fixed, by_content, simhash] =
        [0, 1, 2].map(|at: usize| by_size(figures, METHODS[at].0, "percent_saved"));
    let all_sizes = listed(sizes(figures));
    page.claims.push(Claim {
        claim: "Figure 5: fixed blocks save much of small files and little of large ones".to_owned(),
        published: "no numbers in our copy".to_owned(),
        measured: format!("{} % of texts of {all_sizes}", said(&fixed)),
        verdict: ClaimVerdict::of_parts(&[fixed.first() > fixed.last(), fixed.iter().all(|saved| *saved < 25.0)]),
        because: "fixed blocks find what lies before the first insertion alone, so what they save depends on where that is, and a text of four blocks \
                  may have none"
            .to_owned(),
        runs: vec![run],
    });
    page.claims.push(Claim {
        claim: "Figure 5: blocks cut by content save more, the larger the file".to_owned(),
        published: "no numbers in our copy".to_owned(),
        measured: format!("{} %", said(&by_content)),
        verdict: ClaimVerdict::of_parts(&[by_content.is_sorted()]),
        because: "an insertion costs one or two blocks of 4 KB, whatever the size of the text".to_owned(),
        runs: vec![run],
    });
    page.claims.push(Claim {
        claim: "Figure 5: SimHash saves most, of small and large files alike".to_owned(),
        published: "no numbers in our copy".to_owned(),
        measured: format!("{} % (at most half can be saved)", said(&simhash)),
        verdict: ClaimVerdict::of_parts(&[
            simhash.iter().zip(&by_content).all(|(a, b)| a > b),
            simhash.iter().zip(&fixed).all(|(a, b)| a > b),
        ]),
        because: "but it is the sentences that save: nearly every paragraph passes the threshold and is cut into them, so `chunk compare` gives the method `sentence` the \
                  same figure"
            .to_owned(),
        runs: vec![run],
    });
}

/// Adds what Figure 6 claims: how much is saved rightly.
fn figure_6(page: &mut PaperPage, figures: &Value, run: RunNumber) {
    let all_sizes = listed(sizes(figures));
    let precision = METHODS.map(|(method, _)| by_size(figures, method, "precision"));
    let [fixed, by_content, simhash, _, removed, removed_160] = precision.each_ref();
    let best = |of: &[f64], others: &[&Vec<f64>]| {
        (0..of.len()).all(|at| others.iter().all(|other| other[at].is_nan() || of[at] >= other[at]))
    };
    page.claims.push(Claim {
        claim: "Figure 6: SimHash is the most accurate, and fixed blocks are inaccurate and get worse".to_owned(),
        published: "no numbers in our copy".to_owned(),
        measured: format!(
            "precision in percent of texts of {all_sizes}: fixed {}; by content {}; SimHash {}; if similar paragraphs are removed: {} (128 bits), {} (160 bits)",
            said(fixed),
            said(by_content),
            said(simhash),
            said(removed),
            said(removed_160)
        ),
        verdict: ClaimVerdict::of_parts(&[
            best(simhash, &[fixed, by_content]),
            best(removed, &[fixed, by_content]),
            fixed.iter().any(|precision| *precision < 90.0),
        ]),
        because: "equal blocks are right by definition. Fingerprints below 70 bits call nearly all paragraphs similar to something".to_owned(),
        runs: vec![run],
    });
}

/// Draws Figures 5 and 6.
fn draw_figures_5_and_6(page: &mut PaperPage, figures: &Value) {
    let figure = |caption: &str, value: &str| {
        let groups = sizes(figures).enumerate().map(|(at, size)| {
            let values = METHODS.iter().map(|(method, _)| {
                let known = by_size(figures, method, value).get(at).copied().filter(|value| !value.is_nan());
                known.unwrap_or(0.0)
            });
            (size, values.collect())
        });
        PagePart::Figure(
            caption.to_owned(),
            Chart::Bars {
                title: caption.trim_end_matches('.').to_owned(),
                y: Axis::linear("percent"),
                series: METHODS.iter().map(|(_, name)| (*name).to_owned()).collect(),
                groups: groups.collect(),
            },
        )
    };
    page.parts.push(figure("Figure 5: bytes saved, percent.", "percent_saved"));
    page.parts.push(figure("Figure 6: precision, percent.", "precision"));
    page.parts.push(figure("Beside figure 6: recall, percent.", "recall"));
}
