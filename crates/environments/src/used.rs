//! Which repositories environments were used in: one small file of the user's, so that somebody
//! who stands in none of them can still be shown all environments.
//!
//! It is a convenience and no truth: where it is lost, the environments are as they were, and
//! each repository comes back to it with the next command.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::lock::Lock;
use crate::repository::Repository;

/// How many repositories are remembered; the one that was not used for longest is forgotten.
const MOST: usize = 256;

/// Longer than as many entries are.
const LONGEST: u64 = 4 * 1024 * 1024;

/// The file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Used {
    file: PathBuf,
}

/// What stands in it, the last one used first.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Known {
    repositories: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    /// The working tree.
    path: PathBuf,
    /// Where our own folder is in its git directory: without it, there is nothing to be shown.
    home: PathBuf,
    #[serde(with = "time::serde::rfc3339")]
    used_at: OffsetDateTime,
}

impl Entry {
    fn is_there(&self) -> bool {
        self.path.is_dir() && self.home.is_dir()
    }
}

impl Used {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file }
    }

    /// Puts a repository first, and drops those that are gone.
    pub(crate) fn note(&self, repository: &Repository, now: OffsetDateTime) -> io::Result<()> {
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let _one_at_a_time = Lock::wait_here(&self.file.with_extension("lock"))?;
        let mut known = self.read();
        known.repositories.retain(|entry| entry.path != repository.top && entry.is_there());
        let home = repository.layout().home().to_owned();
        known.repositories.insert(0, Entry { path: repository.top.clone(), home, used_at: now });
        known.repositories.truncate(MOST);
        let text = serde_json::to_vec_pretty(&known).map_err(io::Error::other)?;
        // Made with mode 0600, and there whole or not at all.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&text)?;
        file.persist(&self.file).map_err(|error| error.error)?;
        Ok(())
    }

    /// The working trees that are there, by path.
    pub(crate) fn tops(&self) -> Vec<PathBuf> {
        let known = self.read().repositories.into_iter().filter(Entry::is_there);
        let mut tops: Vec<PathBuf> = known.map(|entry| entry.path).collect();
        tops.sort();
        tops.dedup();
        tops
    }

    /// A file that cannot be read is begun anew.
    fn read(&self) -> Known {
        let read = || -> io::Result<Known> {
            let mut bytes = Vec::new();
            File::open(&self.file)?.take(LONGEST).read_to_end(&mut bytes)?;
            serde_json::from_slice(&bytes).map_err(io::Error::other)
        };
        read().unwrap_or_else(|error| {
            if fs::exists(&self.file).unwrap_or(true) {
                tracing::warn!(%error, file = %self.file.display(), "the used repositories cannot be read");
            }
            Known::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    struct Place {
        folder: tempfile::TempDir,
        used: Used,
    }

    impl Place {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let used = Used::new(folder.path().join("state/cofer/repositories.json"));
            Self { folder, used }
        }

        fn repository(&self, name: &str) -> Repository {
            let top = self.folder.path().join(name);
            fs::create_dir_all(top.join(".git/cofer")).unwrap();
            Repository {
                common: top.join(".git"),
                top,
                shallow: false,
                object_format: "sha1".to_owned(),
            }
        }

        fn note(&self, repository: &Repository) {
            self.used.note(repository, OffsetDateTime::UNIX_EPOCH).unwrap();
        }
    }

    #[test]
    fn a_repository_is_remembered_once_and_for_this_user_alone() {
        let place = Place::new();
        assert_eq!(place.used.tops(), Vec::<PathBuf>::new());
        let (b, a) = (place.repository("b"), place.repository("a"));
        for repository in [&b, &a, &b] {
            place.note(repository);
        }
        assert_eq!(place.used.tops(), [a.top, b.top]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place.used.file), 0o600);
        assert_eq!(mode(place.used.file.parent().unwrap()), 0o700);
    }

    #[test]
    fn one_that_is_gone_or_was_undone_is_dropped() {
        let place = Place::new();
        let names = ["moved", "undone", "there"];
        let [moved, undone, there] = names.map(|name| place.repository(name));
        for repository in [&moved, &undone, &there] {
            place.note(repository);
        }
        fs::remove_dir_all(&moved.top).unwrap();
        fs::remove_dir_all(undone.common.join("cofer")).unwrap();
        assert_eq!(place.used.tops(), std::slice::from_ref(&there.top));
        place.note(&there);
        let text = fs::read_to_string(&place.used.file).unwrap();
        assert!(!text.contains("moved") && !text.contains("undone"), "{text}");
    }

    #[test]
    fn no_more_than_a_bound_are_remembered_and_the_oldest_goes() {
        let place = Place::new();
        let first = place.repository("first");
        place.note(&first);
        for number in 0..MOST {
            place.note(&place.repository(&format!("r{number}")));
        }
        let tops = place.used.tops();
        assert_eq!(tops.len(), MOST);
        assert!(!tops.contains(&first.top));
    }

    #[test]
    fn a_file_that_is_none_is_begun_anew() {
        let place = Place::new();
        let repository = place.repository("a");
        place.note(&repository);
        fs::write(&place.used.file, "not json").unwrap();
        assert_eq!(place.used.tops(), Vec::<PathBuf>::new());
        place.note(&repository);
        assert_eq!(place.used.tops(), [repository.top]);
    }
}
