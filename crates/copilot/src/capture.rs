//! Collects what a program writes, up to a cap. What comes after the cap is read and counted,
//! so that the program is not held up by us and our memory not filled by it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cofer_runtime::ByteSource;
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;

/// The most that is kept of a stream of the chat.
pub(crate) const MOST: usize = 2 * 1024 * 1024;

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// What a stream held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Captured {
    pub(crate) bytes: Vec<u8>,
    /// How many bytes came after the cap.
    pub(crate) dropped: u64,
}

/// A stream while it is being read. Clones share what was captured, so that it is still there
/// when the reader was stopped.
#[derive(Debug, Clone)]
pub(crate) struct Capture {
    captured: Arc<Mutex<Captured>>,
    most: usize,
    /// How many bytes have come.
    seen: watch::Sender<u64>,
}

impl Capture {
    pub(crate) fn new(most: usize) -> Self {
        Self { captured: Arc::default(), most, seen: watch::Sender::new(0) }
    }

    /// Reads to the end. An error of the stream is its end.
    pub(crate) async fn fill(&self, mut source: ByteSource) {
        let mut chunk = vec![0; CHUNK];
        while let Ok(count @ 1..) = source.read(&mut chunk).await {
            self.push(&chunk[..count]);
        }
    }

    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut captured = self.lock();
        let kept = bytes.len().min(self.most.saturating_sub(captured.bytes.len()));
        captured.bytes.extend_from_slice(&bytes[..kept]);
        captured.dropped += (bytes.len() - kept) as u64;
        drop(captured);
        self.seen.send_modify(|seen| *seen += bytes.len() as u64);
    }

    /// What was captured so far.
    pub(crate) fn so_far(&self) -> Captured {
        self.lock().clone()
    }

    /// The last text of what was captured, at most `most` bytes, cut between characters.
    pub(crate) fn tail(&self, most: usize) -> String {
        let captured = self.lock();
        let from = captured.bytes.len().saturating_sub(most);
        let bytes = &captured.bytes[from..];
        let is_inside = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
        let skipped = bytes.iter().take(3).take_while(|byte| from > 0 && is_inside(byte)).count();
        let bytes = &bytes[skipped..];
        // A character of which only the beginning has come is left for the next time.
        let whole = match std::str::from_utf8(bytes) {
            Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
            _ => bytes,
        };
        String::from_utf8_lossy(whole).into_owned()
    }

    /// Tells how many bytes have come, each time some more have.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.seen.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Captured> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flood_is_read_to_its_end_and_kept_up_to_the_cap() {
        let capture = Capture::new(5);
        capture.fill(Box::new(std::io::Cursor::new(b"0123456789".to_vec()))).await;
        assert_eq!(capture.so_far(), Captured { bytes: b"01234".to_vec(), dropped: 5 });
        assert_eq!(*capture.watch().borrow(), 10);
    }

    #[test]
    fn a_tail_never_cuts_a_character() {
        let capture = Capture::new(100);
        capture.push("aé€".as_bytes());
        capture.push(&[0xf0, 0x9f]);
        assert_eq!(capture.tail(100), "aé€");
        assert_eq!(capture.tail(4), "");
        capture.push(&[0x91, 0x8b]);
        assert_eq!(capture.tail(100), "aé€\u{1f44b}");
        assert_eq!(capture.tail(8), "€\u{1f44b}");
    }
}
