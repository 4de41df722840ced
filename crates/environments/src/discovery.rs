//! Finds the repository that a folder is in, for `cofer init`: without git, and without reading more
//! than the two files that link a working tree to its git directory.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use crate::failure::{Failure, Kind};

/// Longer than a path may be.
const LONGEST_LINK: u64 = 8192;

/// A working tree and its git directories. All paths are canonical.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) top: PathBuf,
    /// Has HEAD and the index.
    pub(crate) git_dir: PathBuf,
    /// Has objects and refs; the same where the working tree is the repository's first.
    pub(crate) common: PathBuf,
}

/// The canonical path of `folder`, refused if it is inside an environment's worktree: a container
/// can write everything there, a repository and its configuration too.
pub(crate) fn canonical(folder: &Path) -> Result<PathBuf, Failure> {
    let path = fs::canonicalize(folder).ok().filter(|path| path.is_dir());
    let path = path.ok_or_else(|| not_a_repository(folder, "there is no such directory"))?;
    if is_in_worktrees(folder) || is_in_worktrees(&path) {
        return Err(not_a_repository(
            folder,
            "it is inside the worktree of an environment; name the repository it was made from",
        ));
    }
    Ok(path)
}

/// Whether `.cofer/worktrees` is part of the path.
fn is_in_worktrees(path: &Path) -> bool {
    let parts: Vec<Component<'_>> = path.components().collect();
    let wanted = [".cofer", "worktrees"].map(|name| Component::Normal(name.as_ref()));
    parts.windows(2).any(|pair| pair == wanted)
}

/// The repository that `folder` is in.
pub(crate) fn discover(folder: &Path) -> Result<Found, Failure> {
    let path = canonical(folder)?;
    let top = path.ancestors().find(|top| top.join(".git").symlink_metadata().is_ok());
    let top = top.ok_or_else(|| {
        let bare = ["HEAD", "objects", "refs"].iter().all(|name| path.join(name).exists());
        let why = if bare { "it has no working tree" } else { "it is not a git repository" };
        not_a_repository(folder, why)
    })?;
    let found = git_dirs(top).map_err(|error| {
        let dot_git = top.join(".git");
        not_a_repository(folder, &format!("{} is not usable: {error}", dot_git.display()))
    })?;
    // Also behind a `.git` file that points there.
    for directory in [&found.git_dir, &found.common] {
        if is_in_worktrees(directory) || directory.ends_with("cofer/remote.git") {
            return Err(not_a_repository(
                folder,
                "its git directory belongs to an environment; name the repository it was made from",
            ));
        }
    }
    Ok(found)
}

fn git_dirs(top: &Path) -> io::Result<Found> {
    let dot_git = top.join(".git");
    let git_dir = if dot_git.is_dir() {
        dot_git
    } else {
        let text = read_link_file(&dot_git)?;
        let path = text.strip_prefix(b"gitdir: ").ok_or(io::ErrorKind::InvalidData)?;
        top.join(OsStr::from_bytes(path))
    };
    let git_dir = fs::canonicalize(git_dir)?;
    let common = match read_link_file(&git_dir.join("commondir")) {
        Ok(path) => fs::canonicalize(git_dir.join(OsStr::from_bytes(&path)))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => git_dir.clone(),
        Err(error) => return Err(error),
    };
    fs::metadata(git_dir.join("HEAD"))?;
    fs::metadata(common.join("objects"))?;
    Ok(Found { top: top.to_owned(), git_dir, common })
}

fn read_link_file(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(LONGEST_LINK).read_to_end(&mut bytes)?;
    let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
    bytes.truncate(end);
    Ok(bytes)
}

pub(crate) fn not_a_repository(folder: &Path, why: &str) -> Failure {
    let message = format!("unable to open repository '{}': {why}", folder.display());
    let recovery = "give the absolute path of a git repository with a working tree in `environment_source`; `git init` makes one, `cofer init` prepares it.";
    Failure::new(Kind::PreconditionFailed, "repository", message, recovery)
}
