//! Files of random schemas come out as parquet-mr, the library of Hadoop and Spark, wrote them: schema, key-values, and every
//! value by its levels and bytes. Needs `scripts/hadoop/build`. `scripts/parquet-mr` does the same with many more.

use crate::servers::hdfs::parquet_mr;
use crate::support::Folder;

#[test]
fn what_parquet_mr_wrote_comes_out_as_it_was() {
    const FILES: usize = 80;
    let here = Folder::new();
    let [input, output] = ["in", "out"].map(|name| here.path(name).display().to_string());
    std::fs::create_dir(&input).unwrap();
    let written = parquet_mr(&["write", &input, &FILES.to_string(), "1"]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    // Small pieces begin within row groups, and little memory makes batches small.
    for options in ["--workers 1", "--workers 2 --split-size 4K --memory 64M"] {
        here.run(&format!("dedup --method exact --overwrite {options} in out")).ends(0);
        assert!(here.counter("out", "removed") > 0);
        let compared = parquet_mr(&["compare", &input, &output]);
        assert!(compared.status.success(), "{options}: {}", String::from_utf8_lossy(&compared.stdout));
    }
}
