//! Environments in gVisor sandboxes, which have a kernel of their own: without subreapers, and its
//! sockets cannot be sent to this machine.

use std::fs;

use cofer_e2e::eventually;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use crate::workshop::{Workshop, error, facts};

const GVISOR: [(&str, &str); 1] = [("COFER_ENV_PROVIDER", "gvisor")];

/// Connects until the server, which takes one connection after the other, sends its greeting.
async fn greeted_by(address: &str) {
    eventually("the port sends its greeting", async || {
        let mut text = String::new();
        let mut stream = TcpStream::connect(address).await.ok()?;
        stream.read_to_string(&mut text).await.ok()?;
        (text == "hello\n").then_some(())
    })
    .await;
}

#[tokio::test]
async fn commands_run_on_gvisors_kernel_and_their_files_are_committed() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent_with(&GVISOR).await;
    let created = agent.create("x").await;
    assert_eq!(created["isolation"]["provider"], "gvisor", "{created}");
    let script = "echo out; echo err >&2; echo also > /dev/stderr; exit 3";
    let ran = agent.run("x", script).await;
    assert_eq!(ran["exit_code"], 3, "{ran}");
    assert_eq!((&ran["stdout"], &ran["stderr"]), (&json!("out\n"), &json!("err\nalso\n")));
    let log = agent.run("x", "busybox dmesg").await;
    assert!(log["stdout"].as_str().unwrap().contains("gVisor"), "{log}");
    // More than a pipe and a socket hold together.
    let ran = agent.run("x", "busybox seq 1 200000; echo done > made").await;
    assert!(ran["stdout"].as_str().unwrap().ends_with("\n199999\n200000\n"), "{ran}");
    assert_eq!(ran["stdout_truncated"], true, "{ran}");
    assert_eq!(workshop.git(&["show", "cofer/x:made"]).await, "done");
    // Files of this machine are seen there.
    fs::write(workshop.worktree("x").join("given"), "here\n").unwrap();
    assert_eq!(agent.run("x", "busybox cat given").await["stdout"], "here\n");
    agent.destroy("x").await;
    workshop.is_tidy("x").await;
}

#[tokio::test]
async fn past_the_limit_a_sandbox_has_nothing_left_of_a_command() {
    let workshop = Workshop::open().await;
    // A repository can ask for more isolation than its user.
    workshop.write(".cofer/environment.json", r#"{"provider": "gvisor"}"#);
    let mut agent = workshop.agent_with(&[("COHERRA_TIMEOUT_RUN", "4000")]).await;
    let created = agent.create("x").await;
    assert_eq!(created["isolation"]["provider"], "gvisor", "{created}");
    // From before: an orphan, and a command that runs beside.
    agent.run("x", "(busybox setsid busybox sleep 2222 &)").await;
    let beside =
        json!({"environment_id": "x", "command": "busybox sleep 3333; true", "background": true});
    facts(&agent.call("environment_run_cmd", beside).await);
    let runaway = "busybox setsid sh -c 'trap \"\" TERM; while :; do busybox sleep 1000; done' &";
    let script = format!("echo begun; ({runaway}); ({runaway}); busybox sleep 1000");
    let result = agent.try_run("x", &script).await;
    error(&result, "timeout");
    assert_eq!(result["structuredContent"]["stdout"], "begun\n", "{result}");
    let left = agent.run("x", "busybox ps").await;
    let left = left["stdout"].as_str().unwrap();
    assert!(!left.contains("sleep 1000"), "{left}");
    assert!(left.contains("sleep 2222") && left.contains("sleep 3333"), "{left}");
    agent.destroy("x").await;
    workshop.is_tidy("x").await;
}

#[tokio::test]
async fn what_a_command_in_a_sandbox_leaves_running_goes_on() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent_with(&GVISOR).await;
    agent.create("x").await;
    let script = "(while [ ! -e /stop ]; do echo more; busybox sleep 0.1; done; echo over > end) & \
                  echo started";
    let ran = agent.run("x", script).await;
    assert!(ran["stdout"].as_str().unwrap().contains("started\n"), "{ran}");
    let script =
        "busybox touch /stop; while [ ! -e end ]; do busybox sleep 0.1; done; busybox cat end";
    assert_eq!(agent.run("x", script).await["stdout"], "over\n");
}

#[tokio::test]
async fn a_sandbox_has_background_commands_with_ports_also_after_a_restart() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent_with(&GVISOR).await;
    let created = agent.create("x").await;
    agent.run("x", "echo kept > /kept").await;
    // Not httpd: with `--network=host`, its blocking read fails in Debian's release of gVisor.
    let serve = "echo serving; while :; do busybox nc -l -p 8080 < README; done";
    let address = agent.serve("x", serve, 8080).await;
    greeted_by(&address).await;
    let ran = agent.run("x", "true").await;
    let background = &ran["background_commands"][0];
    assert_eq!(
        (&background["running"], &background["output"]),
        (&json!(true), &json!("serving\n")),
        "{ran}"
    );
    let arguments =
        json!({"environment_id": "x", "command": "echo no; exit 4", "background": true});
    let refused = agent.call("environment_run_cmd", arguments).await;
    error(&refused, "precondition_failed");
    assert_eq!(refused["structuredContent"]["exit_code"], 4, "{refused}");
    assert_eq!(refused["structuredContent"]["stdout"], "no\n", "{refused}");
    cofer_e2e::podman(&["kill", created["container_id"].as_str().unwrap()]).await;
    assert_eq!(agent.run("x", "busybox cat /kept").await["stdout"], "kept\n");
    let listed = workshop.cofer(&["env", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["environments"][0]["isolation"]["provider"], "gvisor", "{listed}");
    let address = agent.serve("x", serve, 8080).await;
    greeted_by(&address).await;
}
