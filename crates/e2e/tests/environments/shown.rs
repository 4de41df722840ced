//! What the daemon shows of environments that agents made: the console's side.

use std::fs;

use cofer_e2e::eventually;
use serde_json::{Value, json};

use crate::workshop::{Workshop, facts};

/// The environments of a repository, as the daemon lists them.
fn of<'a>(list: &'a Value, workshop: &Workshop) -> &'a Value {
    let top = json!(workshop.repo());
    let repositories = list["repositories"].as_array().unwrap();
    let found = repositories.iter().find(|repository| repository["path"] == top);
    found.unwrap_or_else(|| panic!("{top} is not in {list:#}"))
}

fn at(workshop: &Workshop, path: &str) -> String {
    let separator = if path.contains('?') { '&' } else { '?' };
    format!("{path}{separator}repository={}", workshop.repo().display())
}

#[tokio::test]
async fn an_agents_environment_is_listed_with_its_commands_and_ports() {
    let workshop = Workshop::open().await;
    let daemon = workshop.daemon().await;
    let list = daemon.get("/environments").await.expect(200);
    assert_eq!(of(&list, &workshop)["environments"], json!([]), "prepared, and not used yet");
    let mut agent = workshop.agent().await;
    agent.create("Add login").await;
    agent.run("add-login", "echo more >> README").await;
    agent.run("add-login", "exit 3").await;
    let address = agent.serve("add-login", "httpd -f -p 8080", 8080).await;
    let list = daemon.get("/environments").await.expect(200);
    let shown = of(&list, &workshop)["environments"][0].clone();
    assert_eq!(shown["id"], "add-login", "{list:#}");
    assert_eq!(shown["title"], "Add login");
    assert_eq!(shown["branch"], "cofer/add-login");
    assert_eq!(shown["image"], cofer_e2e::image("busybox"));
    assert_eq!(shown["state"], "running");
    assert_eq!(shown["worktree"], json!(workshop.worktree("add-login")));
    let host: u16 = address.rsplit_once(':').unwrap().1.parse().unwrap();
    assert_eq!(shown["ports"], json!([{"container": 8080, "host": host}]));
    let commands: Vec<_> = shown["commands"].as_array().unwrap().iter().collect();
    let told: Vec<_> = commands
        .iter()
        .map(|command| (command["command"].as_str().unwrap(), &command["exit_code"]))
        .collect();
    let expected = [
        ("httpd -f -p 8080", &json!(null)),
        ("exit 3", &json!(3)),
        ("echo more >> README", &json!(0)),
    ];
    assert_eq!(told, expected);
    assert_eq!((&commands[0]["running"], &commands[0]["background"]), (&json!(true), &json!(true)));
    agent.run("add-login", "kill $(busybox pidof httpd)").await;
    eventually("the port is not in use any more", async || {
        let list = daemon.get("/environments").await.expect(200);
        (of(&list, &workshop)["environments"][0]["ports"] == json!([])).then_some(())
    })
    .await;
}

#[tokio::test]
async fn its_log_and_its_changes_are_shown_and_it_is_destroyed() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let arguments = json!({
        "environment_id": "x", "command": "echo more >> README; echo 日本 > 'a b'",
        "explanation": "Say more",
    });
    facts(&agent.call("environment_run_cmd", arguments).await);
    let daemon = workshop.daemon().await;
    let log = daemon.get("/environments/x/log").await.expect(200);
    let [step] = log["steps"].as_array().unwrap().as_slice() else { panic!("{log:#}") };
    assert_eq!(step["subject"], "Say more");
    assert_eq!(step["command"], "echo more >> README; echo 日本 > 'a b'");
    assert_eq!((&step["exit_code"], &log["truncated"]), (&json!(0), &json!(false)));
    let tip = workshop.git(&["rev-parse", "refs/remotes/cofer/x"]).await;
    assert_eq!(step["commit"], tip);
    let diff = daemon.get("/environments/x/diff").await.expect(200);
    let text = diff["text"].as_str().unwrap();
    assert!(text.contains("\n+more\n") && text.contains("\n+日本\n"), "{text}");
    let files = json!([{"path": "README", "added": 1, "removed": 0}, {"path": "a b", "added": 1, "removed": 0}]);
    assert_eq!(diff["files"], files);

    let gone = daemon.delete("/environments/x").await.expect(200);
    assert_eq!(gone["removed_paths"][0], json!(workshop.worktree("x")));
    assert_eq!((&gone["branch_kept"], &gone["environment_id"]), (&json!(true), &json!("x")));
    workshop.is_tidy("x").await;
    assert_eq!(workshop.git(&["rev-parse", "refs/remotes/cofer/x"]).await, tip);
    daemon.delete("/environments/x").await.failure(404, "not_found");
    daemon.get("/environments/x/log").await.failure(404, "not_found");
}

#[tokio::test]
async fn two_repositories_with_the_same_id_are_told_apart() {
    let (one, daemon) = {
        let workshop = Workshop::open().await;
        let daemon = workshop.daemon().await;
        (workshop, daemon)
    };
    let two = one.neighbour().await;
    for (workshop, word) in [(&one, "one"), (&two, "two")] {
        let mut agent = workshop.agent().await;
        agent.create("same").await;
        agent.run("same", &format!("echo {word} > word")).await;
    }
    let error = daemon.get("/environments/same/diff").await.failure(409, "conflict");
    let message = error["message"].as_str().unwrap();
    for workshop in [&one, &two] {
        assert!(message.contains(workshop.repo().to_str().unwrap()), "{message}");
    }
    daemon.delete("/environments/same").await.failure(409, "conflict");
    let diff = daemon.get(&at(&two, "/environments/same/diff")).await.expect(200);
    assert!(diff["text"].as_str().unwrap().contains("+two"), "{diff:#}");
    let gone = daemon.delete(&at(&one, "/environments/same?force=true")).await.expect(200);
    assert_eq!(gone["branch_kept"], false);
    assert!(!one.worktree("same").exists() && two.worktree("same").exists());
    let diff = daemon.get("/environments/same/diff").await.expect(200);
    assert!(diff["text"].as_str().unwrap().contains("+two"), "the only one that is left");
}

#[tokio::test]
async fn only_ids_and_repositories_that_can_be_meant_are_looked_for() {
    let workshop = Workshop::open().await;
    let stranger = Workshop::open().await;
    let mut agent = stranger.agent().await;
    agent.create("x").await;
    let daemon = workshop.daemon().await;
    for id in ["..%2F..%2Fx", "-x", "A", "x%00"] {
        let path = format!("/environments/{id}/log");
        daemon.get(&path).await.failure(422, "invalid_request");
        daemon.delete(&format!("/environments/{id}")).await.failure(422, "invalid_request");
    }
    // Another user's repository is not looked into, whoever names it.
    daemon.get(&at(&stranger, "/environments/x/log")).await.failure(404, "not_found");
    daemon.delete(&at(&stranger, "/environments/x")).await.failure(404, "not_found");
    assert!(stranger.worktree("x").exists());
    daemon.get(&at(&workshop, "/environments/x/log")).await.failure(404, "not_found");
}

#[tokio::test]
async fn looking_at_changes_runs_nothing_that_a_container_or_a_repository_names() {
    let workshop = Workshop::open().await;
    let marker = workshop.beside("marker");
    let touch = format!("touch {}", marker.display());
    for key in ["diff.evil.command", "diff.evil.textconv", "core.pager", "diff.external"] {
        workshop.git(&["config", key, &touch]).await;
    }
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let hostile = "echo '* diff=evil' > .gitattributes; echo more >> README";
    agent.run("x", hostile).await;
    workshop.write(".gitattributes", "* diff=evil\n");
    let daemon = workshop.daemon().await;
    let diff = daemon.get("/environments/x/diff").await.expect(200);
    assert!(diff["text"].as_str().unwrap().contains("+more"), "{diff:#}");
    daemon.get("/environments/x/log").await.expect(200);
    assert!(!marker.exists());
}

#[tokio::test]
async fn a_large_change_is_cut_off_and_says_so() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    agent.run("x", "seq 1 400000 > numbers").await;
    let daemon = workshop.daemon().await;
    let diff = daemon.get("/environments/x/diff").await.expect(200);
    let text = diff["text"].as_str().unwrap();
    assert_eq!(diff["truncated"], true);
    assert!(text.len() <= 1024 * 1024 && text.ends_with('\n'), "{}", text.len());
    assert_eq!(diff["files"], json!([{"path": "numbers", "added": 400_000, "removed": 0}]));
}

#[tokio::test]
async fn a_repository_that_is_gone_is_not_listed_and_one_that_is_broken_says_why() {
    let gone = Workshop::open().await;
    let broken = gone.neighbour().await;
    fs::write(broken.repo().join(".git/config"), "[core\n").unwrap();
    fs::remove_dir_all(gone.repo()).unwrap();
    let daemon = gone.daemon().await;
    let list = daemon.get("/environments").await.expect(200);
    let [only] = list["repositories"].as_array().unwrap().as_slice() else { panic!("{list:#}") };
    assert_eq!(only["path"], json!(broken.repo()));
    assert!(only["error"]["message"].as_str().unwrap().contains("config"), "{only:#}");
    assert!(!only["error"]["hint"].as_str().unwrap().is_empty());
}

#[tokio::test]
async fn the_host_check_says_what_doctor_says() {
    let workshop = Workshop::open().await;
    let daemon = workshop.daemon().await;
    let host = daemon.get("/host").await.expect(200);
    assert_eq!(host["path"], std::env::var("PATH").unwrap());
    let programs = host["programs"].as_array().unwrap();
    let names: Vec<_> = programs.iter().map(|program| program["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["git", "podman", "runsc", "node", "npx", "uvx", "python3"]);
    let doctor = daemon.cli(&["--json", "doctor"]).await;
    let doctor: Value = serde_json::from_str(&doctor.stdout).unwrap();
    for program in programs.iter().filter(|program| program["name"] != "podman") {
        let checks = doctor["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == program["name"]).unwrap();
        let (message, path) = (check["message"].as_str().unwrap(), program["path"].as_str());
        match (path, program["version"].as_str()) {
            (Some(path), Some(version)) => assert_eq!(message, format!("{version} ({path})")),
            (Some(path), None) => assert!(message.contains(path), "{message}"),
            (None, _) => assert!(message.starts_with("not on PATH"), "{message}"),
        }
    }
}
