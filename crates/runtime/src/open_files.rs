//! The limit of open files (`RLIMIT_NOFILE`): raised for the daemon, restored for the programs it
//! starts, and named in errors once it is reached.
//!
//! Most systems start a service with a soft limit of 1024, which only exists for programs that use
//! `select(2)`: an `fd_set` has 1024 bits, and a descriptor above it corrupts memory. The daemon does
//! not use `select`, so that it takes the hard limit; a server may, so that it gets the soft limit
//! that the daemon was started with.

use std::error::Error;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limits before [`raise_open_files`]; empty while they are unchanged.
static ORIGINAL: OnceLock<Rlimit> = OnceLock::new();

/// What to do about the limit of this process.
pub const RAISE_HINT: &str = "raise the limit of open files and restart the daemon: `ulimit -Hn` \
     and `ulimit -n` in the shell that starts it, `LimitNOFILE=` in its systemd unit, or \
     /etc/security/limits.conf";

/// What to do about the limit of the machine.
const MACHINE_HINT: &str = "close programs that hold many files, or raise the sysctl `fs.file-max`";

/// The two limits of open files of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    /// The limit in force.
    pub soft: u64,
    /// How far an unprivileged process may raise it.
    pub hard: u64,
}

/// The limits of this process.
pub fn open_files() -> OpenFiles {
    let limits = getrlimit(Resource::Nofile);
    let or_unlimited = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    OpenFiles { soft: or_unlimited(limits.current), hard: or_unlimited(limits.maximum) }
}

/// The limits of another process; none if it is gone or belongs to another user.
pub fn open_files_of(pid: u32) -> Option<OpenFiles> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?)
}

/// Finds the limits in the text of `/proc/PID/limits`.
fn parse(limits: &str) -> Option<OpenFiles> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let number = |word: &str| if word == "unlimited" { Some(u64::MAX) } else { word.parse().ok() };
    let mut words = line.split_ascii_whitespace();
    Some(OpenFiles { soft: number(words.next()?)?, hard: number(words.next()?)? })
}

/// Raises the soft limit of this process to its hard limit. Programs that are started afterwards
/// still get the soft limit from before.
pub fn raise_open_files() -> io::Result<OpenFiles> {
    let limits = getrlimit(Resource::Nofile);
    if limits.current != limits.maximum {
        // Recorded first: no program may start between the two steps with the raised limit.
        ORIGINAL.get_or_init(|| limits);
        setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, ..limits })?;
    }
    Ok(open_files())
}

/// Lets `command` start with the soft limit from before [`raise_open_files`].
pub(crate) fn restore_in(command: &mut Command) {
    // Without a hook, `Command` uses `posix_spawn`, which does not copy the daemon's page tables.
    let Some(original) = ORIGINAL.get().copied() else {
        return;
    };
    #[expect(unsafe_code, reason = "the limit is set between fork and exec")]
    // SAFETY: the hook makes one system call and allocates nothing.
    unsafe {
        command.pre_exec(move || Ok(setrlimit(Resource::Nofile, original)?));
    }
}

/// An error that has `EMFILE` or `ENFILE` among its causes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfFiles {
    /// The reached limit, with its value.
    pub message: String,
    /// How to raise it.
    pub hint: &'static str,
}

/// The reached limit, where `error` was caused by one.
pub fn out_of_files(error: &(dyn Error + 'static)) -> Option<OutOfFiles> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let errno = error.downcast_ref::<io::Error>().and_then(Errno::from_io_error);
        match errno.or_else(|| error.downcast_ref::<Errno>().copied()) {
            Some(Errno::MFILE) => return Some(of_process()),
            Some(Errno::NFILE) => return Some(of_machine()),
            _ => cause = error.source(),
        }
    }
    None
}

/// The same for an error that only its text is left of, as it crossed a JSON-RPC line.
pub fn out_of_files_in(text: &str) -> Option<OutOfFiles> {
    // `io::Error` shows the number behind the words, which depend on the C library.
    if text.contains("(os error 24)") {
        return Some(of_process());
    }
    text.contains("(os error 23)").then(of_machine)
}

fn of_process() -> OutOfFiles {
    let message = match open_files().soft {
        u64::MAX => "too many open files".to_owned(),
        limit => format!("too many open files (limit {limit})"),
    };
    OutOfFiles { message, hint: RAISE_HINT }
}

fn of_machine() -> OutOfFiles {
    let message = match std::fs::read_to_string("/proc/sys/fs/file-max") {
        Ok(limit) => format!("too many open files on this machine (limit {})", limit.trim()),
        Err(_) => "too many open files on this machine".to_owned(),
    };
    OutOfFiles { message, hint: MACHINE_HINT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("could not open the pipes")]
    struct Wrapped(#[source] io::Error);

    #[test]
    fn the_limits_of_a_process_are_read() {
        assert_eq!(open_files_of(std::process::id()), Some(open_files()));
        let text = "Limit  Soft Limit  Hard Limit  Units\nMax open files  1024  unlimited  files\n";
        assert_eq!(parse(text), Some(OpenFiles { soft: 1024, hard: u64::MAX }));
        assert_eq!(parse("Max open files  many  1  files\n"), None);
    }

    #[test]
    fn the_limit_is_found_below_other_errors_and_named_with_its_value() {
        let process = Wrapped(io::Error::from_raw_os_error(Errno::MFILE.raw_os_error()));
        let found = out_of_files(&process).unwrap();
        assert_eq!(found.message, format!("too many open files (limit {})", open_files().soft));
        assert!(found.hint.contains("ulimit -n") && found.hint.contains("LimitNOFILE"));
        let machine = Wrapped(io::Error::from_raw_os_error(Errno::NFILE.raw_os_error()));
        assert!(out_of_files(&machine).unwrap().hint.contains("fs.file-max"));
        let other = Wrapped(io::Error::from_raw_os_error(Errno::NOENT.raw_os_error()));
        assert_eq!(out_of_files(&other), None);
        for (error, is_found) in [(Errno::MFILE, true), (Errno::NFILE, true), (Errno::IO, false)] {
            let text = format!("could not connect: {}", io::Error::from(error));
            assert_eq!(out_of_files_in(&text).is_some(), is_found, "{text}");
        }
    }
}
