//! The order log of a `wayward`, read by the test that gave it one.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::programs::wayward;
use crate::wait::eventually;

/// An order log in a folder of its own.
#[derive(Debug)]
pub struct OrderLog {
    _folder: TempDir,
    path: PathBuf,
}

impl OrderLog {
    /// One that is still empty.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        let path = folder.path().join("order");
        Self { _folder: folder, path }
    }

    /// The registration of a `wayward` that writes it, with these flags besides.
    pub fn wayward(&self, name: &str, flags: &[&str]) -> Value {
        let mut body = wayward(name, flags);
        let args = body["args"].as_array_mut().expect("flags are a list");
        args.extend([json!("--log-order"), json!(self.path)]);
        body
    }

    /// What was written so far.
    pub fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// How often a line was written.
    pub fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|seen| *seen == line).count()
    }

    /// Waits until a line was written as often as this.
    pub async fn wait(&self, line: &str, times: usize) {
        let what = format!("`{line}` in the order log, {times} times");
        eventually(&what, async || (self.count(line) >= times).then_some(())).await;
    }
}

impl Default for OrderLog {
    fn default() -> Self {
        Self::new()
    }
}
