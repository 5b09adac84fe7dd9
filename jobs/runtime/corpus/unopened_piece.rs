//! A piece of an input file, before it is opened.

use std::sync::Arc;

use cluster::{InputFile, Noted};
use datasets::{Piece, SharedFile, contents_bytes};
use operators::SpillBudget;

/// Piece of a file that is not yet open.
#[derive(Clone)]
pub struct UnopenedPiece {
    file: InputFile,
    start: u64,
    end: u64,
    /// Share of the file's bytes, for progress.
    bytes: u64,
    shared: Arc<SharedFile>,
    /// Sums of what is read of the piece, if somebody wants to know. The pieces of a compressed file note what
    /// is read for any of them.
    noted: Option<Arc<Noted>>,
}

impl UnopenedPiece {
    /// Returns a file as one piece.
    pub fn whole(file: &InputFile) -> Self {
        let (file, shared, end) = (file.clone(), Arc::default(), file.bytes);
        UnopenedPiece { file, start: 0, end, bytes: end, shared, noted: None }
    }

    /// Cuts a whole file into `count` pieces of equal length.
    pub fn cut(&self, count: u64) -> Vec<Self> {
        let cut = |index| (u128::from(self.end) * u128::from(index) / u128::from(count)) as u64;
        let shared = Arc::default();
        let piece = |index| {
            let start = cut(index);
            let end = cut(index + 1);
            let shared = Arc::clone(&shared);
            UnopenedPiece { start, end, bytes: end - start, shared, ..self.clone() }
        };
        (0..count).map(piece).collect()
    }

    /// Cuts the decompressed contents of a whole file into `count` pieces of `bytes` bytes. The last one has
    /// whatever is left. `local`: the folder for the contents.
    pub fn cut_contents(&self, bytes: u64, count: u64, local: &SpillBudget) -> Vec<Self> {
        let shared = Arc::new(SharedFile::decompressed(local));
        let noted = Arc::default();
        let piece = |(index, piece): (u64, UnopenedPiece)| {
            let shared = Arc::clone(&shared);
            let noted = Some(Arc::clone(&noted));
            let end = if index + 1 < count { (index + 1) * bytes } else { u64::MAX };
            UnopenedPiece { start: index * bytes, end, shared, noted, ..piece }
        };
        (0..).zip(self.cut(count)).map(piece).collect()
    }

    /// Returns about how many bytes the contents of the compressed file have.
    pub fn contents_bytes(&self) -> Result<u64, cluster::Error> {
        contents_bytes(&self.file.open(None)?)
    }

    /// Returns the same piece, which notes sums of what is read of it.
    pub fn noting(&self) -> Self {
        UnopenedPiece { noted: Some(self.noted.clone().unwrap_or_default()), ..self.clone() }
    }

    /// Returns the sums that were noted and not yet returned.
    pub fn sums(&self) -> Vec<(u64, u64)> {
        self.noted.as_ref().map(|noted| self.file.sums(noted)).unwrap_or_default()
    }

    /// Takes over the sums of what an earlier run has read of the piece.
    pub fn restore(&self, sums: &[(u64, u64)]) -> Result<(), cluster::Error> {
        self.file.restore(sums)
    }

    /// Opens the file to read this piece of it, which must be as it was when it was found.
    pub fn open(&self) -> Result<Piece, cluster::Error> {
        let blob = self.file.open(self.noted.clone())?;
        let name = self.file.name.to_string();
        let shared = Arc::clone(&self.shared);
        Ok(Piece { blob, name, start: self.start, end: self.end, shared })
    }

    /// Opens the whole file as one piece.
    pub fn whole_file(&self) -> Result<Piece, cluster::Error> {
        Ok(Piece::whole(self.file.open(None)?, self.file.name.to_string()))
    }

    /// Whether this is the path of its file, as people see it.
    pub fn is_of(&self, path: &str) -> bool {
        path == self.file.full_path()
    }

    /// Returns the path of the file below the input that named it.
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// Returns the name of the file for people.
    pub fn uri(&self) -> String {
        self.file.full_path()
    }

    /// Returns the share of the file's bytes that progress counts for the piece.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether this piece reports that the whole file cannot be read: the first one of the file does.
    pub fn speaks_for_file(&self) -> bool {
        self.start == 0
    }
}
