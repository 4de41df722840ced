//! A CLI without flags for prompt and model is used on a terminal.

use std::path::Path;

use cofer_e2e::McpClient;
use serde_json::{Value, json};

use crate::machine::{Machine, answer, asking, error};

#[tokio::test]
async fn a_cli_that_reads_lines_is_used_on_a_terminal() {
    // covers: COP-001, COP-003
    for persona in ["lines", "flagless"] {
        let machine = Machine::with(persona);
        let mut client = machine.start(&[]).await;
        let arguments = json!({"input": "-x $(id) \u{1F44B}", "options": {"model": "gpt-5.4"}});
        let result = client.call("copilot.chat", arguments).await;
        let content = answer(&result);
        assert_eq!(content["mode"], "tty");
        assert_eq!(content["exit_code"], 0);
        assert_eq!(content["stderr"], "");
        let shown = content["stdout"].as_str().unwrap();
        assert!(shown.starts_with("Welcome to an old Copilot\r"), "{shown:?}");
        assert!(shown.contains("gpt-5.4: -x $(id) \u{1F44B}\r\n"), "{shown:?}");
        let lines: Vec<Value> =
            machine.chats().into_iter().filter_map(|run| run.get("line").cloned()).collect();
        let expected = [json!("/model gpt-5.4\n"), json!("-x $(id) \u{1F44B}\n"), json!("/exit\n")];
        assert_eq!(lines, expected);
    }
}

#[tokio::test]
async fn a_cli_that_draws_its_prompt_is_used_on_a_terminal() {
    // covers: COP-001, COP-003
    let machine = Machine::with("drawing");
    let mut client = machine.start(&[]).await;
    let arguments = json!({"input": "two\nlines", "options": {"model": "gpt-5.4"}});
    let result = client.call("copilot.chat", arguments).await;
    let content = answer(&result);
    assert_eq!((&content["mode"], &content["exit_code"]), (&json!("tty"), &json!(0)));
    let shown = content["stdout"].as_str().unwrap();
    assert!(shown.contains("\x1b[2J"), "{shown:?}");
    assert!(shown.contains("gpt-5.4: 'two\\nlines'"), "{shown:?}");
    let lines: Vec<Value> = machine.chats().iter().map(|run| run["line"].clone()).collect();
    assert_eq!(lines, [json!("/model gpt-5.4"), json!("two\nlines"), json!("/exit")]);
}

#[tokio::test]
async fn what_is_a_command_on_a_terminal_is_refused_there_and_nothing_is_typed() {
    // covers: COP-E2, COP-010
    let machine = Machine::with("drawing");
    let mut client = machine.start(&[]).await;
    for input in ["!id", " !id", "/allow-all", "a\u{1b}[200~b", "a\u{3}"] {
        error(&client.call("copilot.chat", asking(input)).await, "invalid_request");
    }
    assert_eq!(machine.chats(), Vec::<Value>::new());
    // A CLI that takes no paste takes no second line.
    let machine = Machine::with("lines");
    let mut client = machine.start(&[]).await;
    error(&client.call("copilot.chat", asking("hi\n!id")).await, "invalid_request");
    assert_eq!(machine.chats(), Vec::<Value>::new());
}

#[tokio::test]
async fn a_missing_login_is_seen_on_the_terminal_too() {
    // covers: COP-008
    let machine = Machine::with("drawing-logged-out");
    let mut client = machine.start(&[]).await;
    let result = client.call("copilot.chat", asking("hi")).await;
    error(&result, "not_logged_in");
    assert_eq!(result["structuredContent"]["mode"], "tty");
}

#[tokio::test]
async fn without_a_pseudo_terminal_there_is_a_word_for_it() {
    // covers: COP-E3
    let machine = Machine::with("lines");
    let cofer = cofer_e2e::cofer();
    let masked = "mount --bind /dev/null /dev/ptmx && exec \"$0\" mcp copilot";
    let args = ["--mount", "sh", "-c", masked, cofer.to_str().unwrap()];
    let environment = machine.environment();
    let mut client = McpClient::start_by(
        Path::new("/usr/bin/unshare"),
        &args,
        &environment,
        &machine.path("here"),
    );
    client.initialize().await;
    let result = client.call("copilot.chat", asking("hi")).await;
    let message = error(&result, "tty_unavailable")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("could not open a pseudo-terminal"), "{message}");
}
