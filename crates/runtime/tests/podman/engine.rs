//! Podman itself: missing, too old, broken, slow to answer; and back again.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;

use cofer_runtime::podman::{Podman, PodmanError};
use tempfile::TempDir;

use crate::support::owner;
use crate::world::{Runtime, World, script, sh};

/// A Podman whose program is another.
fn podman_at(dir: &TempDir, program: std::path::PathBuf) -> Podman {
    let shim = env!("CARGO_BIN_EXE_cofer-shim").into();
    Podman::new(program, owner("engine"), dir.path().join("state"), shim)
}

#[tokio::test]
async fn podman_that_is_not_there_is_told_with_what_to_do_and_may_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("podman");
    let podman = podman_at(&dir, program.clone());
    let plan = sh(Runtime::Runc, "exit 0");
    let error = podman.start(&plan).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, PodmanError::NotInstalled { .. }), "{error:?}");
    assert!(error.is_of_the_engine());
    assert!(error.hint().contains("install"), "{}", error.hint());
    for error in [
        podman.image("x").await.map(|_| ()).unwrap_err(),
        podman.pull("x", |_| ()).await.map(|_| ()).unwrap_err(),
        podman.volumes().await.map(|_| ()).unwrap_err(),
        podman.sweep(&BTreeSet::new()).await.map(|_| ()).unwrap_err(),
    ] {
        assert!(matches!(error, PodmanError::NotInstalled { .. }), "{error:?}");
    }
    let reports = podman.providers().await;
    assert!(reports.iter().all(|report| !report.available && report.reason.is_some()));

    symlink("/usr/bin/podman", &program).unwrap();
    let (container, _streams) = podman.start(&plan).await.unwrap();
    assert!(container.exited().await.is_success());
    drop(container);
    podman.close().await;
}

#[tokio::test]
async fn podman_that_cannot_serve_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let old = r#"echo '{"version": {"Version": "3.4.4"}, "host": {}, "store": {}}'"#;
    let remote = r#"echo '{"version": {"Version": "5.0.0"}, "host": {"serviceIsRemote": true}}'"#;
    let broken = "echo 'Error: no subuid ranges found' >&2; exit 125";
    for (name, text) in [("old", old), ("remote", remote), ("broken", broken)] {
        let program = script(&dir, name, &format!("#!/bin/sh\n{text}\n"));
        let error = podman_at(&dir, program).info().await.unwrap_err();
        assert!(error.is_of_the_engine(), "{error:?}");
        let fits = match name {
            "old" => matches!(&error, PodmanError::TooOld { version } if version == "3.4.4"),
            "remote" => matches!(error, PodmanError::Remote),
            _ => error.to_string().contains("no subuid ranges found"),
        };
        assert!(fits, "{name}: {error:?}");
    }
    let error = podman_at(&dir, "/etc/passwd".into()).info().await.unwrap_err();
    assert!(matches!(error, PodmanError::Spawn { .. }), "{error:?}");
}

#[tokio::test]
async fn podman_is_asked_about_itself_once() {
    let dir = tempfile::tempdir().unwrap();
    let answer =
        r#"{"version": {"Version": "4.9.0"}, "host": {"cgroupVersion": "v2"}, "store": {}}"#;
    let text = format!("#!/bin/sh\necho x >> {0}/asked\necho '{answer}'\n", dir.path().display());
    let podman = podman_at(&dir, script(&dir, "podman", &text));
    for _ in 0..3 {
        assert_eq!(podman.info().await.unwrap().version, "4.9.0");
    }
    assert_eq!(std::fs::read_to_string(dir.path().join("asked")).unwrap(), "x\n");
}

#[tokio::test]
async fn what_podman_is_here_is_told() {
    let world = World::new("info");
    let info = world.podman.info().await.unwrap();
    assert!(!info.version.is_empty() && !info.storage_driver.is_empty(), "{info:?}");
    assert_eq!(info.runtime, Runtime::Runc.name());
    assert_eq!(info.rootless, !rustix::process::geteuid().is_root());
    world.close().await;
}
