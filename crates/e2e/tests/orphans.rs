//! Nothing is left behind: a server's whole tree ends with it, also grandchildren that made
//! their own session, also when the daemon is killed with -9.

use std::path::PathBuf;
use std::time::Duration;

use cofer_e2e::{
    Daemon, alive, eventually, kill, parent, pid_of, pids_in, processes_with, signal, wait_gone,
    wayward,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder whose path stands in the arguments of all that is started in a test.
struct Scene {
    folder: TempDir,
    pids: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let pids = folder.path().join("pids");
        Self { folder, pids }
    }

    /// A server with a grandchild.
    fn server(&self, name: &str, more: &[&str]) -> Value {
        let pids = self.pids.to_str().expect("temporary paths are text");
        wayward(name, &[&["--grandchildren", "--pids-file", pids], more].concat())
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    async fn daemon(&self) -> Daemon {
        Daemon::builder().data_dir(&self.data()).start().await
    }

    /// What runs with a path of this scene in its arguments, but for the daemon.
    fn running(&self) -> Vec<u32> {
        processes_with(self.pids.to_str().expect("temporary paths are text"))
    }

    /// Waits until nothing of the scene runs.
    async fn is_empty(&self) {
        let all = pids_in(&self.pids);
        eventually("nothing is left running", async || {
            (self.running().is_empty() && all.iter().all(|pid| !alive(*pid))).then_some(())
        })
        .await;
    }
}

/// Ends what a failed test would leave on the machine.
impl Drop for Scene {
    fn drop(&mut self) {
        for pid in self.running() {
            kill(pid);
        }
    }
}

/// The processes of a server: itself, what guards it, and its grandchildren.
fn tree(daemon: &Daemon, server: &Value, scene: &Scene) -> Vec<u32> {
    let pid = pid_of(server);
    let guard = parent(pid).filter(|guard| *guard != daemon.pid() && *guard != 1);
    let grandchildren = pids_in(&scene.pids);
    assert!(!grandchildren.is_empty() && grandchildren.iter().all(|pid| alive(*pid)));
    [pid].into_iter().chain(guard).chain(grandchildren).collect()
}

#[tokio::test]
async fn nothing_is_left_when_a_server_is_switched_off() {
    // covers: MGR-23
    let scene = Scene::new();
    let daemon = scene.daemon().await;
    let server = daemon.register(&scene.server("w", &[])).await;
    daemon.tool("w", "spawn", &json!({})).await.expect(200);
    let tree = tree(&daemon, &server, &scene);
    assert!(tree.len() >= 3, "{tree:?}");
    daemon.act("w", "disable").await;
    wait_gone(&tree).await;
    scene.is_empty().await;
}

#[tokio::test]
async fn nothing_is_left_when_a_server_is_removed() {
    let scene = Scene::new();
    let daemon = scene.daemon().await;
    let server = daemon.register(&scene.server("w", &[])).await;
    let tree = tree(&daemon, &server, &scene);
    daemon.delete("/mcp/servers/w").await;
    wait_gone(&tree).await;
    scene.is_empty().await;
}

#[tokio::test]
async fn nothing_of_the_old_process_is_left_after_a_crash() {
    // covers: HST-3.2, MGR-60
    let scene = Scene::new();
    let daemon = scene.daemon().await;
    let server = daemon.register(&scene.server("w", &[])).await;
    let old = tree(&daemon, &server, &scene);
    kill(pid_of(&server));
    daemon
        .wait_server("w", "another process", |after| {
            after["status"] == "ready" && after["pid"] != server["pid"]
        })
        .await;
    wait_gone(&old).await;
    daemon.delete("/mcp/servers/w").await;
    scene.is_empty().await;
}

#[tokio::test]
async fn nothing_is_left_after_a_start_that_failed() {
    // covers: MGR-14
    let scene = Scene::new();
    let daemon = scene.daemon().await;
    let body = scene.server("w", &["--exit-at-start", "1"]);
    let failed = daemon.post("/mcp/servers?wait=30", &body).await.expect(201);
    assert_eq!(failed["status"], "error");
    assert_eq!(pids_in(&scene.pids).len(), 1);
    scene.is_empty().await;
}

#[tokio::test]
async fn nothing_is_left_when_the_daemon_is_told_to_end() {
    // covers: MGR-61, HST-3.4
    let scene = Scene::new();
    let mut daemon = scene.daemon().await;
    let server = daemon.register(&scene.server("w", &[])).await;
    let tree = tree(&daemon, &server, &scene);
    assert!(daemon.terminate().await.success());
    let left: Vec<_> = tree.iter().filter(|pid| alive(**pid)).collect();
    assert!(left.is_empty(), "the daemon exited before {left:?} did");
    assert_eq!(scene.running(), Vec::<u32>::new());
}

#[tokio::test]
async fn nothing_is_left_when_the_daemon_is_killed() {
    // covers: MGR-61
    let scene = Scene::new();
    let mut daemon = scene.daemon().await;
    let stubborn = ["--ignore-sigterm", "--ignore-stdin-eof"];
    let server = daemon.register(&scene.server("w", &stubborn)).await;
    let tree = tree(&daemon, &server, &scene);
    daemon.kill9().await;
    wait_gone(&tree).await;
    scene.is_empty().await;
}

#[tokio::test]
async fn nothing_is_left_when_a_stopped_server_loses_its_daemon() {
    let scene = Scene::new();
    let mut daemon = scene.daemon().await;
    let server = daemon.register(&scene.server("w", &[])).await;
    let tree = tree(&daemon, &server, &scene);
    signal(pid_of(&server), Signal::STOP);
    daemon.kill9().await;
    wait_gone(&tree).await;
}

#[tokio::test]
async fn nothing_is_left_whenever_the_daemon_is_killed() {
    // covers: MGR-61
    let scene = Scene::new();
    let mut daemon = scene.daemon().await;
    for (name, more) in [
        ("quick", &[][..]),
        ("slow", &["--slow-start", "120"]),
        ("stubborn", &["--ignore-sigterm", "--ignore-stdin-eof"]),
        ("crashing", &["--crash-when-ready", "50"]),
    ] {
        daemon.post("/mcp/servers", &scene.server(name, more)).await.expect(201);
    }
    for round in 0..12 {
        // A moment nobody chose: in the middle of starts, crashes and restarts.
        let moment = Duration::from_millis(u64::from(uuid::Uuid::new_v4().as_bytes()[0]) * 2);
        tokio::time::sleep(moment).await;
        daemon.kill9().await;
        eventually(&format!("round {round}, killed after {moment:?}: nothing left"), async || {
            scene.running().is_empty().then_some(())
        })
        .await;
        daemon = scene.daemon().await;
    }
    // After all of it, everything comes back.
    for name in ["quick", "slow", "stubborn"] {
        daemon.wait_status(name, "ready").await;
    }
    daemon.kill9().await;
    scene.is_empty().await;
}

#[tokio::test]
async fn what_outlived_daemon_shim_and_sweeper_is_swept_at_the_next_start() {
    let scene = Scene::new();
    let mut daemon = scene.daemon().await;
    let server = daemon.register(&scene.server("w", &["--ignore-stdin-eof"])).await;
    let old = tree(&daemon, &server, &scene);
    let guard = parent(pid_of(&server)).expect("a server has a parent");
    // The daemon must not see the guard's end, nor the guard the daemon's.
    signal(daemon.pid(), Signal::STOP);
    for sweeper in processes_with("cofer-shim --sweep") {
        if parent(sweeper) == Some(daemon.pid()) {
            kill(sweeper);
        }
    }
    if guard != daemon.pid() && guard != 1 {
        signal(guard, Signal::STOP);
        kill(guard);
    }
    daemon.kill9().await;
    let daemon = scene.daemon().await;
    wait_gone(&old).await;
    let again = daemon.wait_status("w", "ready").await;
    assert!(!old.contains(&pid_of(&again)));
    daemon.delete("/mcp/servers/w").await;
    scene.is_empty().await;
}

#[tokio::test]
async fn a_guard_that_is_killed_takes_its_server_along() {
    let scene = Scene::new();
    let daemon = scene.daemon().await;
    let server = daemon.register(&scene.server("w", &[])).await;
    let old = tree(&daemon, &server, &scene);
    let guard = parent(pid_of(&server)).expect("a server has a parent");
    if guard != daemon.pid() {
        kill(guard);
    } else {
        kill(pid_of(&server));
    }
    wait_gone(&old).await;
    daemon
        .wait_server("w", "another process", |after| {
            after["status"] == "ready" && after["pid"] != server["pid"]
        })
        .await;
}
