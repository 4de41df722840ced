//! A person's repository, as environments are made from it: where it is, what its `cofer` remote
//! is, which commit a ref names, and what is not committed.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Kind};
use crate::git::{Git, GitError};
use crate::layout::Layout;
use crate::reference;

/// The remote's name.
pub(crate) const REMOTE: &str = "cofer";

/// A repository with a working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The working tree that was named.
    pub(crate) top: PathBuf,
    /// What all of its working trees share.
    pub(crate) common: PathBuf,
    pub(crate) shallow: bool,
    pub(crate) object_format: String,
}

/// What its settings say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Where the `cofer` remote points.
    pub(crate) remote: Option<PathBuf>,
    /// Who commits.
    pub(crate) name: Option<String>,
    pub(crate) email: Option<String>,
    pub(crate) excludes: Option<PathBuf>,
}

/// A commit and its tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) id: String,
    pub(crate) tree: String,
}

impl Repository {
    /// Finds the repository that `folder` is in.
    pub async fn open(folder: &Path) -> Result<Self, Failure> {
        if !folder.is_dir() {
            return Err(not_a_repository(folder, "there is no such directory"));
        }
        let asked = [
            "rev-parse",
            "--path-format=absolute",
            "--git-common-dir",
            "--show-object-format",
            "--is-shallow-repository",
            "--is-inside-work-tree",
            "--show-toplevel",
        ];
        let said = Git::of_person(folder).call(asked).bytes().await;
        let said = said.map_err(|error| explain_open(folder, &error))?;
        let lines: Vec<&[u8]> = said.split(|byte| *byte == b'\n').collect();
        let [common, format, shallow, inside, top, ..] = lines[..] else {
            return Err(not_a_repository(folder, "git does not say where it is"));
        };
        if inside != b"true" {
            return Err(not_a_repository(folder, "it has no working tree"));
        }
        let path = |bytes: &[u8]| PathBuf::from(std::ffi::OsStr::from_bytes(bytes));
        let repository = Self {
            top: path(top),
            common: path(common),
            shallow: shallow == b"true",
            object_format: String::from_utf8_lossy(format).into_owned(),
        };
        if repository.common.ends_with("cofer/remote.git") {
            return Err(not_a_repository(
                folder,
                "it is the worktree of an environment; name the repository it was made from",
            ));
        }
        Ok(repository)
    }

    /// The working tree.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Where everything of ours is kept.
    pub(crate) fn layout(&self) -> Layout {
        Layout::new(self)
    }

    /// git in this repository, as its owner set it up.
    pub(crate) fn git(&self) -> Git {
        Git::of_person(&self.top)
    }

    pub(crate) async fn settings(&self) -> Result<Settings, GitError> {
        let wanted = r"^(remote\.cofer\.url|user\.name|user\.email|core\.excludesfile)$";
        let said =
            self.git().call(["config", "-z", "--type=path", "--get-regexp", wanted]).bytes().await;
        let said = match said {
            // Nothing of it is set.
            Err(GitError::Failed { status: Some(1), .. }) => Vec::new(),
            other => other?,
        };
        let mut settings = Settings::default();
        for entry in said.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            let at = entry.iter().position(|byte| *byte == b'\n').unwrap_or(entry.len());
            let value = entry.get(at + 1..).unwrap_or_default();
            let text = || Some(String::from_utf8_lossy(value).into_owned());
            let path = || Some(PathBuf::from(std::ffi::OsStr::from_bytes(value)));
            // The last one counts, as it does for git.
            match &entry[..at] {
                b"remote.cofer.url" => settings.remote = path(),
                b"user.name" => settings.name = text(),
                b"user.email" => settings.email = text(),
                _ => settings.excludes = path(),
            }
        }
        Ok(settings)
    }

    /// The commit that a ref names; the id of another environment counts as one.
    pub(crate) async fn commit(&self, reference: &str) -> Result<Commit, Failure> {
        let reference = reference::checked(reference)?;
        let candidates = [reference.to_owned(), format!("refs/remotes/{REMOTE}/{reference}")];
        let mut refusal = None;
        for candidate in candidates {
            let wanted = [format!("{candidate}^{{commit}}"), format!("{candidate}^{{tree}}")];
            match self.resolve(&wanted).await {
                Ok(commit) => return Ok(commit),
                Err(error @ (GitError::Missing | GitError::Spawn(_))) => {
                    return Err(Failure::internal("reference", "could not ask git", &error));
                }
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        let empty =
            self.resolve(&["HEAD^{commit}".to_owned(), "HEAD^{tree}".to_owned()]).await.is_err();
        if empty {
            let message = format!("{} has no commit yet", self.top.display());
            let recovery = "commit something first, then create the environment.";
            return Err(Failure::new(Kind::PreconditionFailed, "reference", message, recovery));
        }
        let why = refusal.map(|error| error.to_string()).unwrap_or_default();
        let message = format!("{reference:?} names no commit in {}: {why}", self.top.display());
        let recovery = "name a branch, a tag or a commit that `git log` shows there; a branch of another remote has to be fetched first.";
        Err(Failure::new(Kind::InvalidRequest, "reference", message, recovery))
    }

    async fn resolve(&self, wanted: &[String; 2]) -> Result<Commit, GitError> {
        let [commit, tree] = wanted;
        // One process: rev-parse verifies a single name, `show`-like formats read objects.
        let id = self.git().call(["rev-parse", "--verify", "--quiet", "--end-of-options", commit]);
        let tree = self.git().call(["rev-parse", "--verify", "--end-of-options", tree]);
        let (id, tree) = tokio::try_join!(id.text(), tree.text())?;
        Ok(Commit { id, tree })
    }

    /// What is not committed, a line each as `git status --porcelain` writes it; at most `most`.
    /// In a large repository it lets everything else go first.
    pub(crate) async fn uncommitted(
        &self,
        most: usize,
        is_large: bool,
    ) -> Result<Vec<String>, GitError> {
        let mut git = self.git();
        if is_large {
            // With a thread for each processor it would be in the way of all others.
            git = git.setting("core.preloadIndex=false").giving_way();
        }
        let asked = ["status", "--porcelain", "-z", "--ignore-submodules=dirty"];
        let said = git.call(asked).bytes().await?;
        let entries = said.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        Ok(entries.take(most).map(|entry| String::from_utf8_lossy(entry).into_owned()).collect())
    }
}

fn explain_open(folder: &Path, error: &GitError) -> Failure {
    match error {
        GitError::Missing => Failure::new(
            Kind::PreconditionFailed,
            "repository",
            "git is not installed on this machine",
            "install git, then try again.",
        ),
        GitError::Failed { words, .. } => not_a_repository(folder, words),
        other => Failure::internal("repository", "could not ask git about the repository", other),
    }
}

fn not_a_repository(folder: &Path, why: &str) -> Failure {
    let message = format!("unable to open repository '{}': {why}", folder.display());
    let recovery = "give the absolute path of a git repository with a working tree in `environment_source`; `git init` makes one.";
    Failure::new(Kind::PreconditionFailed, "repository", message, recovery)
}

/// The refusal of a repository that nobody has prepared.
pub(crate) fn no_remote(top: &Path) -> Failure {
    let message = format!("the repository {} has no `{REMOTE}` remote", top.display());
    let recovery =
        format!("ask the user to run `cofer init` in {}, then try again.", top.display());
    Failure::new(Kind::PreconditionFailed, "repository", message, recovery)
}
