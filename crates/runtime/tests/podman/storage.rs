//! What is kept, and where servers are reached.

use std::collections::BTreeSet;
use std::net::TcpListener;

use cofer_model::{Network, PortMapping};
use cofer_runtime::podman::{ContainerPlan, PodmanError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{PATIENCE, Runtime, World, podman, sh};

with_both_runtimes!(
    a_volume_outlives_its_containers_until_it_is_removed,
    a_volume_can_be_written_to_by_the_user_of_the_container,
    a_published_port_answers_on_loopback,
);

async fn a_volume_outlives_its_containers_until_it_is_removed(runtime: Runtime) {
    // covers: HST-6.1, HST-6.2
    let world = World::new("volume");
    let script = "cat /data/file 2>/dev/null; echo kept > /data/file; echo ready; kill -9 $$";
    let volumes = vec!["/data".to_owned(), "/a-b/c".to_owned()];
    let plan = ContainerPlan { volumes, ..sh(runtime, script) };
    for expected in [&["ready"][..], &["kept", "ready"]] {
        let mut running = world.start(&plan).await;
        for line in expected {
            assert_eq!(running.line().await, *line);
        }
        running.exited().await;
    }
    world.podman.drained().await;
    let volumes = world.podman.volumes().await.unwrap();
    let paths: BTreeSet<&str> = volumes.iter().map(|volume| volume.path.as_str()).collect();
    assert_eq!(paths, BTreeSet::from(["/data", "/a-b/c"]));
    assert!(volumes.iter().all(|volume| volume.server == Some(plan.server)), "{volumes:?}");
    assert!(volumes.iter().any(|volume| volume.bytes > Some(0)), "{volumes:?}");
    // Those of registered servers are not news, those of others are told and kept.
    let known = BTreeSet::from([plan.server]);
    assert!(world.podman.sweep(&known).await.unwrap().volumes.is_empty());
    let swept = world.podman.sweep(&BTreeSet::new()).await.unwrap();
    assert_eq!(swept.volumes, volumes);

    let removed = world.podman.remove_volumes(plan.server).await.unwrap();
    assert_eq!(removed.len(), 2);
    assert!(world.podman.volumes().await.unwrap().is_empty());
    assert!(world.podman.remove_volumes(plan.server).await.unwrap().is_empty());
    let mut running = world.start(&plan).await;
    assert_eq!(running.line().await, "ready", "what was removed is gone");
    drop(running);
    world.podman.drained().await;
    world.podman.remove_volumes(plan.server).await.unwrap();
    world.close().await;
}

async fn a_volume_can_be_written_to_by_the_user_of_the_container(runtime: Runtime) {
    // covers: HST-6.1
    let world = World::new("volume-user");
    let plan = ContainerPlan {
        user: Some("1000:1000".to_owned()),
        // One that the image lets everybody write to, and one that it does not have.
        volumes: vec!["/data".to_owned(), "/not/in/the/image".to_owned()],
        ..sh(runtime, "for d in /data /not/in/the/image; do echo x > $d/f && echo $d; done")
    };
    let mut running = world.start(&plan).await;
    assert_eq!(running.line().await, "/data");
    assert_eq!(running.line().await, "/not/in/the/image");
    drop(running);
    world.podman.drained().await;
    world.podman.remove_volumes(plan.server).await.unwrap();
    world.close().await;
}

async fn a_published_port_answers_on_loopback(runtime: Runtime) {
    // covers: HST-1.2
    let world = World::new("port");
    let script =
        "mkdir /tmp/www; echo hello > /tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www";
    let plan = ContainerPlan {
        stdio: false,
        network: Network::Egress,
        ports: vec![PortMapping { container: 8080, host: 0, address: None }],
        ..sh(runtime, script)
    };
    // The image has no `mkdir`.
    let mut plan = plan;
    plan.args[2] = plan.args[2].replace("mkdir", "/bin/busybox mkdir");
    let running = world.start(&plan).await;
    let endpoints = running.container.endpoints();
    assert_eq!(endpoints.len(), 1);
    assert_eq!(endpoints[0].container, 8080);
    assert!(endpoints[0].host.ip().is_loopback(), "{endpoints:?}");
    let asking = async {
        loop {
            if let Some(answer) = ask(endpoints[0].host).await {
                return answer;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let answer = tokio::time::timeout(PATIENCE, asking).await.unwrap();
    assert!(answer.contains("hello"), "{answer}");

    let taken = PortMapping { container: 8080, host: endpoints[0].host.port(), address: None };
    let second = ContainerPlan { ports: vec![taken], ..sh(runtime, "exec cat") };
    let second = ContainerPlan { network: Network::Egress, stdio: false, ..second };
    let error = world.refusal(&second).await;
    assert!(matches!(error, PodmanError::PortTaken { .. }), "{error:?}");
    drop(running);
    world.close().await;
}

async fn ask(address: std::net::SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    (!answer.is_empty()).then_some(answer)
}

#[tokio::test]
async fn a_port_of_this_machine_that_is_in_use_is_refused_and_nothing_is_left() {
    let world = World::new("port-taken");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = taken.local_addr().unwrap().port();
    let plan = ContainerPlan {
        stdio: false,
        network: Network::Egress,
        ports: vec![PortMapping { container: 80, host, address: None }],
        ..sh(Runtime::Runc, "exec cat")
    };
    let error = world.refusal(&plan).await;
    assert!(matches!(error, PodmanError::PortTaken { .. }), "{error:?}");
    assert!(error.to_string().contains(&host.to_string()), "{error}");
    world.close().await;
}

#[tokio::test]
async fn volumes_of_others_are_left_alone() {
    let world = World::new("others");
    let name = format!("{}-foreign", world.owner);
    podman(&["volume", "create", &name]).await;
    let plan = sh(Runtime::Runc, "exit 0");
    assert!(world.podman.remove_volumes(plan.server).await.unwrap().is_empty());
    assert!(world.podman.sweep(&BTreeSet::new()).await.unwrap().volumes.is_empty());
    podman(&["volume", "rm", &name]).await;
    world.close().await;
}
