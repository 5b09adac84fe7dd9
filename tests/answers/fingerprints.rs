//! Tests that fingerprints in files give the same answer as the texts that they were made of.

use std::collections::BTreeSet;

use crate::corpus::of_formats;
use crate::support::Folder;

/// Returns the ids of the documents that an output has removed.
fn removed(here: &Folder, output: &str) -> BTreeSet<String> {
    let members = here.rows(&format!("{output}/clusters"));
    members.into_iter().filter(|member| member[2] == "false").map(|member| member[0].clone()).collect()
}

#[test]
fn fingerprints_in_files_find_the_pairs_that_their_texts_have() {
    let here = of_formats();
    let method = "simhash:hamming=6,features=char:2";
    here.run(&format!("dedup in of-texts --method {method} --verify none --quiet")).ends(3);
    let expected = removed(&here, "of-texts");
    assert!(!expected.is_empty());
    for (to, workers) in [("sequencefile", 1), ("parquet", 3)] {
        let make = format!("fingerprint in --output made --to {to} --method {method} --workers {workers}");
        let run = here.run(&format!("{make} --overwrite")).ends(3);
        assert!(run.stderr.contains("Fingerprints=2000"), "{}", run.stderr);
        here.run("check made --full").ends(0);
        let dedup = "dedup --from-fingerprints made/fingerprints out --method simhash:hamming=6";
        here.run(&format!("{dedup} --workers {workers} --overwrite --quiet")).ends(0);
        assert_eq!(removed(&here, "out"), expected, "{to}");
        assert_eq!(here.counter("out", "pairs"), here.counter("of-texts", "pairs"));
        here.run("rethreshold out other --threshold 0.9").fails(2, &["no least similarity"]);
    }
    here.run("fingerprint in --output other --method jaccard:0.8").fails(2, &["has no SimHash"]);
    here.run("fingerprint in --output other --method simhash:bits=128").fails(2, &["64 bits at most"]);
    here.run("dedup --from-fingerprints made/fingerprints other --method minhash")
        .fails(2, &["for --method simhash"]);
    here.run("dedup --from-fingerprints made/fingerprints other --verify jaccard:0.8")
        .fails(2, &["no features"]);
}

#[test]
fn what_is_no_fingerprint_is_rejected_and_the_rest_is_compared() {
    let here = Folder::new();
    let lines = [
        "{\"id\": \"a\", \"fingerprint\": 18446744073709551615}",
        "{\"id\": \"b\", \"fingerprint\": -1}",
        "{\"id\": \"c\", \"fingerprint\": \"0x00ff\"}",
        "{\"id\": \"d\", \"fingerprint\": \"今天\"}",
        "{\"id\": \"e\", \"fingerprint\": \"0x00fe\"}",
        "{\"id\": \"f\", \"fingerprint\": 1.5}",
    ];
    here.write("in.jsonl", lines.join("\n") + "\n");
    let run = here.run("dedup --from-fingerprints in.jsonl out --workers 2").ends(3);
    assert!(run.stderr.contains("Rejected=2"), "{}", run.stderr);
    assert_eq!(removed(&here, "out"), ["b", "e"].map(str::to_owned).into());
    let rejects = here.objects("out/rejects", "part-00000.jsonl");
    let reasons: Vec<_> = rejects.iter().map(|reject| reject["reason"].as_str().unwrap()).collect();
    assert!(reasons.iter().all(|reason| reason.contains("not a fingerprint of 64 bits")), "{reasons:?}");
    assert_eq!(here.lines("out/kept", "part-00000.jsonl").len(), 2);
}
