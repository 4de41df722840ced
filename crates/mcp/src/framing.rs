//! Cuts a byte stream into lines, with a cap on their length.
//!
//! A line over the cap does not end the conversation: it is passed over while it comes in,
//! and told as `Frame::TooLong` with the id of the message, so that only its asker fails.

use std::io;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::Instant;

use crate::oversize::IdScanner;

/// How much room is made for one read, at least.
const READ_SIZE: usize = 64 * 1024;

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
}

/// Reads lines from a stream.
#[derive(Debug)]
pub struct LineReader<R> {
    source: R,
    buffer: BytesMut,
    /// How much of `buffer` is known to hold no line end.
    scanned: usize,
    cap: usize,
    /// How long the last line was: the next is likely to be as long.
    last_length: usize,
    skipping: Option<Skipped>,
    /// When something was last read.
    last_read: Instant,
    /// When the first bytes of the line in `buffer` were read.
    began: Option<Instant>,
    /// The same of the line that was last given out.
    given: Instant,
}

/// A line over the cap, while it goes by.
#[derive(Debug, Default)]
struct Skipped {
    bytes: u64,
    ids: IdScanner,
}

impl Skipped {
    fn pass(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.ids.feed(bytes);
    }
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads from `source` lines of at most `cap` bytes.
    pub fn new(source: R, cap: usize) -> Self {
        let now = Instant::now();
        Self {
            source,
            buffer: BytesMut::new(),
            scanned: 0,
            cap,
            last_length: 0,
            skipping: None,
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
            self.make_room();
            if self.source.read_buf(&mut self.buffer).await? == 0 {
                self.given = self.began.take().unwrap_or(self.last_read);
                return Ok(self.rest());
            }
            self.last_read = Instant::now();
            self.began.get_or_insert(self.last_read);
        }
    }

    /// A long line grows its buffer by doubling, so that its cost stays linear; where lines are
    /// long again and again, the room for one is made at once and nothing is copied.
    fn make_room(&mut self) {
        let room = self.buffer.capacity() - self.buffer.len();
        if self.buffer.is_empty() && self.last_length > READ_SIZE && room < self.last_length {
            self.buffer.reserve(self.last_length + READ_SIZE);
        } else if room < READ_SIZE / 2 {
            self.buffer.reserve(READ_SIZE.max(self.buffer.len()));
        }
    }

    /// Takes a whole line off the buffer, where there is one.
    fn cut(&mut self) -> Option<Frame> {
        let Some(at) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
            self.scanned = self.buffer.len();
            if self.skipping.is_some() || self.buffer.len() > self.cap {
                self.pass_over();
            }
            return None;
        };
        let line = self.buffer.split_to(self.scanned + at);
        self.given = self.began.unwrap_or(self.last_read);
        // What stands behind the line came with its end.
        self.began = (self.buffer.len() > 1).then_some(self.last_read);
        self.last_length = line.len();
        self.buffer.advance(1);
        self.scanned = 0;
        Some(self.finish(line))
    }

    /// What is left when the stream ends, where its last line has no end.
    fn rest(&mut self) -> Option<Frame> {
        let line = self.buffer.split();
        self.scanned = 0;
        if line.is_empty() && self.skipping.is_none() {
            return None;
        }
        Some(self.finish(line)).filter(|frame| *frame != Frame::Line(Bytes::new()))
    }

    fn finish(&mut self, line: BytesMut) -> Frame {
        if let Some(mut skipped) =
            self.skipping.take().or_else(|| (line.len() > self.cap).then(Skipped::default))
        {
            skipped.pass(&line);
            let (id, request) = (skipped.ids.id(), skipped.ids.request());
            return Frame::TooLong { bytes: skipped.bytes, id, request };
        }
        let end =
            line.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |last| last + 1);
        Frame::Line(line.freeze().slice(..end))
    }

    fn pass_over(&mut self) {
        let skipped = self.skipping.get_or_insert_default();
        skipped.pass(&self.buffer);
        // A fresh buffer gives the memory of the long line back.
        self.buffer = BytesMut::new();
        self.scanned = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tokio_test::io::Builder;

    async fn frames(chunks: &[&[u8]], cap: usize) -> Vec<Frame> {
        let mut builder = Builder::new();
        for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
            builder.read(chunk);
        }
        let mut reader = LineReader::new(builder.build(), cap);
        let mut frames = Vec::new();
        while let Some(frame) = reader.next().await.unwrap() {
            frames.push(frame);
        }
        frames
    }

    fn line(text: &str) -> Frame {
        Frame::Line(Bytes::copy_from_slice(text.as_bytes()))
    }

    fn too_long(bytes: u64, id: Option<u64>) -> Frame {
        Frame::TooLong { bytes, id, request: None }
    }

    #[tokio::test]
    async fn lines_come_out_whole_however_they_came_in() {
        let found = frames(&[b"{\"a\"", b":1}\r\n\n  \n{\"b\":2}\n{\"c", b"\":3}"], 100).await;
        assert_eq!(found, [line("{\"a\":1}"), line("{\"b\":2}"), line("{\"c\":3}")]);
    }

    #[tokio::test]
    async fn a_line_over_the_cap_costs_only_itself() {
        let long = format!("{{\"result\":\"{}\",\"id\":5}}\n", "x".repeat(50));
        let (head, tail) = long.as_bytes().split_at(40);
        let found = frames(&[head, tail, b"{\"id\":6}\n"], 20).await;
        assert_eq!(found, [too_long(long.len() as u64 - 1, Some(5)), line("{\"id\":6}")]);
    }

    #[tokio::test]
    async fn a_line_at_the_cap_is_a_line() {
        let found = frames(&[b"12345\n123456\n"], 5).await;
        assert_eq!(found, [line("12345"), too_long(6, None)]);
    }

    #[tokio::test]
    async fn a_long_line_without_an_end_is_told_at_the_end_of_the_stream() {
        assert_eq!(frames(&[b"123", b"456"], 5).await, [too_long(6, None)]);
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(lines in prop::collection::vec("[a-z\"{}:]{0,30}", 0..8), cuts in prop::collection::vec(0usize..200, 0..6), cap in 1usize..40) {
            let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            let mut at: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            at.extend([0, text.len()]);
            at.sort_unstable();
            let chunks: Vec<&[u8]> = at.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let found = runtime.block_on(frames(&chunks, cap));
            let expected: Vec<(bool, usize)> = lines.iter().filter(|line| !line.is_empty()).map(|line| (line.len() > cap, line.len())).collect();
            let told: Vec<(bool, usize)> = found.iter().map(|frame| match frame {
                Frame::Line(line) => (false, line.len()),
                Frame::TooLong { bytes, .. } => (true, *bytes as usize),
            }).collect();
            prop_assert_eq!(told, expected);
        }
    }
}
