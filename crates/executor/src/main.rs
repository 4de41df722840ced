//! The init of an environment's container. It listens on a socket that the machine shares with
//! the container, starts commands, connects to ports, reaps, and ends everything when told.
//!
//! ```text
//!  server ── socket ── executor (pid 1)
//!                         └─ one process per connection ── the command ── whatever it starts
//! ```
//!
//! Output never comes through here: a command gets the very pipes that the server reads.
//! Built static and without any crate, so that it runs in every image, also an empty one.

mod environment;
mod keeper;
mod relay;
mod sys;
mod talk;
mod tree;
#[cfg_attr(not(test), expect(dead_code, reason = "half of it is for the other side"))]
mod wire;

use std::fs;
use std::io::{self, Read as _};
use std::net::{Ipv4Addr, Ipv6Addr, TcpStream};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use crate::sys::{SIGCHLD, SIGINT, SIGTERM, Side};
use crate::wire::{Answer, Request, Step};

/// How long a request may take to arrive, and a port to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a connection is looked at before it gets a process.
const GREETING_MS: i32 = 2;

/// How long everything has for ending by itself when the container is stopped.
const GRACE: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let socket = std::env::args_os().nth(1).unwrap_or_else(|| "/.cofer/run/executor".into());
    match serve(Path::new(&socket)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(u8::try_from(error.raw_os_error().unwrap_or(1)).unwrap_or(1)),
    }
}

fn serve(socket: &Path) -> io::Result<()> {
    let signals = sys::catch(&[SIGCHLD, SIGTERM, SIGINT])?;
    sys::become_subreaper()?;
    sys::close_to_others()?;
    // One that is there was left by the container's last run.
    drop(fs::remove_file(socket));
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
    let is_init = std::process::id() == 1;
    loop {
        let [called, signalled] =
            sys::wait_readable([Some(listener.as_raw_fd()), Some(signals.as_raw_fd())], -1)?;
        if signalled && is_told_to_stop(&signals)? {
            if is_init {
                end_everything(&[1], GRACE);
            }
            return Ok(());
        }
        if called {
            accept(&listener, is_init);
        }
    }
}

/// Reaps where a child has ended; says whether the container is to stop.
fn is_told_to_stop(signals: &OwnedFd) -> io::Result<bool> {
    let mut information = [0_u8; 128];
    fs::File::from(signals.try_clone()?).read_exact(&mut information)?;
    while sys::reap().is_some() {}
    let number =
        u32::from_ne_bytes([information[0], information[1], information[2], information[3]]);
    Ok(number != SIGCHLD.unsigned_abs())
}

/// A process of its own for each connection, so that none waits for another.
fn accept(listener: &UnixListener, is_init: bool) {
    let Ok((connection, _)) = listener.accept() else { return };
    // Whoever only wanted to know whether somebody listens costs no process.
    if sys::has_hung_up(&connection, GREETING_MS) {
        return;
    }
    match tree::split_when_there_is_room() {
        Ok(Side::Child) => {
            handle(&connection, is_init);
            sys::leave(0);
        }
        Ok(Side::Parent(_)) => {}
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(11);
            talk::answer(&connection, Answer::Failed { step: Step::System, errno });
        }
    }
}

fn handle(connection: &UnixStream, is_init: bool) {
    let heard =
        connection.set_read_timeout(Some(PATIENCE)).and_then(|()| talk::request(connection));
    match heard {
        Err(_) => talk::answer(connection, Answer::Failed { step: Step::Request, errno: 22 }),
        Ok((Request::Run(run), descriptors)) => keeper::run(connection, &run, descriptors, is_init),
        Ok((Request::Connect { port, relay }, _)) => connect(connection, port, relay),
        Ok((Request::Watch, _)) => watch(connection),
        // Elsewhere than in a container of its own, everything would be far too much.
        Ok((Request::Terminate { .. }, _)) if !is_init => {
            talk::answer(connection, Answer::Failed { step: Step::Request, errno: 1 });
        }
        Ok((Request::Terminate { grace_ms }, _)) => {
            let spared = [1, std::process::id().cast_signed()];
            let forced = end_everything(&spared, Duration::from_millis(u64::from(grace_ms)));
            talk::answer(connection, Answer::Terminated { forced });
        }
    }
}

/// Ends all processes but the spared; says whether some had to be killed.
fn end_everything(spared: &[i32], grace: Duration) -> bool {
    for pid in tree::all_but(spared) {
        sys::send_signal(pid, SIGTERM);
    }
    if tree::empties(|| tree::all_but(spared), grace) {
        return false;
    }
    tree::kill_all(false, || tree::all_but(spared));
    true
}

/// Until whoever watches has gone.
fn watch(mut connection: &UnixStream) {
    let forever = connection.set_read_timeout(None);
    drop(forever.and_then(|()| connection.read(&mut [0])));
}

/// Connects to whoever listens in the container, on either family of addresses.
fn connect(connection: &UnixStream, port: u16, relay: bool) {
    let addresses = [(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()];
    let mut refusal = io::Error::from(io::ErrorKind::ConnectionRefused);
    for (nth, address) in addresses.iter().enumerate() {
        match TcpStream::connect_timeout(address, PATIENCE) {
            Ok(stream) if relay => {
                talk::answer(connection, Answer::Connected);
                return relay::both_ways(connection, &stream);
            }
            Ok(stream) => {
                return talk::answer_with(connection, Answer::Connected, Some(stream.as_raw_fd()));
            }
            // What the first said is what people expect to hear.
            Err(error) if nth == 0 => refusal = error,
            Err(_) => {}
        }
    }
    let errno = refusal.raw_os_error().unwrap_or(111);
    talk::answer(connection, Answer::Failed { step: Step::System, errno });
}
