//! The bytes of a port on the connection of its request, if the port's own connection cannot be sent:
//! gVisor refuses control messages to sockets of the host. One process per direction, so that
//! none waits for the other.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::net::UnixStream;

use crate::sys::{self, Side};
use crate::tree;

/// Copies until both sides have closed.
pub(crate) fn both_ways(mut connection: &UnixStream, mut port: &TcpStream) {
    // The read timeout was that of the request.
    if connection.set_read_timeout(None).is_err() {
        return;
    }
    match tree::split_when_there_is_room() {
        Ok(Side::Child) => {
            drop(copy(&mut connection, &mut port));
            drop(port.shutdown(Shutdown::Write));
            sys::leave(0);
        }
        Ok(Side::Parent(_)) => {
            drop(copy(&mut port, &mut connection));
            drop(connection.shutdown(Shutdown::Write));
        }
        Err(_) => {}
    }
}

/// With `--network=host`, gVisor (20221219) returns EAGAIN from a blocking socket instead of waiting:
/// so reads are polled for, and writes repeated.
fn copy(from: &mut (impl Read + AsFd), to: &mut impl Write) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    loop {
        sys::wait_readable([Some(from.as_fd().as_raw_fd())], -1)?;
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => write_all(to, &buffer[..length])?,
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

fn write_all(to: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if is_passing(&error) => tree::pause(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
