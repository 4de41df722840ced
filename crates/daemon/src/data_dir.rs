//! The data directory: private to its user, owned by one daemon at a time, with the bearer
//! token, the instance's id and the address that the command line reads.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use cofer_store::DaemonIdentity;
use rustix::fs::OFlags;
use rustix::io::Errno;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::local_socket::LocalSocket;
use crate::token::{self, Token, TokenError};

#[path = "data_dir_lock.rs"]
mod lock;

use lock::DirLock;

const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// No file that is read here is longer than this.
const MAX_READ: u64 = token::MAX_CHARS as u64 * 4;

/// JavaScript counts no further than this.
const LAST_GENERATION: u64 = 1 << 53;
/// How many generations of events a run of the daemon has for itself: nearly four days of
/// 30 000 a second, and there is room for half a million starts in a row.
const GENERATIONS: u64 = 10_000_000_000;
/// No clock is believed beyond this many microseconds (the year 2112), so that one that was
/// wrong once does not use the numbers up.
const LATEST_CLOCK: u64 = 1 << 52;

/// An open data directory. Nobody else has it open while this value lives.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
    token: Token,
    owner_id: Uuid,
    _lock: DirLock,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// The system said no.
    #[error("could not {action} `{}`", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// It is somebody else's, who could then read the token and change what is run.
    #[error("the data directory `{}` belongs to user {owner}, not to user {user}", path.display())]
    NotOwned {
        /// The directory.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who we are.
        user: u32,
    },
    /// Another daemon has it.
    #[error("the data directory `{}` is in use by another daemon{}", path.display(), by_pid(*pid))]
    InUse {
        /// The directory.
        path: PathBuf,
        /// That daemon's process, where it could be read.
        pid: Option<u32>,
    },
    /// The token file is there and cannot serve.
    #[error("`{}` does not hold a usable token", path.display())]
    BadToken {
        /// The token file.
        path: PathBuf,
        /// What is wrong with it.
        source: TokenError,
    },
    /// A file in it is not one that this daemon wrote.
    #[error("`{}` cannot be trusted: it {problem}", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The system gave no randomness for a token.
    #[error("could not make a token")]
    NoRandomness(#[source] io::Error),
}

fn by_pid(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

impl DataDirError {
    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            Self::Io { .. } => "check that the directory and its file system can be written, or \
                                choose another with --data-dir"
                .to_owned(),
            Self::NotOwned { .. } => {
                "run the daemon as the directory's owner, or choose another with --data-dir"
                    .to_owned()
            }
            Self::InUse { pid, .. } => {
                let stop = pid.map_or_else(
                    || "stop the other daemon".to_owned(),
                    |pid| format!("stop the other daemon (kill {pid})"),
                );
                format!("{stop}, or choose another directory with --data-dir")
            }
            Self::BadToken { path, .. } => format!(
                "delete `{}` to have a new token made; clients then need the new one",
                path.display()
            ),
            Self::Untrusted { path, .. } => format!(
                "replace `{}` by a regular file of your own with mode 0600, or delete it to have a \
                 new one made",
                path.display()
            ),
            Self::NoRandomness(_) => "the system's getrandom does not work".to_owned(),
        }
    }
}

impl DataDir {
    /// Makes the directory where it is missing, makes it private, and takes it for this daemon.
    pub(crate) fn open(path: impl AsRef<Path>) -> Result<Self, DataDirError> {
        let path = path.as_ref();
        make_private_dir(path)?;
        let path = fs::canonicalize(path).map_err(|source| io_error("find", path, source))?;
        let lock = DirLock::take(&path)?;
        make_private_dir(&path.join("logs"))?;
        // A daemon that was killed leaves both.
        remove_if_there(&path.join("address"))?;
        LocalSocket::remove(&path)
            .map_err(|source| io_error("remove the socket of", &path, source))?;
        let token = read_or_make_token(&path.join("token"))?;
        let owner_id = read_or_make_instance(&path)?;
        Ok(Self { path, token, owner_id, _lock: lock })
    }

    /// The directory, as an absolute path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where logs are written.
    pub(crate) fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// What requests are authenticated with.
    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// Marks what this data directory's daemon runs. It stays over restarts and when the
    /// directory is moved; a copy of the directory gets its own, so that the daemon of a copy
    /// never takes the original's running servers for its orphans.
    pub(crate) fn owner_id(&self) -> Uuid {
        self.owner_id
    }

    /// This daemon as an owner of a database.
    pub(crate) fn identity(&self) -> Result<DaemonIdentity, DataDirError> {
        // Without a boot id no restart is recognised, and each waits for the previous lease.
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map_or_else(|_| Uuid::new_v4().to_string(), |text| text.trim().to_owned());
        let metadata = fs::metadata(&self.path);
        let device = metadata.map_err(|source| io_error("look at", &self.path, source))?.dev();
        Ok(DaemonIdentity { id: self.owner_id, host: format!("{boot} {device}") })
    }

    /// Behind which the generations of this run's events begin: above all that any earlier run
    /// gave out, also when the clock was set back since.
    ///
    /// The clock alone would do as long as it only goes forward. The file keeps where the last
    /// run began; it is not written while events go out, and so needs no clean end.
    pub(crate) fn first_generation(&self, now: OffsetDateTime) -> Result<u64, DataDirError> {
        let path = self.path.join("generation");
        let clock = u64::try_from(now.unix_timestamp_nanos() / 1000).unwrap_or(0);
        // A file that holds nothing usable is as good as none: the clock is nearly always right.
        let floor = read_private(&path)?
            .and_then(|text| text.trim().parse::<u64>().ok())
            .filter(|last| *last < LAST_GENERATION - GENERATIONS)
            .map_or(0, |last| last + GENERATIONS);
        let first = clock.min(LATEST_CLOCK).max(floor);
        write_private(&path, first.to_string().as_bytes())?;
        Ok(first)
    }

    /// Binds the socket at which local commands find the daemon.
    pub(crate) fn bind_socket(&self) -> Result<LocalSocket, DataDirError> {
        LocalSocket::bind(&self.path)
            .map_err(|source| io_error("bind the socket of", &self.path, source))
    }

    /// Writes where the daemon listens, for people and scripts, until this value is dropped.
    pub(crate) fn write_address(&self, url: &str) -> Result<(), DataDirError> {
        write_private(&self.path.join("address"), url.as_bytes())
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        // Best effort: what is left is also removed by the next daemon.
        LocalSocket::remove(&self.path).unwrap_or_default();
        remove_if_there(&self.path.join("address")).unwrap_or_default();
    }
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> DataDirError {
    DataDirError::Io { action, path: path.to_owned(), source }
}

/// Mode 0700 whatever the umask and whatever it was, and ours.
fn make_private_dir(path: &Path) -> Result<(), DataDirError> {
    DirBuilder::new()
        .recursive(true)
        .mode(DIR_MODE)
        .create(path)
        .map_err(|source| io_error("create the directory", path, source))?;
    let metadata = fs::metadata(path).map_err(|source| io_error("look at", path, source))?;
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user {
        return Err(DataDirError::NotOwned { path: path.to_owned(), owner: metadata.uid(), user });
    }
    if metadata.mode() & 0o7777 != DIR_MODE {
        fs::set_permissions(path, Permissions::from_mode(DIR_MODE))
            .map_err(|source| io_error("make private", path, source))?;
    }
    Ok(())
}

fn read_or_make_token(path: &Path) -> Result<Token, DataDirError> {
    match read_private(path)? {
        Some(text) => Token::new(&text)
            .map_err(|source| DataDirError::BadToken { path: path.to_owned(), source }),
        None => {
            let token =
                Token::random().map_err(|errno| DataDirError::NoRandomness(errno.into()))?;
            write_private(path, token.reveal().as_bytes())?;
            Ok(token)
        }
    }
}

/// The id stands beside the directory's inode: a copy has the id too, but another inode.
fn read_or_make_instance(dir: &Path) -> Result<Uuid, DataDirError> {
    let path = dir.join("instance");
    let inode = fs::metadata(dir).map_err(|source| io_error("look at", dir, source))?.ino();
    if let Some(id) = read_private(&path)?.and_then(|text| instance_of(&text, inode)) {
        return Ok(id);
    }
    let id = Uuid::new_v4();
    write_private(&path, format!("{id} {inode}").as_bytes())?;
    Ok(id)
}

fn instance_of(text: &str, inode: u64) -> Option<Uuid> {
    let (id, of) = text.trim().split_once(' ')?;
    (of.parse() == Ok(inode)).then_some(())?;
    Uuid::try_parse(id).ok()
}

/// The file's text, none where it is not there; made private where it is not. A file that
/// somebody else could write or that is elsewhere is refused: whoever puts a token of their own in
/// its place may run programs as this user.
fn read_private(path: &Path) -> Result<Option<String>, DataDirError> {
    // Not blocking: a FIFO in its place would hang the daemon.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return Err(untrusted(path, "is a symbolic link"));
        }
        Err(source) => return Err(io_error("read", path, source)),
    };
    let metadata = file.metadata().map_err(|source| io_error("look at", path, source))?;
    check_private(path, &metadata)?;
    let read = || -> io::Result<String> {
        if metadata.mode() & 0o7777 != FILE_MODE {
            file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        }
        let mut bytes = Vec::new();
        (&file).take(MAX_READ).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().map(Some).map_err(|source| io_error("read", path, source))
}

fn check_private(path: &Path, metadata: &Metadata) -> Result<(), DataDirError> {
    let user = rustix::process::geteuid().as_raw();
    if !metadata.is_file() {
        Err(untrusted(path, "is not a regular file"))
    } else if metadata.uid() != user {
        Err(untrusted(path, format!("belongs to user {}, not to user {user}", metadata.uid())))
    } else if metadata.nlink() != 1 {
        Err(untrusted(path, format!("has {} hard links", metadata.nlink())))
    } else {
        Ok(())
    }
}

fn untrusted(path: &Path, problem: impl Into<String>) -> DataDirError {
    DataDirError::Untrusted { path: path.to_owned(), problem: problem.into() }
}

/// Writes a file of mode 0600 that is there whole or not at all, also after a power failure.
fn write_private(path: &Path, bytes: &[u8]) -> Result<(), DataDirError> {
    let temporary = path.with_extension("tmp");
    remove_if_there(&temporary)?;
    let write = || {
        // Anew, so that no link in its place is followed.
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(FILE_MODE).open(&temporary)?;
        // The mode given on creation is cut by the umask.
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        file.write_all(bytes)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
    };
    write().map_err(|source| io_error("write", path, source))
}

fn remove_if_there(path: &Path) -> Result<(), DataDirError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io_error("remove", path, error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "data_dir_tests.rs"]
mod tests;
