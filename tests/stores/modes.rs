//! Tests of the ways in which an HDFS may be set up: name services, viewfs, erasure coding. They need
//! `scripts/hadoop/build`.
//!
//! Kerberos is not among them, since it needs a realm. Its settings reach the client library as all others
//! do.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use cluster::{BlobReader, Hdfs, HdfsLimits, Rename, Store};

use crate::corpus::json_lines;
use crate::servers::hdfs::MiniDfs;
use crate::support::{Folder, Random, Run, run, sorted};

/// Writes some megabytes in three files, in which each document is there twice: more than a stripe of RS-3-2.
fn corpus() -> Folder {
    let here = Folder::new();
    let mut random = Random(7);
    for name in ["a.jsonl", "b/c.jsonl", "b/文.jsonl"] {
        let lines = json_lines((0..300).map(|i| (format!("{name}-{i}"), random.text(1500))));
        here.write(&format!("in/{name}"), lines.repeat(2));
    }
    here
}

struct Modes {
    dfs: MiniDfs,
    here: Folder,
}

impl Modes {
    fn run(&self, line: &str) -> Run {
        run(self.here.command(line).env("HADOOP_CONF_DIR", self.here.path("conf")))
    }

    /// Writes the corpus to HDFS, reads and writes it there, and back. Each run lists, and renames at its
    /// end.
    fn there_and_back(&self, root: &str) {
        let line = |from: &str, to: &str| {
            format!("dedup {from} {to} --method exact --split-size 700K --workers 2 --quiet --overwrite")
        };
        self.run(&line("in", &format!("{root}/one"))).ends(0);
        self.run(&line(&format!("{root}/one/kept,{root}/one/removed/*.jsonl"), &format!("{root}/two")))
            .ends(0);
        self.run(&line(&format!("{root}/t*o/kept"), "back")).ends(0);
        self.run(&line("in", "here")).ends(0);
        for part in ["kept", "removed"] {
            assert_eq!(self.here.counter("here", part), 900);
        }
        assert_eq!(self.here.counter("back", "kept"), 900);
        let kept = |output: &str| sorted(self.here.lines(&format!("{output}/kept"), ".jsonl"));
        assert!(kept("back") == kept("here"), "{root}");
        // The output exists, and --overwrite was not given.
        self.run(&format!("dedup in {root}/one")).fails(2, &["/one", "--overwrite"]);
        self.run(&format!("dedup {root}/none {root}/new")).fails(2, &["/none", "does not exist"]);
    }
}

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn name_services_viewfs_and_erasure_coding_work() {
    let dfs = MiniDfs::start(5, &["ha", "ec"]);
    let here = corpus();
    let settings = fs::read_to_string(dfs.conf().join("core-site.xml")).unwrap();
    let link = |name: &str, path: &str| {
        let name = format!("fs.viewfs.mounttable.all.{name}");
        format!("<property><name>{name}</name><value>hdfs://minidfs-ns{path}</value></property>")
    };
    let links =
        [link("link./coded", "/ec/mounted"), link("link./plain", "/mounted"), link("linkFallback", "/rest")];
    here.write(
        "conf/core-site.xml",
        settings.replace("</configuration>", &format!("{}</configuration>", links.concat())),
    );
    let modes = Modes { dfs, here };

    modes.there_and_back("hdfs://minidfs-ns/ha");
    modes.there_and_back("hdfs:///default");
    modes.there_and_back("hdfs://minidfs-ns/ec/x");
    modes.there_and_back("viewfs://all/plain");
    modes.there_and_back("viewfs://all/coded");
    modes.there_and_back("viewfs://all");
    // The other name node takes over.
    modes.dfs.tell("active 1");
    modes.there_and_back("hdfs://minidfs-ns/ha");
    stripes_are_read_without_two_of_their_data_nodes(&modes);
    a_name_service_is_asked_elsewhere_when_its_first_name_node_freezes(&modes);
    // An unknown name service is taken for a host. RFC 1035 allows names of 63 characters between two dots,
    // so no server is asked for this one.
    let nobody = format!("hdfs://{}/in", "minidfs-ns".repeat(7));
    modes.here.run(&format!("dedup {nobody} out")).fails(1, &[&nobody]);
}

fn stripes_are_read_without_two_of_their_data_nodes(modes: &Modes) {
    modes.dfs.tell("stop 0");
    modes.dfs.tell("stop 0");
    modes.run("dedup hdfs://minidfs-ns/ec/x/two/kept without --method exact --quiet").ends(0);
    assert_eq!(modes.here.counter("without", "kept"), 900);
    let kept = |output: &str| sorted(modes.here.lines(&format!("{output}/kept"), ".jsonl"));
    assert!(kept("without") == kept("here"));
    modes.dfs.tell("restart");
}

fn a_name_service_is_asked_elsewhere_when_its_first_name_node_freezes(modes: &Modes) {
    let conf = fs::read_to_string(modes.dfs.conf().join("core-site.xml")).unwrap();
    let (_, value) = conf.split_once("dfs.namenode.rpc-address.minidfs-ns.nn2</name><value>").unwrap();
    let awake = value.split('<').next().unwrap();
    // The system accepts connections and data, but the program never answers, as if it were frozen.
    let frozen = TcpListener::bind("127.0.0.1:0").unwrap();
    let asleep = frozen.local_addr().unwrap().to_string();
    let settings = [
        ("dfs.nameservices", "half"),
        ("dfs.ha.namenodes.half", "a,b"),
        ("dfs.namenode.rpc-address.half.a", &asleep),
        ("dfs.namenode.rpc-address.half.b", awake),
    ];
    let limits = HdfsLimits { call: Duration::from_secs(2), attempts: 12, ..HdfsLimits::default() };
    let store = Hdfs::with_settings("hdfs://half", limits, &settings).unwrap();
    let blob = store.open("/ha/two/_SUCCESS").unwrap();
    let mut text = String::new();
    BlobReader::new(blob, 0, u64::MAX).read_to_string(&mut text).unwrap();
    assert!(text.contains("counters"));
    let mut output = store.create("/ha/half").unwrap();
    output.write_all(b"half").unwrap();
    output.finish().unwrap();
    store.rename("/ha/half", "/ha/whole").unwrap();
    assert!(store.exists("/ha/whole").unwrap());
    drop(frozen);
}
