//! The lock on a data directory.
//!
//! A POSIX record lock: it belongs to the process and ends with it. A lock by `flock` belongs to
//! the open file, which a child has as well after `fork`, and anybody to whom the descriptor was
//! passed: one that outlives a daemon that was killed would keep the next one out. The `flock` is
//! taken too, where it is free, since older versions look for nothing else.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, OFlags, fcntl_lock};
use rustix::io::Errno;

use super::{DataDirError, FILE_MODE, MAX_READ, io_error};

/// Device and inode of the directories that this process has locked. A record lock does not
/// exclude the process that holds it, and closing any descriptor of its file releases it: a second
/// attempt must not even open the file.
static HELD: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());

/// The word behind the pid in the lock file: its writer holds a record lock.
const RECORD_LOCK: &str = "record-lock";

/// Released when it is dropped, and by the end of the process.
#[derive(Debug)]
pub(super) struct DirLock {
    directory: (u64, u64),
    _file: File,
}

impl DirLock {
    pub(super) fn take(dir: &Path) -> Result<Self, DataDirError> {
        let metadata = fs::metadata(dir).map_err(|source| io_error("look at", dir, source))?;
        let directory = (metadata.dev(), metadata.ino());
        let in_use = |pid| DataDirError::InUse { path: dir.to_owned(), pid };
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if held.contains(&directory) {
            return Err(in_use(Some(std::process::id())));
        }
        let path = dir.join("lock");
        let mut file = open(&path).map_err(|source| io_error("open", &path, source))?;
        let writer = read(&file);
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::AGAIN | Errno::ACCESS) => return Err(in_use(writer.pid)),
            Err(errno) => return Err(io_error("lock", &path, errno.into())),
        }
        match file.try_lock() {
            Ok(()) => {}
            // Its holder is dead: what is locked is a descriptor that outlived it.
            Err(TryLockError::WouldBlock) if writer.has_record_lock => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(writer.pid)),
            Err(TryLockError::Error(source)) => return Err(io_error("lock", &path, source)),
        }
        write(&mut file).map_err(|source| io_error("write", &path, source))?;
        held.insert(directory);
        Ok(Self { directory, _file: file })
    }
}

impl Drop for DirLock {
    fn drop(&mut self) {
        HELD.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.directory);
    }
}

/// Not truncated on opening: the pid in it may be that of the daemon that holds it.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path)
}

/// Who wrote the lock file last.
struct Writer {
    pid: Option<u32>,
    has_record_lock: bool,
}

fn read(file: &File) -> Writer {
    let mut text = String::new();
    // A file that cannot be read tells as much as an empty one.
    file.take(MAX_READ).read_to_string(&mut text).unwrap_or_default();
    let mut words = text.split_ascii_whitespace();
    let pid = words.next().and_then(|word| word.parse().ok());
    Writer { pid, has_record_lock: words.next() == Some(RECORD_LOCK) }
}

fn write(file: &mut File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{} {RECORD_LOCK}", std::process::id())
}
