//! Limits hold, and the one that fired is named.

use std::time::Duration;

use cofer_model::{Exit, Limits};
use cofer_runtime::podman::{ContainerPlan, EndCause};

use crate::world::{Runtime, World, sh};

with_both_runtimes!(
    a_server_out_of_memory_is_named_as_such_with_the_limit,
    a_fork_bomb_is_held,
    the_use_of_a_container_is_measured,
    what_writes_more_than_its_disk_is_ended,
    a_writable_root_is_limited_too,
);

fn limits(memory: &str, disk: &str, pids: u32) -> Limits {
    Limits { cpu: "1".to_owned(), memory: memory.to_owned(), disk: disk.to_owned(), pids }
}

async fn a_server_out_of_memory_is_named_as_such_with_the_limit(runtime: Runtime) {
    // covers: HST-5.2
    let world = World::new("memory");
    let script = "echo up; read line; exec dd if=/dev/zero of=/dev/null bs=300M count=1";
    let plan = ContainerPlan { limits: limits("64M", "1G", 128), ..sh(runtime, script) };
    let mut running = world.start(&plan).await;
    assert_eq!(running.line().await, "up");
    running.write("go\n").await;
    let exit = running.exited().await;
    assert_eq!(exit, Exit { code: None, signal: Some(9) });
    let cause = running.container.cause();
    assert_eq!(cause, Some(EndCause::OutOfMemory { limit: Some(64 << 20) }));
    assert_eq!(cause.unwrap().to_string(), "out of memory: it reached its limit of 64M");
    drop(running);
    world.close().await;
}

async fn a_fork_bomb_is_held(runtime: Runtime) {
    // covers: HST-5.2
    let world = World::new("forks");
    let script = "echo up; read line; while :; do sleep 1000 & done 2>/dev/null";
    let plan = ContainerPlan { limits: limits("256M", "1G", 64), ..sh(runtime, script) };
    let mut other = world.start(&sh(runtime, "exec cat")).await;
    let mut running = world.start(&plan).await;
    assert_eq!(running.line().await, "up");
    running.write("go\n").await;
    // It reaches the limit or dies of it, and never has more.
    let mut most = 0;
    let reached = async {
        while let Some(usage) = running.container.usage() {
            most = most.max(usage.pids);
            if usage.pids >= 60 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(crate::world::PATIENCE, reached).await.unwrap();
    assert!(most <= 64, "{most}");
    other.write("still here\n").await;
    assert_eq!(other.line().await, "still here", "others are not harmed");
    drop((running, other));
    world.close().await;
}

async fn the_use_of_a_container_is_measured(runtime: Runtime) {
    // covers: HST-4.1
    let world = World::new("usage");
    let script = "echo up; while :; do :; done";
    let mut busy = world.start(&sh(runtime, script)).await;
    let mut idle = world.start(&sh(runtime, "echo up; exec cat")).await;
    busy.line().await;
    idle.line().await;
    let busiest = async {
        loop {
            let usage = busy.container.usage().unwrap();
            if usage.cpu_percent > 5.0 {
                return usage;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let usage = tokio::time::timeout(crate::world::PATIENCE, busiest).await.unwrap();
    assert!(usage.memory_bytes > 50_000, "{usage:?}");
    assert!(usage.pids >= 2, "the server and its first process: {usage:?}");
    assert_eq!(idle.container.usage().unwrap().disk_bytes, Some(0), "it has nothing to write to");
    busy.container.kill();
    busy.exited().await;
    assert_eq!(busy.container.usage(), None);
    drop((busy, idle));
    world.close().await;
}

async fn what_writes_more_than_its_disk_is_ended(runtime: Runtime) {
    // covers: HST-5.2
    let world = World::new("disk");
    let script = "dd if=/dev/zero of=/data/some bs=1M count=5 2>/dev/null; echo some; read line
        dd if=/dev/zero of=/data/more bs=1M count=40 2>/dev/null; echo more; exec cat";
    let plan = ContainerPlan {
        limits: limits("256M", "20M", 128),
        volumes: vec!["/data".to_owned()],
        ..sh(runtime, script)
    };
    let mut running = world.start(&plan).await;
    assert_eq!(running.line().await, "some");
    let seen = async {
        while running.container.usage().unwrap().disk_bytes.is_none_or(|b| b < 5 << 20) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(crate::world::PATIENCE, seen).await.unwrap();
    assert_eq!(running.container.isolation()["disk"], 20 << 20);
    running.write("go\n").await;
    assert_eq!(running.exited().await.signal, Some(9));
    let cause = running.container.cause().unwrap();
    let is_it =
        matches!(cause, EndCause::DiskFull { limit, used } if limit == 20 << 20 && used > limit);
    assert!(is_it, "{cause:?}");
    assert!(cause.to_string().starts_with("disk limit exceeded: "), "{cause}");
    drop(running);
    world.podman.drained().await;
    world.podman.remove_volumes(plan.server).await.unwrap();
    world.close().await;
}

async fn a_writable_root_is_limited_too(runtime: Runtime) {
    // covers: HST-5.2
    let world = World::new("root-disk");
    let script = "echo up; dd if=/dev/zero of=/var/more bs=1M count=40 2>/dev/null; sleep 1000";
    let mut plan = ContainerPlan { limits: limits("256M", "20M", 128), ..sh(runtime, script) };
    plan.openings.writable_root = true;
    let mut running = world.start(&plan).await;
    running.line().await;
    if running.container.isolation()["disk"] == "not enforced" {
        // A storage whose layers are copies of the image.
        assert!(running.container.warnings().iter().any(|warning| warning.contains("disk")));
    } else {
        running.exited().await;
        let cause = running.container.cause();
        assert!(matches!(cause, Some(EndCause::DiskFull { .. })), "{cause:?}");
    }
    drop(running);
    world.close().await;
}
