//! The database file is for its owner only, whatever the umask. Alone in its binary, since the
//! umask is the whole process's.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rustix::fs::Mode;
use support::{Home, record};

#[tokio::test]
async fn the_files_are_for_their_owner_only() {
    // covers: MGR-58
    for umask in [0o000, 0o777] {
        for (there_before, suffix) in [(false, ""), (true, ""), (true, "-wal")] {
            let home = Home::sqlite();
            let path = |suffix| home.directory.path().join(format!("kb.db{suffix}"));
            if there_before {
                fs::write(path(suffix), "").unwrap();
                fs::set_permissions(path(suffix), fs::Permissions::from_mode(0o666)).unwrap();
            }
            let before = rustix::process::umask(Mode::from_raw_mode(umask));
            let store = home.open().await.unwrap();
            store.insert(&record("x")).await.unwrap();
            rustix::process::umask(before);
            for suffix in ["", "-wal", "-shm"] {
                let mode = fs::metadata(path(suffix)).unwrap().permissions().mode() & 0o7777;
                assert_eq!(mode, 0o600, "kb.db{suffix}, umask {umask:o}");
            }
        }
    }
}
