//! HDFS under faults: each read returns the right bytes, or an error within its deadline. It never returns
//! wrong bytes and never hangs.
//!
//! Needs `scripts/hadoop/build`. One HDFS has three data nodes. Each fault has a file and a proxy of its own,
//! so that all faults are tried at once.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cluster::{Blob, Error, Hdfs, HdfsLimits, Store, Stores};
use hdfs_native::WriteOptions;
use hdfs_native::sync::ClientBuilder;
use proxy::{Fault, Proxy};
use random::Random;
use servers::hdfs::MiniDfs;

mod proxy;
#[path = "../../../tests/random.rs"]
mod random;
#[path = "../../../tests/servers/mod.rs"]
mod servers;

const RUNS: usize = 20;
const BLOCK_BYTES: usize = 1 << 20;
const FILE_BYTES: usize = 4 * BLOCK_BYTES + 123_456;
/// Time limit far beyond the deadlines below. A call that takes longer hangs.
const FOR_EVER: Duration = Duration::from_secs(90);
const LIMITS: HdfsLimits = HdfsLimits {
    call: Duration::from_secs(5),
    data_node: Duration::from_secs(2),
    item: Duration::from_secs(5),
    range: Duration::from_secs(10),
    whole: Duration::from_secs(40),
    attempts: 4,
};

/// A file of five blocks, each on two data nodes, behind a proxy that causes faults.
struct Scene<'a> {
    cluster: &'a MiniDfs,
    proxy: Proxy,
    path: String,
    bytes: Vec<u8>,
    name: &'static str,
}

impl<'a> Scene<'a> {
    fn new(cluster: &'a MiniDfs, number: usize, name: &'static str) -> Self {
        let path = format!("/{number}");
        let bytes = Random(number as u64).bytes(FILE_BYTES);
        let client = ClientBuilder::new().with_url(&cluster.uri).with_user("hdfs").build().unwrap();
        let options = WriteOptions::default().block_size(BLOCK_BYTES as u64).replication(2);
        let write = || {
            let mut writer = client.create(&path, options.clone().overwrite(true))?;
            writer.write_bytes(Bytes::from(bytes.clone()))?;
            writer.close()
        };
        // A busy name node may say that the block before is not yet replicated.
        let end = Instant::now() + FOR_EVER;
        while let Err(error) = write() {
            assert!(Instant::now() < end, "{name}: {error}");
            thread::sleep(Duration::from_millis(500));
        }
        Scene { cluster, proxy: Proxy::new(cluster), path, bytes, name }
    }

    /// Returns the paths of the copies of a block on the disks.
    fn replicas(&self, block: usize) -> Vec<PathBuf> {
        let end = self.bytes.len().min((block + 1) * BLOCK_BYTES);
        let bytes = &self.bytes[block * BLOCK_BYTES..end];
        let same = |path: &PathBuf| {
            let long = fs::metadata(path).is_ok_and(|data| data.len() == bytes.len() as u64);
            long && fs::read(path).is_ok_and(|found| found == bytes)
        };
        self.cluster.replicas().into_iter().filter(same).collect()
    }

    /// Reads the file through the proxy, from `offset` on.
    fn read_from(&self, limits: HdfsLimits, offset: usize) -> Result<Vec<u8>, Error> {
        let uri = self.proxy.uri.clone();
        let path = self.path.clone();
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || {
            let read = || {
                let blob: Arc<dyn Blob> = Hdfs::new(&uri, limits)?.open(&path)?;
                let mut bytes = vec![0; FILE_BYTES - offset];
                let read = blob.read_full_at(offset as u64, &mut bytes)?;
                bytes.truncate(read);
                Ok(bytes)
            };
            drop(sender.send(read()));
        });
        answers.recv_timeout(FOR_EVER).unwrap_or_else(|_| panic!("{}: it hangs", self.name))
    }

    /// Reads the file and returns whether that succeeded. The bytes of a successful read must be right.
    fn reads(&self, limits: HdfsLimits) -> bool {
        self.reads_from(limits, 0)
    }

    fn reads_from(&self, limits: HdfsLimits, offset: usize) -> bool {
        match self.read_from(limits, offset) {
            Ok(bytes) => {
                assert!(bytes == self.bytes[offset..], "{}: wrong bytes", self.name);
                true
            }
            Err(Error::Io { .. }) => false,
            Err(error) => panic!("{}: {error:?}", self.name),
        }
    }

    /// Performs `RUNS` runs, each with its number. Returns how many of them could read the file.
    fn runs(&self, mut run: impl FnMut(usize) -> bool) -> usize {
        let start = Instant::now();
        let read = (0..RUNS).filter(|&number| run(number)).count();
        println!("{}: {read} of {RUNS} read right, others an error, {:.1?}", self.name, start.elapsed());
        read
    }
}

/// Flips a bit of the file on a disk while `run` runs.
fn flipped<T>(replicas: &[&PathBuf], at: usize, run: impl FnOnce() -> T) -> T {
    let flip = || {
        for path in replicas {
            let mut bytes = fs::read(path).unwrap();
            let at = at % bytes.len();
            bytes[at] ^= 0x10;
            fs::write(path, bytes).unwrap();
        }
    };
    flip();
    let result = run();
    flip();
    result
}

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn under_every_fault_bytes_are_right_or_there_is_an_error_in_time() {
    // Its data nodes are stopped and its files are damaged.
    let cluster = MiniDfs::start(3, &[]);
    type Run = fn(&Scene);
    let faults: [(&'static str, Run); 9] = [
        ("nothing", nothing),
        ("a data node stalls", a_data_node_stalls),
        ("all connections are cut once", all_connections_are_cut_once),
        ("a data node gives 50 KB/s", a_data_node_is_slow),
        ("one copy has a wrong byte", one_copy_is_damaged),
        ("one copy of each block has a wrong byte", one_copy_of_each_block_is_damaged),
        ("both copies have a wrong byte", both_copies_are_damaged),
        ("one copy is cut short", one_copy_is_cut_short),
        ("the name node freezes", the_name_node_freezes),
    ];
    thread::scope(|scope| {
        for (number, (name, fault)) in faults.into_iter().enumerate() {
            let cluster = &cluster;
            scope.spawn(move || fault(&Scene::new(cluster, number, name)));
        }
        scope.spawn(|| packets_say_a_wrong_place(&Scene::new(&cluster, 9, "packets say a wrong place")));
        scope.spawn(|| {
            a_name_node_that_freezes_for_a_minute_is_waited_for(&Scene::new(&cluster, 10, "a minute"))
        });
    });
    // This fault runs alone, because the others need all three data nodes.
    a_data_node_stops(&Scene::new(&cluster, 11, "a data node stops"));
}

fn nothing(scene: &Scene) {
    assert_eq!(scene.runs(|_| scene.reads(LIMITS)), RUNS);
    assert!(scene.proxy.passed() > (RUNS * FILE_BYTES) as u64, "it does not go through the proxy");
    assert!((0..5).all(|block| scene.replicas(block).len() == 2));
}

fn a_data_node_stalls(scene: &Scene) {
    let read = scene.runs(|run| {
        scene.proxy.data_nodes(Fault::None);
        scene.proxy.data_node(run, Fault::Stall(run as u64 * 100_000));
        scene.reads(LIMITS)
    });
    assert_eq!(read, RUNS);
}

fn all_connections_are_cut_once(scene: &Scene) {
    let read = scene.runs(|run| {
        scene.proxy.data_nodes(Fault::Cut(run as u64 * 60_000));
        scene.reads(LIMITS)
    });
    assert_eq!(read, RUNS);
}

fn a_data_node_is_slow(scene: &Scene) {
    // The reader leaves the slow node after `range` and keeps the bytes that have come until then. A packet
    // takes that node 1.3 seconds.
    let range = Duration::from_millis(1500);
    let limits = HdfsLimits { range, whole: Duration::from_secs(40), attempts: 6, ..LIMITS };
    let read = scene.runs(|run| {
        scene.proxy.data_nodes(Fault::None);
        scene.proxy.data_node(run, Fault::Slow(50_000));
        scene.reads_from(limits, 3 * BLOCK_BYTES)
    });
    // A read may try the slow node first too often, and then fails in time.
    assert!(read > RUNS / 2);
}

fn one_copy_is_damaged(scene: &Scene) {
    let read = scene.runs(|run| {
        let replicas = scene.replicas(run % 5);
        flipped(&[&replicas[run % 2]], run * 6_007, || scene.reads(LIMITS))
    });
    assert_eq!(read, RUNS);
}

fn one_copy_of_each_block_is_damaged(scene: &Scene) {
    let read = scene.runs(|run| {
        let replicas: Vec<_> = (0..5).map(|block| scene.replicas(block)).collect();
        let damaged: Vec<_> = replicas.iter().enumerate().map(|(i, two)| &two[(run >> i) % 2]).collect();
        flipped(&damaged, run * 6_007, || scene.reads(LIMITS))
    });
    assert_eq!(read, RUNS);
}

fn both_copies_are_damaged(scene: &Scene) {
    let read = scene.runs(|run| {
        let replicas = scene.replicas(run % 5);
        flipped(&[&replicas[0], &replicas[1]], run * 6_007, || scene.reads(LIMITS))
    });
    assert_eq!(read, 0);
}

fn one_copy_is_cut_short(scene: &Scene) {
    let read = scene.runs(|run| {
        let block = run % 5;
        let path = &scene.replicas(block)[0];
        let whole = fs::read(path).unwrap();
        fs::write(path, &whole[..whole.len() * run / RUNS]).unwrap();
        let read = scene.reads(LIMITS);
        // The name node may have heard of the damage, and had the copy removed and made anew.
        if path.exists() {
            fs::write(path, whole).unwrap();
        }
        let end = Instant::now() + FOR_EVER;
        while scene.replicas(block).len() < 2 {
            assert!(Instant::now() < end, "the block is not copied anew");
            thread::sleep(Duration::from_millis(200));
        }
        read
    });
    assert_eq!(read, RUNS);
}

fn the_name_node_freezes(scene: &Scene) {
    let limits = HdfsLimits { call: Duration::from_secs(1), ..LIMITS };
    let read = scene.runs(|run| {
        scene.proxy.name_node(Fault::Stall(run as u64 * 20));
        match run % 2 {
            // The stall is longer than any limit.
            0 => {
                let read = scene.reads(limits);
                scene.proxy.name_node(Fault::None);
                read
            }
            _ => thread::scope(|scope| {
                let reader = scope.spawn(|| scene.reads(limits));
                thread::sleep(Duration::from_millis(2500));
                scene.proxy.name_node(Fault::None);
                reader.join().unwrap()
            }),
        }
    });
    assert_eq!(read, RUNS / 2);
}

fn a_name_node_that_freezes_for_a_minute_is_waited_for(scene: &Scene) {
    scene.proxy.name_node(Fault::Stall(0));
    thread::scope(|scope| {
        let reader = scope.spawn(|| scene.reads(HdfsLimits::default()));
        thread::sleep(Duration::from_secs(61));
        scene.proxy.name_node(Fault::None);
        assert!(reader.join().unwrap());
    });
}

/// Sends packets with a wrong offset in their headers, which no checksum covers.
fn packets_say_a_wrong_place(scene: &Scene) {
    // The fault is a real threat: a read that begins inside a chunk of 512 bytes gets the beginning of the
    // chunk.
    scene.proxy.data_nodes(Fault::Shift { bytes: 512, every: true });
    let wrong = scene.read_from(LIMITS, 100).unwrap();
    assert!(wrong != scene.bytes[100..] && wrong.len() == FILE_BYTES - 100);
    // A job reads from the same place in cells that begin where chunks do, and gets the right bytes.
    let found = Stores::new().expand(&[format!("{}{}", scene.proxy.uri, scene.path)]).unwrap();
    let mut bytes = vec![0; FILE_BYTES - 100];
    assert_eq!(found[0].open(None).unwrap().read_full_at(100, &mut bytes).unwrap(), bytes.len());
    assert!(bytes == scene.bytes[100..]);

    let shifts = [512, -512, -1, 1, 65_536, -65_536, i64::MAX / 2, -700_000];
    // Most runs wait less long than the library does, so they are quick. Some wait longer, as a job does.
    let hasty = HdfsLimits { item: Duration::from_millis(500), ..LIMITS };
    let mut damaged = 0;
    let read = scene.runs(|run| {
        let limits = if run / shifts.len() == 1 { LIMITS } else { hasty };
        let fault = Fault::Shift { bytes: shifts[run % shifts.len()], every: run % 3 == 0 };
        scene.proxy.data_nodes(Fault::None);
        scene.proxy.data_node(run, fault);
        let before = scene.proxy.damaged();
        let read = scene.reads(limits);
        damaged += usize::from(scene.proxy.damaged() > before);
        read
    });
    assert!(read > 0 && damaged > RUNS / 2, "{read} were read, {damaged} damaged");
}

fn a_data_node_stops(scene: &Scene) {
    let read = scene.runs(|run| {
        // The node is so slow that the read is not done by then.
        scene.proxy.data_nodes(Fault::Slow(8_000_000));
        let read = thread::scope(|scope| {
            let reader = scope.spawn(|| scene.reads(LIMITS));
            thread::sleep(Duration::from_millis(100 + 15 * run as u64));
            scene.cluster.tell(&format!("stop {}", run % 3));
            reader.join().unwrap()
        });
        scene.cluster.tell("restart");
        read
    });
    assert_eq!(read, RUNS);
}
