//! A person's side: `cofer init` and `cofer env`.

use std::fs;

use serde_json::{Value, json};

use crate::workshop::{Workshop, facts};

fn text(path: std::path::PathBuf) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[tokio::test]
async fn init_is_done_once_and_undone_wholly() {
    let workshop = Workshop::unprepared().await;
    let state = || {
        let git = workshop.repo().join(".git");
        (
            text(git.join("config")),
            text(git.join("info/exclude")),
            workshop.repo().join(".cofer").exists(),
            git.join("cofer").exists(),
        )
    };
    let before = state();
    let done = workshop.cofer(&["init"]).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let prepared = state();
    assert!(prepared.1.lines().any(|line| line == ".cofer/"), "{}", prepared.1);
    assert!(workshop.git(&["remote"]).await.contains("cofer"));
    workshop.git(&["fetch", "-q", "cofer"]).await;
    // Nothing was copied.
    let remote = workshop.repo().join(".git/cofer/remote.git");
    assert!(workshop.git_in(&remote, &["count-objects", "-v"]).await.contains("count: 0\n"));
    let again = workshop.cofer(&["init"]).await;
    assert_eq!((again.code, state() == prepared), (Some(0), true));
    let undone = workshop.cofer(&["init", "--remove"]).await;
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    assert_eq!(state(), before);
    assert_eq!(workshop.cofer(&["init", "--remove"]).await.code, Some(0));
    assert_eq!(workshop.git(&["status", "--porcelain"]).await, "");
}

#[tokio::test]
async fn init_is_not_undone_under_an_environment() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let refused = workshop.cofer(&["init", "--remove"]).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("cofer env destroy --all"), "{}", refused.stderr);
    assert_eq!(agent.run("x", "echo on").await["stdout"], "on\n");
}

#[tokio::test]
async fn the_commands_of_the_answer_show_the_work() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    let told = agent.create("x").await;
    let arguments =
        json!({"environment_id": "x", "command": "echo more >> README", "explanation": "Say more"});
    facts(&agent.call("environment_run_cmd", arguments).await);
    let printed = async |name: &str| {
        let words: Vec<String> =
            told[name].as_str().unwrap().split(' ').skip(1).map(str::to_owned).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ended = workshop.cofer(&words).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout
    };
    assert!(printed("log_command").await.contains("Say more"));
    assert!(printed("diff_command").await.contains("+more"));
    printed("checkout_command").await;
    assert_eq!(workshop.git(&["branch", "--show-current"]).await, "cofer-x");
    assert_eq!(text(workshop.repo().join("README")), "hello\nmore\n");
    agent.run("x", "echo again >> README").await;
    workshop.git(&["checkout", "-q", "main"]).await;
    printed("checkout_command").await;
    assert_eq!(text(workshop.repo().join("README")), "hello\nmore\nagain\n");
    let missing = workshop.cofer(&["env", "log", "nowhere"]).await;
    assert_eq!(missing.code, Some(1));
}

#[tokio::test]
async fn work_is_merged_or_applied() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("one").await;
    agent.run("one", "echo 1 > one").await;
    agent.create("two").await;
    agent.run("two", "echo 2 > two").await;
    let merged = workshop.cofer(&["env", "merge", "one", "--delete"]).await;
    assert_eq!(merged.code, Some(0), "{}", merged.stderr);
    assert_eq!(workshop.git(&["log", "-1", "--format=%s"]).await, "Merge environment one");
    assert!(!workshop.worktree("one").exists());
    let applied = workshop.cofer(&["env", "apply", "two"]).await;
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    assert_eq!(workshop.git(&["status", "--porcelain"]).await, "A  two");
}

#[tokio::test]
async fn environments_are_listed_entered_destroyed_and_pruned() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("one").await;
    agent.create("two").await;
    let listed = workshop.cofer(&["env", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let ids: Vec<&str> = listed["environments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["one", "two"]);
    assert_eq!(listed["environments"][0]["running"], true);
    let shown = workshop.cofer(&["env", "list"]).await.stdout;
    assert!(shown.contains("Running") && shown.contains("two"), "{shown}");

    let repo = workshop.repo().display().to_string();
    let shell = ["env", "shell", "-C", &repo, "one"];
    let variables: Vec<(&str, &str)> =
        workshop.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let typed = "echo by hand > hand; exit\n";
    let ended = cofer_e2e::run(&cofer_e2e::cofer(), &shell, &variables, typed).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(workshop.git(&["show", "cofer/one:hand"]).await, "by hand");

    assert_eq!(workshop.cofer(&["env", "destroy", "--all"]).await.code, Some(0));
    workshop.is_tidy("one").await;
    let pruned = workshop.cofer(&["env", "prune", "--json"]).await;
    assert_eq!(pruned.code, Some(0), "{}", pruned.stderr);
    let pruned: Value = serde_json::from_str(&pruned.stdout).unwrap();
    assert_eq!(pruned["bases"].as_array().unwrap().len(), 1);
}
