//! Reads and writes a configuration that belongs to somebody else: as a whole, with the mode it
//! had, through the link that a person put in its place, and only where nobody else changed it
//! meanwhile.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown,
};
use std::path::{Path, PathBuf};

/// More than any configuration holds.
const LARGEST: u64 = 64 << 20;

/// Why a configuration cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("could not {attempt} `{}`", path.display())]
    Io { attempt: &'static str, path: PathBuf, source: io::Error },
    #[error("`{}` is not a regular file", .0.display())]
    NotAFile(PathBuf),
    #[error("`{}` belongs to another user", .0.display())]
    NotOurs(PathBuf),
    #[error("`{}` is larger than {LARGEST} bytes", .0.display())]
    TooLarge(PathBuf),
    #[error("`{}` is not UTF-8", .0.display())]
    NotText(PathBuf),
    #[error("`{}` was changed by somebody else meanwhile", .0.display())]
    Changed(PathBuf),
}

/// A configuration as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// Where a person finds it.
    pub(crate) path: PathBuf,
    /// Where it is, at the end of all links.
    target: PathBuf,
    /// What it held; none where it was not there.
    pub(crate) text: Option<String>,
}

impl Config {
    /// Reads it. That it is not there is no failure.
    pub(crate) fn read(path: &Path) -> Result<Self, FileError> {
        let target = target(path)?;
        let text = read(&target)?;
        Ok(Self { path: path.to_owned(), target, text })
    }

    /// Its text, empty where it is not there.
    pub(crate) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Puts `text` in its place, all at once. Returns the directories that had to be made, the
    /// innermost first.
    pub(crate) fn write(&self, text: &str) -> Result<Vec<PathBuf>, FileError> {
        let made = self.make_directories()?;
        let io =
            |attempt| move |source| FileError::Io { attempt, path: self.target.clone(), source };
        let beside = self.beside();
        let written = self.write_beside(&beside, text).map_err(io("write")).and_then(|()| {
            // Between reading and writing a person looked at the change, which takes time.
            match read(&self.target)? == self.text {
                true => fs::rename(&beside, &self.target).map_err(io("replace")),
                false => Err(FileError::Changed(self.path.clone())),
            }
        });
        if written.is_err() {
            fs::remove_file(&beside).ok();
        }
        written.map(|()| made)
    }

    /// Takes it away, with the directories that were made for it and hold nothing else.
    pub(crate) fn delete(&self, made: &[PathBuf]) -> Result<(), FileError> {
        if read(&self.target)? != self.text {
            return Err(FileError::Changed(self.path.clone()));
        }
        fs::remove_file(&self.target).map_err(|source| FileError::Io {
            attempt: "remove",
            path: self.target.clone(),
            source,
        })?;
        for directory in made {
            // One that somebody uses by now stays.
            if fs::remove_dir(directory).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn make_directories(&self) -> Result<Vec<PathBuf>, FileError> {
        let Some(parent) = self.target.parent() else {
            return Ok(Vec::new());
        };
        let missing = parent.ancestors().take_while(|directory| !directory.exists());
        let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(|source| {
            FileError::Io { attempt: "make the directory", path: parent.to_owned(), source }
        })?;
        Ok(missing)
    }

    /// A name in the same directory, so that the new file can take the place of the old one.
    fn beside(&self) -> PathBuf {
        let name = self.target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.target.with_file_name(format!(".{name}.cofer-{}", std::process::id()))
    }

    fn write_beside(&self, beside: &Path, text: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(beside)?;
        if let Ok(before) = fs::metadata(&self.target) {
            // Root may write for others; whoever cannot keep the owner keeps their own.
            fchown(&file, Some(before.uid()), Some(before.gid())).ok();
            file.set_permissions(fs::Permissions::from_mode(before.mode() & 0o7777))?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }
}

/// The end of all links, where the file itself may not be there yet.
fn target(path: &Path) -> Result<PathBuf, FileError> {
    let io = |source| FileError::Io { attempt: "follow", path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Ok(_) => fs::canonicalize(path).map_err(io),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(io(error)),
    }
}

fn read(path: &Path) -> Result<Option<String>, FileError> {
    let io = |source| FileError::Io { attempt: "read", path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
    };
    let about = file.metadata().map_err(io)?;
    let us = rustix::process::geteuid();
    if !about.is_file() {
        return Err(FileError::NotAFile(path.to_owned()));
    }
    if about.uid() != us.as_raw() && !us.is_root() {
        return Err(FileError::NotOurs(path.to_owned()));
    }
    if about.len() > LARGEST {
        return Err(FileError::TooLarge(path.to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).map_err(io)?;
    String::from_utf8(bytes).map(Some).map_err(|_| FileError::NotText(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_file_keeps_its_mode_and_its_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real.json"), dir.path().join("link.json"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real.json", &link).unwrap();
        let config = Config::read(&link).unwrap();
        assert_eq!(config.text(), "old");
        assert_eq!(config.write("new").unwrap(), [] as [PathBuf; 0]);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!((fs::read_to_string(&real).unwrap().as_str(), mode(&real)), ("new", 0o640));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left beside it");
    }

    #[test]
    fn what_was_made_is_taken_away_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c.json");
        let config = Config::read(&path).unwrap();
        assert_eq!(config.text, None);
        let made = config.write("{}").unwrap();
        assert_eq!(made, [dir.path().join("a/b"), dir.path().join("a")]);
        assert_eq!((mode(&path), mode(&dir.path().join("a"))), (0o600, 0o700));
        Config::read(&path).unwrap().delete(&made).unwrap();
        assert!(!dir.path().join("a").exists());
    }

    #[test]
    fn what_somebody_else_changed_meanwhile_is_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.json");
        fs::write(&path, "old").unwrap();
        let config = Config::read(&path).unwrap();
        fs::write(&path, "theirs").unwrap();
        assert!(matches!(config.write("ours"), Err(FileError::Changed(_))));
        assert!(matches!(config.delete(&[]), Err(FileError::Changed(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_text_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(Config::read(dir.path()), Err(FileError::NotAFile(_))));
        let path = dir.path().join("c.json");
        fs::write(&path, [0xff]).unwrap();
        assert!(matches!(Config::read(&path), Err(FileError::NotText(_))));
        let broken = dir.path().join("broken");
        symlink("nowhere", &broken).unwrap();
        assert!(matches!(Config::read(&broken), Err(FileError::Io { .. })));
    }
}
