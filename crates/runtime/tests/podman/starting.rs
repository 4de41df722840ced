//! Starts: many at once, one after the other, and those that cannot be.

use std::collections::BTreeMap;

use cofer_model::Limits;
use cofer_runtime::podman::{ContainerPlan, PodmanError};
use tokio::task::JoinSet;

use crate::world::{Runtime, World, podman, sh};

with_both_runtimes!(twenty_start_at_once, a_server_has_one_container_at_a_time);

async fn twenty_start_at_once(runtime: Runtime) {
    // covers: HST-3.1
    let world = std::sync::Arc::new(World::new("twenty"));
    let mut starts = JoinSet::new();
    for n in 0..20 {
        let world = std::sync::Arc::clone(&world);
        starts.spawn(async move {
            let mut running = world.start(&sh(runtime, "exec cat")).await;
            running.write(&format!("{n}\n")).await;
            assert_eq!(running.line().await, n.to_string());
            running
        });
    }
    let all = starts.join_all().await;
    assert_eq!(world.containers().await.len(), 20);
    drop(all);
    std::sync::Arc::into_inner(world).unwrap().close().await;
}

async fn a_server_has_one_container_at_a_time(runtime: Runtime) {
    let world = World::new("one");
    let plan = sh(runtime, "echo up; exec cat");
    let first = world.start(&plan).await;
    let mut second = Box::pin(world.try_start(&plan));
    let waits = tokio::time::timeout(std::time::Duration::from_millis(500), &mut second).await;
    assert!(waits.is_err(), "it waits for the first to be gone");
    drop(first);
    let mut running = second.await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(running.line().await, "up");
    assert_eq!(world.containers().await, [running.container.id()]);
    drop(running);
    world.close().await;
}

#[tokio::test]
async fn a_container_of_the_server_that_was_left_is_replaced() {
    let world = World::new("left");
    let plan = sh(Runtime::Runc, "echo up; exec cat");
    let mut first = world.start(&plan).await;
    let (name, server) = (first.container.name().to_owned(), plan.server.to_string());
    first.stdin = None;
    first.gone().await;
    let labels = [format!("cofer.owner={}", world.owner), format!("cofer.server={server}")];
    let make = ["create", "--name", &name, "--label", &labels[0], "--label", &labels[1]];
    let make: Vec<&str> = make.into_iter().chain([plan.image.as_str(), "/bin/cat"]).collect();
    podman(&make).await;
    let mut running = world.start(&plan).await;
    assert_eq!(running.line().await, "up");
    assert_eq!(world.containers().await, [running.container.id()]);
    drop(running);

    // One of somebody else is in the way, and stays.
    world.podman.drained().await;
    podman(&["create", "--name", &name, &plan.image, "/bin/cat"]).await;
    let error = world.refusal(&plan).await;
    assert!(
        matches!(&error, PodmanError::NameTaken { name: taken } if *taken == name),
        "{error:?}"
    );
    podman(&["rm", &name]).await;
    world.close().await;
}

#[tokio::test]
async fn what_cannot_start_is_refused_with_the_reason() {
    let world = World::new("refused");
    let good = sh(Runtime::Runc, "exit 0");
    let missing = ContainerPlan { image: "localhost/no/such:1".to_owned(), ..good.clone() };
    let error = world.refusal(&missing).await;
    assert!(matches!(error, PodmanError::ImageMissing { .. }), "{error:?}");
    assert!(error.hint().contains("podman pull localhost/no/such:1"), "{}", error.hint());

    let user = ContainerPlan { user: Some("nobody-knows".to_owned()), ..good.clone() };
    let error = world.refusal(&user).await;
    assert!(matches!(error, PodmanError::Program { .. }), "{error:?}");
    assert!(error.to_string().contains("nobody-knows"), "{error}");

    let memory = Limits { memory: "100K".to_owned(), ..Limits::default() };
    let error = world.refusal(&ContainerPlan { limits: memory, ..good.clone() }).await;
    assert!(matches!(error, PodmanError::Limits { .. }), "{error:?}");

    let environment = BTreeMap::from([("PATH".to_owned(), "a\nb".to_owned())]);
    let error = world.refusal(&ContainerPlan { environment, ..good }).await;
    assert!(matches!(error, PodmanError::BadPlan { .. }), "{error:?}");
    world.close().await;
}

#[tokio::test]
async fn a_program_that_the_image_does_not_have_is_named_in_the_output() {
    let world = World::new("no-program");
    let plan = ContainerPlan { args: vec!["/no/such".to_owned()], ..sh(Runtime::Runc, "") };
    match world.try_start(&plan).await {
        Err(error) => assert!(matches!(error, PodmanError::Program { .. }), "{error:?}"),
        Ok(mut running) => {
            assert!(!running.exited().await.is_success());
            let (_, said) = running.rest().await;
            assert!(said.contains("No such file"), "{said}");
        }
    }
    world.close().await;
}
