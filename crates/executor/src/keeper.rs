//! One command: a process of ours starts it, sees its end, and ends all that came of it. Orphans
//! of the command come to that process, so that none is ever out of reach.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;

use crate::environment::{self, Variables};
use crate::sys::{self, End, Program, SIGCHLD, Side};
use crate::talk;
use crate::tree::{self, Family};
use crate::wire::{Answer, Ring, Run, Step};

/// Runs a command to its end, in the foreground as long as somebody is there to hear of it.
/// `alone` where nobody but us and our commands runs in this pid namespace.
pub(crate) fn run(connection: &UnixStream, run: &Run, descriptors: Vec<OwnedFd>, alone: bool) {
    let Ok([first, second]) = <[OwnedFd; 2]>::try_from(descriptors) else {
        return talk::answer(connection, Answer::Failed { step: Step::Request, errno: 22 });
    };
    let kept = if run.background {
        Kept::in_background(first, second)
    } else {
        Ok(Kept { output: None, stdio: [first, second] })
    };
    let started =
        Family::begin(alone).and_then(|family| Ok((family, sys::catch(&[SIGCHLD])?, kept?)));
    let (family, signals, kept) = match started {
        Ok(started) => started,
        Err(error) => return talk::answer(connection, refused(Step::System, &error)),
    };
    let Kept { output, stdio } = kept;
    match start(run, stdio) {
        Err(answer) => talk::answer(connection, answer),
        Ok(pid) => {
            if let Some(output) = &output {
                output.tell(&format!("running {pid}\n"));
            }
            talk::answer(connection, Answer::Started { pid: pid.unsigned_abs() });
            match output {
                None => {
                    let kill = || tree::kill_all(alone, || family.members());
                    stay(connection, pid, &signals, kill);
                }
                Some(output) => stay_in_background(connection, pid, &signals, output),
            }
        }
    }
}

fn refused(step: Step, error: &io::Error) -> Answer {
    Answer::Failed { step, errno: error.raw_os_error().unwrap_or(5) }
}

/// What is kept of a command besides its connection.
struct Kept {
    output: Option<Output>,
    stdio: [OwnedFd; 2],
}

impl Kept {
    fn in_background(log: OwnedFd, status: OwnedFd) -> io::Result<Self> {
        let (reading, writing) = sys::pipe()?;
        let output =
            Output { pipe: Some(reading.into()), log: log.into(), status: status.into(), total: 0 };
        Ok(Self { output: Some(output), stdio: [writing.try_clone()?, writing] })
    }
}

/// Starts the program in a session of its own.
fn start(run: &Run, stdio: [OwnedFd; 2]) -> Result<i32, Answer> {
    let system = |error: io::Error| refused(Step::System, &error);
    let program = prepare(run).ok_or(Answer::Failed { step: Step::Request, errno: 22 })?;
    let nothing = File::open("/dev/null").map_err(system)?;
    let (reading, writing) = sys::pipe().map_err(system)?;
    let cwd = std::ffi::OsString::from_vec(run.cwd.clone());
    match tree::split_when_there_is_room().map_err(system)? {
        Side::Child => {
            let answer = match std::env::set_current_dir(cwd) {
                Err(error) => refused(Step::Directory, &error),
                Ok(()) => {
                    let [stdout, stderr] = &stdio;
                    let error = program.become_it([
                        nothing.as_raw_fd(),
                        stdout.as_raw_fd(),
                        stderr.as_raw_fd(),
                    ]);
                    refused(Step::Program, &error)
                }
            };
            // The pipe closes by itself where the program has begun.
            let told = File::from(writing).write_all(&answer.encode());
            sys::leave(if told.is_ok() { 127 } else { 126 });
        }
        Side::Parent(pid) => {
            drop((writing, stdio));
            let mut refusal = Vec::new();
            File::from(reading).read_to_end(&mut refusal).map_err(system)?;
            match refusal.get(4..).and_then(Answer::decode) {
                Some(answer) => Err(answer),
                None => Ok(pid),
            }
        }
    }
}

fn prepare(run: &Run) -> Option<Program> {
    let own: Variables =
        std::env::vars_os().map(|(name, value)| (name.into_vec(), value.into_vec())).collect();
    let mut variables = environment::joined(own, &run.env);
    variables.insert(b"PWD".to_vec(), run.cwd.clone());
    let paths = environment::places(run.argv.first()?, &variables);
    let argv: Result<Vec<CString>, _> = run.argv.iter().cloned().map(CString::new).collect();
    let pairs = variables.into_iter().map(|(name, value)| [name.as_slice(), b"=", &value].concat());
    let envp: Result<Vec<CString>, _> = pairs.map(CString::new).collect();
    Some(Program { paths, argv: argv.ok()?, envp: envp.ok()? })
}

fn end_of(end: End) -> Answer {
    match end {
        End::Code(code) => Answer::Exited { code },
        End::Signal(signal) => Answer::Signalled { signal },
    }
}

/// Until the command ends; what it leaves running goes on. If the connection is closed, everything
/// is killed.
fn stay(connection: &UnixStream, pid: i32, signals: &OwnedFd, kill: impl Fn()) {
    loop {
        let ready =
            sys::wait_readable([Some(connection.as_raw_fd()), Some(signals.as_raw_fd())], -1);
        let [told, ended] = ready.unwrap_or([true, true]);
        if ended && let Some(end) = reap_until(pid, signals) {
            return talk::answer(connection, end_of(end));
        }
        if told {
            kill();
            return talk::answer(connection, Answer::Signalled { signal: sys::SIGKILL });
        }
    }
}

/// Reaps what has ended, and tells how `pid` did.
fn reap_until(pid: i32, signals: &OwnedFd) -> Option<End> {
    forget_signals(signals);
    let mut found = None;
    while let Some((ended, how)) = sys::reap() {
        if ended == pid {
            found = Some(how);
        }
    }
    found
}

/// Several signals may have become one; whoever waits for children asks for all of them.
fn forget_signals(signals: &OwnedFd) {
    let mut information = [0_u8; 128];
    if let Ok(signals) = signals.try_clone() {
        drop(File::from(signals).read(&mut information));
    }
}

/// Where the output of a background command goes.
struct Output {
    /// Nothing once all writers are gone.
    pipe: Option<File>,
    log: File,
    status: File,
    total: u64,
}

impl Output {
    /// Takes what is there.
    fn take(&mut self) {
        let mut buffer = [0_u8; 16 * 1024];
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.read(&mut buffer) {
            Ok(0) | Err(_) => self.pipe = None,
            Ok(length) => self.keep(&buffer[..length]),
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let at = self.total % Ring::SIZE;
        let space = usize::try_from(Ring::SIZE - at).unwrap_or(usize::MAX);
        let (here, there) = bytes.split_at(bytes.len().min(space));
        self.total += bytes.len() as u64;
        // A log that cannot be written must not end what it is about.
        drop(self.log.write_all_at(here, at));
        drop(self.log.write_all_at(there, 0));
        drop(self.log.write_all_at(&self.total.to_le_bytes(), Ring::SIZE));
    }

    /// One short line says how it is.
    fn tell(&self, line: &str) {
        drop(self.status.write_all_at(format!("{line:<31}\n").as_bytes(), 0));
    }
}

/// Until the command has ended and nobody writes any more.
fn stay_in_background(connection: &UnixStream, pid: i32, signals: &OwnedFd, mut output: Output) {
    let (mut listening, mut running) = (true, true);
    while running || output.pipe.is_some() {
        let pipe = output.pipe.as_ref().map(File::as_raw_fd);
        let waited = [listening.then(|| connection.as_raw_fd()), pipe, Some(signals.as_raw_fd())];
        let [told, said, ended] = sys::wait_readable(waited, -1).unwrap_or([true; 3]);
        if said {
            output.take();
        }
        if ended && let Some(end) = reap_until(pid, signals) {
            running = false;
            output.tell(&match end {
                End::Code(code) => format!("exited {code}"),
                End::Signal(signal) => format!("killed {signal}"),
            });
            talk::answer(connection, end_of(end));
        }
        if told {
            listening = false;
        }
    }
}
