//! The executor in an environment's container, from this side: one connection per request. What
//! comes from there is a stranger's word: short, checked, and never believed further than the
//! environment it is about.

use std::io::{self, IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::id::fnv1a;
use crate::wire::{Answer, Request};

/// The executor itself, as it was built.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/executor"));

/// The socket's name in the folder that is shared with the container.
const SOCKET: &str = "executor";

/// How long it may take to read a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// No answer is longer.
const LONGEST_ANSWER: usize = 64;

/// The file of the executor in `folder`, written where it is not there yet.
pub(crate) fn program_in(folder: &Path) -> io::Result<PathBuf> {
    let path = folder.join(format!("executor-{:08x}", fnv1a(PROGRAM)));
    if path.metadata().is_ok_and(|found| found.len() == PROGRAM.len() as u64) {
        return Ok(path);
    }
    let aside = folder.join(format!("executor.{}", uuid::Uuid::now_v7().simple()));
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o555).open(&aside)?;
    file.write_all(PROGRAM)?;
    drop(file);
    std::fs::rename(aside, &path)?;
    Ok(path)
}

/// The way to one executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Executor {
    folder: PathBuf,
    /// A sandbox receives descriptors, and cannot send any: its sockets are not this kernel's.
    is_sandboxed: bool,
}

impl Executor {
    /// The one that listens in `folder`.
    pub(crate) fn in_folder(folder: PathBuf, is_sandboxed: bool) -> Self {
        Self { folder, is_sandboxed }
    }

    pub(crate) fn is_sandboxed(&self) -> bool {
        self.is_sandboxed
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sends a request, with descriptors that it is about.
    pub(crate) async fn ask(
        &self,
        request: &Request,
        descriptors: Vec<OwnedFd>,
    ) -> io::Result<Conversation> {
        let (folder, frame) = (self.folder.clone(), request.encode());
        let asking = tokio::task::spawn_blocking(move || send(&folder, &frame, &descriptors));
        let socket = asking.await.map_err(io::Error::other)??;
        Ok(Conversation { socket: UnixStream::from_std(socket)? })
    }

    /// Asks and hears the one answer.
    pub(crate) async fn ask_once(
        &self,
        request: &Request,
    ) -> io::Result<(Answer, Option<OwnedFd>)> {
        self.ask(request, Vec::new()).await?.answer().await
    }

    /// Since when its socket is there.
    pub(crate) fn bound_at(&self) -> Option<std::time::SystemTime> {
        self.folder.join(SOCKET).symlink_metadata().and_then(|found| found.modified()).ok()
    }

    /// Waits until it listens, at most for `span`.
    pub(crate) async fn listens(&self, span: Duration) -> io::Result<()> {
        let started = tokio::time::Instant::now();
        let mut pause = Duration::from_micros(500);
        loop {
            let folder = self.folder.clone();
            match tokio::task::spawn_blocking(move || connect(&folder))
                .await
                .map_err(io::Error::other)?
            {
                Ok(_) => return Ok(()),
                Err(error) if started.elapsed() > span => return Err(error),
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

/// Connects to the socket itself, whatever the container may have put in its place: a link is
/// not followed, and the length of the path does not matter.
fn connect(folder: &Path) -> io::Result<StdUnixStream> {
    let socket = open(
        folder.join(SOCKET),
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    if FileType::from_raw_mode(fstat(&socket)?.st_mode) != FileType::Socket {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "there is something else in the executor's place",
        ));
    }
    StdUnixStream::connect(format!("/proc/self/fd/{}", socket.as_raw_fd()))
}

fn send(folder: &Path, frame: &[u8], descriptors: &[OwnedFd]) -> io::Result<StdUnixStream> {
    let mut socket = connect(folder)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(OwnedFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&borrowed)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let sent = sendmsg(&socket, &[IoSlice::new(frame)], &mut control, SendFlags::NOSIGNAL)?;
    socket.write_all(&frame[sent..])?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Conversation {
    socket: UnixStream,
}

impl Conversation {
    /// The next answer, and the descriptor that came with it.
    pub(crate) async fn answer(&mut self) -> io::Result<(Answer, Option<OwnedFd>)> {
        let mut descriptor = None;
        let mut header = [0; 4];
        self.fill(&mut header, &mut descriptor).await?;
        let nonsense = || {
            io::Error::new(io::ErrorKind::InvalidData, "the executor does not speak as ours does")
        };
        let length = crate::wire::length(header)
            .filter(|length| *length <= LONGEST_ANSWER)
            .ok_or_else(nonsense)?;
        let mut payload = vec![0; length];
        self.fill(&mut payload, &mut descriptor).await?;
        Ok((Answer::decode(&payload).ok_or_else(nonsense)?, descriptor))
    }

    async fn fill(
        &mut self,
        mut bytes: &mut [u8],
        descriptor: &mut Option<OwnedFd>,
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            let read = self
                .socket
                .async_io(Interest::READABLE, || receive(&self.socket, bytes, descriptor))
                .await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            bytes = &mut bytes[read..];
        }
        Ok(())
    }

    /// Ends what was asked for: a command in the foreground and all that it started.
    pub(crate) fn hang_up(&self) {
        // One that is closed already has ended.
        rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write).unwrap_or_default();
    }

    /// The connection, after the last answer of a request that goes on with other bytes.
    pub(crate) fn into_stream(self) -> UnixStream {
        self.socket
    }

    /// Until the other side is gone.
    pub(crate) async fn gone(mut self) {
        while self.answer().await.is_ok() {}
    }
}

fn receive(
    socket: &UnixStream,
    bytes: &mut [u8],
    descriptor: &mut Option<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received =
        recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
            *descriptor = descriptors.next().or(descriptor.take());
        }
    }
    Ok(received.bytes)
}

#[cfg(test)]
#[path = "executor_tests.rs"]
mod tests;
