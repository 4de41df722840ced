//! A file beside a database: it remembers that the database was in use, and is its lock. An empty file would otherwise pass for a
//! new installation: after a restore that failed, a daemon would start without any server, and
//! nobody would be told.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;

fn marker(database: &Path) -> PathBuf {
    let mut path = OsString::from(database);
    path.push(".initialized");
    path.into()
}

/// Whether the database was in use before.
pub(super) fn is_there(database: &Path) -> io::Result<bool> {
    marker(database).try_exists()
}

/// Remembers that the database is in use, also over a power failure, and locks it for this process
/// while the returned file is open: two daemons with data directories of their own may name one
/// database. None where another process has it. A record lock, which no forked child keeps.
pub(super) fn hold(database: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(marker(database))?;
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::AGAIN | Errno::ACCESS) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    }
    file.sync_all()?;
    database.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())?;
    Ok(Some(file))
}
