//! Destroying environments: nothing is left, whatever state they are in.

use std::fs;

use cofer_e2e::{eventually, podman, processes_with};
use serde_json::json;

use crate::workshop::{Workshop, error, facts};

#[tokio::test]
async fn nothing_is_left_but_the_branch() {
    // covers: ENV-3.1, ENV-3.4
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    let told = agent.create("x").await;
    agent.run("x", "echo work > work").await;
    let result = agent.call("environment_destroy", json!({"environment_id": "x"})).await;
    let gone = facts(&result);
    assert_eq!(gone["environment_id"], "x");
    assert_eq!(gone["removed_paths"], json!([workshop.worktree("x")]));
    assert_eq!(gone["stopped_containers"], json!([told["container_id"]]));
    assert_eq!((&gone["termination"], &gone["warnings"]), (&json!("graceful"), &json!([])));
    workshop.is_tidy("x").await;
    assert_eq!(workshop.git(&["show", "cofer/x:work"]).await, "work");
    let failure = error(
        &agent.call("environment_destroy", json!({"environment_id": "x"})).await,
        "not_found",
    );
    assert_eq!(failure["retryable"], false);
    assert!(failure["recovery"].as_str().unwrap().contains("will not help"), "{failure}");
    error(&agent.try_run("x", "ls").await, "not_found");
    // The name is free again.
    agent.create("x").await;
    assert_ne!(agent.run("x", "cat work").await["exit_code"], 0);
}

#[tokio::test]
async fn a_path_to_an_environment_is_none_of_its_names() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    for path in ["../environments/x", "./x", "x/", "x/../x"] {
        let force = json!({"environment_id": path, "force": true});
        error(&agent.call("environment_destroy", force).await, "not_found");
        error(&agent.try_run(path, "ls").await, "not_found");
        let wish = json!({"title": "y", "environment_id": path, "allow_replace": true});
        error(&agent.try_create(wish).await, "invalid_request");
    }
    assert_eq!(agent.run("x", "echo here").await["stdout"], "here\n");
    assert_eq!(workshop.containers().await.len(), 1);
}

#[tokio::test]
async fn the_volumes_of_an_image_are_gone_with_its_environment() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    let told = agent.create("plain").await;
    let image = workshop.image_of(told["container_id"].as_str().unwrap(), "VOLUME /kept").await;
    let told = facts(&agent.try_create(json!({"title": "x", "image": image.name()})).await);
    let inspected = cofer_e2e::inspect(told["container_id"].as_str().unwrap()).await;
    let mut mounts = inspected["Mounts"].as_array().unwrap().iter();
    let mount = mounts.find(|mount| mount["Type"] == "volume").unwrap();
    let volume = mount["Name"].as_str().unwrap();
    assert!(podman(&["volume", "ls", "--quiet"]).await.contains(volume));
    agent.destroy("x").await;
    assert!(!podman(&["volume", "ls", "--quiet"]).await.contains(volume));
}

#[tokio::test]
async fn what_does_not_want_to_end_is_ended_by_force() {
    // covers: ENV-3.2
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let mark = workshop.beside("mark").display().to_string();
    let command = format!(
        "busybox setsid sh -c 'trap \"\" TERM INT HUP; while :; do sleep 1000; : {mark}; done'"
    );
    let arguments = json!({"environment_id": "x", "command": command, "background": true});
    facts(&agent.call("environment_run_cmd", arguments).await);
    assert!(!processes_with(&mark).is_empty());
    let gone = agent.destroy("x").await;
    assert_eq!(gone["termination"], "forced");
    assert_eq!(processes_with(&mark), Vec::<u32>::new());
    workshop.is_tidy("x").await;
}

#[tokio::test]
async fn a_command_that_runs_is_ended_and_hears_why() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    let mut other = workshop.agent().await;
    agent.create("x").await;
    let mark = workshop.beside("mark").display().to_string();
    let arguments = json!({"environment_source": workshop.repo(), "environment_id": "x", "command": format!("sh -c 'sleep 1000; : {mark}'")});
    let id = agent
        .client
        .ask("tools/call", json!({"name": "environment_run_cmd", "arguments": arguments}))
        .await;
    eventually("the command runs", async || (!processes_with(&mark).is_empty()).then_some(()))
        .await;
    other.destroy("x").await;
    let answer = agent.client.answer(id).await;
    // Its shell was asked to end, or its container was gone before it could tell.
    let content = &answer["result"]["structuredContent"];
    assert!(
        content["exit_code"] == 143 || content["error"]["kind"] == "precondition_failed",
        "{answer}"
    );
    workshop.is_tidy("x").await;
}

#[tokio::test]
async fn what_somebody_else_removed_is_no_obstacle() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    let told = agent.create("one").await;
    podman(&["rm", "--force", "--time", "0", told["container_id"].as_str().unwrap()]).await;
    error(&agent.try_run("one", "ls").await, "internal");
    let gone = agent.destroy("one").await;
    assert_eq!(
        (&gone["termination"], &gone["stopped_containers"]),
        (&json!("already_stopped"), &json!([]))
    );
    workshop.is_tidy("one").await;

    agent.create("two").await;
    let worktree = workshop.worktree("two");
    rustix::mount::unmount(&worktree, rustix::mount::UnmountFlags::DETACH).unwrap_or_default();
    fs::remove_dir_all(&worktree).unwrap();
    let gone = agent.destroy("two").await;
    assert_eq!(gone["removed_paths"], json!([]));
    workshop.is_tidy("two").await;
}

#[tokio::test]
async fn a_container_that_stopped_is_started_again() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    let told = agent.create("x").await;
    agent.run("x", "echo kept > kept; echo inside > /inside").await;
    podman(&["stop", "--time", "1", told["container_id"].as_str().unwrap()]).await;
    // As after a restart of the machine.
    rustix::mount::unmount(workshop.worktree("x"), rustix::mount::UnmountFlags::DETACH)
        .unwrap_or_default();
    assert_eq!(agent.run("x", "cat kept /inside").await["stdout"], "kept\ninside\n");
    agent.destroy("x").await;
    workshop.is_tidy("x").await;
}

#[tokio::test]
async fn force_removes_the_branch_and_what_cannot_be_moved() {
    // covers: ENV-3.3
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    agent.run("x", "echo work > work").await;
    let tip = workshop.git(&["rev-parse", "cofer/x"]).await;
    // Moving it aside fails: there is a file where the folder for that should be.
    let trash = workshop.repo().join(".git/cofer/trash");
    fs::remove_dir_all(&trash).unwrap();
    fs::write(&trash, "").unwrap();
    let failure =
        error(&agent.call("environment_destroy", json!({"environment_id": "x"})).await, "internal");
    assert_eq!(failure["step"], "destroy");
    fs::remove_file(&trash).unwrap();
    fs::create_dir(&trash).unwrap();
    // The second attempt finds the container gone, and a worktree that cannot be moved either.
    let worktree = workshop.worktree("x");
    rustix::mount::mount_bind(&worktree, &worktree).unwrap();
    let failure =
        error(&agent.call("environment_destroy", json!({"environment_id": "x"})).await, "internal");
    assert!(failure["recovery"].as_str().unwrap().contains("force"), "{failure}");
    let gone = facts(
        &agent.call("environment_destroy", json!({"environment_id": "x", "force": true})).await,
    );
    let warnings = gone["warnings"].to_string();
    assert!(warnings.contains(&tip) && warnings.contains("file by file"), "{warnings}");
    assert_eq!((&gone["branch_kept"], &gone["removed_paths"]), (&json!(false), &json!([worktree])));
    workshop.is_tidy("x").await;
    assert_eq!(workshop.git(&["for-each-ref", "refs/remotes/cofer"]).await, "");
    let remote = workshop.repo().join(".git/cofer/remote.git");
    assert_eq!(workshop.git_in(&remote, &["for-each-ref"]).await, "");
}

#[tokio::test]
async fn what_the_background_wrote_last_is_kept() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let arguments = json!({"environment_id": "x", "command": "echo late > late; sleep 1000", "background": true});
    facts(&agent.call("environment_run_cmd", arguments).await);
    let late = workshop.worktree("x").join("late");
    eventually("it writes", async || {
        fs::read_to_string(&late).is_ok_and(|text| !text.is_empty()).then_some(())
    })
    .await;
    agent.destroy("x").await;
    assert_eq!(workshop.git(&["show", "cofer/x:late"]).await, "late");
}
