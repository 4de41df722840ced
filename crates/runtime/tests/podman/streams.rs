//! A container's streams are pipes straight to its first process.

use std::collections::BTreeMap;

use cofer_model::{Exit, ServerId};
use cofer_runtime::podman::ContainerPlan;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::world::{Runtime, World, sh};

with_both_runtimes!(
    lines_pass_both_ways_and_stderr_is_apart,
    a_line_of_4_mib_passes_whole,
    exit_codes_and_signals_are_told,
    arguments_and_environment_arrive_as_they_were_given,
    without_a_bridge_stdin_is_at_its_end_and_output_is_a_log,
);

async fn lines_pass_both_ways_and_stderr_is_apart(runtime: Runtime) {
    // covers: HST-1.1
    let world = World::new("lines");
    let plan = sh(runtime, "echo ready >&2; while read line; do echo \"got $line\"; done");
    let mut running = world.start(&plan).await;
    for n in 0..20 {
        running.write(&format!("line {n}\n")).await;
        assert_eq!(running.line().await, format!("got line {n}"));
    }
    running.stdin = None;
    let (out, err) = running.rest().await;
    assert_eq!((out.as_str(), err.as_str()), ("", "ready\n"));
    assert_eq!(running.exited().await, Exit { code: Some(0), signal: None });
    running.gone().await;
    world.close().await;
}

async fn a_line_of_4_mib_passes_whole(runtime: Runtime) {
    let world = World::new("large");
    let mut plan = sh(runtime, "");
    plan.args = vec!["/bin/cat".to_owned()];
    let mut running = world.start(&plan).await;
    let message: Vec<u8> = (0..4 * 1024 * 1024_u32).map(|n| b'a' + (n % 26) as u8).collect();
    let mut received = Vec::new();
    let mut stdin = running.stdin.take().unwrap();
    let write = async {
        stdin.write_all(&message).await.unwrap();
        drop(stdin);
    };
    tokio::join!(write, async { running.stdout.read_to_end(&mut received).await.unwrap() });
    assert!(received == message, "{} of {} bytes", received.len(), message.len());
    assert!(running.exited().await.is_success());
    drop(running);
    world.close().await;
}

async fn exit_codes_and_signals_are_told(runtime: Runtime) {
    // covers: HST-3.2
    let world = World::new("exits");
    for (script, code, signal) in [
        ("exit 0", Some(0), None),
        ("exit 7", Some(7), None),
        ("kill -SEGV $$; cat", None, Some(11)),
    ] {
        let running = world.start(&sh(runtime, script)).await;
        let (one, other) = tokio::join!(running.exited(), running.exited());
        assert_eq!((one, other), (Exit { code, signal }, one), "{script}");
        assert_eq!(running.container.cause(), None, "{script}");
        running.gone().await;
        assert!(running.container.isolation().is_null() && running.container.usage().is_none());
    }
    world.close().await;
}

async fn arguments_and_environment_arrive_as_they_were_given(runtime: Runtime) {
    // covers: HST-1.3
    let world = World::new("environment");
    let pairs = [
        ("API_KEY", "a b=c $HOME"),
        ("LINES", "one\ntwo"),
        ("PATH", "/bin:/of/the/server"),
        ("HOME", "/home/person"),
        ("XDG_CONFIG_HOME", "/x"),
    ];
    let environment: BTreeMap<String, String> =
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let script = r#"for arg in "$@"; do echo "[$arg]"; done
        echo "$API_KEY|$LINES|$PATH|$HOME|$XDG_CONFIG_HOME"; exec cat"#;
    let mut plan = ContainerPlan { environment, ..sh(runtime, script) };
    plan.args.extend(["sh", "a b", "", "$HOME;ls", "--", "ü"].map(str::to_owned));
    let mut running = world.start(&plan).await;
    for expected in ["[a b]", "[]", "[$HOME;ls]", "[--]", "[ü]"] {
        assert_eq!(running.line().await, expected);
    }
    assert_eq!(running.line().await, "a b=c $HOME|one");
    assert_eq!(running.line().await, "two|/bin:/of/the/server|/home/person|/x");

    // Not where everybody on the machine could read them, nor in Podman's books of commands.
    let inspected = running.inspect().await;
    let command = inspected["Config"]["CreateCommand"].to_string();
    assert!(command.contains("--env=API_KEY") && !command.contains("a b=c"), "{command}");
    let labels = &inspected["Config"]["Labels"];
    assert_eq!(labels["cofer.owner"], world.owner.as_str());
    assert_eq!(labels["cofer.server"].as_str().unwrap().parse::<ServerId>().unwrap(), plan.server);
    assert_eq!(labels["cofer.name"], "test");
    drop(running);
    world.close().await;
}

async fn without_a_bridge_stdin_is_at_its_end_and_output_is_a_log(runtime: Runtime) {
    // covers: HST-1.2
    let world = World::new("no-bridge");
    let plan = ContainerPlan { stdio: false, ..sh(runtime, "cat; echo out; echo err >&2") };
    let mut running = world.start(&plan).await;
    running.write("nobody reads this\n").await;
    let (out, err) = running.rest().await;
    assert_eq!((out.as_str(), err.as_str()), ("out\n", "err\n"));
    assert!(running.exited().await.is_success());
    drop(running);
    world.close().await;
}
