//! This process's stdin and stdout as streams that wait for nothing but their other end.
//!
//! Read through a thread, as ordinary files must be, each message would cost two changes of
//! threads. Pipes are opened anew, so that nobody who shares ours finds them changed; sockets,
//! which some clients use instead, are ours alone.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;

use rustix::fs::FileType;
use rustix::net::AddressFamily;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::OpenOptions;

/// What the client writes.
pub(crate) fn input() -> Box<dyn AsyncRead + Send + Unpin> {
    let stdin = std::io::stdin();
    match kind(stdin.as_fd()) {
        Some(FileType::Fifo) => match OpenOptions::new().open_receiver("/proc/self/fd/0") {
            Ok(pipe) => Box::new(pipe),
            Err(_) => Box::new(tokio::io::stdin()),
        },
        Some(FileType::Socket) => match socket(stdin.as_fd()) {
            Some(socket) => Box::new(socket),
            None => Box::new(tokio::io::stdin()),
        },
        _ => Box::new(tokio::io::stdin()),
    }
}

/// What the client reads.
pub(crate) fn output() -> Box<dyn AsyncWrite + Send + Unpin> {
    let stdout = std::io::stdout();
    match kind(stdout.as_fd()) {
        Some(FileType::Fifo) => match OpenOptions::new().open_sender("/proc/self/fd/1") {
            Ok(pipe) => Box::new(pipe),
            Err(_) => Box::new(tokio::io::stdout()),
        },
        Some(FileType::Socket) => match socket(stdout.as_fd()) {
            Some(socket) => Box::new(socket),
            None => Box::new(tokio::io::stdout()),
        },
        _ => Box::new(tokio::io::stdout()),
    }
}

fn kind(stream: BorrowedFd<'_>) -> Option<FileType> {
    let stat = rustix::fs::fstat(stream).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

fn socket(stream: BorrowedFd<'_>) -> Option<UnixStream> {
    if rustix::net::sockopt::socket_domain(stream).ok()? != AddressFamily::UNIX {
        return None;
    }
    let own: OwnedFd = rustix::io::fcntl_dupfd_cloexec(stream, 3).ok()?;
    let socket = StdUnixStream::from(own);
    socket.set_nonblocking(true).ok()?;
    UnixStream::from_std(socket).ok()
}
