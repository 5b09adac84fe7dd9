//! Files of the store that loses power.

use std::io::{self, Write};

use cluster::{Error, Output};

use super::PowerStore;

/// A file that is being written.
pub struct PowerOutput {
    pub store: PowerStore,
    pub path: String,
    pub bytes: Vec<u8>,
}

impl Write for PowerOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for PowerOutput {
    fn finish(self: Box<Self>) -> Result<(), Error> {
        self.store.write(&self.path, &self.bytes, false)
    }

    fn finish_durably(self: Box<Self>) -> Result<(), Error> {
        self.store.write(&self.path, &self.bytes, true)
    }
}
