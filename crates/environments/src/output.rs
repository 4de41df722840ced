//! What a command prints: the end of it, in a fixed amount of memory however much there is.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio_util::sync::CancellationToken;

/// How much of a stream is held.
pub(crate) const MOST_BYTES: usize = 64 * 1024;

/// How many lines of it are given.
pub(crate) const MOST_LINES: usize = 512;

/// The end of a stream.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    total: u64,
}

/// The end of a stream as it is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) text: String,
    /// Whether something came before it.
    pub(crate) truncated: bool,
}

impl Tail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let bytes = &bytes[bytes.len().saturating_sub(MOST_BYTES)..];
        // Twice the size, so that bytes are moved rarely.
        if self.bytes.len() + bytes.len() > 2 * MOST_BYTES {
            let surplus =
                (self.bytes.len() + bytes.len()).saturating_sub(MOST_BYTES).min(self.bytes.len());
            self.bytes.drain(..surplus);
        }
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The last lines, at most `most` bytes of them.
    pub(crate) fn text(&self, most: usize) -> Text {
        let kept = &self.bytes[self.bytes.len().saturating_sub(most)..];
        let cut = kept.len() as u64 != self.total;
        let mut from = 0;
        if cut
            && let Some(end) =
                kept.iter().position(|byte| *byte == b'\n').filter(|end| end + 1 < kept.len())
        {
            // Half a line says less than none.
            from = end + 1;
        }
        let mut lines = 0;
        for (at, byte) in kept.iter().enumerate().skip(from).rev() {
            let ends_line = *byte == b'\n' || at + 1 == kept.len();
            if ends_line {
                lines += 1;
            }
            if lines > MOST_LINES {
                from = at + 1;
                break;
            }
        }
        let text = String::from_utf8_lossy(&kept[from..]);
        // Bytes that are no text may become longer ones.
        let mut start = text.len().saturating_sub(MOST_BYTES);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        Text { text: text[start..].to_owned(), truncated: cut || from > 0 || start > 0 }
    }
}

/// A stream that is being read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream(Arc<Mutex<Tail>>);

impl Stream {
    pub(crate) fn text(&self, most: usize) -> Text {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).text(most)
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).total()
    }

    fn push(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    }

    /// Reads until all writers are gone or `ended` says that the command is; then takes what is
    /// there, and gives the pipe back where somebody still has its other end.
    pub(crate) async fn read(
        &self,
        mut pipe: Receiver,
        ended: &CancellationToken,
    ) -> std::io::Result<Option<Receiver>> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            tokio::select! {
                biased;
                () = ended.cancelled() => break,
                read = pipe.read(&mut buffer) => match read? {
                    0 => return Ok(None),
                    length => self.push(&buffer[..length]),
                },
            }
        }
        // More than a pipe holds was written after the end, by others. The system is asked, and not
        // the runtime, which may not have heard yet of what was written before the end.
        for _ in 0..32 {
            match rustix::io::read(&pipe, &mut buffer) {
                Ok(0) => return Ok(None),
                Ok(length) => self.push(&buffer[..length]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(pipe))
    }
}

/// Reads what nobody wants, so that whoever still writes is not ended by it.
pub(crate) async fn discard(mut pipe: Receiver) {
    let mut buffer = vec![0; 16 * 1024];
    while pipe.read(&mut buffer).await.is_ok_and(|length| length > 0) {}
}

/// A pipe: our end, and the end for a command, which may wait when it is full.
pub(crate) fn pipe() -> std::io::Result<(Receiver, OwnedFd)> {
    let (ours, its) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((Receiver::from_owned_fd(ours)?, its))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(parts: &[&[u8]]) -> Text {
        let mut tail = Tail::default();
        for part in parts {
            tail.push(part);
        }
        tail.text(MOST_BYTES)
    }

    #[test]
    fn short_output_is_given_whole() {
        for text in ["", "a", "a\n", "a\nb", "a\nb\n", "\n\n"] {
            assert_eq!(
                text_of(&[text.as_bytes()]),
                Text { text: text.to_owned(), truncated: false }
            );
        }
    }

    #[test]
    fn the_last_512_lines_are_given() {
        // covers: ENV-2.1
        for (count, end) in [(512, "\n"), (513, "\n"), (600, ""), (20_000, "\n")] {
            let lines: Vec<String> = (1..=count).map(|number| format!("line {number}")).collect();
            let all = lines.join("\n") + end;
            let parts: Vec<&[u8]> = all.as_bytes().chunks(1000).collect();
            let given = text_of(&parts);
            assert_eq!(given.text, lines[count - 512..].join("\n") + end, "{count}");
            assert_eq!(given.truncated, count > 512);
        }
    }

    #[test]
    fn of_long_lines_as_many_whole_ones_are_given_as_fit() {
        // covers: ENV-2.1
        let line = |number: usize| format!("{number:04}{}\n", "x".repeat(295));
        let all: String = (0..300).map(line).collect();
        let parts: Vec<&[u8]> = all.as_bytes().chunks(1000).collect();
        let given = text_of(&parts);
        assert_eq!(given.text, all[all.len() - MOST_BYTES / 300 * 300..]);
        assert!(given.truncated);
    }

    #[test]
    fn memory_stays_bounded() {
        // covers: ENV-2.4
        let mut tail = Tail::default();
        for _ in 0..10_000 {
            tail.push(&[b'x'; 7000]);
        }
        assert!(tail.bytes.capacity() <= 4 * MOST_BYTES);
        let given = tail.text(MOST_BYTES);
        assert_eq!((given.text.len(), given.truncated), (MOST_BYTES, true));
        tail.push(&[b'y'; 1_000_000]);
        assert!(tail.text(MOST_BYTES).text.bytes().all(|byte| byte == b'y'));
    }

    #[tokio::test]
    async fn what_was_written_before_the_end_is_there_although_nobody_was_told_of_it_yet() {
        let (ours, its) = pipe().unwrap();
        let ended = CancellationToken::new();
        ended.cancel();
        // The runtime has had no occasion to learn that there is something to read.
        rustix::io::write(&its, b"last words\n").unwrap();
        let stream = Stream::default();
        let rest = stream.read(ours, &ended).await.unwrap();
        assert_eq!(stream.text(MOST_BYTES).text, "last words\n");
        assert!(rest.is_some(), "somebody still has the other end");
    }

    #[test]
    fn bytes_that_are_no_text_do_not_grow_over_the_limit() {
        let given = text_of(&[&[0xff; 100_000]]);
        assert!(given.text.len() <= MOST_BYTES && given.truncated);
    }
}
