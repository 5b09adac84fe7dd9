//! The packages of this project with their rooms, and their sources.

use std::fs;
use std::path::{Path, PathBuf};

/// A package of this project.
pub struct Package {
    /// Folder of its manifest; empty for the program.
    pub manifest: &'static str,
    /// Folder of its sources.
    pub sources: &'static str,
    /// Packages that it uses, by the names of their crates.
    pub uses: &'static [&'static str],
    /// Rooms, from low to high: a room uses only those before it. Files beside the rooms are not bound.
    pub rooms: &'static [&'static str],
}

/// All packages, from low to high.
pub const PACKAGES: [Package; 10] = [
    Package {
        manifest: "operators",
        sources: "operators/src",
        uses: &[],
        rooms: &[
            "record",
            "spill",
            "text",
            "fingerprint",
            "sets",
            "units",
            "decide",
            "blocks",
            "search",
            "method",
            "evaluate",
            "flow",
        ],
    },
    Package {
        manifest: "cluster",
        sources: "cluster/src",
        uses: &[],
        rooms: &["stores", "processes", "runs", "write_ahead_log"],
    },
    Package { manifest: "cluster/hbase", sources: "cluster/hbase", uses: &["cluster"], rooms: &[] },
    Package {
        manifest: "datasets",
        sources: "datasets/src",
        uses: &["operators", "cluster"],
        rooms: &["text", "parts", "formats"],
    },
    Package {
        manifest: "jobs/runtime",
        sources: "jobs/runtime",
        uses: &["operators", "cluster", "datasets"],
        rooms: &["cli", "launch", "progress", "corpus", "output", "report"],
    },
    Package {
        manifest: "jobs/batch",
        sources: "jobs/batch",
        uses: &["operators", "cluster", "datasets", "runtime"],
        rooms: &["pipeline", "write"],
    },
    Package {
        manifest: "jobs/nightly",
        sources: "jobs/nightly",
        uses: &["operators", "cluster", "datasets", "runtime", "batch"],
        rooms: &["state", "earlier"],
    },
    Package {
        manifest: "jobs/index",
        sources: "jobs/index",
        uses: &["operators", "cluster", "hbase", "datasets", "runtime", "batch", "nightly"],
        rooms: &["topics", "view", "serve"],
    },
    Package {
        manifest: "jobs/chunk",
        sources: "jobs/chunk",
        uses: &["operators", "cluster", "datasets", "runtime", "batch"],
        rooms: &["store", "put"],
    },
    Package {
        manifest: "",
        sources: "jobs",
        uses: &["operators", "cluster", "datasets", "runtime", "batch", "nightly", "index", "chunk"],
        rooms: &["help", "commands", "reproduce"],
    },
];

impl Package {
    /// Returns the sources of this package, without those of packages in folders below it.
    pub fn files(&self) -> Vec<(String, String)> {
        let below = PACKAGES.iter().filter(|other| other.sources.starts_with(&format!("{}/", self.sources)));
        let below: Vec<String> = below.map(|other| format!("{}/", other.sources)).collect();
        let mut files = sources(self.sources);
        files.retain(|(name, _)| !below.iter().any(|folder| name.starts_with(folder)));
        files
    }
}

/// Returns all Rust files of the repository below `folder`, by their paths in it.
pub fn sources(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(".rs") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(!found.is_empty(), "no sources in {folder}");
    found
}
