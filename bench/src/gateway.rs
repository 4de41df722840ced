//! What a session of the gateway costs: many of them, each with its stream open, held at once.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::daemon::Daemon;
use crate::process;
use crate::report::{Goal, Wanted};

const SESSIONS: usize = 1000;
const PATIENCE: Duration = Duration::from_secs(30);

/// What the daemon grows by for each session.
pub async fn goals(bin: &Path) -> io::Result<Vec<Goal>> {
    let daemon = Daemon::start(&bin.join("cofer")).await?;
    daemon.register("held", &bin.join("echo-server"), 1).await?;
    // The first session brings what all of them use.
    let mut open = vec![session(&daemon).await?];
    let before = process::memory(daemon.pid(), "status", "VmRSS")?;
    for _ in 0..SESSIONS {
        open.push(session(&daemon).await?);
    }
    let after = process::memory(daemon.pid(), "status", "VmRSS")?;
    let each = after.saturating_sub(before) as f64 / SESSIONS as f64 / 1024.0;
    drop(open);
    daemon.stop().await?;
    Ok(vec![Goal {
        what: format!("gateway: memory of an open session with its stream ({SESSIONS} held)"),
        is: Some(each),
        wanted: Wanted::AtMost(50.0),
        unit: " KiB",
    }])
}

/// Opens a session and its stream of what the server says.
async fn session(daemon: &Daemon) -> io::Result<TcpStream> {
    let session = daemon.open_session("held").await?;
    let mut stream = TcpStream::connect(("127.0.0.1", daemon.port)).await?;
    stream.write_all(&daemon.listen_request("held", &session)).await?;
    let mut head = Vec::new();
    while memchr::memmem::find(&head, b"\r\n\r\n").is_none() {
        if timeout(PATIENCE, stream.read_buf(&mut head)).await?? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    if head.starts_with(b"HTTP/1.1 200") {
        Ok(stream)
    } else {
        Err(io::Error::other(String::from_utf8_lossy(&head).into_owned()))
    }
}
