//! Cuts a byte stream into lines, with a cap on their length and a budget for their memory.
//!
//! A line over the cap, or one for which the budget has no room, does not end the conversation: it
//! is discarded while it comes in, and reported with the id of the message, so that only its
//! caller fails.
//!
//! A line of at most [`COPIED`] bytes is copied out of the read buffer and is not charged: it is as
//! small as the buffers of the connection that waits for it, and whoever queues it charges it
//! there. A longer one keeps its buffer, with a charge for all of it, until the last slice of it is
//! dropped. The read buffer itself is charged as soon as it is larger than [`READ_SIZE`].

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofer_model::{Budget, Charge};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use crate::memory::attach;
use crate::off_worker::off_worker;
use crate::oversize::IdScanner;

/// How much room is made for one read, at least.
const READ_SIZE: usize = 64 * 1024;
/// Up to this length a line is copied out of the buffer.
const COPIED: usize = 16 * 1024;
/// After so many bytes of one line other tasks run: a pipe that a server keeps full is always
/// ready, and would occupy its worker thread for the whole of a line.
const YIELD_AFTER: usize = 2 * READ_SIZE;
/// How long a line waits for others to release memory before it is discarded. Meanwhile nothing
/// is read, so that the peer's pipe fills up and the peer blocks.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause between two attempts to charge.
const PAUSE: Duration = Duration::from_millis(10);

/// What stands on one line.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// Its bytes, without the end of the line.
    Line(Bytes),
    /// It was over the cap.
    TooLong {
        /// How many bytes it had.
        bytes: u64,
        /// The request it would have answered, where that could be told.
        id: Option<u64>,
        /// The id of the request it is, as JSON, where it is one.
        request: Option<Bytes>,
    },
    /// The memory budget had no room for it.
    Unaffordable {
        /// How many bytes it had.
        bytes: u64,
        /// The request that it answers, if the id could be found.
        id: Option<u64>,
        /// The id of the request that it is, as JSON, if it is one.
        request: Option<Bytes>,
    },
}

/// Reads lines from a stream.
#[derive(Debug)]
pub struct LineReader<R> {
    source: R,
    buffer: Vec<u8>,
    /// Where the next line begins in `buffer`; before it is what was given out.
    start: usize,
    /// Up to where `buffer` is known to hold no line end.
    scanned: usize,
    cap: usize,
    /// For the capacity of `buffer`, while that is above `READ_SIZE`.
    charge: Charge,
    /// How long the last line was: the next is likely to be as long.
    last_length: usize,
    skipping: Option<Skipped>,
    /// Bytes of the current line that were read since the last yield.
    unyielded: usize,
    /// When something was last read.
    last_read: Instant,
    /// When the first bytes of the line in `buffer` were read.
    began: Option<Instant>,
    /// The same of the line that was last given out.
    given: Instant,
}

/// A line that is not kept, while it goes by.
#[derive(Debug, Default)]
struct Skipped {
    bytes: u64,
    ids: IdScanner,
    unaffordable: bool,
}

impl Skipped {
    fn pass(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.ids.feed(bytes);
    }

    fn frame(self) -> Frame {
        let (bytes, id, request) = (self.bytes, self.ids.id(), self.ids.request());
        match self.unaffordable {
            true => Frame::Unaffordable { bytes, id, request },
            false => Frame::TooLong { bytes, id, request },
        }
    }
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads from `source` lines of at most `cap` bytes, without a budget.
    pub fn new(source: R, cap: usize) -> Self {
        Self::within(source, cap, &Budget::unlimited())
    }

    /// Reads from `source` lines of at most `cap` bytes, as far as `memory` has room for them.
    pub fn within(source: R, cap: usize, memory: &Arc<Budget>) -> Self {
        let now = Instant::now();
        Self {
            source,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            cap,
            charge: Charge::none(memory),
            last_length: 0,
            skipping: None,
            unyielded: 0,
            last_read: now,
            began: None,
            given: now,
        }
    }

    /// When the first bytes of the line that `next` last gave out were read.
    pub fn began(&self) -> Instant {
        self.given
    }

    /// The next line that is not blank, or none at the end of the stream. May be dropped and
    /// called again without losing anything.
    pub async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            while let Some(frame) = self.cut() {
                if frame != Frame::Line(Bytes::new()) {
                    return Ok(Some(frame));
                }
            }
            self.make_room().await;
            let read = self.source.read_buf(&mut self.buffer).await?;
            if read == 0 {
                self.given = self.began.take().unwrap_or(self.last_read);
                return Ok(self.rest());
            }
            self.last_read = Instant::now();
            self.began.get_or_insert(self.last_read);
            self.unyielded += read;
            if self.unyielded >= YIELD_AFTER {
                self.unyielded = 0;
                yield_now().await;
            }
        }
    }

    /// A long line grows its buffer by doubling, so that its cost stays linear; where lines are
    /// long again and again, it grows once, to the length of the last. That is done only when the
    /// first read of a line is full: an idle reader holds no more than `READ_SIZE`.
    async fn make_room(&mut self) {
        self.close_gap();
        let length = self.buffer.len();
        if self.buffer.capacity() - length >= READ_SIZE / 2 {
            return;
        }
        let expected = if length > 0 { self.last_length.saturating_sub(length) } else { 0 };
        // Past the cap a line is discarded, and needs no more room than one read.
        let more = length.max(expected).min(self.cap.saturating_sub(length));
        let wanted = length + more + READ_SIZE;
        if length > 0 && !self.afford(wanted).await {
            self.skipping.get_or_insert_default().unaffordable = true;
            self.pass_over();
            return self.buffer.reserve_exact(READ_SIZE);
        }
        self.buffer.reserve_exact(wanted - length);
    }

    /// Moves the beginning of a line to the beginning of the buffer, if that is nearly full.
    fn close_gap(&mut self) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            if self.buffer.capacity() > READ_SIZE {
                self.buffer = Vec::new();
                drop(self.charge.take());
            }
        } else if self.start > 0 && self.buffer.capacity() - self.buffer.len() < READ_SIZE / 2 {
            self.buffer.drain(..self.start);
        } else {
            return;
        }
        self.scanned -= self.start;
        self.start = 0;
    }

    /// Charges a buffer of `capacity` bytes; waits for a while for others to release theirs.
    async fn afford(&mut self, capacity: usize) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while !self.charge.resize(capacity) {
            if Instant::now() >= deadline {
                return false;
            }
            sleep(PAUSE).await;
        }
        true
    }

    /// Takes a whole line off the buffer, where there is one.
    fn cut(&mut self) -> Option<Frame> {
        let Some(at) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
            self.scanned = self.buffer.len();
            if self.skipping.is_some() || self.buffer.len() - self.start > self.cap {
                self.pass_over();
            }
            return None;
        };
        let end = self.scanned + at;
        self.given = self.began.unwrap_or(self.last_read);
        // What stands behind the line came with its end.
        self.began = (end + 1 < self.buffer.len()).then_some(self.last_read);
        self.last_length = end - self.start;
        self.unyielded = 0;
        Some(off_worker(self.last_length, || self.finish(end)))
    }

    /// What is left when the stream ends, where its last line has no end.
    fn rest(&mut self) -> Option<Frame> {
        let end = self.buffer.len();
        if end == self.start && self.skipping.is_none() {
            return None;
        }
        Some(self.finish(end)).filter(|frame| *frame != Frame::Line(Bytes::new()))
    }

    /// Gives out the line that ends before `end`, and goes on behind it.
    fn finish(&mut self, end: usize) -> Frame {
        let line = &self.buffer[self.start..end];
        let next = (end + 1).min(self.buffer.len());
        if let Some(mut skipped) =
            self.skipping.take().or_else(|| (line.len() > self.cap).then(Skipped::default))
        {
            skipped.pass(line);
            (self.start, self.scanned) = (next, next);
            return skipped.frame();
        }
        let length =
            line.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |last| last + 1);
        if length > COPIED {
            return self.give_buffer(length, next);
        }
        let line = Bytes::copy_from_slice(&line[..length]);
        (self.start, self.scanned) = (next, next);
        Frame::Line(line)
    }

    /// Gives out the line of `length` bytes with its buffer, and goes on with what is behind it in
    /// another.
    fn give_buffer(&mut self, length: usize, next: usize) -> Frame {
        let behind = self.buffer[next..].to_vec();
        let mut line = std::mem::replace(&mut self.buffer, behind);
        line.truncate(self.start + length);
        line.drain(..self.start);
        (self.start, self.scanned) = (0, 0);
        // Beyond this, what a smaller buffer saves is worth the move.
        if line.capacity() - line.len() > line.len() / 8 {
            line.shrink_to_fit();
        }
        let mut charge = self.charge.take();
        // At most what one read of the pipe brings; charged with the next growth otherwise.
        if self.buffer.capacity() > READ_SIZE && !self.charge.resize(self.buffer.capacity()) {
            tracing::debug!("no memory left to charge what was read behind a line");
        }
        // A line in a buffer that was too small to be charged is charged from here on.
        if !charge.resize(line.capacity()) {
            let mut skipped = Skipped { unaffordable: true, ..Skipped::default() };
            skipped.pass(&line);
            return skipped.frame();
        }
        Frame::Line(attach(charge, line))
    }

    fn pass_over(&mut self) {
        let skipped = self.skipping.get_or_insert_default();
        skipped.pass(&self.buffer[self.start..]);
        // A fresh buffer gives the memory of the long line back.
        self.buffer = Vec::new();
        drop(self.charge.take());
        (self.start, self.scanned) = (0, 0);
    }
}

#[cfg(test)]
#[path = "framing_tests.rs"]
mod tests;
