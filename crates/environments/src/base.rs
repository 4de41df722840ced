//! Checkouts that nobody writes to: one for each tree that environments were made of. Overlays
//! lie over them, and copies are made of them where the file system copies for nothing.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::failure::{Attempt as _, Failure, Kind};
use crate::git::{Git, GitError};
use crate::git_config;
use crate::git_view::{self, GitView};
use crate::layout::Layout;
use crate::lock::Lock;
use crate::repository::Repository;

/// How many that no environment uses are kept for the next one.
const SPARE: usize = 4;

/// A folder that belongs to another repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Submodule {
    pub(crate) path: String,
    /// Why there is nothing in it.
    pub(crate) empty: Option<String>,
}

/// The base of `tree`, made where it is not there.
pub(crate) async fn get(repository: &Repository, tree: &str) -> Result<PathBuf, Failure> {
    let layout = repository.layout();
    let base = layout.base().join(tree);
    if base.is_dir() {
        touch(&base);
        return Ok(base);
    }
    let lock = Lock::wait(layout.lock(&format!("base-{tree}"))).await;
    let lock = lock.attempting("base", "could not lock the base checkout")?;
    // Whoever had the lock before may have made it.
    let made = if base.is_dir() { Ok(()) } else { make(repository, tree, &base).await };
    lock.remove();
    made.map(|()| base)
}

async fn make(repository: &Repository, tree: &str, base: &Path) -> Result<(), Failure> {
    let layout = repository.layout();
    let aside = layout.base().join(format!(".{}", uuid::Uuid::now_v7().simple()));
    let index = aside.with_extension("index");
    let made = fill(repository, tree, &aside, &index).await.and_then(|()| {
        let finish = || -> io::Result<()> {
            fs::rename(&index, index_of(base))?;
            fs::rename(&aside, base)
        };
        finish().attempting("base", "could not keep the base checkout")
    });
    if made.is_err() {
        fs::remove_dir_all(&aside).unwrap_or_default();
        fs::remove_file(&index).unwrap_or_default();
    }
    made
}

/// The index that belongs to a base.
pub(crate) fn index_of(base: &Path) -> PathBuf {
    base.with_extension("index")
}

async fn fill(
    repository: &Repository,
    tree: &str,
    folder: &Path,
    index: &Path,
) -> Result<(), Failure> {
    fs::create_dir(folder).attempting("base", "could not make a folder for the checkout")?;
    let store = repository.layout().store();
    check_out(&store, tree, folder, index).await.map_err(|error| explain(&error))?;
    for submodule in submodules(repository, tree, folder, Filling::Yes).await? {
        if let Some(why) = submodule.empty {
            tracing::info!(path = submodule.path, why, "a submodule stays empty");
        }
    }
    Ok(())
}

fn explain(error: &GitError) -> Failure {
    let missing = matches!(error, GitError::Failed { words, .. } if words.contains("missing") || words.contains("unable to read"));
    if missing {
        let message = format!("the repository lacks files of that commit: {error}");
        let recovery = "it may be a partial clone: ask the user to run `git fetch --refetch --no-filter`, or to check the commit out once.";
        return Failure::new(Kind::PreconditionFailed, "base", message, recovery);
    }
    Failure::internal("base", "could not check the commit out", error)
}

/// Writes all files of `tree` into `folder`, on several threads, and what git knows of them into
/// `index`.
pub(crate) async fn check_out(
    view: &GitView,
    tree: &str,
    folder: &Path,
    index: &Path,
) -> Result<(), GitError> {
    Git::within(view)
        .in_work_tree(folder)
        .variable("GIT_INDEX_FILE", index)
        .setting("core.bare=false")
        .setting("checkout.workers=8")
        .setting("checkout.thresholdForParallelism=100")
        .setting("core.fsync=none")
        .call(["read-tree", "--reset", "-u", tree])
        .bytes()
        .await
        .map(drop)
}

/// Whether submodules are filled, or only looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filling {
    Yes,
    No,
}

/// The submodules of `tree`, filled in `folder` where the source has what they need; nothing is
/// fetched.
pub(crate) async fn submodules(
    repository: &Repository,
    tree: &str,
    folder: &Path,
    filling: Filling,
) -> Result<Vec<Submodule>, Failure> {
    if !folder.join(".gitmodules").symlink_metadata().is_ok_and(|found| found.is_file()) {
        return Ok(Vec::new());
    }
    let listed =
        Git::within(&repository.layout().store()).call(["ls-tree", "-r", "-z", tree]).bytes().await;
    let listed = listed.attempting("base", "could not list submodules")?;
    let names = names(folder).await;
    let mut found = Vec::new();
    for entry in listed.split(|byte| *byte == 0) {
        let text = String::from_utf8_lossy(entry);
        let Some((head, path)) = text.split_once('\t') else { continue };
        let Some(commit) = head.strip_prefix("160000 commit ") else { continue };
        let name = names.iter().find(|(_, at)| at == path).map(|(name, _)| name.as_str());
        let place = folder.join(path);
        let empty = match filling {
            _ if !is_empty(&place) => None,
            Filling::Yes => fill_submodule(repository, name, commit, &place).await.err(),
            Filling::No => Some("the source did not have its files".to_owned()),
        };
        found.push(Submodule { path: path.to_owned(), empty });
    }
    Ok(found)
}

/// Name and path of each.
async fn names(folder: &Path) -> Vec<(String, String)> {
    let asked = [
        "config",
        "--no-includes",
        "-z",
        "--file",
        ".gitmodules",
        "--get-regexp",
        r"^submodule\..*\.path$",
    ];
    let git = Git::without_repository().at(folder);
    let said = git.call(asked).bytes().await.unwrap_or_default();
    let text = String::from_utf8_lossy(&said).into_owned();
    let pair = |entry: &str| {
        let (key, path) = entry.split_once('\n')?;
        let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?;
        Some((name.to_owned(), path.to_owned()))
    };
    text.split('\0').filter_map(pair).collect()
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none())
}

async fn fill_submodule(
    repository: &Repository,
    name: Option<&str>,
    commit: &str,
    folder: &Path,
) -> Result<(), String> {
    let name = name.filter(|name| !name.split('/').any(|part| part == ".." || part.is_empty()));
    let name = name.ok_or("it has no usable name in .gitmodules")?;
    let module = repository.common.join("modules").join(name);
    if !module.is_dir() {
        return Err("it is not initialised in the source".to_owned());
    }
    let index = tempfile::NamedTempFile::new_in(repository.layout().home())
        .map_err(|error| error.to_string())?;
    let index = index.into_temp_path();
    // An empty file is no index.
    fs::remove_file(&index).unwrap_or_default();
    // A submodule has a configuration of its own, which may name filters.
    let view = GitView { git_dir: module.clone(), common: repository.layout().module_view() };
    let config = git_config::of_store(&repository.object_format);
    git_view::write(&view.common, &module, &config).map_err(|error| error.to_string())?;
    let checked_out = check_out(&view, commit, folder, &index).await;
    fs::remove_dir_all(&view.common).unwrap_or_default();
    checked_out.map_err(|error| error.to_string())
}

fn touch(base: &Path) {
    let now = fs::FileTimes::new().set_modified(SystemTime::now());
    // Only decides which base is thrown away first.
    drop(fs::File::open(index_of(base)).and_then(|file| file.set_times(now)));
}

/// Throws bases away that no environment uses, but for the last few. Gives what was removed.
pub(crate) fn prune(
    layout: &Layout,
    used: &HashSet<String>,
    spare: Option<usize>,
) -> io::Result<Vec<PathBuf>> {
    let mut idle = Vec::new();
    for entry in fs::read_dir(layout.base())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || path.extension().is_some() || used.contains(&name) {
            continue;
        }
        let age = index_of(&path).metadata().and_then(|found| found.modified()).ok();
        idle.push((age, path));
    }
    idle.sort();
    let surplus = idle.len().saturating_sub(spare.unwrap_or(SPARE));
    let mut removed = Vec::new();
    for (_, path) in idle.into_iter().take(surplus) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Whoever makes or uses it now holds the lock.
        let Some(lock) = Lock::try_now(&layout.lock(&format!("base-{name}")))? else { continue };
        let gone = layout.trash().join(uuid::Uuid::now_v7().simple().to_string());
        fs::rename(&path, gone)?;
        fs::remove_file(index_of(&path)).unwrap_or_default();
        lock.remove();
        removed.push(path);
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Source, git};

    /// A submodule that names its own place would be checked out of a repository that a container
    /// wrote. The filters of the module's own configuration are not run either.
    #[tokio::test]
    async fn a_submodule_comes_from_the_sources_own_modules_and_from_nowhere_else() {
        let source = Source::with(&[("README", "")]).await;
        let evil = Source::with(&[("code", "1\n"), (".gitattributes", "* filter=x\n")]).await;
        let proof = source.join("proof");
        let smudge = format!("touch {}; cat", proof.display());
        evil.git(&["config", "filter.x.smudge", &smudge]).await;
        fs::rename(evil.path(), source.join("evil")).unwrap();
        let commit = git(&source.join("evil"), &["rev-parse", "HEAD"]).await;
        for (name, filled) in [
            ("../../evil/.git", false),
            ("a/../../../evil/.git", false),
            (source.join("evil/.git").to_str().unwrap(), false),
            ("good", true),
        ] {
            source.write(".gitmodules", &format!("[submodule \"{name}\"]\n\tpath = lib\n"));
            let link = format!("160000,{commit},lib");
            source.git(&["update-index", "--add", "--cacheinfo", &link, ".gitmodules"]).await;
            source.git(&["commit", "-q", "-m", "a submodule"]).await;
            let repository = source.prepared().await;
            fs::create_dir_all(source.join(".git/modules/a")).unwrap();
            if filled {
                fs::rename(source.join("evil/.git"), source.join(".git/modules/good")).unwrap();
            }
            let tree = repository.commit("HEAD").await.unwrap().tree;
            let folder = get(&repository, &tree).await.unwrap();
            assert_eq!(folder.join("lib/code").exists(), filled, "{name}");
            assert!(!proof.exists(), "{name}");
        }
    }
}
