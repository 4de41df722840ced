//! The files of an environment: shown over a shared base where the machine allows overlays,
//! cloned from one where the file system shares blocks, checked out elsewhere.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::ioctl_ficlone;
use serde::{Deserialize, Serialize};

use crate::base;
use crate::failure::{Attempt as _, Failure};
use crate::layout::{Home, Layout};
use crate::overlay;
use crate::repository::{Commit, Repository};
use crate::state::branch;

/// How the files came to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Shown over a shared checkout; only what changes is stored.
    Overlay,
    /// Blocks shared by the file system.
    Reflink,
    /// Written file by file.
    Checkout,
}

impl Mode {
    /// The best that works on the file system of `folder`.
    pub(crate) fn best_in(folder: &Path) -> Self {
        if overlay::works_in(folder) {
            Self::Overlay
        } else if reflinks_work_in(folder) {
            Self::Reflink
        } else {
            Self::Checkout
        }
    }

    pub(crate) fn needs_base(self) -> bool {
        self != Self::Checkout
    }
}

/// One environment's files, about to be made.
pub(crate) struct Making<'a> {
    pub(crate) repository: &'a Repository,
    pub(crate) home: &'a Home,
    pub(crate) id: &'a str,
    pub(crate) commit: &'a Commit,
    pub(crate) mode: Mode,
    pub(crate) worktree: &'a Path,
}

impl Making<'_> {
    /// Makes them. What was made when it fails is the caller's to take back.
    pub(crate) async fn make(&self) -> Result<(), Failure> {
        let step = "worktree";
        let layout = self.repository.layout();
        fs::create_dir(self.worktree).attempting(step, "could not make the worktree's folder")?;
        self.link_to_git(&layout).attempting(step, "could not make the worktree known to git")?;
        match self.mode {
            Mode::Checkout => {
                let store = layout.store();
                let index = self.home.git_dir(&store.git_dir).join("index");
                let written = base::check_out(&store, &self.commit.tree, self.worktree, &index);
                written.await.attempting(step, "could not check the commit out")?;
                base::submodules(
                    self.repository,
                    &self.commit.tree,
                    self.worktree,
                    base::Filling::Yes,
                )
                .await?;
            }
            Mode::Reflink | Mode::Overlay => {
                let base = base::get(self.repository, &self.commit.tree).await?;
                self.use_base(&layout, base)
                    .await
                    .attempting(step, "could not make the worktree of its base")?;
            }
        }
        let gitfile = self.worktree.join(".git");
        if !gitfile.exists() {
            fs::copy(self.home.gitfile(), gitfile)
                .attempting(step, "could not write the worktree's .git")?;
        }
        Ok(())
    }

    async fn use_base(&self, layout: &Layout, base: PathBuf) -> io::Result<()> {
        let index = self.home.git_dir(&layout.remote()).join("index");
        // git replaces an index and never writes into one, so that it may be shared.
        if fs::hard_link(base::index_of(&base), &index).is_err() {
            fs::copy(base::index_of(&base), &index)?;
        }
        if self.mode == Mode::Overlay {
            fs::create_dir(self.home.upper())?;
            fs::create_dir(self.home.work())?;
            fs::copy(self.home.gitfile(), self.home.upper().join(".git"))?;
            return overlay::show(&base, &self.home.upper(), &self.home.work(), self.worktree);
        }
        let worktree = self.worktree.to_owned();
        let cloning = tokio::task::spawn_blocking(move || clone_folder(&base, &worktree));
        cloning.await.map_err(io::Error::other)?
    }

    /// What `git worktree add` writes, for a worktree of the remote.
    fn link_to_git(&self, layout: &Layout) -> io::Result<()> {
        let git_dir = self.home.git_dir(&layout.remote());
        fs::create_dir_all(&git_dir)?;
        let line = |words: &str, path: &Path| {
            [words.as_bytes(), path.as_os_str().as_encoded_bytes(), b"\n"].concat()
        };
        fs::write(git_dir.join("HEAD"), format!("ref: {}\n", branch(self.id)))?;
        fs::write(git_dir.join("commondir"), "../..\n")?;
        fs::write(git_dir.join("gitdir"), line("", &self.worktree.join(".git")))?;
        fs::write(self.home.gitfile(), line("gitdir: ", &git_dir))
    }
}

/// Shows an overlay again that a restart of the machine took away.
pub(crate) fn show_again(
    layout: &Layout,
    home: &Home,
    worktree: &Path,
    tree: &str,
) -> io::Result<()> {
    if overlay::is_shown(worktree) {
        return Ok(());
    }
    fs::create_dir_all(worktree)?;
    // What the kernel left in it belongs to the mount that is gone.
    fs::remove_dir_all(home.work()).unwrap_or_default();
    fs::create_dir(home.work())?;
    overlay::show(&layout.base().join(tree), &home.upper(), &home.work(), worktree)
}

/// Takes the worktree and what git knows of it away, in a time that does not grow with it: what
/// is deleted is moved aside first. Gives the paths that are gone.
pub(crate) fn remove(layout: &Layout, home: &Home, worktree: &Path) -> io::Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    let hidden = overlay::hide(worktree);
    if worktree.symlink_metadata().is_ok() {
        hidden?;
        set_aside(layout, worktree)?;
        removed.push(worktree.to_owned());
    }
    let git_dir = home.git_dir(&layout.remote());
    if git_dir.exists() {
        fs::remove_dir_all(git_dir)?;
    }
    Ok(removed)
}

/// Moves something out of the way, to be deleted when there is time.
pub(crate) fn set_aside(layout: &Layout, path: &Path) -> io::Result<()> {
    fs::create_dir_all(layout.trash())?;
    fs::rename(path, layout.trash().join(uuid::Uuid::now_v7().simple().to_string()))
}

/// Deletes what was set aside, by anybody.
pub(crate) fn empty_trash(layout: &Layout) {
    let Ok(entries) = fs::read_dir(layout.trash()) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let deleted =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        if let Err(error) = deleted
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %path.display(), "something that was set aside stays");
        }
    }
}

fn reflinks_work_in(folder: &Path) -> bool {
    let attempt = || -> io::Result<()> {
        let place = tempfile::Builder::new().prefix("probe.").tempdir_in(folder)?;
        fs::write(place.path().join("a"), "x")?;
        clone_file(&place.path().join("a"), &place.path().join("b"))
    };
    attempt().is_ok()
}

fn clone_file(from: &Path, to: &Path) -> io::Result<()> {
    let (source, copy) = (fs::File::open(from)?, fs::File::create_new(to)?);
    ioctl_ficlone(&copy, &source)?;
    copy.set_permissions(source.metadata()?.permissions())
}

fn clone_folder(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, copy) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs::create_dir(&copy)?;
            clone_folder(&source, &copy)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&source)?, copy)?;
        } else {
            clone_file(&source, &copy)?;
        }
    }
    Ok(())
}
