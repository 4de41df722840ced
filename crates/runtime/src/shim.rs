//! The shim: a tiny process between the daemon and one server, which is there for one thing:
//! to outlive the daemon by the moment it takes to end the server's whole tree.
//!
//! It is the same binary under another name, without a runtime of its own. The main thread
//! starts the server, waits for it and ends the tree; a second one listens to the daemon.
//! It is not in the data path: the server inherits the pipes and the shim lets go of them.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use cofer_model::Exit;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, kill_process,
    kill_process_group, set_child_subreaper, setsid, wait, waitid,
};

use crate::command::{self, Attached, GUARD_ARG, SHIM_NAME, SWEEPER_ARG};
use crate::environment::MARKER;
use crate::inherit;
use crate::mark::Mark;
use crate::podman::guard;
use crate::proc::{Snapshot, raw};
use crate::report::{Report, TERMINATE};
use crate::server_cgroup::ServerCgroup;
use crate::sweeper;

/// The name in `ps -o comm`. Not the daemon's: `pkill -9 cofer` then takes the daemon and
/// leaves the shims, which clean up behind it.
const THREAD_NAME: &std::ffi::CStr = c"mcp-shim";

/// The listener only reads bytes and sends signals.
const LISTENER_STACK: usize = 64 * 1024;

/// Whether this process was started to be a shim. Asked before anything else in `main`.
pub fn is_shim_invocation() -> bool {
    std::env::args_os()
        .next()
        .is_some_and(|name| Path::new(&name).file_name() == Some(SHIM_NAME.as_ref()))
}

/// Runs the server that this process's arguments name from the third on, in the cgroup that the
/// second names, until its whole tree is gone; or, if the first argument says so, guards the
/// daemon's containers or sweeps after the daemon.
/// Must be called first in the program: it takes over the descriptors it was given.
pub fn run() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let (Some(first), Some(second)) = (args.next(), args.next()) else {
        return misuse();
    };
    let Ok(control) = inherit::control_socket() else {
        return misuse();
    };
    inherit::close_strays();
    inherit::settle_signals();
    if first == GUARD_ARG {
        return guard::run(&second, &args.next().unwrap_or_default(), control);
    }
    if first == SWEEPER_ARG {
        return sweeper::run(&second, &args.next().unwrap_or_default(), control);
    }
    let Some(program) = args.next() else {
        return misuse();
    };
    let cgroup = (!second.is_empty()).then(|| ServerCgroup::at(second.into()));
    let entrance = cgroup.as_ref().and_then(|cgroup| cgroup.entrance().ok());
    let stdio = Attached::from_arg(&first);
    let tended = command::server(program, args.collect(), stdio, entrance)
        .and_then(|server| tend(server, control, cgroup));
    match tended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "{SHIM_NAME}: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn misuse() -> ExitCode {
    drop(writeln!(io::stderr(), "{SHIM_NAME} is started by the cofer daemon, not by hand"));
    ExitCode::from(2)
}

/// The server while it has not been waited for, so that its number cannot be somebody else's.
type Server = Arc<Mutex<Option<Pid>>>;

fn tend(
    mut server: Command,
    mut control: UnixStream,
    cgroup: Option<ServerCgroup>,
) -> io::Result<()> {
    rustix::thread::set_name(THREAD_NAME)?;
    let marker = std::env::var_os(MARKER).unwrap_or_default();
    if let Some(mark) = Mark::of(&marker.to_string_lossy()) {
        // A failure leaves the cgroup and the subreapers to identify the tree.
        mark.apply().ok();
    }
    set_child_subreaper(Some(getpid()))?;
    // A session of its own: no terminal reaches it, and nothing below it can join a process
    // group of the daemon's session.
    setsid()?;
    let spawned = server.spawn();
    // It holds the descriptor of the cgroup.
    drop(server);
    let child = match spawned {
        Ok(child) => child,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
            remove(cgroup.as_ref());
            return tell(&mut control, Report::Refused(errno));
        }
    };
    let server: Server = Arc::new(Mutex::new(raw(child.id())));
    // From here on every way out leads through the end of the tree: a shim that returned
    // early would leave what the server started.
    let listening = let_go_of_stdio()
        .and_then(|()| tell(&mut control, Report::Started(child.id())))
        .and_then(|()| control.try_clone())
        .and_then(|orders| listen(orders, Arc::clone(&server)));
    if listening.is_err() {
        signal(&server, Signal::KILL);
    }
    let exit = wait_for_server(&server);
    // The daemon may be dead; the tree ends all the same.
    drop(tell(&mut control, Report::Ended(exit)));
    if let Some(cgroup) = &cgroup {
        // Most of the tree at once; the rest is what was moved to another cgroup.
        cgroup.kill();
    }
    end_tree();
    remove(cgroup.as_ref());
    Ok(())
}

fn remove(cgroup: Option<&ServerCgroup>) {
    if let Some(cgroup) = cgroup {
        cgroup.remove();
    }
}

/// Without copies of the pipes' ends here, the daemon sees the end of the server's output
/// when the server closes it, and the server sees the end of its input when the daemon does.
fn let_go_of_stdio() -> io::Result<()> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    Ok(())
}

fn tell(control: &mut UnixStream, report: Report) -> io::Result<()> {
    control.write_all(report.line().as_bytes())
}

/// Obeys the daemon until it is dead, hangs up, or the process ends.
fn listen(mut orders: UnixStream, server: Server) -> io::Result<()> {
    let obey = move || {
        let mut order = [0];
        loop {
            match orders.read(&mut order) {
                Ok(1) if order[0] == TERMINATE => signal(&server, Signal::TERM),
                Ok(1) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => return signal(&server, Signal::KILL),
            }
        }
    };
    thread::Builder::new().stack_size(LISTENER_STACK).spawn(obey).map(drop)
}

/// Signals the server and its process group, unless it has already been waited for.
fn signal(server: &Server, signal: Signal) {
    if let Some(pid) = *lock(server) {
        // The server may have moved itself to another group.
        let in_its_group = kill_process_group(pid, signal).is_ok();
        if !in_its_group || signal == Signal::KILL {
            kill_process(pid, signal).ok();
        }
    }
}

fn lock(server: &Server) -> MutexGuard<'_, Option<Pid>> {
    server.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Collects whatever ends, orphans too, until the server itself has.
fn wait_for_server(server: &Server) -> Exit {
    loop {
        // Only looks: the collecting is done under the lock, so that the listener never
        // signals a number that was given back.
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Exit { code: None, signal: None },
        }
        let mut running = lock(server);
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if Some(pid) == *running {
                *running = None;
                return exit(status);
            }
        }
    }
}

/// How a process ended that was waited for.
pub(crate) fn exit(status: WaitStatus) -> Exit {
    Exit { code: status.exit_status(), signal: status.terminating_signal() }
}

/// Kills and collects until nothing is left below. A process that was forked too late to be
/// seen had a parent that was seen; when that parent's end is collected, the late one is a
/// child of ours and is seen by the next look.
fn end_tree() {
    let me = std::process::id();
    while collect_ended() {
        let snapshot = Snapshot::take();
        let mut children_killed = 0;
        for process in snapshot.descendants(me) {
            if process.signal(Signal::KILL) && process.parent == me {
                children_killed += 1;
            }
        }
        for _ in 0..children_killed.max(1) {
            while matches!(wait(WaitOptions::empty()), Err(Errno::INTR)) {}
        }
    }
}

/// Collects what has ended; says whether something still runs.
fn collect_ended() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}
