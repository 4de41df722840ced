//! Lines on their way to a writer that may be slow. Whoever logs only copies the line; a thread
//! of the queue's own writes, many lines at once.
//!
//! The thread is woken for the first line after a silence and then gathers for a moment, so
//! that thousands of lines a second cost some wake-ups, not thousands.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes that may wait; lines beyond are dropped and counted.
const MAX_WAITING: usize = 8 * 1024 * 1024;
/// How long lines are gathered before they are written.
const GATHER: Duration = Duration::from_millis(10);
/// From here on gathering more does not pay.
const ENOUGH: usize = 256 * 1024;

/// The way in. Clones share the queue.
#[derive(Debug, Clone)]
pub(crate) struct LogQueue {
    shared: Arc<Shared>,
}

/// Owns the thread: dropping it writes what waits and ends it.
#[derive(Debug)]
pub(crate) struct LogWriter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    lost: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<u8>,
    /// The thread waits for a line and must be woken.
    asleep: bool,
    closing: bool,
}

impl LogQueue {
    /// A queue before `writer`, which gets whole lines, one or more at once.
    pub(crate) fn start(
        name: &str,
        writer: impl Write + Send + 'static,
    ) -> std::io::Result<(Self, LogWriter)> {
        let shared = Arc::new(Shared::default());
        let work = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name(name.to_owned()).spawn(move || work.write_to(writer))?;
        Ok((Self { shared: Arc::clone(&shared) }, LogWriter { shared, thread: Some(thread) }))
    }

    /// Takes one whole line; never waits for the writer.
    pub(crate) fn push(&self, line: &[u8]) {
        let mut state = self.shared.lock();
        if state.lines.len() + line.len() > MAX_WAITING {
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        state.lines.extend_from_slice(line);
        if state.asleep || state.lines.len() >= ENOUGH {
            self.shared.changed.notify_one();
        }
    }
}

impl LogWriter {
    /// How many lines found the queue full.
    pub(crate) fn lost_lines(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has nothing more to write.
            thread.join().ok();
        }
    }
}

impl Shared {
    fn write_to(&self, mut writer: impl Write) {
        let mut batch = Vec::new();
        while self.take(&mut batch) {
            // Nobody can be told that the log cannot be written; the next lines may fare better.
            writer.write_all(&batch).and_then(|()| writer.flush()).ok();
            batch.clear();
            batch.shrink_to(ENOUGH);
        }
    }

    /// Waits for lines, gathers for a moment, and swaps them for the empty `batch`; false when
    /// the queue is closed and empty.
    fn take(&self, batch: &mut Vec<u8>) -> bool {
        let mut state = self.lock();
        while state.lines.is_empty() {
            if state.closing {
                return false;
            }
            state.asleep = true;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.asleep = false;
        }
        let gather = |state: &mut State| !state.closing && state.lines.len() < ENOUGH;
        let waited = self.changed.wait_timeout_while(state, GATHER, gather);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut state.lines, batch);
        true
    }

    /// No code panics while it holds the lock, so that a poisoned queue is still whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::mpsc;

    type Writes = Arc<Mutex<Vec<Vec<u8>>>>;

    /// Keeps what is written, and waits for a permit before each write.
    struct Slow {
        permits: mpsc::Receiver<()>,
        written: Writes,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.permits.recv().ok();
            self.written.lock().unwrap().push(bytes.to_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn slow() -> (Slow, mpsc::Sender<()>, Writes) {
        let (sender, permits) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        (Slow { permits, written: Arc::clone(&written) }, sender, written)
    }

    #[test]
    fn lines_are_written_in_order_and_many_at_once() {
        let (writer, permits, written) = slow();
        let (queue, thread) = LogQueue::start("test", writer).unwrap();
        for number in 0..1000 {
            queue.push(format!("{number}\n").as_bytes());
        }
        drop(permits);
        drop(thread);
        let written = written.lock().unwrap();
        let expected: String = (0..1000).map(|number| format!("{number}\n")).collect();
        assert_eq!(String::from_utf8(written.concat()).unwrap(), expected);
        assert!(written.len() < 500, "{} writes for 1000 lines", written.len());
    }

    #[test]
    fn a_writer_that_hangs_costs_lines_and_never_the_one_who_logs() {
        let (writer, permits, written) = slow();
        let (queue, thread) = LogQueue::start("test", writer).unwrap();
        let line = vec![b'x'; 64 * 1024];
        for _ in 0..400 {
            queue.push(&line);
        }
        let lost = thread.lost_lines();
        assert!(lost > 0);
        drop(permits);
        drop(thread);
        let bytes: usize = written.lock().unwrap().iter().map(Vec::len).sum();
        assert_eq!(bytes, (400 - usize::try_from(lost).unwrap()) * line.len());
    }
}
