//! A repository that environments are made from: its `cofer` remote, the commit that a ref names, and
//! what is not committed. `Registry` decides which repositories may be opened.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::discovery::{self, Found};
use crate::failure::{Attempt as _, Failure, Kind};
use crate::git::{Git, GitError};
use crate::git_config::{self, GitConfig};
use crate::git_view::{self, GitView};
use crate::layout::Layout;
use crate::reference;
use crate::registry::Registry;

/// The remote's name.
pub(crate) const REMOTE: &str = "cofer";

/// A repository with a working tree. All paths are canonical.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    pub(crate) top: PathBuf,
    /// Has HEAD and the index of this working tree.
    pub(crate) git_dir: PathBuf,
    /// Has what all of its working trees share.
    pub(crate) common: PathBuf,
    pub(crate) shallow: bool,
    pub(crate) object_format: String,
    /// The folder of the generated git configurations, outside of the repository.
    pub(crate) views: PathBuf,
}

/// The settings that environments take over from git's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The URL of the `cofer` remote.
    pub(crate) remote: Option<PathBuf>,
    /// The author of commits.
    pub(crate) name: Option<String>,
    pub(crate) email: Option<String>,
    /// The user's own file of ignored paths.
    pub(crate) excludes: Option<PathBuf>,
    /// `KEY=VALUE` of the user's own settings that decide whether a file counts as changed.
    pub(crate) line_ends: Vec<String>,
}

/// A commit and its tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) id: String,
    pub(crate) tree: String,
}

impl Repository {
    /// Opens the repository that `folder` is in, recorded or not: for `cofer init` alone.
    pub(crate) async fn discover(registry: &Registry, folder: &Path) -> Result<Self, Failure> {
        Self::of(registry, discovery::discover(folder)?).await
    }

    /// Reads the repository's format and generates the git configurations for it.
    pub(crate) async fn of(registry: &Registry, found: Found) -> Result<Self, Failure> {
        let Found { top, git_dir, common } = found;
        let config = read_config(&git_dir, &common).await;
        let config = config.map_err(|error| explain_open(&top, &error))?;
        let format = config.text("extensions.objectformat");
        let step = "repository";
        let id = fs::metadata(&common).attempting(step, "could not read the git directory")?;
        let repository = Self {
            shallow: fs::metadata(common.join("shallow")).is_ok_and(|file| file.len() > 0),
            object_format: format.unwrap_or_else(|| "sha1".to_owned()),
            views: registry.folder().join("git").join(format!("{:x}-{:x}", id.dev(), id.ino())),
            top,
            git_dir,
            common,
        };
        let source =
            git_view::write(&repository.view().common, &repository.common, &config.generated());
        let store = repository.layout().store();
        let generated = git_config::of_store(&repository.object_format);
        source
            .and_then(|()| git_view::write(&store.common, &store.git_dir, &generated))
            .attempting(step, "could not write the git configuration")?;
        Ok(repository)
    }

    /// The repository's git directory with our configuration.
    fn view(&self) -> GitView {
        GitView { git_dir: self.git_dir.clone(), common: self.views.join("source") }
    }

    /// Whether it and the configurations generated for it are still there.
    pub(crate) fn is_usable(&self) -> bool {
        self.git_dir.join("HEAD").exists() && self.view().common.join("config").exists()
    }

    pub(crate) fn found(&self) -> Found {
        let Self { top, git_dir, common, .. } = self.clone();
        Found { top, git_dir, common }
    }

    /// The repository's own configuration file.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.common.join("config")
    }

    /// The working tree.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Where everything of ours is kept.
    pub(crate) fn layout(&self) -> Layout {
        Layout::new(self)
    }

    /// git in this repository, with our configuration.
    pub(crate) fn git(&self) -> Git {
        Git::within(&self.view()).in_work_tree(&self.top)
    }

    pub(crate) async fn settings(&self) -> Result<Settings, GitError> {
        let (own, users) =
            tokio::join!(read_config(&self.git_dir, &self.common), self.users_settings());
        let (own, mut settings) = (own?, users?);
        settings.remote = own.path(&format!("remote.{REMOTE}.url"));
        settings.name = own.text("user.name").or(settings.name);
        settings.email = own.text("user.email").or(settings.email);
        Ok(settings)
    }

    /// The settings in the user's own configuration. `git config` expands `~` and evaluates the
    /// conditions of includes; it runs nothing.
    async fn users_settings(&self) -> Result<Settings, GitError> {
        let wanted = r"^(user\.name|user\.email|core\.excludesfile|core\.autocrlf|core\.eol)$";
        let git = self.git().with_users_configuration();
        let listed =
            git.call(["config", "-z", "--type=path", "--get-regexp", wanted]).bytes().await;
        let listed = match listed {
            // None of them is set.
            Err(GitError::Failed { status: Some(1), .. }) => Vec::new(),
            other => other?,
        };
        let mut settings = Settings::default();
        for entry in listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            let at = entry.iter().position(|byte| *byte == b'\n').unwrap_or(entry.len());
            let value = entry.get(at + 1..).unwrap_or_default();
            let text = String::from_utf8_lossy(value).into_owned();
            // The last one counts, as it does for git.
            match &entry[..at] {
                b"user.name" => settings.name = Some(text),
                b"user.email" => settings.email = Some(text),
                b"core.excludesfile" => {
                    settings.excludes = Some(PathBuf::from(std::ffi::OsStr::from_bytes(value)));
                }
                key => settings.line_ends.push(format!("{}={text}", String::from_utf8_lossy(key))),
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
        settings: &Settings,
    ) -> Result<Vec<String>, GitError> {
        let mut git = settings.line_ends.iter().fold(self.git(), Git::setting);
        if let Some(excludes) = &settings.excludes {
            let mut setting = std::ffi::OsString::from("core.excludesFile=");
            setting.push(excludes);
            git = git.setting(setting);
        }
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

/// The repository's configuration, and that of its working tree where there is one.
async fn read_config(git_dir: &Path, common: &Path) -> Result<GitConfig, GitError> {
    let mut config = GitConfig::read(&common.join("config")).await?;
    let own = git_dir.join("config.worktree");
    if config.is_true("extensions.worktreeconfig") && own.exists() {
        config.extend(GitConfig::read(&own).await?);
    }
    Ok(config)
}

fn explain_open(top: &Path, error: &GitError) -> Failure {
    match error {
        GitError::Missing => Failure::new(
            Kind::PreconditionFailed,
            "repository",
            "git is not installed on this machine",
            "install git, then try again.",
        ),
        GitError::Failed { words, .. } => discovery::not_a_repository(top, words),
        other => {
            Failure::internal("repository", "could not read the repository's configuration", other)
        }
    }
}

/// The refusal of a recorded repository whose remote has been removed since.
pub(crate) fn no_remote(top: &Path) -> Failure {
    let message = format!("the repository {} has no `{REMOTE}` remote", top.display());
    let recovery =
        format!("ask the user to run `cofer init` in {}, then try again.", top.display());
    Failure::new(Kind::PreconditionFailed, "repository", message, recovery)
}
