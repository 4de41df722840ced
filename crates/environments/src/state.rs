//! What is known of an environment beyond the process that made it: one JSON file each, written
//! whole or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::config::EnvironmentConfig;
use crate::layout::{Home, Layout};
use crate::worktree::Mode;

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// Being made. Where nobody holds its lock, whoever made it died over it.
    Creating,
    /// There.
    Ready,
    /// Being taken away.
    Destroying,
}

/// What is known of an environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) id: String,
    pub(crate) title: String,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) created_at: OffsetDateTime,
    pub(crate) phase: Phase,
    /// The working tree that it was asked for in.
    pub(crate) source: PathBuf,
    pub(crate) worktree: PathBuf,
    pub(crate) mode: Mode,
    /// The tree of the base that its overlay lies over.
    pub(crate) base: Option<String>,
    /// The commit it began at.
    pub(crate) start: String,
    /// Folders that belong to another repository; what is in them is not recorded.
    pub(crate) submodules: Vec<String>,
    /// The container's name, which is chosen before there is one.
    pub(crate) container: String,
    pub(crate) container_id: Option<String>,
    pub(crate) config: EnvironmentConfig,
    /// Bytes that its container may write; none for environments of older versions.
    #[serde(default)]
    pub(crate) disk_limit: Option<u64>,
    /// Podman's global flags if its OCI runtime is a sandbox's; none for the engine's default.
    /// Podman keeps the runtime of a container, but not the runtime's flags.
    #[serde(default)]
    pub(crate) sandbox: Option<Vec<String>>,
    /// Who its commits are by.
    pub(crate) author: Author,
    /// Whether the `cofer` remote is one that somebody made elsewhere, and has to be pushed to.
    pub(crate) remote_elsewhere: bool,
}

/// Who commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Author {
    pub(crate) name: String,
    pub(crate) email: String,
}

impl State {
    /// The ref by which people name it.
    pub(crate) fn remote_ref(&self) -> String {
        format!("cofer/{}", self.id)
    }

    pub(crate) fn save(&self, home: &Home) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::other)?;
        let mut file = tempfile::NamedTempFile::new_in(&home.folder)?;
        io::Write::write_all(&mut file, &text)?;
        file.persist(home.state()).map_err(|error| error.error)?;
        Ok(())
    }

    /// Nothing where there is no such environment.
    pub(crate) fn load(home: &Home) -> io::Result<Option<Self>> {
        match fs::read(home.state()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            other => serde_json::from_slice(&other?).map(Some).map_err(io::Error::other),
        }
    }
}

/// All environments of a repository, by name.
pub(crate) fn ids(layout: &Layout) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(layout.environments()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut ids = Vec::new();
    for entry in entries {
        if let Ok(name) = entry?.file_name().into_string() {
            ids.push(name);
        }
    }
    ids.sort();
    Ok(ids)
}

/// The git branch of an environment in the remote.
pub(crate) fn branch(id: &str) -> String {
    format!("refs/heads/cofer/{id}")
}

/// The same branch as the source repository sees it.
pub(crate) fn tracking(id: &str) -> String {
    format!("refs/remotes/cofer/{id}")
}

/// The commit a branch is at, read as git writes it; nothing where it is not a file of its own.
pub(crate) fn loose_ref(git_dir: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(git_dir.join(name)).ok()?;
    let id = text.trim();
    let is_id =
        (id.len() == 40 || id.len() == 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| id.to_owned())
}
