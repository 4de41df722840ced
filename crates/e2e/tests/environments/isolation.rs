//! The walls around an environment's container, attacked from inside and read back from outside.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use cofer_e2e::run;
use serde_json::{Value, json};

use crate::workshop::{Agent, Workshop, error};

/// The capabilities that docs/environments.md lists, in the kernel's order.
const CAPABILITIES: [&str; 8] =
    ["chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setfcap"];

/// What `id -u` prints when the user `nobody` runs it from `path`; nothing if that fails.
async fn id_as_nobody(path: &Path) -> Option<String> {
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    // Not by setpriv itself, which keeps its capabilities until its own exec.
    let program = ["--", "sh", "-c", "exec \"$0\" -u", path.to_str().unwrap()];
    let ended = run(Path::new("setpriv"), &[&user[..], &program].concat(), &[], "").await;
    (ended.code == Some(0)).then(|| ended.stdout.trim().to_owned())
}

/// Where the files of an environment can be found on the machine.
fn places(workshop: &Workshop, id: &str) -> [PathBuf; 2] {
    let home = workshop.repo().join(".git/cofer/environments").join(id);
    [workshop.worktree(id), home.join("upper")]
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The flags of the mount at `path`, from this machine's mountinfo.
fn mount_flags(path: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let at = path.to_str().unwrap();
    let line = mounts.lines().rfind(|line| line.split(' ').nth(4) == Some(at));
    line.unwrap_or_else(|| panic!("{at} is not in {mounts}")).split(' ').nth(5).unwrap().to_owned()
}

/// Puts a program into the worktree and has the container's root make it setuid.
async fn plant(workshop: &Workshop, agent: &mut Agent, id: &str) {
    fs::copy("/usr/bin/id", workshop.worktree(id).join("id")).unwrap();
    let command = "busybox chown 0:0 id && busybox chmod 4755 id && busybox chmod 0777 .";
    let planted = agent.run(id, command).await;
    assert_eq!(planted["exit_code"], 0, "{planted}");
}

#[tokio::test]
async fn a_setuid_program_from_a_container_does_not_run_as_root_for_another_user() {
    let workshop = Workshop::open().await;
    // The way to the repository is open, as that to /srv/repo would be.
    chmod(workshop.repo().parent().unwrap(), 0o755);
    let mut agent = workshop.agent().await;
    let created = agent.create("x").await;
    assert_eq!(created["config"]["worktree_mode"], "overlay");
    plant(&workshop, &mut agent, "x").await;
    assert_eq!(id_as_nobody(Path::new("/usr/bin/id")).await.as_deref(), Some("65534"));
    for place in places(&workshop, "x") {
        assert_eq!(id_as_nobody(&place.join("id")).await, None, "{}", place.display());
    }
    for closed in [".cofer/worktrees", ".git/cofer/environments", ".git/cofer/trash"] {
        let mode = workshop.repo().join(closed).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{closed}");
    }
    // The second wall: even a user who gets there does not become root.
    let flags = mount_flags(&workshop.worktree("x"));
    assert!(flags.contains("nosuid") && flags.contains("nodev"), "{flags}");
    chmod(&workshop.repo().join(".cofer/worktrees"), 0o755);
    let reached = id_as_nobody(&workshop.worktree("x").join("id")).await;
    assert_eq!(reached.as_deref(), Some("65534"));
}

#[tokio::test]
async fn a_setuid_program_in_a_copied_worktree_is_out_of_reach_too() {
    let workshop = Workshop::open().await;
    chmod(workshop.repo().parent().unwrap(), 0o755);
    let mut agent = workshop.agent_with(&[("COFER_WORKTREE", "checkout")]).await;
    let created = agent.create("x").await;
    assert_eq!(created["config"]["worktree_mode"], "checkout");
    plant(&workshop, &mut agent, "x").await;
    assert_eq!(id_as_nobody(&workshop.worktree("x").join("id")).await, None);
    let flags = &created["isolation"]["mount_flags"]["/workdir"];
    assert_eq!(*flags, json!(["nosuid", "nodev"]), "{created}");
}

#[tokio::test]
async fn the_isolation_in_force_is_the_documented_one() {
    let workshop = Workshop::open().await;
    // A repository does not relax the isolation of its own code.
    workshop.write(
        ".cofer/environment.json",
        r#"{"capabilities": ["SYS_ADMIN"], "privileged": true, "limits": {"memory": "1T"}}"#,
    );
    let mut agent = workshop.agent().await;
    let created = agent.create("x").await;
    let isolation = &created["isolation"];
    assert_eq!(isolation["capabilities"], json!(CAPABILITIES), "{isolation:#}");
    assert_eq!(isolation["capability_bounding_set"], json!(CAPABILITIES));
    assert_eq!(isolation["no_new_privileges"], true);
    assert_eq!(isolation["seccomp"], "filter");
    assert_eq!(isolation["network"], "egress");
    assert_eq!(isolation["pids"], 2048);
    assert!(isolation["memory"].as_u64().is_some_and(|bytes| bytes <= 4 << 30), "{isolation:#}");
    assert!(isolation["cpu"].as_f64().is_some_and(|cores| cores <= 2.0), "{isolation:#}");
    for mount in ["/workdir", "/.cofer/run"] {
        assert_eq!(isolation["mount_flags"][mount], json!(["nosuid", "nodev"]), "{mount}");
    }
    // With rootful Podman the container's ids are the machine's, and nothing else is claimed.
    let map = agent.run("x", "busybox cat /proc/1/uid_map").await["stdout"].clone();
    let words: Vec<_> = map.as_str().unwrap().split_whitespace().collect();
    assert_eq!(isolation["user_namespace"], words != ["0", "0", "4294967295"], "{map}");
    let attempts = "busybox mknod /workdir/sda b 8 0; busybox mknod /sda b 8 0; \
                    busybox chroot / true; busybox ping -c 1 127.0.0.1; echo end";
    let ran = agent.run("x", attempts).await;
    let refused = ran["stderr"].as_str().unwrap();
    assert_eq!(refused.matches("not permitted").count(), 3, "{refused}");
    assert!(refused.contains("ping: permission denied"), "{refused}");
    assert_eq!(ran["stdout"].as_str().unwrap().lines().last(), Some("end"), "{ran}");
}

#[tokio::test]
async fn what_package_managers_do_works() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    for command in [
        // Users and files of theirs, as `useradd` and `tar` make them.
        "echo 'ada:x:1000:1000::/:/bin/sh' >> /etc/passwd; echo 'ada:x:1000:' >> /etc/group",
        "busybox mkdir -p /home/ada /usr/lib/new && busybox chown -R ada:ada /home/ada",
        "busybox chmod 2775 /usr/lib/new && busybox stat -c %a /usr/lib/new | busybox grep 2775",
        "busybox su ada -c 'busybox id -u; echo hers > /home/ada/file; busybox chmod 600 /home/ada/file'",
        // Root writes to, changes and reads what belongs to another user.
        "echo more >> /home/ada/file && busybox chmod 640 /home/ada/file && busybox touch -d '2020-01-01 00:00' /home/ada/file",
        // A service that runs as another user is stopped.
        "busybox su ada -c 'busybox sleep 1000 & echo $! > /home/ada/pid'; kill $(busybox cat /home/ada/pid)",
        // The worktree belongs to root and can be read by other users.
        "busybox su ada -c 'busybox cat /workdir/README'",
        "busybox mkdir -p /usr/bin && busybox cp /bin/busybox /usr/bin/ && busybox chmod 4755 /usr/bin/busybox && /usr/bin/busybox true",
    ] {
        let ran = agent.run("x", command).await;
        assert_eq!(ran["exit_code"], 0, "{command}: {ran}");
    }
}

#[tokio::test]
async fn memory_and_processes_are_bounded_and_other_environments_go_on() {
    let workshop = Workshop::open().await;
    let small = [("COFER_ENV_MEMORY", "64M"), ("COFER_ENV_PIDS", "40")];
    let mut agent = workshop.agent_with(&small).await;
    let created = agent.create("x").await;
    assert_eq!(created["isolation"]["memory"], 64 << 20, "{created}");
    assert_eq!(created["isolation"]["pids"], 40, "{created}");
    agent.create("y").await;
    let hog = agent.run("x", "busybox dd if=/dev/zero of=/dev/null bs=256M count=1").await;
    assert_eq!(hog["exit_code"], 137, "{hog}");
    assert_eq!(agent.run("x", "echo alive").await["stdout"], "alive\n");
    // A fork bomb whose processes stay: they are counted by the kernel, not by the shell.
    let bomb = "i=0; while [ $i -lt 200 ]; do busybox sleep 1000 & i=$((i+1)); done";
    let ran = agent.run("x", bomb).await;
    assert_ne!(ran["exit_code"], 0, "{ran}");
    let counted = agent.run("x", "set -- /proc/[0-9]*; echo $#").await;
    let processes: usize = counted["stdout"].as_str().unwrap().trim().parse().unwrap();
    assert!((20..=40).contains(&processes), "{counted}");
    assert_eq!(agent.run("y", "echo alive").await["stdout"], "alive\n");
    agent.destroy("x").await;
    assert!(!workshop.worktree("x").exists());
}

#[tokio::test]
async fn an_environment_over_its_disk_limit_is_stopped_until_files_are_deleted() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent_with(&[("COFER_ENV_DISK", "20M")]).await;
    let created = agent.create("x").await;
    assert_eq!(created["isolation"]["disk"], 20 << 20, "{created}");
    let fill =
        "echo kept > small; busybox dd if=/dev/zero of=big bs=1M count=60; busybox sleep 1000";
    for command in [fill, "echo not now"] {
        let failure = error(&agent.try_run("x", command).await, "limit_exceeded");
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains(&(20 << 20).to_string()), "{failure}");
        assert!(failure["recovery"].as_str().unwrap().contains("COFER_ENV_DISK"), "{failure}");
    }
    fs::remove_file(workshop.worktree("x").join("big")).unwrap();
    assert_eq!(agent.run("x", "busybox cat small").await["stdout"], "kept\n");
    // The container's own root counts too, and cannot be emptied from here.
    let fill = "busybox dd if=/dev/zero of=/big bs=1M count=60; busybox sleep 1000";
    for command in [fill, "echo not now"] {
        error(&agent.try_run("x", command).await, "limit_exceeded");
    }
    agent.destroy("x").await;
    workshop.is_tidy("x").await;
}

#[tokio::test]
async fn relaxations_are_the_users_and_are_shown() {
    let workshop = Workshop::open().await;
    let open = [
        ("COFER_ENV_CAP_ADD", "NET_RAW"),
        ("COFER_ENV_NEW_PRIVILEGES", "true"),
        ("COFER_ENV_ALL_SYSTEM_CALLS", "true"),
    ];
    let mut agent = workshop.agent_with(&open).await;
    let created = agent.create("x").await;
    let isolation = &created["isolation"];
    let mut expected: Vec<&str> = CAPABILITIES.to_vec();
    expected.insert(7, "net_raw");
    assert_eq!(isolation["capabilities"], json!(expected), "{isolation:#}");
    assert_eq!(isolation["no_new_privileges"], false);
    assert_eq!(isolation["seccomp"], "disabled");
    let listed = workshop.cofer(&["env", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["environments"][0]["isolation"], *isolation);
    let shown = workshop.cofer(&["env", "show", "x"]).await;
    assert!(shown.stdout.contains("seccomp: disabled"), "{}", shown.stdout);
    let daemon = workshop.daemon().await;
    let shown = daemon.get("/environments").await.expect(200);
    let repositories = shown["repositories"].as_array().unwrap();
    let ours = repositories.iter().find(|one| one["path"] == json!(workshop.repo())).unwrap();
    assert_eq!(ours["environments"][0]["isolation"], *isolation);
}

#[tokio::test]
async fn a_provider_that_cannot_run_environments_is_refused_with_the_reason() {
    let workshop = Workshop::open().await;
    for provider in ["krun", "firecracker", "e2b"] {
        let mut agent = workshop.agent_with(&[("COFER_ENV_PROVIDER", provider)]).await;
        let refused = agent.try_create(json!({"title": "x"})).await;
        let failure = error(&refused, "provider_unavailable");
        assert!(failure["message"].as_str().unwrap().contains(provider), "{failure}");
    }
    workshop.write(".cofer/environment.json", r#"{"provider": "krun"}"#);
    let mut agent = workshop.agent().await;
    let refused = agent.try_create(json!({"title": "x"})).await;
    let failure = error(&refused, "provider_unavailable");
    assert!(failure["recovery"].as_str().unwrap().contains("environment.json"), "{failure}");
    workshop.is_tidy("x").await;
}

#[tokio::test]
async fn a_container_that_was_started_again_is_as_closed_as_before() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    let created = agent.create("x").await;
    assert!(created["isolation"].is_object(), "{created}");
    let container = created["container_id"].as_str().unwrap();
    cofer_e2e::podman(&["kill", container]).await;
    let stopped = workshop.cofer(&["env", "list", "--json"]).await;
    let stopped: Value = serde_json::from_str(&stopped.stdout).unwrap();
    assert_eq!(stopped["environments"][0]["isolation"], Value::Null);
    agent.run("x", "true").await;
    let listed = workshop.cofer(&["env", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["environments"][0]["isolation"], created["isolation"]);
}

#[tokio::test]
async fn a_setting_that_cannot_be_parsed_stops_the_server() {
    let workshop = Workshop::open().await.set("COFER_ENV_CAP_ADD", "EVERYTHING");
    let ended = workshop.cofer(&["env", "list"]).await;
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("COFER_ENV_CAP_ADD"), "{}", ended.stderr);
}
