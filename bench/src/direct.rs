//! The load client on the pipes of a stdio server, or of a proxy that is one, with a number of
//! requests in flight.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use memchr::{memchr, memchr_iter, memmem};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
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
    ids: Ids,
    last_id: usize,
    /// From its start to its answer to `initialize`.
    pub opened: Duration,
}

/// Which ids the requests have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ids {
    /// All the same, made beforehand: for a server that answers one after the other.
    Same,
    /// Each its own: for what keeps many requests apart.
    Own,
}

/// The longest wait for the first answer.
const PATIENCE: Duration = Duration::from_secs(30);

impl Direct {
    /// Starts the program and shakes hands.
    pub async fn start(program: &Path) -> io::Result<Self> {
        Self::open(&mut command(program), Ids::Same).await
    }

    /// Starts a command and shakes hands.
    pub async fn open(start: &mut Command, ids: Ids) -> io::Result<Self> {
        let begin = Instant::now();
        let mut child = start.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let missing = || io::Error::other("no pipe");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let opened = Duration::ZERO;
        let mut direct = Self { child, stdin, stdout, ids, last_id: 0, opened };
        direct.stdin.write_all(format!("{}\n", message::INITIALIZE).as_bytes()).await?;
        tokio::time::timeout(PATIENCE, direct.line()).await??;
        direct.opened = begin.elapsed();
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
        self.last_id += 1;
        let request = message::request(self.last_id, size) + "\n";
        self.stdin.write_all(request.as_bytes()).await?;
        if memmem::find(&self.line().await?, message::text(size).as_bytes()).is_none() {
            return Err(io::Error::other("the answer is not the echo of the request"));
        }
        let window = Window::new(in_flight, time);
        let mut requests = Requests { ids: self.ids, last_id: self.last_id, request, size };
        let (sent, received) = tokio::join!(
            window.send(&mut self.stdin, &mut requests),
            window.receive(&mut self.stdout)
        );
        self.last_id = requests.last_id;
        sent?;
        received?;
        Ok(Sample { elapsed: window.elapsed.get(), latencies: window.latencies.into_inner() })
    }

    /// The program's process.
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or(0)
    }

    /// Closes its stdin, at which a stdio server ends; some peers do not.
    pub async fn stop(mut self) -> io::Result<()> {
        drop(self.stdin);
        if tokio::time::timeout(Duration::from_secs(3), self.child.wait()).await.is_err() {
            self.child.kill().await?;
        }
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

/// The requests of one load.
struct Requests {
    ids: Ids,
    last_id: usize,
    /// One of them.
    request: String,
    size: usize,
}

impl Requests {
    /// So many requests as one text.
    fn next(&mut self, count: usize, batch: &mut Vec<u8>) {
        if self.ids == Ids::Same {
            let length = count * self.request.len();
            if batch.len() < length {
                *batch = self.request.as_bytes().repeat(count);
            }
            batch.truncate(length);
            return;
        }
        batch.clear();
        for _ in 0..count {
            self.last_id += 1;
            batch.extend_from_slice(message::request(self.last_id, self.size).as_bytes());
            batch.push(b'\n');
        }
    }
}

/// What sender and receiver share. Answers are counted as if they came in the order of the
/// requests; where they do not, only a latency more or less is another's.
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

    async fn send(&self, stdin: &mut ChildStdin, requests: &mut Requests) -> io::Result<()> {
        let mut batch = Vec::new();
        while self.begin.elapsed() < self.time {
            let room = self.in_flight - self.sent.borrow().len();
            if room == 0 {
                self.room.notified().await;
                continue;
            }
            requests.next(room, &mut batch);
            let now = Instant::now();
            self.sent.borrow_mut().extend(std::iter::repeat_n(now, room));
            self.more.notify_one();
            stdin.write_all(&batch).await?;
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
