//! Writes what changed in a worktree into the history of its branch: files are read here, below
//! the worktree and never through a link, and handed to one `git fast-import`. That one knows no
//! working tree, no hooks, no filters and no attributes, so that nothing a container wrote is
//! ever more than bytes. The number of processes does not depend on the number of files.

use std::collections::HashSet;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::OFlags;

use crate::changes::{self, Below, Changes, Seen};
use crate::git::{Git, GitError};
use crate::git_view::GitView;
use crate::ignored::Ignored;
use crate::import::{Import, Put};
use crate::state::{Author, branch};

/// A file that git did not know before is recorded up to this size.
pub(crate) const LARGEST_NEW_FILE: u64 = 32 * 1024 * 1024;

/// Why changes were not recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HistoryError {
    #[error("could not look at the worktree")]
    Look(#[source] io::Error),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("git broke off")]
    Talk(#[source] io::Error),
}

/// Where and as whom to record.
#[derive(Debug, Clone)]
pub(crate) struct Place<'a> {
    pub(crate) store: &'a GitView,
    /// New objects go where the source repository has its own, so that it has them too.
    pub(crate) objects: &'a Path,
    pub(crate) worktree: &'a Path,
    /// The overlay's own record of changes, where there is one.
    pub(crate) upper: Option<&'a Path>,
    pub(crate) excludes: &'a Path,
    pub(crate) id: &'a str,
    pub(crate) author: &'a Author,
    pub(crate) submodules: &'a [String],
}

/// What is remembered from one look to the next.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Nothing where nobody has looked yet.
    seen: Option<Seen>,
    /// Ignored folders in which git knows nothing.
    skipped: HashSet<Below>,
    /// Ignored files elsewhere.
    ignored: HashSet<Below>,
}

impl Memory {
    /// What there is now counts as recorded.
    pub(crate) fn take(place: &Place<'_>) -> io::Result<Self> {
        let root = changes::open_root(place.looked_at())?;
        let seen = changes::look(root, b"", &HashSet::new())?;
        Ok(Self { seen: Some(changes::settled(seen, &HashSet::new())), ..Self::default() })
    }
}

/// What was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// The new commit; nothing where nothing had changed.
    pub(crate) commit: Option<String>,
    /// The commit before it.
    pub(crate) parent: Option<String>,
    /// New files that are too large.
    pub(crate) too_large: Vec<String>,
}

impl Place<'_> {
    /// Where changes show: the overlay's upper folder, or the worktree itself.
    fn looked_at(&self) -> &Path {
        self.upper.unwrap_or(self.worktree)
    }

    fn is_overlay(&self) -> bool {
        self.upper.is_some()
    }
}

/// Records what changed since the last time, with `message`.
pub(crate) fn record(
    place: &Place<'_>,
    memory: &mut Memory,
    message: &str,
) -> Result<Recorded, HistoryError> {
    let look = HistoryError::Look;
    let upper = changes::open_root(place.looked_at()).map_err(look)?;
    let mut seen = changes::look(&upper, b"", &memory.skipped).map_err(look)?;
    let empty = Seen::new();
    let mut found = changes::compare(memory.seen.as_ref().unwrap_or(&empty), &seen);
    if found.is_empty() && (memory.seen.is_some() || place.is_overlay()) {
        memory.seen = Some(changes::settled(seen, &memory.skipped));
        return Ok(Recorded::default());
    }
    let is_rule = |path: &Below| path.rsplit(|byte| *byte == b'/').next() == Some(b".gitignore");
    if found.written.iter().chain(&found.removed).any(is_rule) {
        // What was ignored may not be any more.
        memory.skipped.clear();
        let ignored = std::mem::take(&mut memory.ignored);
        if let Some(seen) = &mut memory.seen {
            seen.retain(|path, _| !ignored.contains(path));
        }
        seen = changes::look(&upper, b"", &memory.skipped).map_err(look)?;
        found = changes::compare(memory.seen.as_ref().unwrap_or(&empty), &seen);
    }
    let mut import = Import::start(place)?;
    let recorded = match write(place, memory, &mut import, found, message) {
        // What git says about it says more than a closed pipe.
        Err(HistoryError::Talk(error)) => {
            return Err(import.finish().err().map_or(HistoryError::Talk(error), Into::into));
        }
        other => other?,
    };
    import.finish()?;
    // As it was before it was read: what changed meanwhile shows next time.
    memory.seen = Some(changes::settled(seen, &memory.skipped));
    Ok(recorded)
}

fn write(
    place: &Place<'_>,
    memory: &mut Memory,
    import: &mut Import,
    mut found: Changes,
    message: &str,
) -> Result<Recorded, HistoryError> {
    let root = changes::open_root(place.worktree).map_err(HistoryError::Look)?;
    let parent = tip(place)?;
    let talk = HistoryError::Talk;
    if memory.seen.is_none() && !place.is_overlay() {
        found.removed.extend(missing(place, &parent, &root)?);
    }
    for folder in &found.replaced {
        let inside = changes::look(&root, folder, &HashSet::new()).unwrap_or_default();
        let is_file =
            |what: &changes::What| matches!(what, changes::What::File(_) | changes::What::Link(_));
        found
            .written
            .extend(inside.into_iter().filter(|(_, what)| is_file(what)).map(|(path, _)| path));
    }
    found.written.sort();
    found.written.dedup();
    let foreign: HashSet<Below> =
        place.submodules.iter().map(|path| path.as_bytes().into()).collect();
    found.written.retain(|path| !foreign.contains(path) && !changes::is_below_any(path, &foreign));
    found.removed.retain(|path| !foreign.contains(path) && !changes::is_below_any(path, &foreign));
    found.replaced.retain(|path| !foreign.contains(path) && !changes::is_below_any(path, &foreign));
    let written = wanted(place, memory, import, &parent, found.written)?;

    let before = import.tree_of(&parent).map_err(talk)?;
    import.begin(place, &parent, message).map_err(talk)?;
    for path in found.removed.iter().chain(&found.replaced) {
        import.delete(path).map_err(talk)?;
    }
    let mut recorded = Recorded { parent: Some(parent.clone()), ..Recorded::default() };
    for Wanted { path, known } in &written {
        if import.put(&root, path, *known).map_err(talk)? == Put::TooLarge {
            recorded.too_large.push(String::from_utf8_lossy(path).into_owned());
        }
    }
    let after = import.tree().map_err(talk)?;
    if before == after {
        import.undo(&parent).map_err(talk)?;
    } else {
        recorded.commit = Some(import.commit_id().map_err(talk)?);
    }
    Ok(recorded)
}

/// The commit that the branch is at.
fn tip(place: &Place<'_>) -> Result<String, HistoryError> {
    let name = branch(place.id);
    if let Some(id) = crate::state::loose_ref(&place.store.git_dir, &name) {
        return Ok(id);
    }
    let said =
        ask(Git::within(place.store).call(["rev-parse", "--verify", "--end-of-options", &name]))?;
    Ok(String::from_utf8_lossy(&said).trim().to_owned())
}

/// Paths of `commit` that are not in the worktree.
fn missing(place: &Place<'_>, commit: &str, root: &OwnedFd) -> Result<Vec<Below>, HistoryError> {
    let listed =
        ask(Git::within(place.store).call(["ls-tree", "-r", "-z", "--name-only", commit]))?;
    let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    let is_missing = |path: &&[u8]| changes::open_below(root, path, OFlags::PATH).is_err();
    Ok(paths.filter(is_missing).map(Into::into).collect())
}

fn ask(git: Git) -> Result<Vec<u8>, HistoryError> {
    let mut running = git.start()?;
    drop(running.child.stdin.take());
    let mut said = Vec::new();
    if let Some(stdout) = running.child.stdout.as_mut() {
        stdout.read_to_end(&mut said).map_err(HistoryError::Talk)?;
    }
    running.finish()?;
    Ok(said)
}

/// A path to be recorded.
struct Wanted {
    path: Below,
    /// Whether git knows it already.
    known: bool,
}

/// Those of `paths` that git knows, or that nothing ignores.
fn wanted(
    place: &Place<'_>,
    memory: &mut Memory,
    import: &mut Import,
    parent: &str,
    paths: Vec<Below>,
) -> Result<Vec<Wanted>, HistoryError> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let talk = HistoryError::Talk;
    let mut rules = Ignored::start(place.store, place.worktree, place.excludes)?;
    let mut folders: Vec<Below> =
        paths.iter().flat_map(|path| changes::ancestors(path).map(Into::into)).collect();
    folders.sort();
    folders.dedup();
    let ignored_folders = rules.among(&folders).map_err(talk)?;
    for folder in &folders {
        let outermost =
            ignored_folders.contains(folder) && !changes::is_below_any(folder, &ignored_folders);
        if outermost && !import.knows(parent, folder).map_err(talk)? {
            memory.skipped.insert(folder.clone());
        }
    }
    let paths: Vec<Below> =
        paths.into_iter().filter(|path| !changes::is_below_any(path, &memory.skipped)).collect();
    let ignored = rules.among(&paths).map_err(talk)?;
    rules.finish()?;
    let mut wanted = Vec::with_capacity(paths.len());
    for path in paths {
        let is_ignored = ignored.contains(&path);
        let known = is_ignored && import.knows(parent, &path).map_err(talk)?;
        if !is_ignored || known {
            wanted.push(Wanted { path, known });
        } else {
            memory.ignored.insert(path);
        }
    }
    Ok(wanted)
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
