//! The only place that makes a `Command`: environment, directory, descriptors, the limit of open
//! files and the end at the parent's death are chosen here.
#![expect(clippy::disallowed_methods, reason = "this is the one place")]

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;

use command_fds::{CommandFdExt as _, FdMapping};
use rustix::process::{
    Signal, getpid, getppid, ioctl_tiocsctty, set_parent_process_death_signal, setsid,
};

use crate::open_files::restore_in;
use crate::pipes::ServerEnds;
use crate::report::CONTROL_FD;

/// What a shim is called in the list of processes, and how it knows that it is one.
pub(crate) const SHIM_NAME: &str = "cofer-shim";

/// A shim's first argument when it is to guard the containers of its daemon.
pub(crate) const GUARD_ARG: &str = "--guard";

/// A shim's first argument when it is to sweep after its daemon.
pub(crate) const SWEEPER_ARG: &str = "--sweep";

/// What a shim's server has for its stdin, stdout and stderr; the shim's first argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attached {
    /// Three pipes.
    Pipes,
    /// A terminal, which the server leads a session on.
    Terminal,
}

impl Attached {
    const TERMINAL: &str = "--terminal";

    fn as_arg(self) -> &'static str {
        match self {
            Self::Pipes => "--",
            Self::Terminal => Self::TERMINAL,
        }
    }

    /// What the first argument of a shim says.
    pub(crate) fn from_arg(arg: &OsStr) -> Self {
        if arg == Self::TERMINAL { Self::Terminal } else { Self::Pipes }
    }
}

/// Everything about a server that the shim is started with.
pub(crate) struct ShimPlan<'a> {
    /// The program that has the shim in it.
    pub(crate) shim: &'a Path,
    /// The cgroup of this run; none where cgroups are not writable.
    pub(crate) cgroup: Option<&'a Path>,
    /// The server's program, found.
    pub(crate) program: &'a Path,
    pub(crate) args: &'a [String],
    pub(crate) environment: &'a BTreeMap<OsString, OsString>,
    pub(crate) cwd: &'a Path,
    pub(crate) stdio: Attached,
    /// The server's ends of the pipes or the terminal.
    pub(crate) ends: ServerEnds,
    /// The shim's end of the control socket.
    pub(crate) control: OwnedFd,
}

/// The command that starts a shim. It holds the server's ends of the pipes until dropped.
pub(crate) fn shim(plan: ShimPlan<'_>) -> io::Result<tokio::process::Command> {
    let mut command = tokio::process::Command::new(plan.shim);
    command
        .arg0(SHIM_NAME)
        .arg(plan.stdio.as_arg())
        .arg(plan.cgroup.unwrap_or(Path::new("")))
        .arg(plan.program)
        .args(plan.args)
        .env_clear()
        .envs(plan.environment)
        .current_dir(plan.cwd)
        .stdin(Stdio::from(plan.ends.stdin))
        .stdout(Stdio::from(plan.ends.stdout))
        .stderr(Stdio::from(plan.ends.stderr));
    restore_in(command.as_std_mut());
    command
        .fd_mappings(vec![FdMapping { parent_fd: plan.control, child_fd: CONTROL_FD }])
        .map_err(io::Error::other)?;
    Ok(command)
}

/// The command by which a shim starts its server: with the shim's own environment, directory
/// and descriptors, as a member of the cgroup behind `entrance`, in a process group of its own,
/// and killed when the shim dies.
pub(crate) fn server(
    program: OsString,
    args: Vec<OsString>,
    stdio: Attached,
    entrance: Option<File>,
) -> io::Result<std::process::Command> {
    let exec = Exec::new(&program, &args)?;
    let mut command = std::process::Command::new(program);
    if stdio == Attached::Pipes {
        command.process_group(0);
    }
    let shim = getpid();
    #[expect(unsafe_code, reason = "the parent-death signal is set between fork and exec")]
    // SAFETY: the hook makes a few system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The shim may have died before the signal was asked for.
            if getppid() != Some(shim) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            if let Some(entrance) = &entrance {
                // Before exec, so that everything the server ever starts is a member. A refusal
                // is no reason not to run: the daemon reads back whether the server is a member.
                rustix::io::write(entrance, b"0").ok();
            }
            if stdio == Attached::Terminal {
                // A session is a process group too.
                setsid()?;
                ioctl_tiocsctty(rustix::stdio::stdin())?;
            }
            Err(exec.run())
        });
    }
    Ok(command)
}

/// A program and its arguments as `execv` takes them. The standard library calls `execvp`,
/// which runs a file of an unknown format (ENOEXEC) as a script of `/bin/sh`.
struct Exec {
    words: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

#[expect(unsafe_code, reason = "raw pointers are not Send by themselves")]
// SAFETY: the pointers lead into `words`, which is owned, and never changed.
unsafe impl Send for Exec {}

#[expect(unsafe_code, reason = "raw pointers are not Sync by themselves")]
// SAFETY: as above; it is only read.
unsafe impl Sync for Exec {}

impl Exec {
    fn new(program: &OsStr, args: &[OsString]) -> io::Result<Self> {
        let words = [program].into_iter().chain(args.iter().map(OsString::as_os_str));
        let words: Vec<CString> =
            words.map(|word| CString::new(word.as_bytes())).collect::<Result<_, _>>()?;
        let pointers = words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect();
        Ok(Self { words, pointers })
    }

    /// Becomes the program, with the environment of this process; returns only to say why not.
    fn run(&self) -> io::Error {
        if let Some(program) = self.words.first() {
            #[expect(unsafe_code, reason = "the standard library has execvp only")]
            // SAFETY: the strings end in NUL, the list in a null pointer, and both live.
            unsafe {
                libc::execv(program.as_ptr(), self.pointers.as_ptr());
            }
        }
        io::Error::last_os_error()
    }
}

/// What a command of a container engine's client is started with.
pub(crate) struct EnginePlan<'a> {
    pub(crate) program: &'a Path,
    pub(crate) args: &'a [OsString],
    pub(crate) environment: &'a BTreeMap<OsString, OsString>,
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
}

/// The command that runs a container engine's client: in a process group of its own, so that
/// a signal at the daemon's terminal is the daemon's business only, and so that the client can
/// be ended with the processes it works through.
pub(crate) fn engine(plan: EnginePlan<'_>) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(plan.program);
    command
        .args(plan.args)
        .env_clear()
        .envs(plan.environment)
        .current_dir("/")
        .process_group(0)
        .stdin(plan.stdin)
        .stdout(plan.stdout)
        .stderr(plan.stderr);
    restore_in(command.as_std_mut());
    command
}

/// The command that starts the guard: a shim without a server, which runs `engine` on what
/// carries `label` once its control socket closes.
pub(crate) fn guard(
    shim: &Path,
    engine: &Path,
    label: &str,
    environment: &BTreeMap<OsString, OsString>,
    control: OwnedFd,
) -> io::Result<tokio::process::Command> {
    let mut command = tokio::process::Command::new(shim);
    command
        .arg0(SHIM_NAME)
        .arg(GUARD_ARG)
        .arg(engine)
        .arg(label)
        .env_clear()
        .envs(environment)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    restore_in(command.as_std_mut());
    command
        .fd_mappings(vec![FdMapping { parent_fd: control, child_fd: CONTROL_FD }])
        .map_err(io::Error::other)?;
    Ok(command)
}

/// The command that starts the sweeper: a shim without a server, which ends the runs of the
/// process `daemon` once its control socket closes.
pub(crate) fn sweeper(
    shim: &Path,
    owner: &str,
    daemon: u32,
    control: OwnedFd,
) -> io::Result<std::process::Command> {
    let mut command = std::process::Command::new(shim);
    command
        .arg0(SHIM_NAME)
        .arg(SWEEPER_ARG)
        .arg(owner)
        .arg(daemon.to_string())
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
        .fd_mappings(vec![FdMapping { parent_fd: control, child_fd: CONTROL_FD }])
        .map_err(io::Error::other)?;
    Ok(command)
}

/// The command by which the guard runs the engine: with the guard's own environment.
pub(crate) fn guards_engine(engine: &OsStr, args: &[&OsStr]) -> std::process::Command {
    let mut command = std::process::Command::new(engine);
    command.args(args).stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// A program of this machine that is asked something and ends, such as git: nothing on its
/// stdin, out of reach of a terminal's signals, and killed when nobody waits for it any more.
pub fn tool(program: impl AsRef<OsStr>) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(program);
    command.stdin(Stdio::null()).process_group(0).kill_on_drop(true);
    restore_in(command.as_std_mut());
    command
}

/// The same for a thread that talks with the program while it runs. Its caller ends it.
pub fn coprocess(program: impl AsRef<OsStr>) -> std::process::Command {
    let mut command = std::process::Command::new(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    restore_in(&mut command);
    command
}

/// A program at the terminal of the person who asked for it: with our stdio and environment.
pub fn interactive(program: impl AsRef<OsStr>) -> std::process::Command {
    let mut command = std::process::Command::new(program);
    restore_in(&mut command);
    command
}

/// A program that outlives us, in a session of its own, with `keep` as its stdin and nothing
/// else of ours.
pub fn detached(program: impl AsRef<OsStr>, keep: OwnedFd) -> std::process::Command {
    let mut command = std::process::Command::new(program);
    command.stdin(Stdio::from(keep)).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    restore_in(&mut command);
    #[expect(unsafe_code, reason = "the session is made between fork and exec")]
    // SAFETY: the hook makes one system call and allocates nothing.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            Ok(())
        });
    }
    command
}
