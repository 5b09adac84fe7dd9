//! lanceyan.com: the cost of two distances, the worked example, and distances that suit short and long texts.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result};
use operators::method::{PairClassifier, Spec};
use operators::search::zhou::java_hash;
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;

use super::page::{Claim, ClaimVerdict, PaperPage, listed, percent};
use super::stand_in::{LabelledTexts, labelled_articles, labelled_posts};
use super::trials::{RunNumber, Trials};
use runtime::report::chart::{Axis, Chart};
use runtime::report::parts::{PagePart, PageTable};

/// The two sentences of the article, which differ in two characters.
const SENTENCES: [&str; 2] = ["你妈妈喊你回家吃饭哦，回家罗回家罗", "你妈妈叫你回家吃饭啦，回家罗回家罗"];
/// Their fingerprints as printed.
const FINGERPRINTS: [&str; 2] = [
    "1000010010101101111111100000101011010001001111100001001011001011",
    "1000010010101101011111100000101011010001001111100001101010001011",
];
/// Their `hashCode`s as printed, the first one as a `long`.
const HASH_CODES: [&str; 2] =
    ["1111111111111111111111111111111110001000001100110100111011011110", "1010010001111111110010110011101"];
/// The sentence of the worked example, with the words and weights that the article gives.
const EXAMPLE: &str = "美国“51区”雇员称内部有9架飞碟，曾看见灰色外星人";
/// Distances of the curve.
const DISTANCES: [u32; 7] = [0, 3, 5, 8, 10, 12, 15];

/// Makes the page.
pub(super) fn reproduce(trials: &mut Trials) -> Result<PaperPage> {
    let corpus = match &trials.labels {
        Some(labels) => format!("the user's, with the labelled pairs of {labels}"),
        None => "the two sentences and the example of the article. For the curves, generated posts of some 20 characters and articles of some \
                 800, with the pairs that bring the same message and as many that do not"
            .to_owned(),
    };
    let mut page = PaperPage {
        title: "lanceyan.com: SimHash for posts, with five grades of weight",
        corpus,
        claims: Vec::new(),
        parts: Vec::new(),
    };
    speed(trials, &mut page)?;
    printed(trials, &mut page)?;
    example(trials, &mut page)?;
    curves(trials, &mut page)?;
    Ok(page)
}

/// A million comparisons of each kind.
fn speed(trials: &mut Trials, page: &mut PaperPage) -> Result<()> {
    const TIMES: u32 = 1_000_000;
    let (run, [edits, bits]) = trials.measured("a million distances", |raw| {
        let units = SENTENCES.map(|sentence| sentence.encode_utf16().collect::<Vec<u16>>());
        let start = Instant::now();
        (0..TIMES).for_each(|_| {
            black_box(strsim::generic_levenshtein(black_box(&units[0]), black_box(&units[1])));
        });
        let edits = start.elapsed().as_secs_f64() * 1e3;
        let words = FINGERPRINTS.map(|bits| u64::from_str_radix(bits, 2).unwrap_or(0));
        let start = Instant::now();
        (0..TIMES).for_each(|_| {
            black_box((black_box(words[0]) ^ black_box(words[1])).count_ones());
        });
        let bits = start.elapsed().as_secs_f64() * 1e3;
        *raw += &format!(
            "a million Levenshtein distances: {edits:.1} ms\na million Hamming distances: {bits:.3} ms\n"
        );
        Ok([edits, bits])
    })?;
    page.claims.push(Claim {
        claim: "A million Levenshtein distances of the two sentences take 4 s".to_owned(),
        published: "4,266 ms".to_owned(),
        measured: format!("{edits:.0} ms"),
        verdict: ClaimVerdict::CannotBeSaid,
        because: "it is a time of Java's `StringUtils` on another machine; here compiled code makes the same 17 by 17 steps each".to_owned(),
        runs: vec![run],
    });
    page.claims.push(Claim {
        claim: "A million Hamming distances take a small part of that".to_owned(),
        published: "100 ms".to_owned(),
        measured: format!("{bits:.2} ms, {:.0} times as fast", edits / bits.max(1e-6)),
        verdict: ClaimVerdict::of_parts(&[bits <= 100.0, edits / bits.max(1e-6) >= 42.66]),
        because: "one instruction of the processor counts the bits, and the loop of a distance of edits has 289 steps".to_owned(),
        runs: vec![run],
    });
    page.claims.push(Claim {
        claim: "4 s for each new document make 15 documents a minute, 900 an hour, 21,600 a day; 100 ms make 600, 36,000 and 864,000, so a \
                million an hour need 30 threads"
            .to_owned(),
        published: "the same".to_owned(),
        measured: format!("1,000,000 / 36,000 = {:.1} threads", 1e6 / 36e3),
        verdict: ClaimVerdict::Holds,
        because: "it is arithmetic, for a comparison with a million documents one by one; with blocks of bits almost none of them is compared".to_owned(),
        runs: Vec::new(),
    });
    Ok(())
}

/// Adds the claims about what the article prints of its two sentences.
fn printed(trials: &mut Trials, page: &mut PaperPage) -> Result<()> {
    let (run, (codes, apart)) = trials.measured("printed fingerprints and hashCodes", |raw| {
        // A negative int becomes a long with 32 ones before it.
        let code = |text: &str| match java_hash(text) as i32 {
            negative @ ..0 => format!("{:b}", i64::from(negative)),
            positive => format!("{positive:b}"),
        };
        let codes = SENTENCES.map(code);
        let words = FINGERPRINTS.map(|bits| u64::from_str_radix(bits, 2).unwrap_or(0));
        let apart = (words[0] ^ words[1]).count_ones();
        *raw += &format!("hashCode: {codes:?}\nthe printed fingerprints differ in {apart} bits\n");
        Ok((codes, apart))
    })?;
    page.claims.push(Claim {
        claim: "The two printed fingerprints differ in few bits".to_owned(),
        published: "\"only part of the 01 string changed\"".to_owned(),
        measured: format!("{apart} bits"),
        verdict: ClaimVerdict::of_parts(&[apart <= 3]),
        because: "so the article's own distance of 3 finds them, by its words, weights and hash, which it does not name".to_owned(),
        runs: vec![run],
    });
    page.claims.push(Claim {
        claim: "Both printed hashCodes are those of the sentences".to_owned(),
        published: listed(HASH_CODES),
        measured: listed(&codes),
        verdict: ClaimVerdict::of_parts(&[codes[0] == HASH_CODES[0], codes[1] == HASH_CODES[1]]),
        because: "with the full-width comma; the first one is negative, and printed as a long".to_owned(),
        runs: vec![run],
    });
    let quoted = SENTENCES.map(|sentence| format!("'{sentence}'")).join(" ");
    let (of_words, _) = trials.command(&format!("fingerprint {quoted}"), false)?;
    let (run, (distance, within, by_auto)) =
        trials.measured("the two sentences by simhash and auto", |raw| {
            let judged = |spec: &str| -> Result<_> {
                let spec: Spec = spec.parse()?;
                let mut pair =
                    PairClassifier::new(spec.method(&Lexicon::default(), &Statistics::default(), None)?);
                let [a, b] = SENTENCES.map(|sentence| pair.add(sentence));
                Ok(pair.classify(a, b))
            };
            let (simhash, auto) = (judged("simhash")?, judged("auto")?);
            *raw += &format!("simhash: {simhash:?}\nauto: {auto:?}\n");
            let distance = simhash.distance.context("simhash has a distance")?;
            Ok((distance, simhash.candidate, auto.matches))
        })?;
    page.claims.push(Claim {
        claim: "SimHash finds that the two sentences are alike".to_owned(),
        published: "3 bits".to_owned(),
        measured: format!("words by jieba: {distance} bits; auto calls them {}", if by_auto { "near-duplicates" } else { "different" }),
        verdict: ClaimVerdict::of_parts(&[within]),
        because: "a sentence of eight words has two others, and each moves many bits: 3 bits are too few for a text this short, with a good hash. The \
                  printed distance is luck or another cut"
            .to_owned(),
        runs: vec![of_words, run],
    });
    Ok(())
}

/// The worked example.
fn example(trials: &mut Trials, page: &mut PaperPage) -> Result<()> {
    let (run, (sums, bits)) = trials.measured("steps 3 to 5 of the worked example", |raw| {
        let votes = |bits: &str, weight: i64| {
            bits.chars().map(move |bit| if bit == '1' { weight } else { -weight }).collect::<Vec<_>>()
        };
        let sums: Vec<i64> = votes("100101", 4).iter().zip(votes("101011", 5)).map(|(a, b)| a + b).collect();
        let bits: String = sums.iter().map(|sum| if *sum > 0 { '1' } else { '0' }).collect();
        *raw += &format!("sums: {sums:?}\nbits: {bits}\n");
        Ok((sums, bits))
    })?;
    let (steps, _) = trials.command(&format!("fingerprint '{EXAMPLE}'"), false)?;
    page.claims.push(Claim {
        claim:
            "Steps 3 to 5: 100101 with weight 4 and 101011 with weight 5 make 9 -9 1 -1 1 9, and so 101011"
                .to_owned(),
        published: "9 -9 1 -1 1 9; 101011".to_owned(),
        measured: format!("{}; {bits}", sums.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")),
        verdict: ClaimVerdict::of_parts(&[sums == [9, -9, 1, -1, 1, 9], bits == "101011"]),
        because: "the whole sentence, by jieba's words, is in the second run".to_owned(),
        runs: vec![run, steps],
    });
    Ok(())
}

/// Precision and recall of the pairs within a distance.
struct DistancePoint {
    within: u32,
    precision: f64,
    recall: f64,
}

/// Precision and recall of some labelled pairs over the distance, and the run that has measured them.
struct DistanceCurve {
    name: &'static str,
    run: RunNumber,
    points: Vec<DistancePoint>,
}

impl DistanceCurve {
    /// Measures the pairs of some texts.
    fn of(trials: &mut Trials, name: &'static str, texts: &LabelledTexts, spec: &Spec) -> Result<Self> {
        let (run, points) = trials.measured(format!("distances of labelled pairs, {name}"), |raw| {
            let mut classifier =
                PairClassifier::new(spec.method(&Lexicon::default(), &Statistics::default(), None)?);
            let mut distances = Vec::new();
            for (a, b, same) in &texts.pairs {
                let [a, b] = [a, b].map(|text| classifier.add(text));
                distances.push((classifier.classify(a, b).distance.unwrap_or(u32::MAX), *same));
            }
            let points = DISTANCES.map(|within| {
                let count = |same: bool| {
                    distances.iter().filter(|pair| pair.1 == same && pair.0 <= within).count() as f64
                };
                let (right, wrong) = (count(true), count(false));
                let all = distances.iter().filter(|pair| pair.1).count().max(1) as f64;
                DistancePoint { within, precision: right / (right + wrong).max(1.0), recall: right / all }
            });
            for DistancePoint { within, precision, recall } in &points {
                *raw += &format!("within {within:>2}: precision {precision:.3}, recall {recall:.3}\n");
            }
            Ok(points.into())
        })?;
        Ok(DistanceCurve { name, run, points })
    }

    /// Returns precision and recall at a distance.
    fn at(&self, distance: u32) -> (f64, f64) {
        let point = self.points.iter().find(|point| point.within == distance);
        point.map_or((0.0, 0.0), |point| (point.precision, point.recall))
    }

    /// Returns what is claimed of texts of these lengths.
    fn claims(&self) -> Vec<Claim> {
        let (three, ten) = (self.at(3), self.at(10));
        let said = |(precision, recall): (f64, f64)| {
            format!("precision {}, recall {}", percent(precision), percent(recall))
        };
        let measured = format!("within 3: {}; within 10: {}", said(three), said(ten));
        let claim = |claim: &str, published: &str, verdict, because: &str| Claim {
            claim: format!("{claim} ({} texts)", self.name),
            published: published.to_owned(),
            measured: measured.clone(),
            verdict,
            because: because.to_owned(),
            runs: vec![self.run],
        };
        let mut claims = Vec::new();
        if self.name != "long" {
            claims.push(claim(
                "With a distance of 3 much that posts repeat is not filtered out",
                "no number",
                ClaimVerdict::of_parts(&[three.1 < 0.5]),
                "a word more or less moves a large part of the votes",
            ));
            claims.push(claim(
                "Of posts much that looks alike is at a distance of 10",
                "no number",
                ClaimVerdict::of_parts(&[ten.1 > three.1 + 0.1]),
                "the recall rises with the distance",
            ));
            claims.push(claim(
                "Of posts the effect at a distance of 10 is very bad already, and 3 is a compromise",
                "a chart that our copy lacks",
                ClaimVerdict::of_parts(&[ten.0 < 0.8]),
                "generated posts that bring other messages share few words; posts of one subject, which a crawl has, are nearer",
            ));
        }
        if self.name != "short" {
            claims.push(claim(
                "From 500 characters on, what is within 3 is nearly always alike, and few are mistaken",
                "no number",
                ClaimVerdict::of_parts(&[three.0 > 0.95]),
                "the article says nothing of what a distance of 3 misses, which is the recall beside it",
            ));
            claims.push(claim(
                "Of long texts a distance of 10 makes very many mistakes",
                "no number",
                ClaimVerdict::of_parts(&[ten.0 < 0.8]),
                "strangers of many words differ in 32 bits of 64, 4 more or less, so 10 bits are rare among random texts; what makes mistakes are texts \
                 of one template or one subject",
            ));
        }
        claims
    }
}

/// Precision and recall over the distance.
fn curves(trials: &mut Trials, page: &mut PaperPage) -> Result<()> {
    let pairs = trials.sized(400, 4_000);
    let sets: Vec<(&str, LabelledTexts)> = match trials.labels.clone() {
        Some(labels) => vec![("the user's", LabelledTexts::of_user(trials, &labels)?)],
        None => vec![
            ("short", labelled_posts(pairs, trials.seed)),
            ("long", labelled_articles(pairs, trials.seed)),
        ],
    };
    let spec: Spec = "simhash:hamming=15".parse()?;
    let mut all = Vec::new();
    for (name, texts) in sets {
        all.push(DistanceCurve::of(trials, name, &texts, &spec)?);
    }
    page.claims.extend(all.iter().flat_map(DistanceCurve::claims));
    add_curves(page, &all);
    Ok(())
}

/// Adds the table and the figure of all curves.
fn add_curves(page: &mut PaperPage, all: &[DistanceCurve]) {
    let row = |name: &str, point: &DistancePoint| {
        vec![name.to_owned(), point.within.to_string(), percent(point.precision), percent(point.recall)]
    };
    page.parts.push(PagePart::Table(PageTable {
        caption: "Precision and recall of labelled pairs by the distance".to_owned(),
        head: vec!["texts", "within", "precision", "recall"],
        rows: all.iter().flat_map(|curve| curve.points.iter().map(|point| row(curve.name, point))).collect(),
    }));
    let line = |name: String, value: fn(&DistancePoint) -> f64, points: &[DistancePoint]| {
        // Where nothing is found there is no precision.
        let found = points.iter().filter(|point| point.recall > 0.0);
        (name, found.map(|point| (f64::from(point.within), 100.0 * value(point))).collect())
    };
    let lines = all.iter().flat_map(|DistanceCurve { name, points, .. }| {
        [
            line(format!("precision, {name}"), |point| point.precision, points),
            line(format!("recall, {name}"), |point| point.recall, points),
        ]
    });
    page.parts.push(PagePart::Figure(
        "Precision and recall of labelled pairs by the largest distance.".to_owned(),
        Chart::Lines {
            title: "Labelled pairs by distance".to_owned(),
            x: Axis::linear("largest distance, bits of 64"),
            y: Axis::linear("percent"),
            lines: lines.collect(),
        },
    ));
}
