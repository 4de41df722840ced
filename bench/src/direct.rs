//! The load client on a stdio server's own pipes, with a number of requests in flight:
//! what no bridge can be faster than.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use memchr::{memchr, memchr_iter, memmem};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::message;
use crate::process::command;
use crate::sample::Sample;

/// A stdio server and its pipes.
#[derive(Debug)]
pub struct Direct {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
}

impl Direct {
    /// Starts the program and shakes hands.
    pub async fn start(program: &Path) -> io::Result<Self> {
        let mut child = command(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let missing = || io::Error::other("no pipe");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let mut direct = Self { child, stdin, stdout };
        direct.stdin.write_all(format!("{}\n", message::INITIALIZE).as_bytes()).await?;
        direct.line().await?;
        direct.stdin.write_all(format!("{}\n", message::INITIALIZED).as_bytes()).await?;
        Ok(direct)
    }

    /// Keeps `in_flight` tool calls of that size under way for `time`.
    pub async fn load(
        &mut self,
        size: usize,
        in_flight: usize,
        time: Duration,
    ) -> io::Result<Sample> {
        let request = message::request(1, size) + "\n";
        self.stdin.write_all(request.as_bytes()).await?;
        if memmem::find(&self.line().await?, message::text(size).as_bytes()).is_none() {
            return Err(io::Error::other("the answer is not the echo of the request"));
        }
        let window = Window::new(in_flight, time);
        let (sent, received) = tokio::join!(
            window.send(&mut self.stdin, request.as_bytes()),
            window.receive(&mut self.stdout)
        );
        sent?;
        received?;
        Ok(Sample { elapsed: window.elapsed.get(), latencies: window.latencies.into_inner() })
    }

    /// Closes its stdin, at which a stdio server ends.
    pub async fn stop(mut self) -> io::Result<()> {
        drop(self.stdin);
        self.child.wait().await?;
        Ok(())
    }

    async fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::with_capacity(1 << 16);
        while memchr(b'\n', &line).is_none() {
            line.reserve(1 << 16);
            if self.stdout.read_buf(&mut line).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(line)
    }
}

/// What sender and receiver share: answers come in the order of the requests.
struct Window {
    in_flight: usize,
    begin: Instant,
    time: Duration,
    sent: RefCell<VecDeque<Instant>>,
    done: Cell<bool>,
    room: Notify,
    more: Notify,
    elapsed: Cell<Duration>,
    latencies: RefCell<Vec<Duration>>,
}

impl Window {
    fn new(in_flight: usize, time: Duration) -> Self {
        Self {
            in_flight,
            begin: Instant::now(),
            time,
            sent: RefCell::default(),
            done: Cell::new(false),
            room: Notify::new(),
            more: Notify::new(),
            elapsed: Cell::default(),
            latencies: RefCell::new(Vec::with_capacity(1 << 20)),
        }
    }

    async fn send(&self, stdin: &mut ChildStdin, request: &[u8]) -> io::Result<()> {
        let mut batch = Vec::new();
        while self.begin.elapsed() < self.time {
            let room = self.in_flight - self.sent.borrow().len();
            if room == 0 {
                self.room.notified().await;
                continue;
            }
            let now = Instant::now();
            self.sent.borrow_mut().extend(std::iter::repeat_n(now, room));
            self.more.notify_one();
            if batch.len() < room * request.len() {
                batch = request.repeat(room);
            }
            stdin.write_all(&batch[..room * request.len()]).await?;
        }
        self.done.set(true);
        self.more.notify_one();
        Ok(())
    }

    async fn receive(&self, stdout: &mut ChildStdout) -> io::Result<()> {
        let mut input = Vec::with_capacity(1 << 18);
        loop {
            if self.sent.borrow().is_empty() {
                if self.done.get() {
                    return Ok(());
                }
                self.more.notified().await;
                continue;
            }
            input.clear();
            if stdout.read_buf(&mut input).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let now = Instant::now();
            for _ in memchr_iter(b'\n', &input) {
                let sent = self.sent.borrow_mut().pop_front();
                let sent = sent.ok_or_else(|| io::Error::other("more answers than requests"))?;
                self.latencies.borrow_mut().push(now - sent);
            }
            self.elapsed.set(now - self.begin);
            self.room.notify_one();
        }
    }
}
