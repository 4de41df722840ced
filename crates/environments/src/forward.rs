//! Makes a port of a container answer on this machine: a small process of its own per port, which
//! goes on without the server that started it and ends with the container.
//!
//! It listens here, and the executor connects there and hands the connection over, or relays it if
//! it runs in a sandbox. The container never holds a socket of this machine.

use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::executor::Executor;
use crate::wire::{Answer, Request};

/// What such a process is called, and how it knows that it is one.
pub const NAME: &str = "cofer-forward";

/// The argument for a container that is a sandbox.
const RELAY: &str = "relay";

/// How many connections one port has at a time.
const MOST_CONNECTIONS: usize = 1024;

/// Starts a process that forwards to `port`, and gives the port that it listens on.
pub(crate) fn start(program: &Path, executor: &Executor, port: u16) -> std::io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let here = listener.local_addr()?.port();
    let mut command = cofer_runtime::detached(program, OwnedFd::from(listener));
    command.arg0(NAME).arg(executor.folder()).arg(port.to_string()).env_clear();
    command.args(executor.is_sandboxed().then_some(RELAY));
    let mut child = command.spawn()?;
    // It outlives this process; while both are there, this one reaps it.
    tokio::task::spawn_blocking(move || drop(child.wait()));
    Ok(here)
}

/// Whether this process was started to forward a port.
pub fn is_invocation() -> bool {
    std::env::args_os().next().is_some_and(|name| name == NAME)
}

/// Forwards until the container is gone.
pub fn run() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let (Some(folder), Some(port)) = (args.next(), args.next()) else { return ExitCode::from(2) };
    let Some(port) = port.to_str().and_then(|port| port.parse().ok()) else {
        return ExitCode::from(2);
    };
    let executor = Executor::in_folder(folder.into(), args.next().is_some_and(|how| how == RELAY));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let forwarded = runtime.and_then(|runtime| runtime.block_on(forward(executor, port)));
    if forwarded.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

async fn forward(executor: Executor, port: u16) -> std::io::Result<()> {
    let listener: TcpListener = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?.into();
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let gone = executor.ask(&Request::Watch, Vec::new()).await?.gone();
    tokio::pin!(gone);
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let place = Arc::clone(&places).acquire_owned().await.map_err(std::io::Error::other)?;
        tokio::select! {
            () = &mut gone => return Ok(()),
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => {
                let (client, _) = accepted?;
                let executor = executor.clone();
                connections.spawn(async move {
                    drop(join(client, &executor, port).await);
                    drop(place);
                });
            }
        }
    }
}

async fn join(mut client: TcpStream, executor: &Executor, port: u16) -> std::io::Result<()> {
    let relay = executor.is_sandboxed();
    let mut asked = executor.ask(&Request::Connect { port, relay }, Vec::new()).await?;
    let (Answer::Connected, descriptor) = asked.answer().await? else { return Ok(()) };
    client.set_nodelay(true)?;
    if relay {
        return copy_bidirectional(&mut client, &mut asked.into_stream()).await.map(drop);
    }
    let Some(descriptor) = descriptor else { return Ok(()) };
    let mut server = connection(descriptor)?;
    server.set_nodelay(true)?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

/// What the executor handed over, where it is a connection.
fn connection(descriptor: OwnedFd) -> std::io::Result<TcpStream> {
    let stream = std::net::TcpStream::from(descriptor);
    stream.peer_addr()?;
    stream.set_nonblocking(true)?;
    TcpStream::from_std(stream)
}
