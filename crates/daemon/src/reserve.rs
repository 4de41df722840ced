//! File descriptors kept back for connections, for the time when the daemon has none left.
//!
//! `accept` fails with `EMFILE` while the connection stays in the queue, so that a loop around it
//! would spin, and no client would get an answer. Each reserved descriptor lets one more connection
//! in.

use std::fs::File;
use std::io;

use cofer_runtime::OutOfFiles;

/// How many connections are still accepted after the limit was reached.
const RESERVED: usize = 16;

/// See the module.
pub(crate) struct Reserve {
    files: Vec<File>,
    /// Whether the limit was reached since the reserve was last complete: logged once.
    is_reported: bool,
}

impl Reserve {
    pub(crate) fn new() -> Self {
        let mut reserve = Self { files: Vec::with_capacity(RESERVED), is_reported: false };
        reserve.refill();
        reserve
    }

    /// Takes back what was released, as far as the limit allows.
    pub(crate) fn refill(&mut self) {
        while self.files.len() < RESERVED {
            match File::open("/dev/null") {
                Ok(file) => self.files.push(file),
                Err(_) => return,
            }
        }
        self.is_reported = false;
    }

    /// Releases one descriptor for the next connection; false if none is left.
    pub(crate) fn release(&mut self, error: &io::Error, limit: &OutOfFiles) -> bool {
        if !self.is_reported {
            self.is_reported = true;
            let OutOfFiles { message, hint } = limit;
            tracing::error!(%error, hint, "connections are accepted from the reserve: {message}");
        }
        self.files.pop().is_some()
    }
}
