//! Signals and grandchildren: what a server does to the process table.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use crate::options::{Options, Role};
use crate::order::Order;
use crate::{leave, say};

/// Sends a signal to this very process.
pub(crate) fn signal_self(number: i32) -> bool {
    let me: Pid = getpid();
    Signal::from_named_raw(number).is_some_and(|signal| kill_process(me, signal).is_ok())
}

/// Notes each SIGTERM, then goes as told or stays as ordered.
pub(crate) async fn answer_sigterm(options: &Options, order: &Order) {
    // The first process of a container has no default for a signal: unhandled, it does nothing.
    let first = std::process::id() == 1;
    if !first && !options.ignore_sigterm && options.order_log.is_none() {
        return std::future::pending().await;
    }
    let mut terminate = signal(SignalKind::terminate()).expect("SIGTERM can be handled");
    while terminate.recv().await.is_some() {
        order.note("sigterm");
        say("wayward: SIGTERM");
        if !options.ignore_sigterm {
            leave(0);
        }
    }
}

/// Starts a grandchild that left this process's session and lost its parent, and returns its
/// pid once it is written down.
pub(crate) fn spawn_grandchild(options: &Options) -> io::Result<u32> {
    let mut middle = myself(Role::Middle, options)?;
    let output = middle.stdout(Stdio::piped()).spawn()?.wait_with_output()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().map_err(io::Error::other)
}

/// Starts copies of this program that live on, until there are `wanted` or the system refuses.
pub(crate) fn spawn_many(wanted: u64, options: &Options) -> (u64, Option<io::Error>) {
    for started in 0..wanted {
        if let Err(error) = spawn_leaf(options) {
            return (started, Some(error));
        }
    }
    (wanted, None)
}

/// Runs a program to its end: its exit code, and all that it wrote.
pub(crate) fn run(argv: &[String]) -> io::Result<(Option<i32>, String)> {
    let (program, args) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let output = command(program).args(args).stdin(Stdio::null()).output()?;
    let text = [output.stdout, output.stderr].concat();
    Ok((output.status.code(), String::from_utf8_lossy(&text).into_owned()))
}

/// What a copy of this program does when it is not the server. Never comes back.
pub(crate) fn play(role: Role, options: &Options) -> ! {
    // Only a process that leads its group already cannot have a session of its own.
    if !has_own_session() {
        say("wayward: no session of its own");
    }
    match role {
        Role::Middle => {
            let pid = spawn_leaf(options).expect("the grandchild starts");
            if let Some(path) = &options.pids_file {
                append(path, pid);
            }
            let written = writeln!(io::stdout(), "{pid}");
            leave(i32::from(written.is_err()));
        }
        Role::Leaf => live_on(),
    }
}

/// Makes a session of its own. Not by rustix, which takes it that the answer is a process id:
/// older sandboxes answer 0.
#[expect(unsafe_code, reason = "the system call itself")]
fn has_own_session() -> bool {
    // SAFETY: it takes nothing and changes only what this process belongs to.
    unsafe { libc::setsid() >= 0 }
}

/// Starts the grandchild and waits until it is as deaf as it means to be: a pid that is written
/// down earlier would be that of a process which a signal still ends.
fn spawn_leaf(options: &Options) -> io::Result<u32> {
    let mut leaf = myself(Role::Leaf, options)?.stdout(Stdio::piped()).spawn()?;
    let mut ready = [0];
    leaf.stdout.take().map_or(Ok(()), |mut stdout| stdout.read_exact(&mut ready))?;
    Ok(leaf.id())
}

/// Appends one pid to a file in one write.
pub(crate) fn append(path: &Path, pid: u32) {
    let file = OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(format!("{pid}\n").as_bytes()));
    written.expect("the pid is written down");
}

#[expect(clippy::disallowed_methods, reason = "a fixture that misbehaves, not a part of Cofer")]
fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

fn myself(role: Role, options: &Options) -> io::Result<Command> {
    let mut command = command(std::env::current_exe()?);
    // Without a variable by which Cofer could recognise it, as `env -i setsid` does.
    command.env_clear();
    command.arg(match role {
        Role::Middle => "--role-middle",
        Role::Leaf => "--role-leaf",
    });
    if let Some(path) = &options.pids_file {
        command.arg("--pids-file").arg(path);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

fn say_ready() {
    let mut stdout = io::stdout();
    let told = stdout.write_all(b"\n").and_then(|()| stdout.flush());
    told.expect("the one who started this waits for the word");
}

/// Deaf to every polite request to end.
fn live_on() -> ! {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime on the current thread").block_on(async {
        let kinds = [
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::interrupt(),
            SignalKind::pipe(),
        ];
        let deaf: Vec<_> = kinds.into_iter().map(signal).collect();
        say_ready();
        std::future::pending::<()>().await;
        drop(deaf);
    });
    leave(0)
}
