//! A repository to test with.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use cofer_runtime::tool;

use crate::init::init;
use crate::registry::Registry;
use crate::repository::Repository;

/// A repository in a temporary folder, with one commit.
pub(crate) struct Source {
    folder: tempfile::TempDir,
    state: tempfile::TempDir,
}

impl Source {
    /// With these files committed.
    pub(crate) async fn with(files: &[(&str, &str)]) -> Self {
        let source =
            Self { folder: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() };
        source.git(&["init", "-q", "-b", "main"]).await;
        source.git(&["config", "user.name", "Ada"]).await;
        source.git(&["config", "user.email", "ada@example.org"]).await;
        for (name, text) in files {
            source.write(name, text);
        }
        source.git(&["add", "-A", "-f"]).await;
        source.git(&["commit", "-q", "--allow-empty", "-m", "one"]).await;
        source
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        write(&self.join(name), text);
    }

    /// Its user's record of repositories.
    pub(crate) fn registry(&self) -> Registry {
        Registry::new(self.state.path().join("cofer/repositories.json"))
    }

    /// After `cofer init`.
    pub(crate) async fn prepared(&self) -> Repository {
        init(&self.registry(), self.path()).await.unwrap();
        Repository::discover(&self.registry(), self.path()).await.unwrap()
    }

    pub(crate) async fn git(&self, args: &[&str]) -> String {
        git(self.path(), args).await
    }
}

/// Runs git as a person would, who has no settings.
pub(crate) async fn git(folder: &Path, args: &[&str]) -> String {
    let (code, stdout, stderr) = try_git(folder, args).await;
    assert_eq!(code, Some(0), "git {args:?} in {}: {stderr}", folder.display());
    stdout
}

pub(crate) async fn try_git(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = tool("git");
    command
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Writes a file and the folders above it.
pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub(crate) fn make_executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
