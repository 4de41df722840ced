//! Where everything is: below the repository's own git directory, so that `git clean` does not
//! meet it; only the worktrees are where people look for them.
//!
//! ```text
//!  .cofer/worktrees/ID                  the worktree
//!  .git/cofer/remote.git                the `cofer` remote, which borrows the objects beside it
//!  .git/cofer/base/TREE, TREE.index     checkouts that overlays share, never written to
//!  .git/cofer/environments/ID/          state.json, pid, upper, work, run (the executor's
//!                                       socket), background (logs), commands (the last ones), gitfile
//!  .git/cofer/locks/                    held while something of that name changes
//!  .git/cofer/trash/                    what is being deleted
//! ```

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::git_view::GitView;
use crate::repository::Repository;

/// Where everything of one repository is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    top: PathBuf,
    home: PathBuf,
    views: PathBuf,
}

impl Layout {
    pub(crate) fn new(repository: &Repository) -> Self {
        Self {
            top: repository.top.clone(),
            home: repository.common.join("cofer"),
            views: repository.views.clone(),
        }
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    pub(crate) fn remote(&self) -> PathBuf {
        self.home.join("remote.git")
    }

    /// The remote's git directory with our configuration.
    pub(crate) fn store(&self) -> GitView {
        GitView { git_dir: self.remote(), common: self.views.join("store") }
    }

    /// A folder for the git configuration of a submodule.
    pub(crate) fn module_view(&self) -> PathBuf {
        self.views.join(format!("module.{}", uuid::Uuid::now_v7().simple()))
    }

    pub(crate) fn objects(&self) -> PathBuf {
        // `home` lies in the common directory by construction.
        self.home.with_file_name("objects")
    }

    pub(crate) fn base(&self) -> PathBuf {
        self.home.join("base")
    }

    pub(crate) fn environments(&self) -> PathBuf {
        self.home.join("environments")
    }

    pub(crate) fn environment(&self, id: &str) -> Home {
        Home { folder: self.environments().join(id), id: id.to_owned() }
    }

    pub(crate) fn lock(&self, name: &str) -> PathBuf {
        self.home.join("locks").join(name)
    }

    pub(crate) fn trash(&self) -> PathBuf {
        self.home.join("trash")
    }

    pub(crate) fn worktrees(&self) -> PathBuf {
        self.top.join(".cofer/worktrees")
    }

    /// Makes the folders, and refuses to make them behind a link that the repository brought.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        for path in [self.top.join(".cofer"), self.worktrees()] {
            if path.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
                let why = format!("{} is a symbolic link", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
        }
        for path in [self.base(), self.home.join("locks")] {
            fs::create_dir_all(path)?;
        }
        // With rootful Podman a container's root is this machine's root: other users of the
        // machine must not reach a setuid program that it leaves. The container can chmod the
        // top of its own tree, so the directories around it are the ones to be closed.
        for path in [self.worktrees(), self.environments(), self.trash()] {
            fs::create_dir_all(&path)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
        }
        Ok(())
    }
}

/// Where everything of one environment is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) folder: PathBuf,
    id: String,
}

impl Home {
    pub(crate) fn state(&self) -> PathBuf {
        self.folder.join("state.json")
    }

    pub(crate) fn upper(&self) -> PathBuf {
        self.folder.join("upper")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// Shared with the container: only the executor's socket is in it.
    pub(crate) fn run(&self) -> PathBuf {
        self.folder.join("run")
    }

    pub(crate) fn background(&self) -> PathBuf {
        self.folder.join("background")
    }

    /// Its last commands.
    pub(crate) fn journal(&self) -> PathBuf {
        self.folder.join("commands")
    }

    /// The pid of the container's first process, written by Podman at every start.
    pub(crate) fn pidfile(&self) -> PathBuf {
        self.folder.join("pid")
    }

    /// Exists after its container was killed over its disk limit.
    pub(crate) fn disk_full(&self) -> PathBuf {
        self.folder.join("disk-full")
    }

    /// What stands in the worktree's `.git`, for the container read-only.
    pub(crate) fn gitfile(&self) -> PathBuf {
        self.folder.join("gitfile")
    }

    /// The worktree's folder in the remote.
    pub(crate) fn git_dir(&self, remote: &Path) -> PathBuf {
        remote.join("worktrees").join(&self.id)
    }
}
