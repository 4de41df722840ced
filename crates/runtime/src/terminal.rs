//! A pseudo-terminal, for a program that talks to nothing else: our end, and the program's.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe;

use crate::pipes::ServerEnds;
use crate::workload::{ByteSink, ByteSource};

/// How large a terminal says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// Our end of a program's terminal; neither stream blocks a thread.
pub struct Terminal {
    /// What is typed.
    pub input: ByteSink,
    /// What is shown. Ends when the whole tree has closed the terminal.
    pub output: ByteSource,
    controller: OwnedFd,
}

impl Terminal {
    /// Whether the terminal collects lines for the program, which is how it begins; a program
    /// that draws its own prompt switches that off.
    pub fn reads_lines(&self) -> bool {
        tcgetattr(&self.controller)
            .is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON))
    }
}

/// Opens a terminal. Nothing but the program's end is ever inherited.
pub(crate) fn open(size: TerminalSize) -> io::Result<(Terminal, ServerEnds)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let controller = openpt(flags)?;
    grantpt(&controller)?;
    unlockpt(&controller)?;
    let stdin = ioctl_tiocgptpeer(&controller, flags)?;
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&controller, size)?;
    // Not the program's end, which blocks as every terminal does.
    fcntl_setfl(&controller, OFlags::RDWR | OFlags::NONBLOCK)?;
    let ends = ServerEnds { stdout: stdin.try_clone()?, stderr: stdin.try_clone()?, stdin };
    let output = pipe::Receiver::from_owned_fd_unchecked(controller.try_clone()?)?;
    let input = pipe::Sender::from_owned_fd_unchecked(controller.try_clone()?)?;
    let output = Box::new(UntilHangUp(output));
    Ok((Terminal { input: Box::new(input), output, controller }, ends))
}

/// A terminal that nobody has open any more answers with an error instead of an end.
struct UntilHangUp(pipe::Receiver);

impl AsyncRead for UntilHangUp {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf).map(|read| match read {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::IO) => Ok(()),
            other => other,
        })
    }
}
