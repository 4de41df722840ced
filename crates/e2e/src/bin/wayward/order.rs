//! The order log: what was received, answered and cancelled, one line each, so that a test
//! can prove what was on the wire when.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

/// A way to write to the order log; does nothing where none was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Order(Option<Arc<File>>);

impl Order {
    pub(crate) fn open(path: Option<&Path>) -> Self {
        Self(path.map(|path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            Arc::new(file.expect("the order log can be written"))
        }))
    }

    /// One line, in one write, so that lines of two processes never mix.
    pub(crate) fn note(&self, line: &str) {
        if let Some(file) = &self.0 {
            (&**file).write_all(format!("{line}\n").as_bytes()).expect("the order log is written");
        }
    }
}
