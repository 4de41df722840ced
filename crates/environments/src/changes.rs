//! What has changed in a worktree since it was last looked at, found without git: from the
//! overlay's own record of changes, else by looking at every file. Nothing here follows a link,
//! because a container writes what is read.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, open, openat, openat2, statat,
};
use rustix::io::Errno;

/// A path below the worktree, as bytes: names may be anything.
pub(crate) type Below = Box<[u8]>;

/// Deeper than people nest folders; a container that goes further is not followed.
const DEEPEST: usize = 200;

/// How long a file's time may stand still while it is written to, on kernels that count in ticks.
const TICK: Duration = Duration::from_millis(20);

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    File(Stamp),
    Link(Stamp),
    Folder,
    /// A folder that hides the one of the base; another one of that name has another stamp.
    NewFolder(Stamp),
    /// Nothing, where the base has something.
    Gone,
}

/// By which a change of a file is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    size: u64,
    mode: u32,
    changed: (i64, u64),
    modified: (i64, u64),
}

impl Stamp {
    /// Like none that is found.
    const UNKNOWN: Self = Self { inode: 0, size: 0, mode: 0, changed: (0, 0), modified: (0, 0) };

    fn new(found: &Stat) -> Self {
        Self {
            inode: found.st_ino,
            size: found.st_size.cast_unsigned(),
            mode: found.st_mode,
            changed: (found.st_ctime, found.st_ctime_nsec),
            modified: (found.st_mtime, found.st_mtime_nsec),
        }
    }

    /// Whether it changed so lately that it may have changed again unseen.
    fn is_fresh(&self, now: SystemTime) -> bool {
        let limit = now
            .checked_sub(TICK)
            .and_then(|limit| limit.duration_since(SystemTime::UNIX_EPOCH).ok());
        let limit = limit.unwrap_or_default();
        let changed = (self.changed.0, self.changed.1);
        changed >= (limit.as_secs().cast_signed(), u64::from(limit.subsec_nanos()))
    }
}

/// Everything that was seen.
pub(crate) type Seen = HashMap<Below, What>;

/// What changed, in the order in which it has to be recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Gone, or something else now.
    pub(crate) removed: Vec<Below>,
    /// Folders whose contents are all to be recorded.
    pub(crate) replaced: Vec<Below>,
    /// Files and links that are new or other than they were.
    pub(crate) written: Vec<Below>,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.replaced.is_empty() && self.written.is_empty()
    }
}

/// Opens a folder to look at things below it.
pub(crate) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?)
}

/// Opens what is at `path` below `root`, wherever links there may point.
pub(crate) fn open_below(root: impl AsFd, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    // One that is opened to be read must not be waited for, and openat2 knows no such flags for
    // one that is not.
    let reading = if flags.contains(OFlags::PATH) {
        OFlags::empty()
    } else {
        OFlags::NONBLOCK | OFlags::NOCTTY
    };
    let flags = flags | reading | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(root, OsStr::from_bytes(path), flags, Mode::empty(), resolve)?)
}

/// All that is below `at` in `root`, but for the folders in `skipped`, and all that is git's.
pub(crate) fn look(root: impl AsFd, at: &[u8], skipped: &HashSet<Below>) -> io::Result<Seen> {
    let mut seen = Seen::new();
    let folder = if at.is_empty() {
        openat(root, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?
    } else {
        open_below(root, at, OFlags::RDONLY | OFlags::DIRECTORY)?
    };
    look_into(&folder, at, skipped, 0, &mut seen)?;
    Ok(seen)
}

fn look_into(
    folder: &OwnedFd,
    at: &[u8],
    skipped: &HashSet<Below>,
    depth: usize,
    seen: &mut Seen,
) -> io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") || name.to_bytes().eq_ignore_ascii_case(b".git")
        {
            continue;
        }
        let path: Below = match at {
            b"" => name.to_bytes().into(),
            at => [at, b"/", name.to_bytes()].concat().into(),
        };
        let found = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            // Gone between two looks.
            Err(Errno::NOENT) => continue,
            other => other?,
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => drop(seen.insert(path, What::File(Stamp::new(&found)))),
            FileType::Symlink => drop(seen.insert(path, What::Link(Stamp::new(&found)))),
            // How an overlay records that something is gone.
            FileType::CharacterDevice if found.st_rdev == 0 => drop(seen.insert(path, What::Gone)),
            FileType::Directory if depth < DEEPEST => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let below = match openat(folder, name, flags, Mode::empty()) {
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                    other => other?,
                };
                let what = if hides_base(&below) {
                    What::NewFolder(Stamp::new(&found))
                } else {
                    What::Folder
                };
                if !skipped.contains(&path) {
                    look_into(&below, &path, skipped, depth + 1, seen)?;
                }
                seen.insert(path, what);
            }
            _ => {}
        }
    }
    Ok(())
}

/// How an overlay records that a folder is not the one of the base: opaque, or moved there.
fn hides_base(folder: &OwnedFd) -> bool {
    ["trusted.overlay.opaque", "trusted.overlay.redirect"].into_iter().any(|name| {
        let mut value = [0_u8; 1];
        let read = rustix::fs::fgetxattr(folder, name, &mut value[..]);
        match (name, read) {
            ("trusted.overlay.opaque", Ok(1)) => value[0] == b'y',
            (_, Ok(_) | Err(Errno::RANGE)) => true,
            _ => false,
        }
    })
}

/// What is other than it was.
pub(crate) fn compare(old: &Seen, new: &Seen) -> Changes {
    let mut changes = Changes::default();
    for (path, what) in new {
        let before = old.get(path);
        if before == Some(what) {
            continue;
        }
        let other_sort = before
            .is_some_and(|before| std::mem::discriminant(before) != std::mem::discriminant(what));
        match what {
            What::File(_) | What::Link(_) => changes.written.push(path.clone()),
            What::Gone => changes.removed.push(path.clone()),
            What::NewFolder(_) => changes.replaced.push(path.clone()),
            What::Folder if other_sort => changes.removed.push(path.clone()),
            What::Folder => {}
        }
    }
    let vanished =
        old.iter().filter(|(path, what)| !new.contains_key(*path) && **what != What::Gone);
    changes.removed.extend(vanished.map(|(path, _)| path.clone()));
    changes.removed.sort();
    changes.replaced.sort();
    changes.written.sort();
    changes
}

/// What may be relied on next time: that something is there, and how it was unless it changed a
/// moment ago; and nothing about what is skipped.
pub(crate) fn settled(mut seen: Seen, skipped: &HashSet<Below>) -> Seen {
    let now = SystemTime::now();
    seen.retain(|path, what| {
        if let What::File(stamp) | What::Link(stamp) | What::NewFolder(stamp) = what
            && stamp.is_fresh(now)
        {
            *stamp = Stamp::UNKNOWN;
        }
        !is_below_any(path, skipped)
    });
    seen
}

/// Whether one of `folders` is above `path`.
pub(crate) fn is_below_any(path: &[u8], folders: &HashSet<Below>) -> bool {
    !folders.is_empty() && ancestors(path).any(|above| folders.contains(above))
}

/// The folders above `path`, the outermost first.
pub(crate) fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn seen(folder: &Path) -> Seen {
        look(open_root(folder).unwrap(), b"", &HashSet::new()).unwrap()
    }

    #[test]
    fn a_change_is_seen_and_no_change_is_none() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::create_dir(path("d")).unwrap();
        fs::write(path("d/a"), "1").unwrap();
        fs::write(path("b"), "1").unwrap();
        let before = seen(place.path());
        assert!(compare(&before, &seen(place.path())).is_empty());
        fs::write(path("d/a"), "22").unwrap();
        fs::remove_file(path("b")).unwrap();
        fs::write(path("new\nname"), "").unwrap();
        let changes = compare(&before, &seen(place.path()));
        assert_eq!(changes.removed, [Below::from(*b"b")]);
        assert_eq!(changes.written, [Below::from(*b"d/a"), Below::from(*b"new\nname")]);
    }

    #[test]
    fn what_is_gits_is_never_looked_at_and_links_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("sub/.GIT/hooks")).unwrap();
        fs::write(place.path().join("sub/.GIT/hooks/x"), "").unwrap();
        std::os::unix::fs::symlink("/etc", place.path().join("etc")).unwrap();
        let found = seen(place.path());
        let mut names: Vec<&[u8]> = found.keys().map(AsRef::as_ref).collect();
        names.sort_unstable();
        assert_eq!(names, [b"etc".as_slice(), b"sub"]);
        let root = open_root(place.path()).unwrap();
        assert!(open_below(&root, b"etc/passwd", OFlags::RDONLY).is_err());
        assert!(open_below(&root, b"../x", OFlags::RDONLY).is_err());
        std::os::unix::fs::symlink("sub", place.path().join("inside")).unwrap();
        fs::write(place.path().join("sub/x"), "").unwrap();
        assert!(open_below(&root, b"sub/x", OFlags::RDONLY).is_ok());
        assert!(open_below(&root, b"inside/x", OFlags::RDONLY).is_err());
        assert!(look(&root, b"etc", &HashSet::new()).is_err());
    }

    #[test]
    fn what_changed_a_moment_ago_is_looked_at_again() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("a"), "1").unwrap();
        let remembered = settled(seen(place.path()), &HashSet::new());
        assert_eq!(compare(&remembered, &seen(place.path())).written, [Below::from(*b"a")]);
        fs::remove_file(place.path().join("a")).unwrap();
        assert_eq!(compare(&remembered, &seen(place.path())).removed, [Below::from(*b"a")]);
    }

    #[test]
    fn a_container_that_nests_folders_without_end_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let deep = place.path().join("d/".repeat(DEEPEST + 5));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("a"), "1").unwrap();
        fs::write(place.path().join("a"), "1").unwrap();
        let found = seen(place.path());
        assert!(found.contains_key(b"a".as_slice()));
        assert_eq!(found.len(), DEEPEST + 1, "as many folders, and the file beside them");
    }

    #[test]
    fn a_folder_in_the_place_of_a_file_removes_the_file() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("a"), "1").unwrap();
        let before = seen(place.path());
        fs::remove_file(place.path().join("a")).unwrap();
        fs::create_dir(place.path().join("a")).unwrap();
        fs::write(place.path().join("a/b"), "1").unwrap();
        let changes = compare(&before, &seen(place.path()));
        assert_eq!((changes.removed.len(), changes.written.len()), (1, 1));
    }
}
