//! However a request ends, its whole process tree ends with it, and a flood with a cut.

use std::fs;
use std::path::PathBuf;

use cofer_e2e::{alive, kill, pids_in, wait_gone};
use serde_json::{Value, json};

use crate::machine::{Machine, answer, asking, error};

#[tokio::test]
async fn after_thirty_seconds_it_is_over_for_the_cli_and_all_its_children() {
    // covers: COP-009
    let machine = Machine::with("hang");
    let mut client = machine.start(&[]).await;
    let id =
        client.ask("tools/call", json!({"name": "copilot.chat", "arguments": asking("hi")})).await;
    let family = machine.family().await;
    let result = client.answer(id).await["result"].clone();
    // Not soon after: by the time of the answer.
    assert!(family.iter().all(|pid| !alive(*pid)), "{family:?}");
    let error = error(&result, "timeout");
    assert_eq!(error["details"], json!({"phase": "chat", "limit_ms": 30_000}));
    assert_eq!(result["structuredContent"]["stdout"], "Let me think");
    assert_eq!(result["structuredContent"]["exit_code"], Value::Null);
    assert_eq!(machine.leftovers(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_cli_that_hangs_before_it_is_asked_is_under_the_same_limit() {
    // covers: COP-009, COP-E1
    let machine = Machine::with("hang-at-once");
    let mut client = machine.start(&["--timeout", "2"]).await;
    let result = client.call("copilot.chat", asking("hi")).await;
    assert_eq!(error(&result, "timeout")["details"]["phase"], "detection");
    let family = pids_in(&machine.path("pids"));
    assert!(family.iter().all(|pid| !alive(*pid)), "{family:?}");
}

#[tokio::test]
async fn a_request_that_the_client_cancels_ends_with_all_its_processes() {
    let machine = Machine::with("hang");
    let mut client = machine.start(&[]).await;
    let call = json!({"name": "copilot.chat", "arguments": asking("hi")});
    client.ask("tools/call", call.clone()).await;
    let older = machine.family().await;
    fs::remove_file(machine.path("pids")).unwrap();
    let id = client.ask("tools/call", call).await;
    let family = machine.family().await;
    let params = json!({"requestId": id});
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    client.send(&cancelled).await;
    wait_gone(&family).await;
    // It was not the limit, which would have ended the older one first.
    assert!(older.iter().all(|pid| alive(*pid)), "{older:?}");
    let (code, rest, _) = client.close().await;
    assert_eq!((code, rest), (Some(0), vec![]));
    assert!(older.iter().all(|pid| !alive(*pid)), "{older:?}");
    assert_eq!(machine.leftovers(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn nothing_is_left_when_the_server_is_killed_or_its_client_leaves() {
    let machine = Machine::with("hang");
    let mut client = machine.start(&[]).await;
    client.ask("tools/call", json!({"name": "copilot.chat", "arguments": asking("hi")})).await;
    let family = machine.family().await;
    kill(client.pid());
    wait_gone(&family).await;

    fs::remove_file(machine.path("pids")).unwrap();
    let mut client = machine.start(&[]).await;
    client.ask("tools/call", json!({"name": "copilot.chat", "arguments": asking("hi")})).await;
    let family = machine.family().await;
    assert_eq!(client.close().await.0, Some(0));
    assert!(family.iter().all(|pid| !alive(*pid)), "{family:?}");
}

#[tokio::test]
async fn sigterm_ends_the_server_and_what_it_runs() {
    let machine = Machine::with("hang");
    let mut client = machine.start(&[]).await;
    client.ask("tools/call", json!({"name": "copilot.chat", "arguments": asking("hi")})).await;
    let family = machine.family().await;
    cofer_e2e::signal(client.pid(), rustix::process::Signal::TERM);
    wait_gone(&family).await;
    wait_gone(&[client.pid()]).await;
    assert_eq!(machine.leftovers(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_flood_is_cut_and_told_and_does_not_fill_our_memory() {
    let machine = Machine::with("flood");
    let mut client = machine.start(&[]).await;
    let result = client.call("copilot.chat", asking("hi")).await;
    let content = answer(&result);
    assert_eq!(content["exit_code"], 0);
    let kept = 2 * 1024 * 1024;
    assert_eq!(content["stdout"].as_str().unwrap().len(), kept);
    let dropped = 800 * 65_536 - kept;
    assert_eq!(content["truncated"], json!({"stdout": dropped, "stderr": dropped}));
    let status = fs::read_to_string(format!("/proc/{}/status", client.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 100 * 1024, "{kilobytes} kB");

    let machine = Machine::with("flood-forever");
    let mut client = machine.start(&["--timeout", "2"]).await;
    error(&client.call("copilot.chat", asking("hi")).await, "timeout");
}
