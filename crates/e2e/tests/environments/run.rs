//! Running commands: what they say, how they end, what becomes of their changes.

use std::fs;

use cofer_e2e::{alive, eventually, processes_with};
use serde_json::json;

use crate::workshop::{Workshop, error, facts, fetch};

#[tokio::test]
async fn a_command_gives_its_exit_code_and_the_end_of_its_output() {
    // covers: ENV-2.1
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let result = agent.try_run("x", "echo out; echo err >&2; exit 3").await;
    let ran = facts(&result);
    assert_eq!(
        (&ran["exit_code"], &ran["stdout"], &ran["stderr"]),
        (&json!(3), &json!("out\n"), &json!("err\n"))
    );
    assert_eq!(
        (&ran["stdout_truncated"], &ran["stderr_truncated"]),
        (&json!(false), &json!(false))
    );
    assert!(ran["duration_ms"].is_u64());
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("out\n\nstderr: err\n"), "{text}");
    assert!(text.ends_with("Any changes to the container workdir (/workdir) have been committed and pushed to cofer/x remote ref"));

    let many = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done";
    let ran = agent.run("x", many).await;
    let stdout = ran["stdout"].as_str().unwrap();
    assert_eq!(stdout.lines().count(), 512);
    assert!(stdout.starts_with("line 2489\n") && stdout.ends_with("line 3000\n"), "{stdout}");
    assert_eq!((&ran["stdout_truncated"], &ran["stderr_truncated"]), (&json!(true), &json!(false)));

    let long = "busybox yes x | busybox tr -d '\\n' | head -c 100000 | busybox tee /dev/stderr";
    let ran = agent.run("x", long).await;
    for (stream, truncated) in [("stdout", "stdout_truncated"), ("stderr", "stderr_truncated")] {
        assert_eq!(ran[stream].as_str().unwrap().len(), 64 * 1024, "{stream}");
        assert_eq!(ran[truncated], true, "{stream}");
    }

    let ran = agent.run("x", "kill -9 $$").await;
    assert_eq!((&ran["exit_code"], &ran["signal"]), (&json!(137), &json!(9)));
}

#[tokio::test]
async fn shells_and_entry_points() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let mut ask =
        async |arguments: serde_json::Value| agent.call("environment_run_cmd", arguments).await;
    error(
        &ask(json!({"environment_id": "x", "command": "ls", "shell": "fish"})).await,
        "invalid_request",
    );
    let failure = error(
        &ask(json!({"environment_id": "x", "command": "ls", "shell": "zsh"})).await,
        "precondition_failed",
    );
    assert!(failure["message"].as_str().unwrap().contains("zsh"), "{failure}");
    let ran =
        facts(&ask(json!({"environment_id": "x", "command": "echo $0", "shell": "/bin/sh"})).await);
    assert_eq!(ran["stdout"], "/bin/sh\n");
    // The image's own command is a shell, which has nothing to read.
    assert_eq!(facts(&ask(json!({"environment_id": "x"})).await)["exit_code"], 0);
    error(&ask(json!({"environment_id": "nowhere", "command": "ls"})).await, "not_found");
    error(&ask(json!({"command": "ls"})).await, "invalid_request");

    facts(&agent.try_create(json!({"title": "y", "image": cofer_e2e::image("wayward")})).await);
    let arguments = json!({"environment_id": "y", "command": "ls", "use_entrypoint": true});
    let ran = facts(&agent.call("environment_run_cmd", arguments).await);
    // `wayward sh -c ls` does not know these arguments.
    assert!(
        ran["exit_code"] != 0 && ran["stderr"].as_str().is_some_and(|text| !text.is_empty()),
        "{ran}"
    );
}

#[tokio::test]
async fn changes_are_committed_with_their_explanation() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let start = workshop.git(&["rev-parse", "cofer/x"]).await;
    assert_eq!(agent.run("x", "ls > /dev/null").await["commit"], json!(null));
    assert_eq!(workshop.git(&["rev-parse", "cofer/x"]).await, start);

    let command = "echo 2 >> build/kept; echo n > 'a b'; busybox mv README READ; busybox ln -s a.txt src/l; echo i > build/ignored; false";
    let arguments =
        json!({"environment_id": "x", "command": command, "explanation": "Change things"});
    let ran = facts(&agent.call("environment_run_cmd", arguments).await);
    assert_eq!(ran["exit_code"], 1);
    let commit = workshop.git(&["rev-parse", "cofer/x"]).await;
    assert_eq!(ran["commit"], commit);
    assert_eq!(
        workshop.git(&["log", "-1", "--format=%s %an %ae", "cofer/x"]).await,
        "Change things Ada ada@example.org"
    );
    assert!(
        workshop
            .git(&["log", "-1", "--format=%b", "cofer/x"])
            .await
            .contains("busybox mv README READ")
    );
    let changed = workshop.git(&["diff", "--name-status", "--no-renames", &start, "cofer/x"]).await;
    assert_eq!(
        changed,
        "D\tREADME\nA\tREAD\nA\ta b\nM\tbuild/kept\nA\tsrc/l"
            .replace("D\tREADME\nA\tREAD", "A\tREAD\nD\tREADME")
    );
    // Plain git on the machine agrees that all is committed.
    assert_eq!(workshop.git_in(&workshop.worktree("x"), &["status", "--porcelain"]).await, "");
    workshop.git(&["fetch", "-q", "--prune", "cofer"]).await;
    assert_eq!(workshop.git(&["rev-parse", "cofer/x"]).await, commit);
}

#[tokio::test]
async fn a_command_past_its_limit_is_ended_with_everything_it_started() {
    // covers: ENV-2.3
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let mut hasty = workshop.agent_with(&[("COHERRA_TIMEOUT_RUN", "3000")]).await;
    let mark = workshop.beside("mark").display().to_string();
    let command = format!(
        "echo begun; echo work > work; for n in 1 2 3; do (busybox setsid busybox setsid sh -c 'trap \"\" TERM; while :; do sleep 1000; : {mark}; done' &) ; done; sleep 1000"
    );
    let result = hasty.try_run("x", &command).await;
    error(&result, "timeout");
    assert_eq!(result["structuredContent"]["stdout"], "begun\n");
    // All of the machine's processes are looked through, those in the container among them.
    assert_eq!(processes_with(&mark), Vec::<u32>::new());
    let ran = agent.run("x", "busybox ps -o args | busybox grep -c '[s]leep 1000'").await;
    assert_eq!(ran["stdout"], "0\n");
    assert_eq!(workshop.git(&["show", "cofer/x:work"]).await, "work");
}

#[tokio::test]
async fn a_client_that_cancels_or_goes_away_ends_its_command() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let sleeping = |mark: &str| format!("sh -c 'sleep 1000; : {mark}'");
    let source = workshop.repo();
    for (mark, cancels) in [
        (workshop.beside("one").display().to_string(), true),
        (workshop.beside("two").display().to_string(), false),
    ] {
        let arguments = json!({"environment_source": source, "environment_id": "x", "command": sleeping(&mark)});
        let id = agent
            .client
            .ask("tools/call", json!({"name": "environment_run_cmd", "arguments": arguments}))
            .await;
        eventually("the command runs", async || (!processes_with(&mark).is_empty()).then_some(()))
            .await;
        if cancels {
            let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
            agent.client.send(&cancelled).await;
        } else {
            cofer_e2e::kill(agent.client.pid());
        }
        eventually("the command ends", async || processes_with(&mark).is_empty().then_some(()))
            .await;
    }
    // The environment is there for the next server.
    let mut next = workshop.agent().await;
    assert_eq!(next.run("x", "echo on").await["stdout"], "on\n");
}

#[tokio::test]
async fn a_server_in_the_background_answers_on_this_machine() {
    // covers: ENV-2.2
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    agent.run("x", "echo first > index.html").await;
    let one = agent.serve("x", "httpd -f -p 8080", 8080).await;
    assert!(one.starts_with("127.0.0.1:"), "{one}");
    assert_eq!(fetch(&one, "index.html").await, "first\n");
    agent.run("x", "echo second > index.html").await;
    let two = agent.serve("x", "httpd -f -p 127.0.0.1:8081", 8081).await;
    assert_eq!(
        (fetch(&one, "").await, fetch(&two, "").await),
        ("second\n".into(), "second\n".into())
    );
    assert_eq!(agent.run("x", "wget -q -O - http://127.0.0.1:8080/").await["stdout"], "second\n");

    let taken = json!({"environment_id": "x", "command": "httpd -f -p 8080", "background": true, "ports": [8080]});
    error(&agent.call("environment_run_cmd", taken).await, "conflict");
    let broken = json!({"environment_id": "x", "command": "echo why; exit 4", "background": true, "ports": [9000]});
    let result = agent.call("environment_run_cmd", broken).await;
    error(&result, "precondition_failed");
    assert_eq!(result["structuredContent"]["stdout"], "why\n");

    // It goes on without the server that started it, and another one tells of it.
    cofer_e2e::kill(agent.client.pid());
    let mut next = workshop.agent().await;
    assert_eq!(fetch(&one, "").await, "second\n");
    let told = next.run("x", "true").await;
    let commands = told["background_commands"].as_array().unwrap();
    assert_eq!(commands.len(), 2, "{told}");
    assert!(commands.iter().all(|command| command["running"] == true), "{told}");
    next.run("x", "kill $(busybox pidof httpd)").await;
    let told = eventually("their end is told", async || {
        let told = next.run("x", "true").await;
        let ended = told["background_commands"]
            .as_array()?
            .iter()
            .all(|command| command["running"] == false);
        ended.then_some(told)
    })
    .await;
    assert_eq!(told["background_commands"][0]["exit_code"], 143, "{told}");
    next.destroy("x").await;
    let run = workshop.repo().join(".git/cofer/environments/x/run").display().to_string();
    eventually("the forwarders end", async || processes_with(&run).is_empty().then_some(())).await;
    workshop.is_tidy("x").await;
}

#[tokio::test]
async fn what_a_command_leaves_running_goes_on() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let ran = agent
        .run("x", "(while :; do echo noise; sleep 0.01; done) & echo $! > /pid; echo done")
        .await;
    assert!(ran["stdout"].as_str().unwrap().contains("done"), "{ran}");
    for _ in 0..3 {
        assert_eq!(agent.run("x", "kill -0 $(cat /pid) && echo alive").await["stdout"], "alive\n");
    }
}

#[tokio::test]
async fn output_without_end_costs_no_memory() {
    // covers: ENV-2.4
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let ran = agent.run("x", "dd if=/dev/zero bs=1048576 count=600; echo; echo end").await;
    assert!(ran["stdout"].as_str().unwrap().ends_with("end\n"), "{}", ran["stderr"]);
    let status = fs::read_to_string(format!("/proc/{}/status", agent.client.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 60 * 1024, "{kilobytes} kB");
    assert!(alive(agent.client.pid()));
}

#[tokio::test]
async fn long_commands_tell_of_their_progress() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    let arguments = json!({"environment_source": workshop.repo(), "environment_id": "x",
        "command": "echo working; while [ ! -e stop ]; do sleep 0.1; done"});
    let params = json!({"name": "environment_run_cmd", "arguments": arguments, "_meta": {"progressToken": "t"}});
    let id = agent.client.ask("tools/call", params).await;
    let progress = agent.client.notification("notifications/progress").await;
    assert_eq!(
        (&progress["progressToken"], &progress["message"]),
        (&json!("t"), &json!("working\n"))
    );
    fs::write(workshop.worktree("x").join("stop"), "").unwrap();
    assert_eq!(agent.client.answer(id).await["result"]["structuredContent"]["exit_code"], 0);
}

#[tokio::test]
async fn every_call_is_logged_with_its_time_and_mode() {
    // covers: ENV-4.4
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    agent.run("x", "true").await;
    agent.serve("x", "httpd -f -p 8080", 8080).await;
    agent.destroy("x").await;
    let (code, rest, stderr) = agent.client.close().await;
    assert_eq!((code, rest), (Some(0), Vec::new()));
    for (tool, mode) in [
        ("create", "foreground"),
        ("run_cmd", "foreground"),
        ("run_cmd", "background"),
        ("destroy", "foreground"),
    ] {
        let words = format!("tool=\"environment_{tool}\" mode=\"{mode}\"");
        let line = stderr
            .lines()
            .find(|line| line.contains(&words))
            .unwrap_or_else(|| panic!("{words} in {stderr}"));
        let time = line.split_whitespace().next().unwrap();
        let parsed =
            time::OffsetDateTime::parse(time, &time::format_description::well_known::Rfc3339);
        assert!(parsed.is_ok(), "{line}");
    }
}
