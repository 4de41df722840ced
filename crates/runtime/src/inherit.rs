//! Puts in order what a shim was born with, so that nothing of it reaches the server:
//! descriptors that somebody above the daemon left open, and signals that somebody ignored.

use std::fs;
use std::io;
use std::mem;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::ptr;

use rustix::io::{FdFlags, fcntl_setfd};

use crate::report::CONTROL_FD;

/// Signals that stop a program by default and are meant for the server or the daemon, not
/// for the shim between them: it ends when its tree has.
const UNHEEDED: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// The control socket, which the server does not inherit.
pub(crate) fn control_socket() -> io::Result<UnixStream> {
    if !fs::metadata(format!("/proc/self/fd/{CONTROL_FD}"))?.file_type().is_socket() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    #[expect(unsafe_code, reason = "the descriptor was passed to us under this number")]
    // SAFETY: it was just seen to be open, and this is the only place that takes it, once, at
    // the beginning of the program.
    let control = unsafe { OwnedFd::from_raw_fd(CONTROL_FD) };
    fcntl_setfd(&control, FdFlags::CLOEXEC)?;
    Ok(control.into())
}

/// Closes every descriptor past the control socket: the daemon marks its own as not to be
/// inherited, but it may itself have been started with more than it knows of.
pub(crate) fn close_strays() {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return;
    };
    let numbers: Vec<i32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > CONTROL_FD) {
        // The one of the listing itself is closed by now.
        if fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok() {
            #[expect(unsafe_code, reason = "nobody in this program owns these descriptors")]
            // SAFETY: the program has just begun and opened none, so that no owner exists.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }
}

/// Signals to the shim do nothing, and the server starts with the defaults: a handler, unlike
/// "ignore", does not survive the exec. What was inherited as ignored is reset, except
/// SIGPIPE, which Rust ignores for us and resets for the server.
pub(crate) fn settle_signals() {
    for number in 1..=libc::SIGRTMAX() {
        if UNHEEDED.contains(&number) {
            set_action(number, nothing as extern "C" fn(i32) as libc::sighandler_t);
        } else if number != libc::SIGPIPE && is_ignored(number) {
            set_action(number, libc::SIG_DFL);
        }
    }
}

extern "C" fn nothing(_signal: i32) {}

#[expect(unsafe_code, reason = "signal actions have no safe interface")]
fn is_ignored(number: i32) -> bool {
    // SAFETY: an all-zero `sigaction` is a valid one, and the call only writes to it.
    unsafe {
        let mut current: libc::sigaction = mem::zeroed();
        libc::sigaction(number, ptr::null(), &raw mut current) == 0
            && current.sa_sigaction == libc::SIG_IGN
    }
}

#[expect(unsafe_code, reason = "signal actions have no safe interface")]
fn set_action(number: i32, handler: libc::sighandler_t) {
    // SAFETY: an all-zero `sigaction` is a valid one; the handler is `SIG_DFL` or does nothing,
    // which is safe in any signal context. Refusals, for KILL and STOP, change nothing.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(number, &raw const action, ptr::null_mut());
    }
}
