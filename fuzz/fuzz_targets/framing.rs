//! Any bytes, cut in any way, come out as the lines that stand in them: compared with a reader
//! that has all of them at once.
#![no_main]

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use arbitrary::Arbitrary;
use cofer_mcp::{Frame, Incoming, LineReader};
use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncRead, ReadBuf};

#[derive(Debug, Arbitrary)]
struct Input {
    cap: u8,
    chunks: Vec<Vec<u8>>,
}

/// Gives one chunk per read, as a pipe may.
struct Chunks {
    chunks: std::vec::IntoIter<Vec<u8>>,
    rest: Vec<u8>,
}

impl AsyncRead for Chunks {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            let Some(chunk) = self.chunks.next() else { return Poll::Ready(Ok(())) };
            self.rest = chunk;
        }
        let fits = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest[..fits]);
        self.rest.drain(..fits);
        Poll::Ready(Ok(()))
    }
}

/// Length and content of each line that is not blank; no content where it is over the cap.
fn expected(bytes: &[u8], cap: usize) -> Vec<(usize, Option<Vec<u8>>)> {
    let line = |line: &[u8]| match line.len() > cap {
        true => (line.len(), None),
        false => (0, Some(line.trim_ascii_end().to_vec())),
    };
    let lines = bytes.split(|byte| *byte == b'\n').map(line);
    lines
        .filter(|(_, content)| content.as_ref().is_none_or(|content| !content.is_empty()))
        .collect()
}

async fn found(input: Input) -> Vec<(usize, Option<Vec<u8>>)> {
    let source = Chunks { chunks: input.chunks.into_iter(), rest: Vec::new() };
    let mut lines = LineReader::new(source, input.cap.into());
    let mut found = Vec::new();
    while let Some(frame) = lines.next().await.expect("the source does not fail") {
        found.push(match frame {
            Frame::TooLong { bytes, .. } => {
                (usize::try_from(bytes).expect("it was in memory"), None)
            }
            Frame::Unaffordable { .. } => unreachable!("without a budget"),
            Frame::Line(line) => {
                // Must not panic; what it says of noise is the bridge's to judge.
                drop(Incoming::parse(&line));
                (0, Some(line.to_vec()))
            }
        });
    }
    found
}

fuzz_target!(|input: Input| {
    let bytes = input.chunks.concat();
    let cap = input.cap.into();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    assert_eq!(runtime.block_on(found(input)), expected(&bytes, cap));
});
