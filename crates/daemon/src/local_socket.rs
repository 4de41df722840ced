//! Authenticates the daemon to local commands: a Unix socket in the data directory answers every
//! connection with the address of the daemon.
//!
//! A file with the address survives a daemon that was killed. If another program then listens on
//! its port, a command that trusted the file would send it the token. The socket is answered by a
//! live process only, and nobody but the user of the private directory can bind it.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixListener;

const NAME: &str = "socket";
/// More than an address is not read.
const MAX_ANSWER: u64 = 4096;
/// How long a daemon may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// The pause after `accept` failed.
const PAUSE: Duration = Duration::from_millis(100);

/// The daemon of a data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalDaemon {
    /// Such as `http://127.0.0.1:8787`.
    pub url: String,
    /// The daemon's `--public-url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// The daemon's process, as the kernel names it.
    #[serde(skip)]
    pub pid: u32,
}

/// Asks the daemon of this data directory for its address. An error where none runs.
pub fn find_daemon(data_dir: &Path) -> io::Result<LocalDaemon> {
    let directory = File::open(data_dir)?;
    let stream = UnixStream::connect(short_path(&directory))?;
    let credentials = socket_peercred(&stream)?;
    let (owner, peer) = (directory.metadata()?.uid(), credentials.uid.as_raw());
    if peer != owner {
        let why =
            format!("its socket is served by user {peer}, and the directory belongs to {owner}");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    stream.set_read_timeout(Some(ANSWER))?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut answer)?;
    let daemon: LocalDaemon = serde_json::from_slice(&answer)?;
    Ok(LocalDaemon { pid: credentials.pid.as_raw_nonzero().get().unsigned_abs(), ..daemon })
}

/// The socket's path in at most 108 bytes, which is all that `sockaddr_un` holds.
fn short_path(directory: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{NAME}", directory.as_raw_fd()))
}

/// The daemon's end.
pub(crate) struct LocalSocket(UnixListener);

impl LocalSocket {
    /// Replaces the socket of a daemon that was killed. The caller holds the directory's lock.
    pub(crate) fn bind(data_dir: &Path) -> io::Result<Self> {
        let directory = File::open(data_dir)?;
        Self::remove(data_dir)?;
        let listener = UnixListener::bind(short_path(&directory))?;
        fs::set_permissions(data_dir.join(NAME), Permissions::from_mode(0o600))?;
        Ok(Self(listener))
    }

    /// Removes the socket where there is one.
    pub(crate) fn remove(data_dir: &Path) -> io::Result<()> {
        match fs::remove_file(data_dir.join(NAME)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Answers every connection with the daemon's addresses. One after the other: an answer fits into the buffer of
    /// a new socket, so that no client can delay another.
    pub(crate) async fn serve(self, url: String, public_url: Option<String>) {
        let daemon = LocalDaemon { url, public_url, pid: 0 };
        let answer = serde_json::to_vec(&daemon).unwrap_or_default();
        loop {
            match self.0.accept().await {
                // A client that is gone needs no answer.
                Ok((mut stream, _)) => stream.write_all(&answer).await.unwrap_or_default(),
                Err(error) => {
                    tracing::warn!(%error, "a local command could not be answered");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a command finds in `dir` while `answer` is served there.
    async fn find(dir: &Path) -> io::Result<LocalDaemon> {
        let dir = dir.to_owned();
        tokio::task::spawn_blocking(move || find_daemon(&dir)).await.unwrap()
    }

    #[tokio::test]
    async fn the_address_comes_from_the_live_daemon_and_from_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        // Longer than a socket's path may be.
        let dir = root.path().join("d".repeat(150));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("address"), "http://127.0.0.1:1").unwrap();
        assert_eq!(find(&dir).await.unwrap_err().kind(), io::ErrorKind::NotFound);

        let url = "http://127.0.0.1:4321".to_owned();
        let socket = LocalSocket::bind(&dir).unwrap();
        let mode = fs::metadata(dir.join(NAME)).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o600);
        tokio::select! {
            () = socket.serve(url.clone(), None) => unreachable!("it never ends"),
            found = async {
                find(&dir).await.unwrap();
                find(&dir).await
            } => assert_eq!(found.unwrap(), LocalDaemon { url, public_url: None, pid: std::process::id() }),
        }

        // As a daemon that was killed leaves it.
        assert_eq!(find(&dir).await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        drop(LocalSocket::bind(&dir).unwrap());
    }
}
