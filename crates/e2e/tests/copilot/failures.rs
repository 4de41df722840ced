//! Each failure has its kind and says what to do; what is wrong beforehand runs nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use cofer_e2e::double;
use serde_json::json;

use crate::machine::{Machine, answer, asking, error};

#[tokio::test]
async fn a_failure_nobody_knows_is_given_back_as_it_is() {
    // covers: COP-003
    let machine = Machine::with("modern");
    let mut client = machine.start(&[]).await;
    let result = client.call("copilot.chat", asking("EXIT 7")).await;
    let expected = json!({
        "stdout": "some of it", "stderr": "Error: 500 Internal Server Error\n",
        "exit_code": 7, "mode": "pipe",
    });
    assert_eq!(answer(&result), &expected);
    let result = client.call("copilot.chat", asking("BYTES")).await;
    assert_eq!(answer(&result)["stdout_base64"], "//4Ab2s=");
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_and_nothing_runs() {
    // covers: COP-002, COP-005, COP-010, COP-E2
    let machine = Machine::with("modern");
    let mut client = machine.start(&[]).await;
    for (arguments, field) in [
        (json!({}), "input"),
        (json!({"input": ""}), "input"),
        (json!({"input": "a\u{0}b"}), "input"),
        (json!({"input": ["hi"]}), "input"),
        (json!({"input": "hi", "args": ["--yolo"]}), "args"),
        (json!({"input": "hi", "options": {"allow-all-tools": true}}), "options.allow-all-tools"),
        (json!({"input": "hi", "options": {"model": "gpt-5.4 --yolo"}}), "options.model"),
        (json!({"input": "hi", "options": {"model": "--allow-all-tools"}}), "options.model"),
        (json!({"input": "hi", "options": {"model": "GPT-5.4"}}), "options.model"),
        (json!("hi"), "arguments"),
    ] {
        let result = client.call("copilot.chat", arguments).await;
        let error = error(&result, "invalid_request");
        assert_eq!(error["details"]["fields"][0]["field"], field, "{error}");
    }
    let answer = client.request("tools/call", json!({"name": "copilot.shell"})).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert!(machine.runs().is_empty());
}

#[tokio::test]
async fn the_models_file_is_read_again_and_its_mistakes_are_told_by_line() {
    // covers: COP-005, COP-010
    let machine = Machine::with("modern");
    let mut client = machine.start(&[]).await;
    fs::create_dir(machine.path("here/config")).unwrap();
    let file = machine.path("here/config/models.json");
    fs::write(&file, "{\n  \"models\": [\"mine\",\n}").unwrap();
    let result = client.call("copilot.chat", asking("hi")).await;
    let wrong = error(&result, "invalid_config");
    assert_eq!(wrong["details"]["line"], 3, "{wrong}");
    assert!(wrong["message"].as_str().unwrap().contains("models.json, line 3: "), "{wrong}");
    assert!(machine.runs().is_empty());

    fs::write(&file, "{\"models\": [\"mine\", \"other\"], \"default\": \"mine\"}").unwrap();
    let result = client.call("copilot.chat", asking("hi")).await;
    assert_eq!(answer(&result)["stdout"], "mine: hi\n\n");
    let arguments = json!({"input": "hi", "options": {"model": "gpt-5.4"}});
    error(&client.call("copilot.chat", arguments).await, "invalid_request");

    // One that is named counts alone.
    let machine = machine.set("COFER_COPILOT_MODELS", "absent.json");
    let mut client = machine.start(&[]).await;
    error(&client.call("copilot.chat", asking("hi")).await, "invalid_config");
    let mut client = machine.start(&["--models", "config/models.json"]).await;
    answer(&client.call("copilot.chat", asking("hi")).await);
}

#[tokio::test]
async fn a_cli_that_is_missing_is_told_and_found_when_it_comes() {
    // covers: COP-008
    let machine = Machine::without_cli().set("COFER_COPILOT", "copilot-for-this-test");
    let mut client = machine.start(&[]).await;
    let result = client.call("copilot.chat", asking("hi")).await;
    assert!(error(&result, "not_installed")["hint"].as_str().unwrap().contains("npm install"));
    symlink(double("copilot"), machine.path("bin/copilot-for-this-test")).unwrap();
    answer(&client.call("copilot.chat", asking("hi")).await);

    let machine = Machine::with("aws");
    let mut client = machine.start(&[]).await;
    let result = client.call("copilot.chat", asking("hi")).await;
    assert!(error(&result, "not_installed")["message"].as_str().unwrap().contains("AWS"));
}

#[tokio::test]
async fn a_cli_that_cannot_be_run_is_told_with_the_reason() {
    // covers: COP-E1
    let machine = Machine::without_cli();
    let program = machine.path("bin/copilot");
    let mut client = machine.start(&["--cli", program.to_str().unwrap()]).await;
    let mut check = async |content: &[u8], mode: u32, words: &str| {
        fs::write(&program, content).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        let result = client.call("copilot.chat", asking("hi")).await;
        let message = error(&result, "spawn_failed")["message"].as_str().unwrap().to_owned();
        assert!(message.contains(words), "{message}");
    };
    check(b"#!/bin/sh\n", 0o644, "is not executable").await;
    check(b"#!/no/such/interpreter\n", 0o755, "interpreter").await;
    // Neither is handed to a shell, which would run the second.
    let ran = machine.path("ran");
    check(b"\x7fELF is all that is right about it\n", 0o755, "neither a binary").await;
    check(format!("echo > {}\n", ran.display()).as_bytes(), 0o755, "neither a binary").await;
    assert!(!ran.exists(), "a file without a format was run by a shell");
    check(b"#!/usr/bin/env -S -i PATH=/none node\n", 0o755, "`node` was not found").await;
}

#[tokio::test]
async fn a_missing_login_is_told_with_what_the_cli_said() {
    // covers: COP-008
    let machine = Machine::with("logged-out");
    let mut client = machine.start(&[]).await;
    let result = client.call("copilot.chat", asking("hi")).await;
    assert!(error(&result, "not_logged_in")["hint"].as_str().unwrap().contains("/login"));
    let content = &result["structuredContent"];
    assert_eq!(content["exit_code"], 1);
    assert!(content["stderr"].as_str().unwrap().starts_with("Error: No authentication"));
}

#[tokio::test]
async fn a_copilot_that_runs_us_for_a_chat_of_ours_gets_no_further() {
    let machine = Machine::with("modern").set("COFER_COPILOT_DEPTH", "1");
    let mut client = machine.start(&[]).await;
    error(&client.call("copilot.chat", asking("hi")).await, "invalid_config");
    assert!(machine.runs().is_empty());
}
