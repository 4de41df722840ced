//! `cofer init`: prepares a repository for environments and records it, and undoes both. Running it
//! again changes nothing.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::{Attempt as _, Failure, Kind};
use crate::git::{Git, GitError};
use crate::git_config::GitConfig;
use crate::registry::Registry;
use crate::repository::{REMOTE, Repository};

/// What keeps the worktrees out of `git status`.
const EXCLUDED: &str = ".cofer/";

/// What every branch of ours is fetched as.
const REFSPEC: &str = "+refs/heads/cofer/*:refs/remotes/cofer/*";

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The repository's working tree.
    pub top: PathBuf,
    /// Where the `cofer` remote points.
    pub remote: PathBuf,
    /// Whether there was nothing to do.
    pub already: bool,
    /// Whether the remote is one that somebody made elsewhere.
    pub foreign: bool,
}

/// What was undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// The repository's working tree.
    pub top: PathBuf,
    /// Branches of environments that are gone with the remote, with the commit each was at.
    pub branches: Vec<(String, String)>,
    /// Whether there was nothing to undo.
    pub already: bool,
}

/// Adds the `cofer` remote to the repository that `folder` is in, and records the repository.
pub(crate) async fn init(registry: &Registry, folder: &Path) -> Result<Prepared, Failure> {
    let repository = Repository::discover(registry, folder).await?;
    let layout = repository.layout();
    let ours = layout.remote();
    layout.prepare().attempting("init", "could not make the folders for environments")?;
    make_store(&repository).await?;
    let excluded = exclude(&repository).attempting("init", "could not write info/exclude")?;
    let settings =
        repository.settings().await.attempting("init", "could not read git's settings")?;
    let (remote, foreign) = match settings.remote {
        Some(remote) if remote != ours && !is_stale(&remote) => (remote, true),
        _ => (ours.clone(), false),
    };
    let mut already = !excluded;
    if !foreign {
        already &= !point_remote(&repository, &ours)
            .await
            .attempting("init", "could not add the remote")?;
    }
    already &= registry.find(&repository.top).is_ok();
    registry.record_now(&repository.found())?;
    Ok(Prepared { top: repository.top, remote, already, foreign })
}

/// A remote that was ours before the repository was moved.
fn is_stale(remote: &Path) -> bool {
    remote.ends_with("cofer/remote.git") && !remote.exists()
}

/// The bare repository behind the remote. It borrows the objects of the repository it is in.
pub(crate) async fn make_store(repository: &Repository) -> Result<(), Failure> {
    let layout = repository.layout();
    let store = layout.remote();
    if !store.join("HEAD").exists() {
        // Made aside and moved, so that nobody sees half of it.
        let aside = layout.home().join(format!("remote.{}", uuid::Uuid::now_v7().simple()));
        let format = format!("--object-format={}", repository.object_format);
        let made =
            Git::creating(&aside).call(["init", "--quiet", "--bare", "--template=", &format]);
        made.bytes().await.attempting("init", "could not make the remote")?;
        let filled = fill_store(&aside).and_then(|()| fs::rename(&aside, &store));
        if let Err(error) = filled
            && !store.join("HEAD").exists()
        {
            fs::remove_dir_all(&aside).unwrap_or_default();
            return Err(Failure::internal("init", "could not make the remote", &error));
        }
        fs::remove_dir_all(&aside).unwrap_or_default();
    }
    share_shallow(repository, &store)
        .attempting("init", "could not share what a shallow clone lacks")
}

fn fill_store(store: &Path) -> io::Result<()> {
    fs::create_dir_all(store.join("objects/info"))?;
    fs::create_dir_all(store.join("info"))?;
    // Relative, so that the repository may be moved.
    fs::write(store.join("objects/info/alternates"), "../../../objects\n")
}

/// What a shallow clone lacks, its remote lacks too.
fn share_shallow(repository: &Repository, store: &Path) -> io::Result<()> {
    let link = store.join("shallow");
    match (repository.shallow, link.symlink_metadata().is_ok()) {
        (true, false) => std::os::unix::fs::symlink("../../shallow", link),
        (false, true) => fs::remove_file(link),
        _ => Ok(()),
    }
}

/// Whether something had to be changed.
async fn point_remote(repository: &Repository, ours: &Path) -> Result<bool, GitError> {
    let read = |key: &'static str| config(repository).call(["--get-all", key]).bytes();
    let (url, fetch) = tokio::join!(read("remote.cofer.url"), read("remote.cofer.fetch"));
    let wanted = [ours.as_os_str().as_encoded_bytes(), b"\n"].concat();
    if url.is_ok_and(|url| url == wanted)
        && fetch.is_ok_and(|fetch| fetch == format!("{REFSPEC}\n").as_bytes())
    {
        return Ok(false);
    }
    let set = |key: &str, value: &OsStr| {
        config(repository).call(["--replace-all".as_ref(), key.as_ref(), value]).patiently()
    };
    set("remote.cofer.url", ours.as_os_str()).await?;
    set("remote.cofer.fetch", REFSPEC.as_ref()).await?;
    set("remote.cofer.tagOpt", "--no-tags".as_ref()).await?;
    Ok(true)
}

/// `git config` on the repository's own file.
fn config(repository: &Repository) -> Git {
    let file = repository.config_file();
    Git::without_repository().call(["config".as_ref(), "--file".as_ref(), file.as_os_str()])
}

/// Whether the line had to be added.
fn exclude(repository: &Repository) -> io::Result<bool> {
    let file = repository.common.join("info/exclude");
    let text = read_or_empty(&file)?;
    if text.lines().any(|line| line == EXCLUDED) {
        return Ok(false);
    }
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    fs::create_dir_all(repository.common.join("info"))?;
    fs::write(file, format!("{text}{gap}{EXCLUDED}\n"))?;
    Ok(true)
}

fn read_or_empty(file: &Path) -> io::Result<String> {
    match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => Ok(String::from_utf8_lossy(&other?).into_owned()),
    }
}

/// Takes the remote and everything else of ours away again. Environments have to be gone.
pub(crate) async fn remove(registry: &Registry, folder: &Path) -> Result<Undone, Failure> {
    let repository = Repository::discover(registry, folder).await?;
    let layout = repository.layout();
    let left = crate::state::ids(&layout).attempting("init", "could not look for environments")?;
    if !left.is_empty() {
        let message = format!(
            "{} is still used by environments: {}",
            repository.top.display(),
            left.join(", ")
        );
        let recovery = "destroy them first: `cofer env destroy --all`.";
        return Err(Failure::new(Kind::Conflict, "init", message, recovery));
    }
    let settings =
        repository.settings().await.attempting("init", "could not read git's settings")?;
    let branches = branches(&repository).await;
    let is_ours = settings
        .remote
        .as_deref()
        .is_some_and(|remote| remote == layout.remote() || is_stale(remote));
    if is_ours {
        let removing = remove_remote(&repository, &branches);
        removing.await.attempting("init", "could not remove the remote")?;
    }
    let there = layout.home().exists();
    let excluded = include_again(&repository).attempting("init", "could not write info/exclude")?;
    delete(&layout).attempting("init", "could not remove our folders")?;
    registry
        .forget(&repository.top)
        .and_then(|()| remove_folder(&repository.views))
        .attempting("init", "could not remove the record of the repository")?;
    Ok(Undone { top: repository.top, branches, already: !is_ours && !there && !excluded })
}

/// As `git remote remove` does it, which would edit the generated configuration.
async fn remove_remote(
    repository: &Repository,
    branches: &[(String, String)],
) -> Result<(), GitError> {
    let own = GitConfig::read(&repository.config_file()).await?;
    for branch in own.branches_of(REMOTE) {
        for name in ["remote", "merge"] {
            let key = format!("branch.{branch}.{name}");
            match config(repository).call(["--unset-all", &key]).patiently().await {
                // It is not set.
                Err(GitError::Failed { status: Some(5), .. }) | Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
    }
    for (name, _) in branches {
        let reference = format!("refs/remotes/{name}");
        repository.git().call(["update-ref", "-d", &reference]).patiently().await?;
    }
    let section = format!("remote.{REMOTE}");
    config(repository).call(["--remove-section", &section]).patiently().await.map(drop)
}

async fn branches(repository: &Repository) -> Vec<(String, String)> {
    let format = "--format=%(refname:lstrip=2) %(objectname)";
    let listed =
        repository.git().call(["for-each-ref", format, "refs/remotes/cofer/"]).text().await;
    let listed = listed.unwrap_or_default();
    let pair = |line: &str| line.split_once(' ').map(|(name, id)| (name.to_owned(), id.to_owned()));
    listed.lines().filter_map(pair).collect()
}

fn include_again(repository: &Repository) -> io::Result<bool> {
    let file = repository.common.join("info/exclude");
    let text = read_or_empty(&file)?;
    if !text.lines().any(|line| line == EXCLUDED) {
        return Ok(false);
    }
    let kept: String =
        text.split_inclusive('\n').filter(|line| line.trim_end_matches('\n') != EXCLUDED).collect();
    if kept.is_empty() {
        fs::remove_file(file)?;
    } else {
        fs::write(file, kept)?;
    }
    Ok(true)
}

fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn delete(layout: &crate::layout::Layout) -> io::Result<()> {
    remove_folder(layout.home())?;
    // Whatever else is in there is not ours.
    drop(fs::remove_dir(layout.worktrees()));
    if let Some(folder) = layout.worktrees().parent() {
        drop(fs::remove_dir(folder));
    }
    Ok(())
}
