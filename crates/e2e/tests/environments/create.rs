//! Creating environments: what is asked for is there, and what cannot be is said and undone.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use cofer_e2e::eventually;
use serde_json::json;

use crate::workshop::{Workshop, error, facts};

#[tokio::test]
async fn an_environment_is_a_worktree_in_a_container() {
    // covers: ENV-1.1, ENV-1.2
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    let result = agent.try_create(json!({"title": "Add Login", "explanation": "why"})).await;
    let told = facts(&result);
    assert_eq!(
        (told["id"].as_str(), told["title"].as_str()),
        (Some("add-login"), Some("Add Login"))
    );
    assert_eq!(told["remote_ref"], "cofer/add-login");
    for (short, long) in
        [("checkout_command", "checkout"), ("log_command", "log"), ("diff_command", "diff")]
    {
        assert_eq!(told[short], format!("cofer env {long} add-login"));
        assert_eq!(told[format!("{short}_to_share_with_user")], told[short]);
    }
    assert_eq!(told["worktree"], json!(workshop.worktree("add-login")));
    assert_eq!(told["config"]["workdir"], "/workdir");
    assert!(
        ["overlay", "reflink", "checkout"]
            .contains(&told["config"]["worktree_mode"].as_str().unwrap())
    );
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(text).unwrap(), told);
    assert_eq!(workshop.containers().await, [told["container_id"].as_str().unwrap()]);

    let head = workshop.git(&["rev-parse", "HEAD"]).await;
    assert_eq!(workshop.git(&["rev-parse", "cofer/add-login"]).await, head);
    assert!(
        workshop
            .git(&["ls-remote", "cofer", "refs/heads/cofer/add-login"])
            .await
            .starts_with(&head)
    );
    let worktree = workshop.worktree("add-login");
    assert_eq!(fs::read_to_string(worktree.join("src/a.txt")).unwrap(), "a\n");
    assert_eq!(
        workshop.git_in(&worktree, &["symbolic-ref", "HEAD"]).await,
        "refs/heads/cofer/add-login"
    );
    assert_eq!(workshop.git_in(&worktree, &["status", "--porcelain"]).await, "");

    // Both sides see the same files, at once.
    fs::write(worktree.join("from-outside"), "out").unwrap();
    let ran = agent.run("add-login", "cat from-outside; echo in > from-inside").await;
    assert_eq!(ran["stdout"], "out");
    assert_eq!(fs::read_to_string(worktree.join("from-inside")).unwrap(), "in\n");
    // The person's own tree is as it was.
    assert_eq!(workshop.git(&["status", "--porcelain"]).await, "");
}

#[tokio::test]
async fn it_starts_from_any_ref() {
    // covers: ENV-1.2
    let workshop = Workshop::open().await;
    workshop.git(&["tag", "v1"]).await;
    let first = workshop.git(&["rev-parse", "HEAD"]).await;
    workshop.write("README", "changed\n");
    workshop.git(&["commit", "-q", "-am", "two"]).await;
    workshop.git(&["checkout", "-q", "--detach", "HEAD"]).await;
    let mut agent = workshop.agent().await;
    for (title, reference, text) in [
        ("tag", "v1", "hello"),
        ("commit", &first, "hello"),
        ("older", "HEAD~1", "hello"),
        ("branch", "main", "changed"),
        ("default", "HEAD", "changed"),
    ] {
        facts(&agent.try_create(json!({"title": title, "from_git_ref": reference})).await);
        assert_eq!(
            agent.run(title, "cat README").await["stdout"],
            format!("{text}\n"),
            "{reference}"
        );
    }
    agent.run("tag", "echo more > more").await;
    facts(&agent.try_create(json!({"title": "next", "from_git_ref": "tag"})).await);
    assert_eq!(agent.run("next", "cat more").await["stdout"], "more\n");
    for bad in ["nowhere", "--upload-pack=x", "HEAD:README", "a..b", "-v"] {
        error(
            &agent.try_create(json!({"title": "bad", "from_git_ref": bad})).await,
            "invalid_request",
        );
    }
    assert!(!workshop.worktree("bad").exists());
}

#[tokio::test]
async fn an_id_that_is_taken_is_a_conflict_unless_it_may_be_replaced() {
    // covers: ENV-1.3
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    let before = agent.create("Same").await;
    agent.run("same", "echo work > work").await;
    let work = workshop.git(&["rev-parse", "cofer/same"]).await;
    error(&agent.try_create(json!({"title": "same"})).await, "conflict");
    assert_eq!(agent.run("same", "cat work").await["stdout"], "work\n");
    assert_eq!(workshop.containers().await, [before["container_id"].as_str().unwrap()]);

    let after = facts(&agent.try_create(json!({"title": "Same", "allow_replace": true})).await);
    assert_ne!(after["container_id"], before["container_id"]);
    assert_eq!(workshop.containers().await, [after["container_id"].as_str().unwrap()]);
    assert_ne!(agent.run("same", "cat work").await["exit_code"], 0);
    // The work of the first is not lost, and the answer says where it is.
    let warnings = after["warnings"].to_string();
    assert!(warnings.contains(&work[..12]), "{warnings}");
    assert_eq!(workshop.git(&["cat-file", "-t", &work]).await, "commit");
}

#[tokio::test]
async fn an_unprepared_repository_is_told_to_be_prepared() {
    // covers: ENV-1.4
    let workshop = Workshop::unprepared().await;
    let mut agent = workshop.agent().await;
    let failure = error(&agent.try_create(json!({"title": "x"})).await, "precondition_failed");
    assert!(failure["recovery"].as_str().unwrap().contains("cofer init"), "{failure}");
    assert!(!workshop.repo().join(".git/cofer").exists());
}

#[tokio::test]
async fn as_many_as_allowed_and_not_one_more() {
    // covers: ENV-4.2
    let workshop = Workshop::open().await.set("COFER_MAX_ENVIRONMENTS", "1");
    let mut agent = workshop.agent().await;
    agent.create("one").await;
    error(&agent.try_create(json!({"title": "two"})).await, "limit_exceeded");
    assert_eq!(workshop.containers().await.len(), 1);
    assert!(!workshop.worktree("two").exists());
    agent.destroy("one").await;
    agent.create("two").await;
}

#[tokio::test]
async fn uncommitted_changes_are_told() {
    let workshop = Workshop::open().await;
    workshop.write("README", "not committed\n");
    workshop.write("new file", "");
    let mut agent = workshop.agent().await;
    let result = agent.try_create(json!({"title": "dirty"})).await;
    let told = facts(&result);
    let warnings = told["warnings"].to_string();
    assert!(warnings.contains("README") && warnings.contains("new file"), "{warnings}");
    assert!(result["content"][0]["text"].as_str().unwrap().starts_with('{'));
    assert_eq!(agent.run("dirty", "cat README").await["stdout"], "hello\n");
}

#[tokio::test]
async fn uncommitted_changes_that_show_late_are_told_with_the_next_command() {
    let workshop = Workshop::open().await;
    workshop.write("new file", "");
    // A git whose `status` takes its time, as in a very large repository.
    let (programs, go) = (workshop.beside("programs"), workshop.beside("go"));
    fs::create_dir(&programs).unwrap();
    let search = std::env::var("PATH").unwrap();
    let slow = format!(
        "#!/bin/sh\nPATH='{search}'\ncase \" $* \" in *' status '*)\nwhile [ ! -e '{}' ]; do sleep 0.1; done;;\nesac\nexec git \"$@\"\n",
        go.display()
    );
    fs::write(programs.join("git"), slow).unwrap();
    fs::set_permissions(programs.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{search}", programs.display());
    let mut agent = workshop.agent_with(&[("PATH", &path)]).await;

    let told = facts(&agent.try_create(json!({"title": "late"})).await);
    let warnings = told["warnings"].to_string();
    assert!(warnings.contains("not known yet"), "{warnings}");
    assert_eq!(agent.run("late", "true").await["warnings"], json!([]));
    fs::write(go, "").unwrap();
    let warnings = eventually("the changes are named", async || {
        let warnings = agent.run("late", "true").await["warnings"].clone();
        (warnings != json!([])).then_some(warnings)
    })
    .await;
    assert!(warnings.to_string().contains("?? new file"), "{warnings}");
    assert_eq!(agent.run("late", "true").await["warnings"], json!([]), "it is told once");
}

#[tokio::test]
async fn what_the_repository_wishes_is_followed() {
    let workshop = Workshop::open().await.set("COFER_TEST_SECRET", "s3cret-value");
    let config = json!({
        "workdir": "/src", "base_image": cofer_e2e::image("busybox"), "env": ["GREETING=hi $HOME", "A=1"],
        "secrets": ["KEY=env://COFER_TEST_SECRET"], "setup_commands": ["echo set up in $PWD > /setup"],
        "install_commands": ["cat README > /installed; echo made > made"],
    });
    workshop.write(".cofer/environment.json", &config.to_string());
    assert_eq!(workshop.cofer(&["env", "allow", "KEY"]).await.code, Some(0));
    let mut agent = workshop.agent().await;
    let told = facts(&agent.call("environment_create", json!({"title": "wishes"})).await);
    assert_eq!(told["config"]["secrets"], json!(["KEY=env://COFER_TEST_SECRET"]));
    let ran = agent.run("wishes", "echo $PWD $GREETING; cat /setup /installed made; test \"$KEY\" = s3cret-value && echo $KEY").await;
    assert_eq!(ran["stdout"], "/src hi /root\nset up in /\nhello\nmade\n********\n", "{ran}");
    assert_eq!(workshop.git(&["show", "cofer/wishes:made"]).await, "made");
    let inspected = cofer_e2e::inspect(told["container_id"].as_str().unwrap()).await;
    assert!(!inspected.to_string().contains("s3cret-value"));
}

#[tokio::test]
async fn whatever_fails_nothing_is_left() {
    // covers: ENV-4.3
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    let missing = json!({"title": "x", "image": "localhost/cofer-test/no-such-image"});
    let failure = error(&agent.try_create(missing).await, "precondition_failed");
    assert!(failure["recovery"].as_str().unwrap().contains("image"), "{failure}");
    workshop.is_tidy("x").await;
    workshop.write(".cofer/environment.json", r#"{"install_commands": ["echo why >&2; exit 7"]}"#);
    let failure = error(&agent.try_create(json!({"title": "x"})).await, "precondition_failed");
    assert!(failure["message"].as_str().unwrap().contains("exit code 7"), "{failure}");
    assert!(failure["message"].as_str().unwrap().contains("why"), "{failure}");
    workshop.is_tidy("x").await;
    assert_eq!(workshop.git(&["for-each-ref", "refs/remotes/cofer"]).await, "");
}

#[tokio::test]
async fn an_image_is_a_name_and_never_a_path() {
    let workshop = Workshop::open().await;
    let archive = workshop.beside("image.tar");
    let save =
        ["save", "--quiet", "--format", "oci-archive", "--output", archive.to_str().unwrap()];
    cofer_e2e::podman(&[&save[..], &[&cofer_e2e::image("busybox")]].concat()).await;
    let mut agent = workshop.agent().await;
    for image in [
        format!("oci-archive:{}", archive.display()),
        "oci-archive:image.tar".to_owned(),
        "dir:layout".to_owned(),
        "oci:layout:tag".to_owned(),
        "docker-archive:image.tar".to_owned(),
        "containers-storage:busybox".to_owned(),
    ] {
        let result = agent.try_create(json!({"title": "x", "image": image})).await;
        let failure = error(&result, "invalid_request");
        assert!(failure["message"].as_str().unwrap().contains("transport"), "{failure}");
        workshop.write(".cofer/environment.json", &json!({"base_image": image}).to_string());
        let result = agent.call("environment_create", json!({"title": "x"})).await;
        error(&result, "invalid_request");
        fs::remove_file(workshop.repo().join(".cofer/environment.json")).unwrap();
    }
    workshop.is_tidy("x").await;
}

#[tokio::test]
async fn without_podman_the_server_answers_and_says_what_is_missing() {
    let workshop = Workshop::open().await.set("COFER_PODMAN", "/nowhere/podman");
    let mut agent = workshop.agent().await;
    let failure = error(&agent.try_create(json!({"title": "x"})).await, "precondition_failed");
    assert!(failure["message"].as_str().unwrap().contains("Podman is not installed"), "{failure}");
    assert!(!workshop.worktree("x").exists());
    assert_eq!(workshop.git(&["for-each-ref", "refs/remotes/cofer"]).await, "");
}

#[tokio::test]
async fn repositories_of_every_sort_work_or_say_why_not() {
    let workshop = Workshop::open().await;
    workshop.write("README", "two\n");
    workshop.git(&["commit", "-q", "-am", "two"]).await;
    // Hooks that fail and a signature that nobody can make are for people's own commits.
    let hook = workshop.repo().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    workshop.git(&["config", "commit.gpgSign", "true"]).await;
    workshop.git(&["config", "gpg.program", "/nowhere/gpg"]).await;
    let mut agent = workshop.agent().await;
    agent.create("signed").await;
    agent.run("signed", "echo 1 > new").await;
    assert_eq!(workshop.git(&["show", "cofer/signed:new"]).await, "1");

    let repo = workshop.repo();
    let at = |name: &str| workshop.beside(name);
    let origin = format!("file://{}", repo.display());
    workshop.git(&["clone", "-q", "--depth", "1", &origin, at("shallow").to_str().unwrap()]).await;
    workshop.git(&["worktree", "add", "-q", at("linked").to_str().unwrap()]).await;
    fs::create_dir(at("empty")).unwrap();
    workshop.git_in(&at("empty"), &["init", "-q"]).await;
    for name in ["shallow", "linked"] {
        let folder = at(name);
        workshop.init(&folder).await;
        let arguments = json!({"environment_source": folder, "title": name, "image": cofer_e2e::image("busybox")});
        facts(&agent.client.call("environment_create", arguments).await);
        let arguments = json!({"environment_source": folder, "environment_id": name, "command": "echo 1 > new; cat README"});
        assert_eq!(
            facts(&agent.client.call("environment_run_cmd", arguments).await)["stdout"],
            "two\n"
        );
        assert_eq!(workshop.git_in(&folder, &["show", &format!("cofer/{name}:new")]).await, "1");
        let arguments = json!({"environment_source": folder, "environment_id": name});
        facts(&agent.client.call("environment_destroy", arguments).await);
    }
    for (name, part) in [("empty", "no `cofer` remote"), ("nowhere", "no such directory")] {
        let arguments = json!({"environment_source": at(name), "title": "x"});
        let failure =
            error(&agent.client.call("environment_create", arguments).await, "precondition_failed");
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains(part) || message.contains("no commit"), "{failure}");
    }
}

#[tokio::test]
async fn without_overlays_everything_is_the_same() {
    let workshop = Workshop::open().await.set("COFER_WORKTREE", "checkout");
    let mut agent = workshop.agent().await;
    let told = agent.create("x").await;
    assert_eq!(told["config"]["worktree_mode"], "checkout");
    assert_eq!(agent.run("x", "cat README").await["commit"], json!(null));
    agent.run("x", "busybox rm -r src; echo 2 > README; echo new > new").await;
    let changed = workshop.git(&["diff", "--name-status", "main", "cofer/x"]).await;
    assert_eq!(changed, "M\tREADME\nA\tnew\nD\tsrc/a.txt");
    assert_eq!(workshop.git_in(&workshop.worktree("x"), &["status", "--porcelain"]).await, "");
    // Another server has to find out for itself what is new.
    let mut next = workshop.agent().await;
    assert_eq!(next.run("x", "true").await["commit"], json!(null));
    next.run("x", "busybox rm new").await;
    assert_eq!(workshop.git(&["ls-tree", "--name-only", "cofer/x", "new"]).await, "");
    next.destroy("x").await;
    workshop.is_tidy("x").await;
}

#[tokio::test]
async fn a_remote_that_somebody_made_is_pushed_to() {
    // covers: ENV-1.2
    let workshop = Workshop::unprepared().await;
    let elsewhere = workshop.beside("elsewhere.git");
    fs::create_dir(&elsewhere).unwrap();
    workshop.git_in(&elsewhere, &["init", "-q", "--bare"]).await;
    workshop.git(&["remote", "add", "cofer", elsewhere.to_str().unwrap()]).await;
    workshop.init(&workshop.repo()).await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let head = workshop.git(&["rev-parse", "HEAD"]).await;
    assert_eq!(workshop.git_in(&elsewhere, &["rev-parse", "cofer/x"]).await, head);
    let ran = agent.run("x", "echo new > new").await;
    assert_eq!(
        workshop.git_in(&elsewhere, &["rev-parse", "cofer/x"]).await,
        ran["commit"].as_str().unwrap()
    );
    assert_eq!(workshop.git(&["rev-parse", "cofer/x"]).await, ran["commit"].as_str().unwrap());
}

#[tokio::test]
async fn submodules_are_filled_from_the_source_and_left_alone() {
    let workshop = Workshop::open().await;
    let library = workshop.beside("library");
    fs::create_dir(&library).unwrap();
    workshop.git_in(&library, &["init", "-q"]).await;
    fs::write(library.join("code"), "library\n").unwrap();
    workshop.git_in(&library, &["add", "-A"]).await;
    workshop
        .git_in(
            &library,
            &["-c", "user.name=l", "-c", "user.email=l@l", "commit", "-q", "-m", "one"],
        )
        .await;
    workshop
        .git(&[
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            library.to_str().unwrap(),
            "lib",
        ])
        .await;
    workshop.git(&["commit", "-q", "-m", "with a submodule"]).await;
    let mut agent = workshop.agent().await;
    let told = agent.create("x").await;
    assert!(told["warnings"].to_string().contains("submodules"), "{told}");
    assert_eq!(
        agent.run("x", "cat lib/code; echo changed > lib/code").await["stdout"],
        "library\n"
    );
    assert_eq!(
        workshop.git(&["rev-parse", "cofer/x"]).await,
        workshop.git(&["rev-parse", "HEAD"]).await
    );
    assert_eq!(workshop.git(&["status", "--porcelain"]).await, "");
}
