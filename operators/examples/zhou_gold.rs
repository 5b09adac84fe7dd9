use operators::DocId;
use operators::features::*;
use operators::method::*;
use operators::text::*;
fn main() {
    let text = std::fs::read_to_string("/tmp/zhou_data/gold.txt").unwrap();
    let pairs: Vec<Vec<&str>> = text.lines().map(|l| l.split('\t').collect()).collect();
    let features = Features::new(FeatureSpec::Jieba, &Lexicon::default()).unwrap();
    for clean in [Clean::None, Clean::Nfkc, Clean::Weibo] {
        let mut cleaner = Cleaner::new(clean);
        for k in [2u32, 4, 8] {
            for (name, t) in [
                ("1+.2K", 1_000_000 + 200_000 * k as u64),
                ("1+.4K", 1_000_000 + 400_000 * k as u64),
                ("1+.6K", 1_000_000 + 600_000 * k as u64),
                ("1+.8K", 1_000_000 + 800_000 * k as u64),
                (".8K", 800_000 * k as u64),
            ] {
                let zhou =
                    Zhou::new(&ZhouSpec { k, threshold: Some(t), ..ZhouSpec::default() }, features.clone());
                let (mut tp, mut fp, mut fnn, mut met, mut tpm, mut fpm) = (0, 0, 0, 0, 0, 0);
                for p in &pairs {
                    let a = zhou.row(DocId(0), cleaner.clean(p[1]));
                    let b = zhou.row(DocId(1), cleaner.clean(p[2]));
                    let meet = a
                        .fingerprint
                        .to_be_bytes()
                        .iter()
                        .zip(b.fingerprint.to_be_bytes())
                        .any(|(x, y)| *x == y);
                    met += meet as u32;
                    match (p[0] == "1", zhou.duplicates(&a, &b).is_some()) {
                        (true, true) => {
                            tp += 1;
                            tpm += meet as u32
                        }
                        (false, true) => {
                            fp += 1;
                            fpm += meet as u32
                        }
                        (true, false) => fnn += 1,
                        _ => {}
                    }
                }
                println!(
                    "{clean} K={k} T={name}: precision {:.3} recall {:.3} ({tp} true {fp} false); met in a bucket {met}: precision {:.3} recall {:.3}",
                    tp as f64 / (tp + fp).max(1) as f64,
                    tp as f64 / (tp + fnn) as f64,
                    tpm as f64 / (tpm + fpm).max(1) as f64,
                    tpm as f64 / (tp + fnn) as f64
                );
            }
        }
    }
}
