//! The three pipes to a server: ours do not block, the server's do.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use tokio::net::unix::pipe;

use crate::workload::Streams;

/// How much a widened pipe holds. Large messages pass about four times as fast as through the
/// default 64 KiB, because writer and reader take turns less often.
const WIDE_BYTES: usize = 1024 * 1024;

/// An ordinary user has 64 MiB of pipe buffers in all; past that the kernel shrinks every new
/// pipe of the user, in whatever program, to 8 KiB. We take at most half of it, so that a
/// daemon with a hundred servers does not slow the user's other programs.
const WIDE_WORKLOADS: usize = 16;

static WIDE: AtomicUsize = AtomicUsize::new(0);

/// The server's ends, to become its descriptors 0, 1 and 2.
pub(crate) struct ServerEnds {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// One workload's share of the widened pipes, given back on drop.
pub(crate) struct WideShare(());

impl WideShare {
    fn take() -> Option<Self> {
        let unlimited = rustix::process::geteuid().is_root();
        let limit = if unlimited { usize::MAX } else { WIDE_WORKLOADS };
        WIDE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
            (taken < limit).then_some(taken + 1)
        })
        .ok()
        .map(|_| Self(()))
    }
}

impl Drop for WideShare {
    fn drop(&mut self) {
        WIDE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Opens the pipes. Nothing but the server's three ends is ever inherited.
pub(crate) fn open() -> io::Result<(Streams, ServerEnds, Option<WideShare>)> {
    let (stdin, our_stdin) = pipe_with(PipeFlags::CLOEXEC)?;
    let (our_stdout, stdout) = pipe_with(PipeFlags::CLOEXEC)?;
    let (our_stderr, stderr) = pipe_with(PipeFlags::CLOEXEC)?;
    let share = WideShare::take();
    if share.is_some() {
        for end in [&our_stdin, &our_stdout] {
            if let Err(error) = fcntl_setpipe_size(end, WIDE_BYTES) {
                tracing::debug!(%error, "a pipe keeps its default size");
            }
        }
    }
    let streams = Streams {
        stdin: Box::new(pipe::Sender::from_owned_fd(our_stdin)?),
        stdout: Box::new(pipe::Receiver::from_owned_fd(our_stdout)?),
        stderr: Box::new(pipe::Receiver::from_owned_fd(our_stderr)?),
    };
    Ok((streams, ServerEnds { stdin, stdout, stderr }, share))
}
