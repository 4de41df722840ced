//! Rounds of SIGKILL to the daemon, to a shim and to both at once, with grandchildren that made
//! a session of their own and cleared their environment: each round leaves nothing.
//!
//! `COFER_TEST_KILL_ROUNDS` sets the number of rounds, 12 by default.

use std::path::PathBuf;

use cofer_e2e::{
    Daemon, alive, eventually, kill, parent, pid_of, pids_in, processes_with, signal, wait_gone,
    wayward,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A data directory, and the file in which grandchildren write down their pids.
struct Scene {
    folder: TempDir,
    pids: PathBuf,
    containment: &'static str,
}

impl Scene {
    fn new(containment: &'static str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let pids = folder.path().join("pids");
        Self { folder, pids, containment }
    }

    async fn daemon(&self) -> Daemon {
        let builder = Daemon::builder().data_dir(&self.folder.path().join("data"));
        match self.containment {
            "cgroup" => builder.start().await,
            _ => builder.without_cgroups().start().await,
        }
    }

    fn pids_text(&self) -> &str {
        self.pids.to_str().expect("temporary paths are text")
    }

    /// A server that is ready, with one grandchild more, in the containment of this scene.
    async fn server(&self, daemon: &Daemon) -> Value {
        let server = daemon.wait_status("w", "ready").await;
        daemon.tool("w", "spawn", &json!({})).await.expect(200);
        assert_eq!(server["isolation"]["containment"], self.containment);
        server
    }
}

/// Ends what a failed test would leave on the machine.
impl Drop for Scene {
    fn drop(&mut self) {
        for pid in processes_with(self.pids_text()) {
            kill(pid);
        }
    }
}

/// What is killed in a round.
#[derive(Debug, Clone, Copy)]
enum Victim {
    Daemon,
    Shim,
    Both,
}

fn rounds() -> usize {
    let asked = std::env::var("COFER_TEST_KILL_ROUNDS").ok();
    asked.map_or(12, |text| text.parse().expect("COFER_TEST_KILL_ROUNDS is a number"))
}

/// Kills, and waits until nothing of the server is left. Returns the daemon of the next round.
async fn round(scene: &Scene, mut daemon: Daemon, victim: Victim) -> Daemon {
    let server = scene.server(&daemon).await;
    let shim = parent(pid_of(&server)).expect("a server has a parent");
    assert_ne!(shim, daemon.pid());
    let grandchildren: Vec<u32> =
        pids_in(&scene.pids).into_iter().filter(|pid| alive(*pid)).collect();
    assert!(grandchildren.len() >= 2, "{grandchildren:?}");
    let all: Vec<u32> = [shim, pid_of(&server)].into_iter().chain(grandchildren).collect();
    match victim {
        Victim::Daemon => daemon.kill9().await,
        Victim::Shim => kill(shim),
        Victim::Both => {
            // Stopped, so that neither acts on the death of the other.
            signal(shim, Signal::STOP);
            signal(daemon.pid(), Signal::STOP);
            kill(shim);
            daemon.kill9().await;
        }
    }
    wait_gone(&all).await;
    if matches!(victim, Victim::Shim) {
        daemon.wait_server("w", "another process", |now| now["pid"] != server["pid"]).await;
        return daemon;
    }
    assert_eq!(processes_with(scene.pids_text()), Vec::<u32>::new(), "after {victim:?}");
    scene.daemon().await
}

async fn kill_rounds(containment: &'static str) {
    let scene = Scene::new(containment);
    let mut daemon = scene.daemon().await;
    let flags = ["--grandchildren", "--ignore-sigterm", "--ignore-stdin-eof", "--pids-file"];
    let flags: Vec<&str> = flags.into_iter().chain([scene.pids_text()]).collect();
    daemon.register(&wayward("w", &flags)).await;
    let victims = [Victim::Daemon, Victim::Shim, Victim::Both];
    for victim in victims.into_iter().cycle().take(rounds()) {
        daemon = round(&scene, daemon, victim).await;
    }
    daemon.kill9().await;
    let left = async || processes_with(scene.pids_text()).is_empty().then_some(());
    eventually("nothing is left", left).await;
}

#[tokio::test]
async fn nothing_is_left_with_a_cgroup_per_server() {
    // covers: MGR-61
    kill_rounds("cgroup").await;
}

#[tokio::test]
async fn nothing_is_left_without_cgroups() {
    // covers: MGR-61
    kill_rounds("subreaper").await;
}
