//! The directory of one start: where Podman writes a container's id and pid, and where it
//! finds variables. Only this user can look into it, and it is gone when the start is over.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// What all of them begin with, so that a later daemon finds what a killed one left.
const PREFIX: &str = "run-";

/// See the module. Removed on drop.
#[derive(Debug)]
pub(crate) struct RunFiles(PathBuf);

impl RunFiles {
    /// A new, empty one below `state_dir`, which is made where it is missing.
    pub(crate) fn make(state_dir: &Path, run: &str) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(state_dir)?;
        let path = state_dir.join(format!("{PREFIX}{run}"));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file that only this user can read.
    pub(crate) fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(self.0.join(name))?;
        file.write_all(text.as_bytes())
    }

    /// A file's text without the space around it, where it is there and has one.
    pub(crate) fn read(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.0.join(name)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

impl Drop for RunFiles {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::debug!(path = %self.0.display(), %error, "files of a start are left");
        }
    }
}

/// Removes what daemons that were killed left in `state_dir`.
pub(crate) fn clear(state_dir: &Path) {
    let entries = fs::read_dir(state_dir).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        if let Err(error) = fs::remove_dir_all(entry.path()) {
            tracing::debug!(path = %entry.path().display(), %error, "old files are left");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn nobody_else_reads_them_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let files = RunFiles::make(&state, "1").unwrap();
        files.write("environment", "KEY=secret\n").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&state), mode(files.path())), (0o700, 0o700));
        assert_eq!(mode(&files.path().join("environment")), 0o600);
        assert_eq!(files.read("environment").as_deref(), Some("KEY=secret"));
        assert_eq!(files.read("id"), None);
        drop(files);
        assert_eq!(fs::read_dir(&state).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_daemon_left_is_cleared() {
        let dir = tempfile::tempdir().unwrap();
        std::mem::forget(RunFiles::make(dir.path(), "2").unwrap());
        fs::write(dir.path().join("other"), "").unwrap();
        clear(dir.path());
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1);
    }
}
