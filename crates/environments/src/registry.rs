//! The repositories that the user prepared with `cofer init`: one file in the user's state directory,
//! outside of every repository. A source that is not recorded here is refused before git runs or a
//! file of it is read, so that a repository which an agent wrote is never opened.
//!
//! A path alone does not identify a repository: whoever may write its parent can put another one
//! there. So device and inode of the working tree and of the git directories are recorded too.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::approvals::{self, Approval};
use crate::discovery::{self, Found, not_a_repository};
use crate::failure::{Attempt as _, Failure, Kind};
use crate::lock::Lock;

/// How many repositories are recorded; beyond, the one that was not used for longest is removed.
const MOST: usize = 256;

/// More than as many entries have.
const LONGEST: u64 = 16 * 1024 * 1024;

/// The file with the recorded repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Registry {
    file: PathBuf,
}

/// Device and inode of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(path: &Path) -> io::Result<Self> {
        let found = fs::symlink_metadata(path)?;
        Ok(Self { device: found.dev(), inode: found.ino() })
    }
}

/// One recorded repository. All paths are canonical.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// The working tree.
    pub(crate) path: PathBuf,
    pub(crate) git_dir: PathBuf,
    pub(crate) common: PathBuf,
    path_id: FileId,
    git_dir_id: FileId,
    common_id: FileId,
    /// Device numbers of btrfs, ZFS, NFS and overlays are assigned when they are mounted, so that
    /// they are compared only within the boot in which they were recorded.
    boot: String,
    #[serde(with = "time::serde::rfc3339")]
    used_at: OffsetDateTime,
    /// The secrets that the user approved for it.
    #[serde(default)]
    pub(crate) approvals: Vec<Approval>,
}

impl Recorded {
    fn of(found: &Found, now: OffsetDateTime) -> io::Result<Self> {
        Ok(Self {
            path_id: FileId::of(&found.top)?,
            git_dir_id: FileId::of(&found.git_dir)?,
            common_id: FileId::of(&found.common)?,
            path: found.top.clone(),
            git_dir: found.git_dir.clone(),
            common: found.common.clone(),
            boot: boot(),
            used_at: now,
            approvals: Vec::new(),
        })
    }

    pub(crate) fn found(&self) -> Found {
        Found { top: self.path.clone(), git_dir: self.git_dir.clone(), common: self.common.clone() }
    }

    /// Whether the directories are the recorded ones.
    fn is_unchanged(&self) -> bool {
        let same_boot = self.boot == boot();
        let is_same = |path: &Path, recorded: FileId| {
            FileId::of(path).is_ok_and(|found| {
                found.inode == recorded.inode && (!same_boot || found.device == recorded.device)
            })
        };
        is_same(&self.path, self.path_id)
            && is_same(&self.git_dir, self.git_dir_id)
            && is_same(&self.common, self.common_id)
    }

    fn is_there(&self) -> bool {
        self.path.is_dir() && self.common.join("cofer").is_dir()
    }
}

impl Registry {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file }
    }

    /// The directory of the file, where the generated git configurations are kept too.
    pub(crate) fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("/"))
    }

    /// The recorded repository that `folder` is in. Looks at paths, devices and inodes alone.
    pub(crate) fn find(&self, folder: &Path) -> Result<Recorded, Failure> {
        let path = discovery::canonical(folder)?;
        let all = self.read().into_iter().filter(|recorded| path.starts_with(&recorded.path));
        let recorded = all.max_by_key(|recorded| recorded.path.components().count());
        let recorded = recorded.ok_or_else(|| not_recorded(&path))?;
        // A repository inside of the recorded one is another one.
        let below = path.ancestors().take_while(|folder| *folder != recorded.path);
        let mut dot_gits = below.map(|folder| folder.join(".git"));
        if dot_gits.any(|dot_git| dot_git.symlink_metadata().is_ok()) {
            return Err(not_recorded(&path));
        }
        if !recorded.is_unchanged() {
            let why = "it is not the repository that `cofer init` recorded under this path: its directories have been replaced";
            let recovery = format!(
                "ask the user to run `cofer init` in {} again, if that is meant.",
                recorded.path.display()
            );
            return Err(not_a_repository(folder, why).recovering(recovery));
        }
        Ok(recorded)
    }

    /// Records a repository, with a new identity and as the last one used. Approvals are kept if it is
    /// the repository that was recorded before.
    pub(crate) fn record(&self, found: &Found, now: OffsetDateTime) -> io::Result<()> {
        let mut recorded = Recorded::of(found, now)?;
        self.change(|all| {
            if let Some(at) = all.iter().position(|other| other.path == recorded.path) {
                let before = all.remove(at);
                if before.is_unchanged() && before.found() == *found {
                    recorded.approvals = before.approvals;
                }
            }
            all.insert(0, recorded);
        })
    }

    /// Changes the approvals of a recorded repository, unless there would be too many.
    pub(crate) fn change_approvals(
        &self,
        path: &Path,
        change: impl FnOnce(&mut Vec<Approval>),
    ) -> io::Result<bool> {
        let mut changed = false;
        self.change(|all| {
            let meant = all.iter_mut().find(|recorded| recorded.path == path);
            let Some(meant) = meant.filter(|recorded| recorded.is_unchanged()) else { return };
            let mut approvals = meant.approvals.clone();
            change(&mut approvals);
            changed = approvals.len() <= approvals::MOST;
            if changed {
                meant.approvals = approvals;
            }
        })?;
        Ok(changed)
    }

    /// Notes that a recorded repository is used.
    pub(crate) fn touch(&self, path: &Path, now: OffsetDateTime) -> io::Result<()> {
        self.change(|all| {
            let Some(at) = all.iter().position(|recorded| recorded.path == path) else { return };
            if !all[at].is_unchanged() {
                return;
            }
            let mut used = all.remove(at);
            // The device numbers of this boot.
            if let Ok(again) = Recorded::of(&used.found(), now) {
                used = Recorded {
                    path_id: again.path_id,
                    git_dir_id: again.git_dir_id,
                    common_id: again.common_id,
                    boot: again.boot,
                    used_at: now,
                    ..used
                };
            }
            all.insert(0, used);
        })
    }

    /// Removes a repository; it is refused from now on.
    pub(crate) fn forget(&self, path: &Path) -> io::Result<()> {
        self.change(|all| all.retain(|recorded| recorded.path != path))
    }

    /// The working trees that are there, by path.
    pub(crate) fn tops(&self) -> Vec<PathBuf> {
        let there = self.read().into_iter().filter(Recorded::is_there);
        let mut tops: Vec<PathBuf> = there.map(|recorded| recorded.path).collect();
        tops.sort();
        tops.dedup();
        tops
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Recorded>)) -> io::Result<()> {
        let folder = self.folder();
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let _one_at_a_time = Lock::wait_here(&self.file.with_extension("lock"))?;
        let mut all = self.read();
        all.retain(Recorded::is_there);
        change(&mut all);
        all.truncate(MOST);
        let text = serde_json::to_vec_pretty(&serde_json::json!({"repositories": all}))?;
        // Created with mode 0600; readers see the old file or the new one.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&text)?;
        file.as_file().sync_all()?;
        file.persist(&self.file).map_err(|error| error.error)?;
        Ok(())
    }

    /// An unreadable file counts as empty, which refuses every source until `cofer init`. So does an
    /// entry without an identity, as earlier versions wrote it.
    fn read(&self) -> Vec<Recorded> {
        #[derive(Deserialize)]
        struct Record {
            repositories: Vec<serde_json::Value>,
        }
        let read = || -> io::Result<Record> {
            let mut bytes = Vec::new();
            File::open(&self.file)?.take(LONGEST).read_to_end(&mut bytes)?;
            serde_json::from_slice(&bytes).map_err(io::Error::other)
        };
        let record = read().unwrap_or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(%error, file = %self.file.display(), "the record of repositories cannot be read");
            }
            Record { repositories: Vec::new() }
        });
        let entries = record.repositories.into_iter();
        entries.filter_map(|entry| serde_json::from_value(entry).ok()).collect()
    }
}

/// The registry, where there is a home to keep it in.
pub(crate) fn required(registry: Option<Registry>) -> Result<Registry, Failure> {
    registry.ok_or_else(|| {
        let message = "there is no place for the record of repositories: neither XDG_STATE_HOME nor HOME is an absolute path";
        let recovery = "ask the user to set HOME for the process that runs this server.";
        Failure::new(Kind::PreconditionFailed, "repository", message, recovery)
    })
}

impl Registry {
    /// Like [`Self::record`], for `cofer init`.
    pub(crate) fn record_now(&self, found: &Found) -> Result<(), Failure> {
        self.record(found, OffsetDateTime::now_utc()).attempting(
            "init",
            format!("could not record the repository in {}", self.file.display()),
        )
    }
}

/// Empty where the kernel does not tell: then devices are always compared.
fn boot() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    boot.trim_end().to_owned()
}

fn not_recorded(path: &Path) -> Failure {
    let message = format!("{} has no `cofer` remote that `cofer init` recorded", path.display());
    let recovery =
        format!("ask the user to run `cofer init` in {}, then try again.", path.display());
    Failure::new(Kind::PreconditionFailed, "repository", message, recovery)
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
