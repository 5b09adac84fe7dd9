use operators::DocId;
use operators::features::*;
use operators::method::*;
use operators::retrieval::*;
use operators::text::*;
use std::io::BufRead;
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/self/stat").unwrap();
    let f: Vec<u64> = s
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|x| x.parse().unwrap())
        .collect();
    (f[0] + f[1]) as f64 / 100.0
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let lines: Vec<String> = std::io::BufReader::new(std::fs::File::open(&args[1]).unwrap())
        .lines()
        .map(|l| l.unwrap())
        .take(args[2].parse().unwrap())
        .collect();
    let features = Features::new(FeatureSpec::Jieba, &Lexicon::default()).unwrap();
    let clean = if args.len() > 4 { Clean::parse(&args[4]).unwrap() } else { Clean::Weibo };
    let mut cleaner = Cleaner::new(clean);
    let zhou = Zhou::new(&ZhouSpec::default(), features);
    let t = cpu();
    let rows: Vec<WordRow> =
        lines.iter().enumerate().map(|(i, l)| zhou.row(DocId(i as u64), cleaner.clean(l))).collect();
    println!(
        "{} docs, words {:.1}, map {:.2} s",
        rows.len(),
        rows.iter().map(|r| r.words.len()).sum::<usize>() as f64 / rows.len() as f64,
        cpu() - t
    );
    for (shift, copy) in [(24, 1), (16, 2), (8, 3), (0, 4)] {
        let mut c = vec![0u64; 256];
        rows.iter().for_each(|r| c[(r.fingerprint >> shift & 255) as usize] += 1);
        println!(
            "copy {copy}: largest {:.3}, pairs/uniform {:.2}",
            *c.iter().max().unwrap() as f64 / rows.len() as f64,
            c.iter().map(|v| v * v).sum::<u64>() as f64 * 256.0 / (rows.len() as f64).powi(2)
        );
    }
    for name in args[3].split(',') {
        let how = Retrieval::parse(name).unwrap();
        let (mut rows, original, t) = (rows.clone(), rows.len() as u64, cpu());
        let (mut bits, mut words, mut looked) = (0, 0, 0u64);
        let mut edges = Vec::new();
        for copy in 0..4 {
            let sizes = Sizes { copy: rows.len() as u64, original };
            let before: Vec<(u64, u32)> = {
                let mut b: Vec<_> = rows.iter().map(|r| (r.doc.0, r.fingerprint)).collect();
                b.sort_unstable();
                b
            };
            let from = edges.len();
            let c = how.search(copy, sizes, &mut rows, |a, b| {
                let p = zhou.duplicates(a, b);
                edges.extend(p);
                p.is_some()
            });
            let gone: std::collections::HashMap<u64, u64> = edges[from..]
                .iter()
                .map(|e: &(operators::Pair, operators::Similarity)| (e.0.high.0, e.0.low.0))
                .collect();
            let mut place = std::collections::HashMap::new();
            for (doc, _) in &before {
                match gone.get(doc) {
                    Some(of) => looked += place[of] + 1,
                    None => {
                        looked += place.len() as u64;
                        place.insert(*doc, place.len() as u64);
                    }
                }
            }
            bits += c.of_bits;
            words += c.of_words;
        }
        let named: std::collections::HashSet<_> = edges.iter().map(|e| e.0.high).collect();
        let back = edges.iter().filter(|e| named.contains(&e.0.low)).count();
        println!(
            "{name}: kept {} deleted {} (their kept one deleted later: {back}) bits {bits} words {words} total {} cpu {:.2}",
            rows.len(),
            edges.len(),
            bits + words,
            cpu() - t
        );
    }
}
