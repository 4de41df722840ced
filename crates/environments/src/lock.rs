//! Keeps two from changing the same thing at once: a lock file per environment, and per base
//! checkout while it is made. There is no lock that all wait for.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// Held until it is dropped. The kernel takes it from a process that dies.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Waits for it, on a thread that may wait.
    pub(crate) async fn wait(path: PathBuf) -> io::Result<Self> {
        let waiting = tokio::task::spawn_blocking(move || Self::wait_here(&path));
        waiting.await.map_err(io::Error::other)?
    }

    /// Waits for it on this thread.
    pub(crate) fn wait_here(path: &Path) -> io::Result<Self> {
        loop {
            if let Some(lock) = Self::take(path, FlockOperation::LockExclusive)? {
                return Ok(lock);
            }
        }
    }

    /// Takes it where nobody has it.
    pub(crate) fn try_now(path: &Path) -> io::Result<Option<Self>> {
        match Self::take(path, FlockOperation::NonBlockingLockExclusive) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            other => other,
        }
    }

    /// Nothing where the file was removed by its last owner while it was waited for.
    fn take(path: &Path, how: FlockOperation) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        flock(&file, how)?;
        let held = file.metadata()?;
        let found = path.metadata().ok();
        let same =
            found.is_some_and(|found| (found.dev(), found.ino()) == (held.dev(), held.ino()));
        Ok(same.then(|| Self { file, path: path.to_owned() }))
    }

    /// Gives it back and leaves no file.
    pub(crate) fn remove(self) {
        // Removed while it is held: whoever waits sees that it is another file now.
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "a lock file stays");
        }
        drop(self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_at_a_time_and_nothing_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let held = Lock::wait(path.clone()).await.unwrap();
        assert!(Lock::try_now(&path).unwrap().is_none());
        let mut next = {
            let mut waiting = tokio::task::JoinSet::new();
            waiting.spawn(Lock::wait(path.clone()));
            waiting
        };
        held.remove();
        let next = next.join_next().await.unwrap().unwrap().unwrap();
        assert!(path.exists(), "the next owner has a file of its own");
        next.remove();
        assert!(!path.exists());
    }
}
