//! The system calls that the standard library does not have, each behind a safe function. This
//! is the only file here with unsafe code, and it needs no other crate: the executor is built by
//! a bare `rustc`.
#![expect(unsafe_code, reason = "calls of the C library, which has no safe form of them")]

use std::ffi::{CStr, CString, c_char, c_int, c_ulong, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd, RawFd};

pub(crate) const SIGINT: c_int = 2;
pub(crate) const SIGKILL: c_int = 9;
const SIGPIPE: c_int = 13;
pub(crate) const SIGTERM: c_int = 15;
pub(crate) const SIGCHLD: c_int = 17;
pub(crate) const SIGSTOP: c_int = 19;
pub(crate) const SIGCONT: c_int = 18;
/// Every process of this pid namespace but its first and the one that asks.
pub(crate) const EVERYBODY_ELSE: c_int = -1;

const WNOHANG: c_int = 1;
const PR_SET_DUMPABLE: c_int = 4;
const PR_SET_CHILD_SUBREAPER: c_int = 36;
const SOL_SOCKET: c_int = 1;
const SCM_RIGHTS: c_int = 1;
const MSG_CMSG_CLOEXEC: c_int = 0x4000_0000;
const MSG_PEEK: c_int = 2;
const MSG_DONTWAIT: c_int = 0x40;
const MSG_NOSIGNAL: c_int = 0x4000;
const O_CLOEXEC: c_int = 0o2_000_000;
const SIG_SETMASK: c_int = 2;
const POLLIN: i16 = 1;

/// As large as the C library's on every Linux of 64 bits.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct SignalSet([u8; 128]);

#[repr(C)]
struct PollFd {
    fd: c_int,
    events: i16,
    revents: i16,
}

#[repr(C)]
struct IoVec {
    base: *mut c_void,
    length: usize,
}

#[repr(C)]
struct MessageHeader {
    name: *mut c_void,
    name_length: u32,
    vectors: *mut IoVec,
    vector_count: usize,
    control: *mut c_void,
    control_length: usize,
    flags: c_int,
}

/// A control message with at most two descriptors.
#[repr(C, align(8))]
struct Control {
    length: usize,
    level: c_int,
    kind: c_int,
    descriptors: [c_int; 2],
}

const CONTROL_HEADER: usize = 16;

unsafe extern "C" {
    fn fork() -> c_int;
    fn _exit(code: c_int) -> !;
    fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn kill(pid: c_int, signal: c_int) -> c_int;
    fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int;
    fn poll(fds: *mut PollFd, count: c_ulong, timeout: c_int) -> c_int;
    fn sigemptyset(set: *mut SignalSet) -> c_int;
    fn sigaddset(set: *mut SignalSet, signal: c_int) -> c_int;
    fn sigprocmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int;
    fn signalfd(fd: c_int, mask: *const SignalSet, flags: c_int) -> c_int;
    fn signal(signal: c_int, handler: usize) -> usize;
    fn recvmsg(fd: c_int, message: *mut MessageHeader, flags: c_int) -> isize;
    fn sendmsg(fd: c_int, message: *const MessageHeader, flags: c_int) -> isize;
    fn recv(fd: c_int, buffer: *mut c_void, length: usize, flags: c_int) -> isize;
    fn setsid() -> c_int;
    fn dup2(from: c_int, to: c_int) -> c_int;
    fn pipe2(fds: *mut c_int, flags: c_int) -> c_int;
    fn execve(path: *const c_char, argv: *const *const c_char, envp: *const *const c_char)
    -> c_int;
}

fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Which side of a fork this is.
pub(crate) enum Side {
    Parent(c_int),
    Child,
}

/// Splits this process, which has one thread.
pub(crate) fn split() -> io::Result<Side> {
    // SAFETY: the executor never starts a thread, so that the child may do whatever it likes.
    let pid = checked(unsafe { fork() })?;
    Ok(if pid == 0 { Side::Child } else { Side::Parent(pid) })
}

/// Ends this process without running anything of its parent's.
pub(crate) fn leave(code: c_int) -> ! {
    // SAFETY: has no preconditions.
    unsafe { _exit(code) }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Code(c_int),
    Signal(c_int),
}

/// One child that has ended, where there is one.
pub(crate) fn reap() -> Option<(c_int, End)> {
    let mut status = 0;
    // SAFETY: `status` is a place for an int.
    let pid = unsafe { waitpid(-1, &raw mut status, WNOHANG) };
    let end = match status & 0x7f {
        0 => End::Code((status >> 8) & 0xff),
        signal => End::Signal(signal),
    };
    (pid > 0).then_some((pid, end))
}

/// Sends a signal; one that is gone needs none.
pub(crate) fn send_signal(pid: c_int, number: c_int) {
    // SAFETY: has no preconditions.
    unsafe { kill(pid, number) };
}

/// Orphans below come to this process.
pub(crate) fn become_subreaper() -> io::Result<()> {
    // SAFETY: a plain number is all it takes.
    checked(unsafe { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// Nobody in the container may look into this process or take descriptors from it.
pub(crate) fn close_to_others() -> io::Result<()> {
    // SAFETY: a plain number is all it takes.
    checked(unsafe { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) }).map(drop)
}

/// Signals arrive at the descriptor instead of interrupting.
pub(crate) fn catch(signals: &[c_int]) -> io::Result<OwnedFd> {
    let mut set = SignalSet([0; 128]);
    // SAFETY: `set` is as large as the C library's, and lives through the calls.
    unsafe {
        sigemptyset(&raw mut set);
        for number in signals {
            sigaddset(&raw mut set, *number);
        }
        checked(sigprocmask(SIG_SETMASK, &raw const set, std::ptr::null_mut()))?;
        let fd = checked(signalfd(-1, &raw const set, O_CLOEXEC))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// As a program expects signals to be when it starts.
fn default_signals() {
    let mut set = SignalSet([0; 128]);
    // SAFETY: as above; the standard library ignores SIGPIPE, and 0 is the default handler.
    unsafe {
        sigemptyset(&raw mut set);
        sigprocmask(SIG_SETMASK, &raw const set, std::ptr::null_mut());
        signal(SIGPIPE, 0);
    }
}

/// Waits until one of the descriptors can be read; says which can.
pub(crate) fn wait_readable<const N: usize>(
    fds: [Option<RawFd>; N],
    timeout_ms: c_int,
) -> io::Result<[bool; N]> {
    let mut polled = fds.map(|fd| PollFd { fd: fd.unwrap_or(-1), events: POLLIN, revents: 0 });
    // SAFETY: the array lives through the call and has N entries.
    let result = unsafe { poll(polled.as_mut_ptr(), N as c_ulong, timeout_ms) };
    match checked(result) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        Err(_) => Ok([false; N]),
        Ok(_) => Ok(polled.map(|polled| polled.revents != 0)),
    }
}

/// Whether the other side has gone without a word, within `timeout_ms`.
pub(crate) fn has_hung_up(socket: &impl AsRawFd, timeout_ms: c_int) -> bool {
    let [readable] = wait_readable([Some(socket.as_raw_fd())], timeout_ms).unwrap_or([false]);
    let mut byte = 0_u8;
    // SAFETY: there is place for the one byte that is looked at.
    readable
        && unsafe { recv(socket.as_raw_fd(), (&raw mut byte).cast(), 1, MSG_PEEK | MSG_DONTWAIT) }
            == 0
}

/// A pipe: its reading and its writing end.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: there is place for two descriptors, which belong to nobody else yet.
    unsafe {
        checked(pipe2(ends.as_mut_ptr(), O_CLOEXEC))?;
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// Reads bytes and the descriptors that come with them.
pub(crate) fn receive(
    socket: &impl AsRawFd,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut vector = IoVec { base: bytes.as_mut_ptr().cast(), length: bytes.len() };
    let mut control = Control { length: 0, level: 0, kind: 0, descriptors: [-1; 2] };
    let mut header = header(&mut vector, &mut control, size_of::<Control>());
    // SAFETY: all that `header` points at lives through the call.
    let read = unsafe { recvmsg(socket.as_raw_fd(), &raw mut header, MSG_CMSG_CLOEXEC) };
    let read = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
    let is_rights = control.level == SOL_SOCKET && control.kind == SCM_RIGHTS;
    if header.control_length >= CONTROL_HEADER && is_rights {
        let count = control.length.saturating_sub(CONTROL_HEADER) / size_of::<c_int>();
        for fd in control.descriptors.into_iter().take(count).filter(|fd| *fd >= 0) {
            // SAFETY: the kernel has just made this descriptor for us.
            descriptors.push(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }
    Ok(read)
}

/// Writes bytes, and a descriptor with the first of them.
pub(crate) fn send(
    socket: &impl AsRawFd,
    bytes: &[u8],
    descriptor: Option<RawFd>,
) -> io::Result<usize> {
    let mut vector = IoVec { base: bytes.as_ptr().cast_mut().cast(), length: bytes.len() };
    let length = CONTROL_HEADER + size_of::<c_int>();
    let mut control = Control {
        length,
        level: SOL_SOCKET,
        kind: SCM_RIGHTS,
        descriptors: [descriptor.unwrap_or(-1), 0],
    };
    let space = if descriptor.is_some() { CONTROL_HEADER + 8 } else { 0 };
    let header = header(&mut vector, &mut control, space);
    // SAFETY: all that `header` points at lives through the call, and is only read.
    let sent = unsafe { sendmsg(socket.as_raw_fd(), &raw const header, MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

fn header(vector: &mut IoVec, control: &mut Control, control_length: usize) -> MessageHeader {
    MessageHeader {
        name: std::ptr::null_mut(),
        name_length: 0,
        vectors: vector,
        vector_count: 1,
        control: if control_length == 0 {
            std::ptr::null_mut()
        } else {
            std::ptr::from_mut(control).cast()
        },
        control_length,
        flags: 0,
    }
}

/// A program about to be run, with everything allocated.
pub(crate) struct Program {
    pub(crate) paths: Vec<CString>,
    pub(crate) argv: Vec<CString>,
    pub(crate) envp: Vec<CString>,
}

impl Program {
    /// Becomes the program. Comes back only with the reason why not.
    pub(crate) fn become_it(&self, stdio: [RawFd; 3]) -> io::Error {
        default_signals();
        let pointers = |list: &[CString]| -> Vec<*const c_char> {
            list.iter().map(|text| CStr::as_ptr(text)).chain([std::ptr::null()]).collect()
        };
        let (argv, envp) = (pointers(&self.argv), pointers(&self.envp));
        // SAFETY: has no preconditions; the descriptors are open.
        unsafe {
            setsid();
            for (target, fd) in (0..).zip(stdio) {
                if dup2(fd, target) < 0 {
                    return io::Error::last_os_error();
                }
            }
        }
        let mut reason = io::Error::from(io::ErrorKind::NotFound);
        for path in &self.paths {
            // SAFETY: the lists end with a null pointer, and the texts they point at are alive.
            unsafe { execve(path.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                // Not here, perhaps in the next folder.
                Some(2 | 20) => {}
                Some(13) => reason = error,
                _ => return error,
            }
        }
        reason
    }
}
