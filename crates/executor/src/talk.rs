//! Frames on a connection, from the executor's side.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use crate::sys;
use crate::wire::{self, Answer, Request};

/// The most descriptors that come with a request.
const MOST_DESCRIPTORS: usize = 2;

/// A request and the descriptors that came with it.
pub(crate) fn request(connection: &UnixStream) -> io::Result<(Request, Vec<OwnedFd>)> {
    let mut descriptors = Vec::new();
    let mut header = [0; 4];
    fill(connection, &mut header, &mut descriptors)?;
    let nonsense = || io::Error::from(io::ErrorKind::InvalidData);
    let mut payload = vec![0; wire::length(header).ok_or_else(nonsense)?];
    fill(connection, &mut payload, &mut descriptors)?;
    let request = Request::decode(&payload).ok_or_else(nonsense)?;
    Ok((request, descriptors))
}

fn fill(
    connection: &UnixStream,
    mut bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = sys::receive(connection, bytes, descriptors)?;
        if read == 0 || descriptors.len() > MOST_DESCRIPTORS {
            return Err(io::ErrorKind::InvalidData.into());
        }
        bytes = &mut bytes[read..];
    }
    Ok(())
}

/// Answers. Whoever has gone need not hear it.
pub(crate) fn answer(connection: &UnixStream, answer: Answer) {
    answer_with(connection, answer, None);
}

/// Answers with a descriptor.
pub(crate) fn answer_with(connection: &UnixStream, answer: Answer, descriptor: Option<RawFd>) {
    // A frame is far shorter than what a socket takes at once.
    drop(sys::send(connection, &answer.encode(), descriptor));
}
