//! The tasks that are done with a foreign file in a process of its own.

use crate::deflate::UndoneFile;
use crate::formats::office::{extract, extract_pages};

/// A task for a confined process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfinedTask {
    /// Reads the text of a Word or PDF document.
    ExtractText,
    /// Reads the texts of web pages.
    ExtractPages,
    /// Undoes the deflate streams of a file ([`UndoneFile`]).
    UndoDeflate,
    /// Makes the file again of what [`ConfinedTask::UndoDeflate`] has returned.
    Recreate,
}

impl ConfinedTask {
    const ALL: [ConfinedTask; 4] = [
        ConfinedTask::ExtractText,
        ConfinedTask::ExtractPages,
        ConfinedTask::UndoDeflate,
        ConfinedTask::Recreate,
    ];

    /// Returns the number of the task in a request.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Returns the task of a number.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Returns the result, or the reason why there is none. For foreign files this must be called only in a confined
    /// process. A result may be longer than `max_bytes`, and is not sent then.
    pub fn run(self, file: Vec<u8>, max_bytes: usize) -> Result<Vec<u8>, String> {
        match self {
            ConfinedTask::ExtractText => extract(file, max_bytes).map(String::into_bytes),
            ConfinedTask::ExtractPages => extract_pages(&file),
            ConfinedTask::UndoDeflate => UndoneFile::of(&file, max_bytes).map(|undone| undone.encode()),
            ConfinedTask::Recreate => UndoneFile::decode(&file).and_then(|undone| undone.recreate()),
        }
    }
}
