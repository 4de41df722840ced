//! The only place that makes a `Command`: environment, directory, descriptors and what
//! happens at the parent's death are chosen here.
#![expect(clippy::disallowed_methods, reason = "this is the one place")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;

use command_fds::{CommandFdExt as _, FdMapping};
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

use crate::pipes::ServerEnds;
use crate::report::CONTROL_FD;

/// What a shim is called in the list of processes, and how it knows that it is one.
pub(crate) const SHIM_NAME: &str = "cofer-shim";

/// Everything about a server that the shim is started with.
pub(crate) struct ShimPlan<'a> {
    /// The program that has the shim in it.
    pub(crate) shim: &'a Path,
    /// The server's program, found.
    pub(crate) program: &'a Path,
    pub(crate) args: &'a [String],
    pub(crate) environment: &'a BTreeMap<OsString, OsString>,
    pub(crate) cwd: &'a Path,
    /// The server's ends of the pipes.
    pub(crate) ends: ServerEnds,
    /// The shim's end of the control socket.
    pub(crate) control: OwnedFd,
}

/// The command that starts a shim. It holds the server's ends of the pipes until dropped.
pub(crate) fn shim(plan: ShimPlan<'_>) -> io::Result<tokio::process::Command> {
    let mut command = tokio::process::Command::new(plan.shim);
    command
        .arg0(SHIM_NAME)
        .arg("--")
        .arg(plan.program)
        .args(plan.args)
        .env_clear()
        .envs(plan.environment)
        .current_dir(plan.cwd)
        .stdin(Stdio::from(plan.ends.stdin))
        .stdout(Stdio::from(plan.ends.stdout))
        .stderr(Stdio::from(plan.ends.stderr));
    command
        .fd_mappings(vec![FdMapping { parent_fd: plan.control, child_fd: CONTROL_FD }])
        .map_err(io::Error::other)?;
    Ok(command)
}

/// The command by which a shim starts its server: with the shim's own environment, directory
/// and descriptors, in a process group of its own, and killed when the shim dies.
pub(crate) fn server(program: OsString, args: Vec<OsString>) -> std::process::Command {
    let mut command = std::process::Command::new(program);
    command.args(args).process_group(0);
    let shim = getpid();
    #[expect(unsafe_code, reason = "the parent-death signal is set between fork and exec")]
    // SAFETY: the hook makes two system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The shim may have died before the signal was asked for.
            if getppid() == Some(shim) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
        });
    }
    command
}
