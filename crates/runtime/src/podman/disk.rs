//! What a container has written, and the watch that ends one that writes too much where the
//! storage itself does not hold it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// How often it is looked, at least this long apart.
const INTERVAL: Duration = Duration::from_millis(500);

/// A look may take this share of the time: large volumes are looked at less often.
const SHARE: u32 = 20;

/// Nothing was measured yet.
const UNKNOWN: u64 = u64::MAX;

/// The last measure, for those who ask in between.
#[derive(Debug, Clone)]
pub(crate) struct Measure(Arc<AtomicU64>);

impl Measure {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(UNKNOWN)))
    }

    /// Bytes, where they are known.
    pub(crate) fn bytes(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|bytes| *bytes != UNKNOWN)
    }

    pub(crate) fn set(&self, bytes: u64) {
        self.0.store(bytes.min(UNKNOWN - 1), Ordering::Relaxed);
    }
}

/// Measures `places` again and again; returns when they hold more than `limit`, with how much.
pub(crate) async fn watch(places: Vec<PathBuf>, limit: u64, measure: Measure) -> u64 {
    let places = Arc::new(places);
    loop {
        let started = Instant::now();
        let paths = Arc::clone(&places);
        let bytes = tokio::task::spawn_blocking(move || paths.iter().map(|path| size(path)).sum());
        // The task can only fail when the runtime ends, and this with it.
        let bytes: u64 = bytes.await.unwrap_or(0);
        measure.set(bytes);
        if bytes > limit {
            return bytes;
        }
        tokio::time::sleep(INTERVAL.max(started.elapsed() * SHARE)).await;
    }
}

/// Bytes that lie on the disk below `root`. What vanishes meanwhile, or may not be read,
/// counts nothing.
pub fn size(root: &Path) -> u64 {
    let mut bytes = 0;
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            // A file with several names is counted by its share.
            let blocks = metadata.blocks() * 512;
            bytes += if metadata.is_dir() { blocks } else { blocks / metadata.nlink().max(1) };
            if metadata.is_dir() {
                directories.push(entry.path());
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_watch_ends_when_more_is_written_than_allowed() {
        let dir = tempfile::tempdir().unwrap();
        let measure = Measure::new();
        assert_eq!(measure.bytes(), None);
        let places = vec![dir.path().to_owned()];
        let watching =
            tokio::time::timeout(Duration::from_secs(30), watch(places, 1 << 20, measure.clone()));
        let writing = async {
            while measure.bytes().is_none() {
                tokio::task::yield_now().await;
            }
            fs::create_dir(dir.path().join("below")).unwrap();
            fs::write(dir.path().join("below/file"), vec![1; 2 << 20]).unwrap();
        };
        let (bytes, ()) = tokio::join!(watching, writing);
        assert!(bytes.unwrap() > 1 << 20);
        assert_eq!(measure.bytes(), Some(size(dir.path())));
    }

    #[test]
    fn holes_are_not_counted_and_what_is_not_there_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        fs::File::create(dir.path().join("hole")).unwrap().set_len(1 << 30).unwrap();
        assert!(size(dir.path()) < 1 << 20);
        assert_eq!(size(Path::new("/no/such/place")), 0);
    }
}
