//! What holds a container in: looked at from inside, and what is told of it held against what
//! the engine and the kernel say.

use std::collections::BTreeMap;

use cofer_model::{HostMount, Network, Openings, Requirement};
use cofer_runtime::podman::{ContainerPlan, PodmanError};
use serde_json::json;

use crate::support::until;
use crate::world::{Runtime, World, sh};

with_both_runtimes!(
    what_is_told_is_what_engine_and_kernel_say,
    inside_nothing_is_open,
    each_wall_is_opened_by_its_name,
    the_network_is_what_was_asked_for,
    the_runtime_in_force_is_the_one_asked_for,
    a_user_is_the_containers_own,
);

async fn what_is_told_is_what_engine_and_kernel_say(runtime: Runtime) {
    // covers: HST-5.1
    let world = World::new("told");
    let plan = ContainerPlan { volumes: vec!["/data".to_owned()], ..sh(runtime, "echo; exec cat") };
    let mut running = world.start(&plan).await;
    running.line().await;
    let told = running.container.isolation();
    let engine = running.inspect().await;
    assert_eq!(told["runtime"], runtime.name());
    assert_eq!(told["runtime"], engine["OCIRuntime"]);
    assert_eq!(told["capabilities"], json!([]), "{told:#}");
    assert_eq!(told["no_new_privileges"], true);
    assert_eq!(told["seccomp"], "filter");
    assert_eq!(told["read_only_root"], engine["HostConfig"]["ReadonlyRootfs"]);
    assert_eq!(told["read_only_root"], true);
    assert_eq!(told["memory"], 512 << 20);
    assert_eq!(told["memory"], engine["HostConfig"]["Memory"]);
    assert_eq!(told["cpu"], 0.5);
    assert_eq!(told["pids"], engine["HostConfig"]["PidsLimit"]);
    assert_eq!(told["pids"], 256);
    assert_eq!(told["disk"], 1_u64 << 30, "{told:#}");
    assert_eq!(told["user"], 0);
    assert_eq!(told["network"], "none");
    let kinds: Vec<_> = told["mounts"].as_array().unwrap().iter().map(|m| &m["type"]).collect();
    assert_eq!(kinds, ["tmpfs", "volume"], "{told:#}");
    assert_eq!(told["mounts"][1]["source"], engine["Mounts"][0]["Name"]);
    assert_eq!(engine["State"]["Pid"], running.container.pid());
    // The engine is asked about it beside the start, so that this comes a moment later.
    until("the digest is told", || running.container.image_digest().is_some()).await;
    assert_eq!(running.container.image_digest().as_deref(), engine["ImageDigest"].as_str());
    assert_eq!(running.container.warnings(), Vec::<String>::new());
    drop(running);
    world.podman.drained().await;
    world.podman.remove_volumes(plan.server).await.unwrap();
    world.close().await;
}

async fn inside_nothing_is_open(runtime: Runtime) {
    let world = World::new("inside");
    let script = r#"
        for path in /file /etc/file /bin/file; do
            (echo x > $path) 2>/dev/null && echo "wrote $path"
        done
        echo x > /tmp/file && cat /tmp/file
        while read name value; do case $name in Cap*|NoNewPrivs:) echo "$name $value";; esac
        done < /proc/self/status
        ls /sys/class/net 2>/dev/null
        (mount -t tmpfs x /tmp) 2>/dev/null && echo mounted
        echo done"#;
    let mut running = world.start(&sh(runtime, script)).await;
    let (out, _) = running.rest().await;
    assert!(!out.contains("wrote") && !out.contains("mounted"), "{out}");
    assert!(out.starts_with("x\n"), "/tmp is writable: {out}");
    assert!(out.contains("CapEff: 0000000000000000"), "{out}");
    assert!(out.contains("CapBnd: 0000000000000000"), "{out}");
    assert!(!out.contains("eth0"), "{out}");
    if runtime == Runtime::Runc {
        assert!(out.contains("NoNewPrivs: 1"), "{out}");
    }
    drop(running);
    world.close().await;
}

async fn each_wall_is_opened_by_its_name(runtime: Runtime) {
    let world = World::new("opened");
    let shared = tempfile::tempdir().unwrap();
    std::fs::write(shared.path().join("note"), "from outside\n").unwrap();
    let host = shared.path().canonicalize().unwrap().to_str().unwrap().to_owned();
    let mount = HostMount { host, container: "/shared".to_owned(), writable: false };
    let openings = Openings {
        capabilities: vec!["NET_BIND_SERVICE".to_owned()],
        new_privileges: true,
        writable_root: true,
        all_system_calls: false,
        mounts: vec![mount],
    };
    let script = "cat /shared/note; echo x > /var/file && cat /var/file
        (echo y > /shared/made) 2>/dev/null && echo wrote; echo; exec cat";
    let mut running = world.start(&ContainerPlan { openings, ..sh(runtime, script) }).await;
    assert_eq!(running.line().await, "from outside");
    assert_eq!(running.line().await, "x");
    assert_eq!(running.line().await, "", "the mount is read-only");
    let told = running.container.isolation();
    assert_eq!(told["capabilities"], json!(["net_bind_service"]), "{told:#}");
    assert_eq!(told["no_new_privileges"], false, "{told:#}");
    assert_eq!(told["read_only_root"], false);
    let binds = told["mounts"].as_array().unwrap().iter().filter(|mount| mount["type"] == "bind");
    assert_eq!(binds.count(), 1, "{told:#}");
    drop(running);
    world.close().await;
}

async fn the_network_is_what_was_asked_for(runtime: Runtime) {
    let world = World::new("network");
    for (network, told) in
        [(Network::None, "none"), (Network::Egress, "egress"), (Network::Host, "host")]
    {
        let plan = ContainerPlan { network, ..sh(runtime, "echo; exec cat") };
        let mut running = world.start(&plan).await;
        running.line().await;
        assert_eq!(running.container.isolation()["network"], told);
    }
    world.close().await;
}

async fn the_runtime_in_force_is_the_one_asked_for(runtime: Runtime) {
    // covers: HST-5.3
    let world = World::new("runtime");
    let mut running = world.start(&sh(runtime, "dmesg; exec cat")).await;
    let pid = running.container.pid();
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    assert_eq!(program.ends_with("runsc"), runtime == Runtime::Runsc, "{program:?}");
    running.stdin = None;
    let (said, _) = running.rest().await;
    assert_eq!(said.contains("gVisor"), runtime == Runtime::Runsc, "{said}");
    drop(running);
    world.close().await;
}

async fn a_user_is_the_containers_own(runtime: Runtime) {
    let world = World::new("user");
    let plan = ContainerPlan { user: Some("person".to_owned()), ..sh(runtime, "id -u; exec cat") };
    let mut running = world.start(&plan).await;
    assert_eq!(running.line().await, "1000");
    assert_eq!(running.container.isolation()["user"], 1000);
    drop(running);
    world.close().await;
}

#[tokio::test]
async fn gvisor_is_chosen_where_nothing_is_named() {
    // covers: HST-5.3
    let world = World::new("preferred");
    let plan = ContainerPlan { provider: None, ..sh(Runtime::Runsc, "dmesg") };
    let mut running = world.start(&plan).await;
    assert_eq!(running.container.provider(), "gvisor");
    assert!(running.rest().await.0.contains("gVisor"));
    let reports = world.podman.providers().await;
    let names: Vec<_> = reports.iter().map(|report| report.provider).collect();
    assert_eq!(names, ["gvisor", "firecracker", "e2b", "krun", "podman"]);
    assert!(reports[0].available && reports[0].runtime.as_ref().unwrap().contains("runsc"));
    assert!(!reports[2].available && reports[2].reason.is_some(), "{reports:?}");
    assert_eq!(reports[4].runtime.as_deref(), Some(Runtime::Runc.name().as_str()));
    drop(running);
    world.close().await;
}

#[tokio::test]
async fn where_gvisor_does_not_work_less_is_used_only_if_that_is_allowed() {
    // covers: HST-5.3
    let settings = std::env::var("CONTAINERS_CONF").unwrap();
    let settings = std::fs::read_to_string(settings).unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("containers.conf");
    let broken = format!("{settings}\n[engine.runtimes]\nrunsc = [\"/bin/false\"]\n");
    std::fs::write(&path, broken).unwrap();
    let changed = BTreeMap::from([("CONTAINERS_CONF", path.to_str().unwrap().to_owned())]);
    let world = World::owned_by(&crate::support::owner("broken"), &changed);

    let any = ContainerPlan { provider: None, ..sh(Runtime::Runc, "echo up; exec cat") };
    let mut running = world.start(&any).await;
    assert_eq!(running.line().await, "up");
    assert_eq!(running.container.isolation()["runtime"], Runtime::Runc.name());
    drop(running);
    let chosen = sh(Runtime::Runsc, "echo up");
    let required = ContainerPlan { require: Some(Requirement::Gvisor), ..any };
    let error = world.refusal(&chosen).await;
    let is_it = matches!(error, PodmanError::ProviderUnavailable { provider: "gvisor", .. });
    assert!(is_it && error.to_string().contains("runsc"), "{error:?}");
    let error = world.refusal(&required).await;
    let is_it = matches!(error, PodmanError::RequirementUnmet { .. });
    assert!(is_it && error.to_string().contains("runsc"), "{error:?}");
    world.close().await;
}
