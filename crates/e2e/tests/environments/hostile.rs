//! A container that wants out: nothing it plants is run on the machine, nothing outside its
//! worktree is read or written.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::workshop::{Workshop, error, facts};

#[tokio::test]
async fn planted_repositories_hooks_and_filters_do_nothing() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let proof = workshop.beside("proof");
    let evil = workshop.beside("evil");
    fs::write(&evil, format!("#!/bin/sh\necho ran >> {}\n", proof.display())).unwrap();
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
    let evil = evil.display();
    let command = format!(
        "for d in sub .; do busybox mkdir -p $d/.git/hooks $d/.git/objects $d/.git/refs; echo 'ref: refs/heads/x' > $d/.git/HEAD; \
         printf '[core]\\n\\tfsmonitor = {evil}\\n\\thooksPath = .git/hooks\\n[filter \"x\"]\\n\\tclean = {evil}\\n\\tsmudge = {evil}\\n[include]\\n\\tpath = /workdir/evil.inc\\n' > $d/.git/config; \
         for h in pre-commit post-commit post-index-change reference-transaction; do echo '#!/bin/sh' > $d/.git/hooks/$h; echo {evil} >> $d/.git/hooks/$h; busybox chmod +x $d/.git/hooks/$h; done; done; \
         echo '* filter=x diff=x' > .gitattributes; echo 1 > sub/file; busybox rm -f .git; busybox mv .git moved; echo gitdir: /workdir/sub/.git > .git; echo end"
    );
    let ran = agent.run("x", &command).await;
    assert_eq!(ran["stdout"], "end\n", "{ran}");
    agent.run("x", "echo 2 > sub/file").await;
    // The worktree's own `.git` cannot be touched from inside.
    let home = workshop.repo().join(".git/cofer/environments/x");
    for gitfile in [workshop.worktree("x").join(".git"), home.join("gitfile")] {
        let gitfile = fs::read_to_string(gitfile).unwrap();
        assert!(gitfile.contains(".git/cofer/remote.git/worktrees/x"), "{gitfile}");
    }
    assert_eq!(workshop.git(&["show", "cofer/x:sub/file"]).await, "2");
    assert!(!workshop.git(&["ls-tree", "-r", "--name-only", "cofer/x"]).await.contains(".git/"));
    agent.destroy("x").await;
    assert!(!proof.exists(), "{}", fs::read_to_string(proof).unwrap());
}

#[tokio::test]
async fn links_out_of_the_worktree_are_not_followed() {
    let workshop = Workshop::open().await;
    let secret = workshop.beside("secret");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("a.txt"), "top secret").unwrap();
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let command = format!(
        "busybox rm -rf src; busybox ln -s {0} src; busybox ln -s {0}/a.txt b; busybox ln -s / root",
        secret.display()
    );
    agent.run("x", &command).await;
    let tree = workshop.git(&["ls-tree", "-r", "cofer/x"]).await;
    assert_eq!(tree.lines().filter(|line| line.starts_with("120000")).count(), 3, "{tree}");
    assert!(!tree.contains("src/"), "{tree}");
    // Whoever swaps folders for links while they are read gets nothing either.
    let swapping = "while :; do busybox rm -rf d; busybox mkdir d; echo mine > d/a.txt; busybox rm -rf d; busybox ln -s SECRET d; done";
    let arguments = json!({"environment_id": "x", "command": swapping.replace("SECRET", secret.to_str().unwrap()), "background": true});
    facts(&agent.call("environment_run_cmd", arguments).await);
    for number in 0..20 {
        agent.run("x", &format!("echo {number} > n")).await;
    }
    agent.destroy("x").await;
    let all = workshop.git(&["log", "-p", "--format=", "cofer/x"]).await;
    assert!(!all.contains("top secret"));
    assert_eq!(fs::read_to_string(secret.join("a.txt")).unwrap(), "top secret");
}

#[tokio::test]
async fn an_impostor_in_the_executors_place_fools_nobody() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    // A socket of the machine must not be reached through a link.
    let decoy = workshop.beside("decoy.sock");
    let listener = std::os::unix::net::UnixListener::bind(&decoy).unwrap();
    listener.set_nonblocking(true).unwrap();
    // Nor may the executor be changed, which others run too.
    let shared = workshop.repo().join(".git/cofer");
    let before = modes_in(&shared);
    agent.run("x", "echo x > /.cofer/executor; busybox chmod 0777 /.cofer/executor").await;
    assert_eq!(modes_in(&shared), before);
    let command = format!(
        "busybox rm /.cofer/run/executor; busybox ln -s {} /.cofer/run/executor; echo done",
        decoy.display()
    );
    agent.run("x", &command).await;
    let result = agent.try_run("x", "echo still here").await;
    if result["isError"] != true {
        // It was started again, with an executor of ours.
        assert_eq!(facts(&result)["stdout"], "still here\n");
    }
    assert_eq!(listener.accept().map(drop).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    agent.destroy("x").await;
    workshop.is_tidy("x").await;
}

/// The files in a folder, with their modes.
fn modes_in(folder: &Path) -> BTreeMap<PathBuf, u32> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), path.metadata().unwrap().permissions().mode())).collect()
}

#[tokio::test]
async fn what_the_person_has_set_up_elsewhere_has_no_say_in_an_environment() {
    let workshop = Workshop::open().await;
    let (proof, home) = (workshop.beside("proof"), workshop.beside("home"));
    let ran = format!("touch {}; cat", proof.display());
    let settings = format!("[filter \"x\"]\n\tclean = {ran:?}\n\tsmudge = {ran:?}\n");
    fs::create_dir_all(home.join(".config/git")).unwrap();
    fs::write(home.join(".gitconfig"), settings).unwrap();
    fs::write(home.join(".config/git/attributes"), "* text eol=crlf\n").unwrap();
    let elsewhere = workshop.beside("elsewhere").display().to_string();
    // A filter of the person's is not lent to a container that names it, and what a shell says
    // of another repository is not meant for this one.
    let mut agent = workshop
        .agent_with(&[
            ("HOME", home.to_str().unwrap()),
            ("GIT_DIR", &elsewhere),
            ("GIT_WORK_TREE", &elsewhere),
            ("GIT_INDEX_FILE", &elsewhere),
        ])
        .await;
    agent.create("x").await;
    agent.run("x", "echo '* filter=x' > .gitattributes; echo 1 > file").await;
    facts(&agent.try_create(json!({"title": "y", "from_git_ref": "x"})).await);
    assert_eq!(agent.run("y", "cat file README").await["stdout"], "1\nhello\n");
    assert!(!proof.exists());
    assert!(!Path::new(&elsewhere).exists());
}

#[tokio::test]
async fn a_fork_bomb_ends_with_its_limit() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let mut hasty = workshop.agent_with(&[("COHERRA_TIMEOUT_RUN", "1000")]).await;
    // The shell itself must not die of its own bomb before the limit.
    let bomb = "b() { (sleep 1000) & (b) & sleep 0.05; b; }; b 2>/dev/null & kill -STOP $$";
    error(&hasty.try_run("x", bomb).await, "timeout");
    let ran = agent.run("x", "busybox ps | busybox grep -c '[s]leep'").await;
    assert_eq!(ran["stdout"], "0\n");
}

#[tokio::test]
async fn a_repository_cannot_put_worktrees_elsewhere() {
    let workshop = Workshop::open().await;
    let elsewhere = workshop.beside("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut agent = workshop.agent().await;
    for link in [".cofer/worktrees", ".cofer"] {
        fs::remove_dir_all(workshop.repo().join(link)).unwrap();
        std::os::unix::fs::symlink(&elsewhere, workshop.repo().join(link)).unwrap();
        let failure = error(&agent.try_create(json!({"title": "x"})).await, "internal");
        assert!(failure["message"].as_str().unwrap().contains("symbolic link"), "{failure}");
        assert!(fs::read_dir(&elsewhere).unwrap().next().is_none(), "{link}");
    }
}
