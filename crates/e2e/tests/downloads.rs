//! The first start of a server that a package manager downloads: a phase of its own that the start
//! timeout does not count, and an end that leaves no lock behind.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use cofer_e2e::{Daemon, eventually, wayward_path};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with a program named `npx`, first on the server's `PATH`.
struct FakeNpx(TempDir);

impl FakeNpx {
    /// `script` runs in the folder.
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let npx = folder.path().join("npx");
        let text = format!("#!/bin/sh\ncd {}\n{script}\n", folder.path().display());
        std::fs::write(&npx, text).unwrap();
        std::fs::set_permissions(&npx, PermissionsExt::from_mode(0o755)).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn server(&self, name: &str, start_timeout_ms: u64) -> Value {
        let path = format!("{}:{}", self.0.path().display(), std::env::var("PATH").unwrap());
        json!({"name": name, "command": "npx", "args": ["-y", "some-server"],
            "environment": {"PATH": path}, "start_timeout_ms": start_timeout_ms})
    }
}

#[tokio::test]
async fn a_download_that_makes_progress_does_not_count_against_the_start_timeout() {
    let npx = FakeNpx::new(&format!(
        "while [ ! -e done ]; do head -c 100000 /dev/zero > part; echo >> rounds; sleep 0.1; done\n\
         exec {}",
        wayward_path().display()
    ));
    let daemon = Daemon::start().await;
    daemon.post("/mcp/servers", &npx.server("slow", 5000)).await.expect(201);
    let server =
        daemon.wait_server("slow", "a download", |server| server["preparing"].is_string()).await;
    let preparing = server["preparing"].as_str().unwrap();
    assert!(preparing.starts_with("npx is fetching packages ("), "{preparing}");
    // More than twice the start timeout.
    eventually("it has downloaded for long", async || {
        let rounds = std::fs::read_to_string(npx.file("rounds")).unwrap_or_default();
        (rounds.lines().count() > 110).then_some(())
    })
    .await;
    assert_eq!(daemon.server("slow").await["status"], "starting");
    std::fs::write(npx.file("done"), "").unwrap();
    let server = daemon.wait_status("slow", "ready").await;
    assert_eq!(server["preparing"], Value::Null);
    let log = daemon.log_lines("slow").await;
    assert!(log.iter().any(|line| line.contains("npx is fetching packages")), "{log:?}");
}

#[tokio::test]
async fn a_download_that_stalls_ends_with_sigterm_and_time_to_clean_up() {
    let npx = FakeNpx::new(
        "trap 'sleep 1; rm lock; exit 0' TERM\n: > lock\nhead -c 100000 /dev/zero > part\n\
         sleep 3600 & wait",
    );
    let daemon = Daemon::start().await;
    daemon.post("/mcp/servers", &npx.server("stalled", 2000)).await.expect(201);
    let server = daemon.wait_status("stalled", "error").await;
    assert_eq!(server["error"]["kind"], "start_timeout", "{server}");
    assert!(!npx.file("lock").exists(), "it was killed before it could remove its lock");
    let log = daemon.log_lines("stalled").await;
    assert!(log.iter().any(|line| line.contains("SIGTERM is sent")), "{log:?}");
}

#[tokio::test]
async fn a_damaged_cache_is_named_with_the_command_that_repairs_it() {
    let npx = FakeNpx::new(
        "echo 'npm error code ENOTEMPTY' >&2\n\
         echo 'npm error path /home/a/.npm/_npx/15c61037b1978c83/node_modules/zod' >&2\nexit 190",
    );
    let daemon = Daemon::start().await;
    daemon.post("/mcp/servers", &npx.server("damaged", 5000)).await.expect(201);
    let server = daemon.wait_status("damaged", "error").await;
    let hint = server["error"]["hint"].as_str().unwrap_or_else(|| panic!("{server}"));
    assert!(hint.contains("rm -rf '/home/a/.npm/_npx/15c61037b1978c83'"), "{hint}");
}
