//! A server on its own pipes, without a daemon between: for testing `wayward` itself.

use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::programs::{command, wayward_path};
use crate::wait::within;

/// A running `wayward`.
pub struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    /// Starts it with these flags.
    pub fn start(flags: &[&str]) -> Self {
        let mut command = command(&wayward_path());
        command.args(flags).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("wayward starts");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        Self { child, stdin, stdout }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("it was not waited for")
    }

    /// Writes one line.
    pub async fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(format!("{line}\n").as_bytes()).await.expect("it reads its stdin");
    }

    /// The next line it writes.
    pub async fn line(&mut self) -> String {
        let line = within("a line comes", self.stdout.next_line()).await;
        line.expect("stdout is text").expect("stdout is open")
    }

    /// Sends a request and reads the next line as its answer.
    pub async fn ask(&mut self, request: &str) -> Value {
        self.send(request).await;
        let line = self.line().await;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line}"))
    }

    /// Closes its stdin.
    pub fn close(&mut self) {
        self.stdin = None;
    }

    /// Waits for its end, and its exit code.
    pub async fn ended(&mut self) -> Option<i32> {
        let status = within("wayward ends", self.child.wait()).await;
        status.expect("it can be waited for").code()
    }
}
