//! A git directory as Cofer's git commands see it: HEAD and index are the repository's own, objects
//! and refs too, and the configuration is generated.
//!
//! Git reads the configuration, hooks and attributes of `$GIT_COMMON_DIR`, which is a directory of
//! ours here: symbolic links to the repository's objects and refs beside our `config`. This is the
//! layout of git's own linked worktrees (gitrepository-layout(5), `commondir`).

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

/// Entries of a repository's common directory that git reads and writes: data, never programs. Not
/// `hooks`, `config`, `info/attributes`, `info/grafts`, `modules` and `worktrees`.
const LINKED: [&str; 7] =
    ["objects", "refs", "packed-refs", "reftable", "logs", "shallow", "info/exclude"];

/// A git directory and the directory that git takes its configuration from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitView {
    pub(crate) git_dir: PathBuf,
    pub(crate) common: PathBuf,
}

impl GitView {
    /// The same configuration for another git directory of the same repository: a worktree's.
    pub(crate) fn of_worktree(&self, git_dir: PathBuf) -> Self {
        Self { git_dir, common: self.common.clone() }
    }
}

/// Writes the directory `view` for the repository whose common directory is `common`. What is
/// already there and right is left alone, as another process may be using it.
pub(crate) fn write(view: &Path, common: &Path, config: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(view.join("info"))?;
    if common.is_dir() {
        // Git does not create this one through a link.
        fs::create_dir_all(common.join("logs"))?;
    }
    for name in LINKED {
        link(&common.join(name), &view.join(name))?;
    }
    let file = view.join("config");
    if fs::read(&file).is_ok_and(|found| found == config) {
        return Ok(());
    }
    let mut written = tempfile::NamedTempFile::new_in(view)?;
    written.write_all(config)?;
    written.persist(file).map_err(|error| error.error)?;
    Ok(())
}

/// A link to a file that does not exist yet is right: git creates `packed-refs` and `shallow`
/// through it. `reftable` is there from the beginning or never.
fn link(target: &Path, link: &Path) -> io::Result<()> {
    if fs::read_link(link).is_ok_and(|found| found == target) {
        return Ok(());
    }
    if link.ends_with("reftable") && !target.exists() {
        return Ok(());
    }
    // Replaced in one step, for the same reason.
    let aside = link.with_file_name(format!(".{}", uuid::Uuid::now_v7().simple()));
    symlink(target, &aside)?;
    fs::rename(aside, link)
}
