//! What holds a container in: asked from inside it, and what the server object says of it held
//! against what Podman and the kernel say.
#![expect(clippy::unwrap_used, reason = "each case is a test, called by that of each runtime")]

use std::net::TcpListener;
use std::path::Path;

use cofer_e2e::{
    Daemon, Runtime, container_of, containers_folder, containers_of, image, inspect, pid_of, with,
    with_both_runtimes,
};
use serde_json::{Value, json};

with_both_runtimes!(
    the_isolation_shown_is_the_isolation_in_force,
    inside_nothing_is_open_by_default,
    the_runtime_asked_for_is_the_one_that_runs,
    each_wall_can_be_opened_by_name,
    no_network_means_none,
    the_network_of_this_machine_is_given_only_by_name,
    an_image_for_an_ordinary_user_runs_as_that_user,
);

async fn the_isolation_shown_is_the_isolation_in_force(runtime: Runtime) {
    // covers: HST-5.1, HST-5.2
    let daemon = Daemon::start().await;
    let limits = json!({"cpu": "0.25", "memory": "300M", "pids": 90, "disk": "200M"});
    let body = with(runtime.wayward("w", &[]), "resource_limits", limits);
    let server = daemon.host(&with(body, "volumes", json!(["/data"]))).await;
    let isolation = &server["isolation"];
    let facts = inspect(&container_of(&server)).await;
    let host = &facts["HostConfig"];
    assert!(text(&isolation["runtime"]).contains(&runtime.name()), "{isolation:#}");
    assert_eq!(facts["OCIRuntime"], runtime.name());
    assert_eq!(isolation["capabilities"], json!([]), "{isolation:#}");
    assert_eq!(facts["EffectiveCaps"].as_array().map_or(0, Vec::len), 0, "{facts:#}");
    assert_eq!(isolation["no_new_privileges"], true, "{isolation:#}");
    assert!(host["SecurityOpt"].to_string().contains("no-new-privileges"), "{host:#}");
    assert_eq!(isolation["read_only_root"], host["ReadonlyRootfs"], "{isolation:#}");
    assert_eq!(isolation["read_only_root"], true);
    // The kernel's word for the processes that this machine sees of it.
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid_of(&server))).unwrap();
    assert!(status.contains("Seccomp:\t2"), "{status}");
    assert_eq!(isolation["seccomp"], "filter", "{isolation:#}");
    for (limit, bytes) in
        [("memory", host["Memory"].as_u64()), ("pids", host["PidsLimit"].as_u64())]
    {
        assert_eq!(isolation[limit].as_u64(), bytes, "{limit}: {isolation:#}");
    }
    assert_eq!(isolation["memory"], 300 << 20);
    assert_eq!(isolation["pids"], 90);
    assert_eq!(isolation["cpu"].as_f64(), Some(0.25), "{isolation:#}");
    assert!(isolation["network"].is_string(), "{isolation:#}");
    assert!(isolation["disk"].is_number() || text(&isolation["disk"]).contains("not enforced"));
    let mounts = isolation["mounts"].to_string();
    assert!(mounts.contains("/data"), "{isolation:#}");
    assert_eq!(facts["Mounts"].as_array().unwrap().len(), 1, "no host paths: {facts:#}");
}

async fn inside_nothing_is_open_by_default(runtime: Runtime) {
    let daemon = Daemon::start().await;
    daemon.host(&runtime.wayward("w", &[])).await;
    let status = daemon.tool("w", "read", &json!({"path": "/proc/self/status"})).await.tool_text();
    assert!(status.contains("CapEff:\t0000000000000000"), "{status}");
    assert!(status.contains("CapBnd:\t0000000000000000"), "{status}");
    for path in ["/file", "/etc/file"] {
        let refused = write(&daemon, path).await;
        assert_eq!(refused["isError"], true, "{path}: {refused}");
    }
    assert_ne!(write(&daemon, "/tmp/file").await["isError"], true);
    // Nothing of this machine's is mounted.
    let mounts = daemon.tool("w", "read", &json!({"path": "/proc/mounts"})).await.tool_text();
    let ours = env!("CARGO_MANIFEST_DIR");
    assert!(!mounts.contains(ours.trim_end_matches("/crates/e2e")) || runtime == Runtime::Runc);
    let found = daemon.tool("w", "read", &json!({"path": format!("{ours}/Cargo.toml")})).await;
    assert_eq!(found.expect(200)["result"]["isError"], true);
    let processes = daemon.run_inside("w", &["/bin/ps"]).await.1;
    assert!(!processes.contains("cofer"), "it sees only itself: {processes}");
}

async fn the_runtime_asked_for_is_the_one_that_runs(runtime: Runtime) {
    // covers: HST-5.3
    let daemon = Daemon::start().await;
    let server = daemon.host(&runtime.wayward("w", &[])).await;
    assert_eq!(server["provider"], runtime.provider());
    let said = daemon.run_inside("w", &["/bin/dmesg"]).await.1;
    assert_eq!(said.contains("gVisor"), runtime == Runtime::Runsc, "{said}");
}

async fn each_wall_can_be_opened_by_name(runtime: Runtime) {
    let shared = tempfile::tempdir().unwrap();
    let folder = shared.path().canonicalize().unwrap();
    std::fs::write(folder.join("note"), "from outside").unwrap();
    let openings = json!({
        "capabilities": ["NET_BIND_SERVICE"], "new_privileges": true, "writable_root": true,
        "mounts": [{"host": folder, "container": "/shared"}],
    });
    let daemon = Daemon::start().await;
    let server = daemon.host(&with(runtime.wayward("w", &[]), "openings", openings)).await;
    let isolation = &server["isolation"];
    assert_eq!(isolation["read_only_root"], false, "{isolation:#}");
    assert!(isolation["capabilities"].to_string().contains("net_bind_service"), "{isolation:#}");
    assert_eq!(isolation["capabilities"].as_array().unwrap().len(), 1, "{isolation:#}");
    assert!(isolation["mounts"].to_string().contains("/shared"), "{isolation:#}");
    assert_ne!(write(&daemon, "/etc/file").await["isError"], true);
    let note = daemon.tool("w", "read", &json!({"path": "/shared/note"})).await;
    assert_eq!(note.tool_text(), "from outside");
    assert_eq!(write(&daemon, "/shared/made").await["isError"], true, "mounts are read-only");
    let unknown = with(runtime.wayward("x", &[]), "openings", json!({"everything": true}));
    daemon.post("/mcp/servers", &unknown).await.failure(422, "invalid_request");
}

async fn no_network_means_none(runtime: Runtime) {
    let daemon = Daemon::start().await;
    let outside = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = outside.local_addr().unwrap().port();
    let body = with(runtime.wayward("w", &[]), "network", json!("none"));
    let server = daemon.host(&body).await;
    assert_eq!(server["isolation"]["network"], "none", "{server:#}");
    // Neither this machine's loopback nor its side of the bridge is there.
    for to in [format!("127.0.0.1:{port}"), format!("{}:{port}", gateway())] {
        let answer = daemon.tool("w", "connect", &json!({"to": to})).await.expect(200);
        assert_eq!(answer["result"]["isError"], true, "{to}: {answer}");
    }
}

async fn the_network_of_this_machine_is_given_only_by_name(runtime: Runtime) {
    let daemon = Daemon::start().await;
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = json!({"to": outside.local_addr().unwrap().to_string()});
    let own = daemon.host(&runtime.wayward("own", &[])).await;
    assert_ne!(own["isolation"]["network"], "host", "{own:#}");
    let refused = daemon.tool("own", "connect", &to).await.expect(200);
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    // Outwards it gets, also to what listens for everybody on this machine.
    let open = TcpListener::bind("0.0.0.0:0").unwrap();
    let outward = format!("{}:{}", gateway(), open.local_addr().unwrap().port());
    let reached = daemon.tool("own", "connect", &json!({"to": outward})).await;
    assert_eq!(reached.tool_text(), "connected");
    let body = with(runtime.wayward("shared", &[]), "network", json!("host"));
    let shared = daemon.host(&body).await;
    assert_eq!(shared["isolation"]["network"], "host", "{shared:#}");
    assert_eq!(daemon.tool("shared", "connect", &to).await.tool_text(), "connected");
}

async fn an_image_for_an_ordinary_user_runs_as_that_user(runtime: Runtime) {
    let daemon = Daemon::start().await;
    let body = with(runtime.image("w", "wayward-person"), "volumes", json!(["/data"]));
    let server = daemon.host(&body).await;
    let who = daemon.run_inside("w", &["/bin/id"]).await.1;
    assert!(who.contains("uid=1000"), "{who}");
    assert!(server["isolation"]["user"].to_string().contains("1000"), "{server:#}");
    // What is kept is kept for that user too.
    assert_ne!(write(&daemon, "/data/file").await["isError"], true);
    let body = with(runtime.wayward("named", &[]), "user", json!("person"));
    daemon.host(&body).await;
    assert!(daemon.run_inside("named", &["/bin/id"]).await.1.contains("uid=1000"));
}

#[tokio::test]
async fn gvisor_is_preferred_where_it_works() {
    // covers: HST-5.3
    let daemon = Daemon::start().await;
    let server = daemon.host(&json!({"name": "w", "image": image("wayward")})).await;
    assert_eq!(inspect(&container_of(&server)).await["OCIRuntime"], "runsc");
    assert!(daemon.run_inside("w", &["/bin/dmesg"]).await.1.contains("gVisor"));
    assert!(text(&server["isolation"]["runtime"]).contains("runsc"), "{server:#}");
}

#[tokio::test]
async fn without_runsc_another_runtime_serves_unless_gvisor_is_required() {
    // covers: HST-5.3
    let daemon = without_runsc().await;
    // What it mounts for a network of its own could not be seen from here.
    let body = json!({"name": "any", "image": image("wayward"), "network": "none"});
    let server = daemon.host(&body).await;
    assert_eq!(inspect(&container_of(&server)).await["OCIRuntime"], Runtime::Runc.name());
    refuses_gvisor(&daemon).await;
}

#[tokio::test]
async fn a_runsc_that_does_not_work_is_as_good_as_none() {
    // covers: HST-5.3
    let folder = tempfile::tempdir().unwrap();
    let daemon = with_broken_runsc(folder.path()).await;
    let server = daemon.host(&json!({"name": "any", "image": image("wayward")})).await;
    assert_eq!(inspect(&container_of(&server)).await["OCIRuntime"], Runtime::Runc.name());
    refuses_gvisor(&daemon).await;
}

/// What asks for gVisor fails, says why and leaves nothing; asking less is not tried instead.
async fn refuses_gvisor(daemon: &Daemon) {
    for (name, field, kind) in [
        ("required", "require", "isolation_unavailable"),
        ("chosen", "provider", "provider_unavailable"),
    ] {
        let body = with(json!({"name": name, "image": image("wayward")}), field, json!("gvisor"));
        let server = daemon.settle(&body).await;
        assert_eq!(server["status"], "error", "{server:#}");
        assert_eq!(server["error"]["kind"], kind, "{server:#}");
        let said = text(&server["error"]["message"]).to_lowercase();
        assert!(said.contains("gvisor") || said.contains("runsc"), "{server:#}");
        assert!(server["error"]["hint"].is_string(), "{server:#}");
        assert!(containers_of(&server).await.is_empty());
    }
}

#[tokio::test]
async fn a_provider_that_cannot_be_launched_is_accepted_and_answered_with_the_reason() {
    // covers: HST-5.3
    let daemon = Daemon::start().await;
    let host = daemon.get("/host").await.expect(200);
    let names: Vec<_> =
        host["providers"].as_array().unwrap().iter().map(|one| text(&one["name"])).collect();
    assert_eq!(names, ["gvisor", "firecracker", "e2b", "krun", "podman"], "{host:#}");
    for name in ["firecracker", "e2b"] {
        let body = json!({"name": name, "image": image("wayward"), "provider": name});
        let checked = daemon.post("/mcp/validate", &body).await.expect(200);
        assert_eq!(checked["errors"], json!([]), "{checked:#}");
        let warnings = checked["warnings"].as_array().unwrap();
        let warning = warnings.iter().find(|warning| warning["field"] == "provider").unwrap();
        let mut reported = host["providers"].as_array().unwrap().iter();
        let reported = reported.find(|one| one["name"] == name).unwrap();
        assert_eq!(reported["available"], false, "{host:#}");
        let reason = text(&reported["reason"]);
        assert!(text(&warning["message"]).contains(&reason), "{warning:#} {reason}");
        let server = daemon.settle(&body).await;
        assert_eq!((&server["status"], &server["provider"]), (&json!("error"), &json!(name)));
        assert_eq!(server["error"]["kind"], "provider_unavailable", "{server:#}");
        assert!(text(&server["error"]["message"]).contains(&reason), "{server:#}");
        assert!(containers_of(&server).await.is_empty());
    }
}

/// A daemon on a machine without runsc, for all that it can see.
async fn without_runsc() -> Daemon {
    let covered = "mount --bind /dev/null /usr/bin/runsc && exec \"$@\"";
    let prefix = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", covered, "sh"];
    Daemon::builder().under(&prefix).start().await
}

/// A daemon whose Podman has something else under the name of runsc.
async fn with_broken_runsc(folder: &Path) -> Daemon {
    let settings = std::fs::read_to_string(containers_folder().join("containers.conf")).unwrap();
    let settings = format!("{settings}\n[engine.runtimes]\nrunsc = [\"/bin/false\"]\n");
    let path = folder.join("containers.conf");
    std::fs::write(&path, settings).unwrap();
    Daemon::builder().env("CONTAINERS_CONF", path.display().to_string()).start().await
}

/// This machine, as containers with a network see it.
fn gateway() -> String {
    let path = containers_folder().join("networks/cofer-test.json");
    let network: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    text(&network["subnets"][0]["gateway"])
}

async fn write(daemon: &Daemon, path: &str) -> Value {
    let arguments = json!({"path": path, "text": "x"});
    daemon.tool("w", "write", &arguments).await.expect(200)["result"].clone()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
