//! A repository that an agent writes, or that the user was handed: nothing in it is run on this
//! machine, and no file or variable of this machine gets into a container through it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::workshop::{Workshop, error, facts};

/// A repository whose configuration runs programs, with a file to steal.
struct Attack {
    repo: PathBuf,
    proof: PathBuf,
    loot: PathBuf,
}

impl Attack {
    /// At `repo`, with one commit and a changed file, for which `git status` runs filters.
    async fn at(workshop: &Workshop, repo: PathBuf) -> Self {
        let (proof, loot) = (workshop.beside("proof"), workshop.beside("loot"));
        fs::write(&loot, "a key of the user's\n").unwrap();
        fs::set_permissions(&loot, fs::Permissions::from_mode(0o600)).unwrap();
        let attack = Self { repo, proof, loot };
        fs::create_dir_all(attack.repo.join(".cofer")).unwrap();
        workshop.git_in(&attack.repo, &["init", "-q", "-b", "main", "--template="]).await;
        let config = json!({"secrets": [format!("LOOT=file://{}", attack.loot.display())]});
        fs::write(attack.repo.join(".cofer/environment.json"), config.to_string()).unwrap();
        fs::write(attack.repo.join(".gitattributes"), "* filter=x\n").unwrap();
        fs::write(attack.repo.join("file"), "1\n").unwrap();
        workshop.git_in(&attack.repo, &["add", "-A"]).await;
        let commit = ["-c", "user.name=e", "-c", "user.email=e@e", "commit", "-q", "-m", "one"];
        workshop.git_in(&attack.repo, &commit).await;
        fs::write(attack.repo.join("file"), "2\n").unwrap();
        attack.arm();
        attack
    }

    fn arm(&self) {
        let proof = self.proof.display();
        let config = fs::read_to_string(self.repo.join(".git/config")).unwrap();
        let armed = format!(
            "{config}[core]\n\tfsmonitor = \"echo fsmonitor >> {proof}; false\"\n[filter \"x\"]\n\tclean = \"echo clean >> {proof}; cat\"\n\t\
             smudge = \"echo smudge >> {proof}; cat\"\n[remote \"cofer\"]\n\turl = {}\n\treceivepack = \"echo receivepack >> {proof}; git-receive-pack\"\n",
            self.repo.display()
        );
        fs::write(self.repo.join(".git/config"), armed).unwrap();
        let hook = self.repo.join(".git/hooks/reference-transaction");
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::write(&hook, format!("#!/bin/sh\necho hook >> {proof}\n")).unwrap();
        fs::set_permissions(hook, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The commands that write it in a container.
    async fn commands(&self, name: &str) -> String {
        let folder = self.repo.parent().unwrap().to_str().unwrap();
        let words = format!("tar -C {folder} -c {name} | gzip -9 | base64 -w 0");
        let packed = cofer_e2e::run(Path::new("sh"), &["-c", &words], &[], "").await.stdout;
        format!(
            "echo {packed} | busybox base64 -d | busybox gzip -d | busybox tar x && echo written"
        )
    }

    fn did_nothing(&self, how: &str) {
        let proof = fs::read_to_string(&self.proof).unwrap_or_default();
        assert_eq!(proof, "", "{how}: programs ran on the machine");
    }
}

fn create(source: &Path) -> Value {
    json!({"environment_source": source, "title": "stolen", "image": cofer_e2e::image("busybox")})
}

#[tokio::test]
async fn a_repository_that_an_agent_wrote_into_its_worktree_is_refused() {
    let workshop = Workshop::open().await;
    let attack = Attack::at(&workshop, workshop.beside("evil")).await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let ran = agent.run("x", &attack.commands("evil").await).await;
    assert_eq!(ran["stdout"], "written\n", "{ran}");
    let planted = workshop.worktree("x").join("evil");
    assert!(planted.join(".git/config").exists());
    let link = workshop.beside("link");
    symlink(&planted, &link).unwrap();
    let inside = workshop.repo().join("inside");
    symlink(&planted, &inside).unwrap();
    for source in [&planted, &planted.join(".cofer"), &link, &inside] {
        let how = source.display().to_string();
        for (tool, mut arguments) in [
            ("environment_create", json!({})),
            ("environment_run_cmd", json!({"environment_id": "stolen", "command": "true"})),
            ("environment_destroy", json!({"environment_id": "stolen"})),
        ] {
            for (name, value) in create(source).as_object().unwrap() {
                arguments[name] = value.clone();
            }
            let result = agent.client.call(tool, arguments).await;
            attack.did_nothing(&format!("{tool} of {how}"));
            error(&result, "precondition_failed");
        }
        for command in ["list", "log", "diff", "destroy", "prune"] {
            let mut args = vec!["env", command, "-C", source.to_str().unwrap()];
            args.extend((command == "destroy").then_some("stolen"));
            assert_eq!(workshop.cofer_anywhere(&args).await.code, Some(1), "{command} {how}");
            attack.did_nothing(&format!("cofer env {command} -C {how}"));
        }
        // Not even the user is to prepare what a container can write.
        let init = workshop.cofer_anywhere(&["init", source.to_str().unwrap()]).await;
        assert_eq!(init.code, Some(1), "{}", init.stdout);
        attack.did_nothing(&format!("cofer init {how}"));
    }
    assert!(!planted.join(".git/cofer").exists());
    agent.destroy("x").await;
    attack.did_nothing("environment_destroy");
}

#[tokio::test]
async fn a_repository_that_the_user_did_not_prepare_is_refused_wherever_it_is() {
    // covers: ENV-1.4
    let workshop = Workshop::open().await;
    let beside = Attack::at(&workshop, workshop.beside("evil")).await;
    let nested = Attack::at(&workshop, workshop.repo().join("vendor/evil")).await;
    let mut agent = workshop.agent().await;
    for attack in [&beside, &nested] {
        let result = agent.client.call("environment_create", create(&attack.repo)).await;
        attack.did_nothing(&attack.repo.display().to_string());
        let failure = error(&result, "precondition_failed");
        assert!(failure["recovery"].as_str().unwrap().contains("cofer init"), "{failure}");
        assert!(!attack.repo.join(".git/cofer").exists());
    }
    // A prepared one whose folder another took is not the one that was prepared.
    fs::rename(workshop.repo(), workshop.beside("aside")).unwrap();
    fs::rename(&beside.repo, workshop.repo()).unwrap();
    let result = agent.client.call("environment_create", create(&workshop.repo())).await;
    beside.did_nothing("a replaced repository");
    let failure = error(&result, "precondition_failed");
    assert!(failure["message"].as_str().unwrap().contains("replaced"), "{failure}");
    fs::rename(workshop.repo(), &beside.repo).unwrap();
    fs::rename(workshop.beside("aside"), workshop.repo()).unwrap();
    agent.create("still-mine").await;
}

#[tokio::test]
async fn nothing_that_the_configuration_of_a_prepared_repository_names_is_run() {
    let workshop = Workshop::open().await;
    let attack = Attack::at(&workshop, workshop.beside("evil")).await;
    fs::remove_file(attack.repo.join(".cofer/environment.json")).unwrap();
    workshop.init(&attack.repo).await;
    attack.did_nothing("cofer init");
    let mut agent = workshop.agent().await;
    let told = facts(&agent.client.call("environment_create", create(&attack.repo)).await);
    attack.did_nothing("environment_create");
    assert!(
        told["uncommitted"].to_string().contains("file")
            || told["warnings"].to_string().contains("file"),
        "{told}"
    );
    let mut arguments = create(&attack.repo);
    arguments["environment_id"] = json!("stolen");
    arguments["command"] = json!("echo 3 > file");
    facts(&agent.client.call("environment_run_cmd", arguments.clone()).await);
    attack.did_nothing("environment_run_cmd");
    let pushed = workshop
        .git_in(
            &attack.repo,
            &["-c", "core.fsmonitor=false", "show", "refs/heads/cofer/stolen:file"],
        )
        .await;
    assert_eq!(pushed, "3", "pushed to the remote that the repository names");
    arguments["force"] = json!(true);
    facts(&agent.client.call("environment_destroy", arguments).await);
    attack.did_nothing("environment_destroy");
    let listed =
        workshop.cofer_anywhere(&["env", "prune", "-C", attack.repo.to_str().unwrap()]).await;
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    attack.did_nothing("cofer env prune");
}
