//! What a configuration was before Cofer came into it, byte for byte, kept in the data directory
//! until it is asked for.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// What was there before one entry was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Before {
    /// The configuration, and the entry in it.
    pub(crate) path: PathBuf,
    pub(crate) entry: String,
    /// Its whole text; none where it was not there.
    pub(crate) text: Option<String>,
    /// The digest of that text.
    pub(crate) before: Option<String>,
    /// The digest of what was written.
    pub(crate) after: String,
    /// Directories that were made for it.
    pub(crate) made: Vec<PathBuf>,
}

/// Where it is all kept.
pub(crate) struct Memory {
    folder: PathBuf,
}

impl Memory {
    pub(crate) fn new(data_dir: &Path) -> Self {
        Self { folder: data_dir.join("clients") }
    }

    /// What was before this entry, where that is known and whole.
    pub(crate) fn recall(&self, path: &Path, entry: &str) -> Option<Before> {
        let text = fs::read_to_string(self.file(path, entry)).ok()?;
        let before: Before = serde_json::from_str(&text).ok()?;
        let whole = before.text.as_deref().map(hash) == before.before;
        (whole && before.path == path && before.entry == entry).then_some(before)
    }

    /// Keeps it, on the disk before anything is changed.
    pub(crate) fn keep(&self, before: &Before) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let path = self.file(&before.path, &before.entry);
        let beside = path.with_extension("new");
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(serde_json::to_string(before)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(beside, path)
    }

    /// It was asked for, or has no meaning any more.
    pub(crate) fn forget(&self, path: &Path, entry: &str) {
        fs::remove_file(self.file(path, entry)).ok();
        // The last one takes the folder with it.
        fs::remove_dir(&self.folder).ok();
    }

    fn file(&self, path: &Path, entry: &str) -> PathBuf {
        let name = hash(&format!("{}\0{entry}", path.display()));
        self.folder.join(format!("{}.json", &name[..32]))
    }
}

/// The SHA-256 digest of a text, in hexadecimal.
pub(crate) fn hash(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn what_is_kept_is_recalled_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let memory = Memory::new(dir.path());
        let path = Path::new("/home/me/a.json");
        let text = "{ // mine\r\n}".to_owned();
        let before = Before {
            path: path.to_owned(),
            entry: "cofer".to_owned(),
            before: Some(hash(&text)),
            text: Some(text),
            after: hash("new"),
            made: Vec::new(),
        };
        assert_eq!(memory.recall(path, "cofer"), None);
        memory.keep(&before).unwrap();
        assert_eq!(memory.recall(path, "cofer"), Some(before.clone()));
        assert_eq!(memory.recall(path, "cofer-fs"), None);
        let file = memory.file(path, "cofer");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        memory.keep(&Before { text: Some("other".to_owned()), ..before }).unwrap();
        assert_eq!(memory.recall(path, "cofer"), None, "its digest is another's");
        memory.forget(path, "cofer");
        assert!(!dir.path().join("clients").exists());
    }

    #[test]
    fn a_digest_is_sha_256() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hash(""), empty);
    }
}
