//! What is asked, how it reaches the CLI, and what comes back.

use std::fs;
use std::path::{Path, PathBuf};

use cofer_e2e::{Daemon, double};
use serde_json::{Map, Value, json};

use crate::machine::{Machine, answer, asking, error};

#[tokio::test]
async fn one_tool_is_offered_without_looking_at_the_cli() {
    // covers: COP-004, COP-008
    let machine = Machine::with("hang-at-once");
    for (args, name) in [(&[][..], "copilot.chat"), (&["--safe-names"][..], "copilot_chat")] {
        let mut client = machine.start(args).await;
        let tools = client.request("tools/list", json!({})).await["result"]["tools"].clone();
        assert_eq!(tools.as_array().unwrap().len(), 1);
        assert_eq!(tools[0]["name"], name);
        let schema = &tools[0]["inputSchema"];
        assert_eq!(schema["required"], json!(["input"]));
        let models = &schema["properties"]["options"]["properties"]["model"]["enum"];
        assert!(models.as_array().unwrap().contains(&json!("gpt-5.4")));
        let (code, rest, stderr) = client.close().await;
        assert_eq!((code, rest), (Some(0), vec![]), "{stderr}");
    }
    assert!(machine.runs().is_empty());
}

#[tokio::test]
async fn input_and_model_arrive_as_one_argument_each_whatever_they_hold() {
    // covers: COP-001, COP-003, COP-005, COP-E2
    let machine = Machine::with("modern");
    let mut client = machine.start(&[]).await;
    let input = "--allow-all-tools\n\"quotes\" 'and' $(id) `id` ; rm -rf \\ %s \u{1F44B}\t!x";
    for tool in ["copilot.chat", "copilot_chat"] {
        let arguments = json!({"input": input, "options": {"model": "gpt-5.4"}});
        let result = client.call(tool, arguments).await;
        let expected = json!({
            "stdout": format!("gpt-5.4: {input}\n\n"),
            "stderr": "Total usage est: 1 Premium request\n",
            "exit_code": 0,
            "mode": "pipe",
        });
        assert_eq!(answer(&result), &expected);
    }
    let chats = machine.chats();
    assert_eq!(chats.len(), 2);
    let prompt = format!("--prompt={input}");
    let switches = ["--available-tools=none", "--no-color", "--silent", "--model=gpt-5.4"];
    assert_eq!(chats[0]["args"], json!([&switches[..], &[prompt.as_str()]].concat()));
}

#[tokio::test]
async fn the_cli_runs_in_an_empty_directory_of_its_own_with_what_it_may_know() {
    let machine = Machine::with("modern")
        .set("COPILOT_ALLOW_ALL", "true")
        .set("COFER_TOKEN", "secret")
        .set("COFER_DATABASE_URL", "postgres://secret");
    let mut client = machine.start(&[]).await;
    answer(&client.call("copilot.chat", asking("hi")).await);
    let chat = machine.chats().remove(0);
    let cwd = Path::new(chat["cwd"].as_str().unwrap()).to_owned();
    assert!(cwd.starts_with(machine.path("tmp").canonicalize().unwrap()), "{cwd:?}");
    assert_eq!(chat["files"], json!([]));
    assert_eq!(chat["ours"], json!(["COFER_COPILOT_DEPTH", "COFER_WORKLOAD"]));
    assert_eq!(machine.leftovers(), Vec::<PathBuf>::new());

    // Where a directory is configured, it is that one.
    fs::write(machine.path("here/note"), "").unwrap();
    let mut client = machine.start(&["--cwd", "."]).await;
    answer(&client.call("copilot.chat", asking("hi")).await);
    assert_eq!(machine.chats()[1]["files"], json!(["note"]));
    let mut client = machine.start(&["--cwd", "absent"]).await;
    error(&client.call("copilot.chat", asking("hi")).await, "invalid_config");
}

#[tokio::test]
async fn an_input_too_long_for_an_argument_arrives_too() {
    // covers: COP-001
    let machine = Machine::with("modern");
    let mut client = machine.start(&[]).await;
    for length in [131_062, 131_063, 400_000] {
        let input = "ab".repeat(length / 2) + if length % 2 == 1 { "c" } else { "" };
        let result = client.call("copilot.chat", asking(&input)).await;
        assert_eq!(answer(&result)["stdout"], format!("no model: {input}\n\n"));
    }
    let with_prompt = |chat: &Value| chat["args"].to_string().contains("--prompt=");
    let by_argument: Vec<bool> = machine.chats().iter().map(with_prompt).collect();
    assert_eq!(by_argument, [true, false, false]);
}

#[tokio::test]
async fn several_requests_are_answered_at_once() {
    let machine = Machine::with("modern");
    let mut client = machine.start(&[]).await;
    let slow = json!({"name": "copilot.chat", "arguments": asking("SLOWLY")});
    let slow = client.ask("tools/call", slow).await;
    let mut ids = Vec::new();
    for number in 0..6 {
        let input = asking(&format!("number {number}"));
        ids.push(
            client.ask("tools/call", json!({"name": "copilot.chat", "arguments": input})).await,
        );
    }
    for (number, id) in ids.into_iter().enumerate().rev() {
        let result = client.answer(id).await["result"].clone();
        assert_eq!(answer(&result)["stdout"], format!("no model: number {number}\n\n"));
    }
    for number in 0..3 {
        fs::write(machine.path(&format!("gate{number}")), "").unwrap();
    }
    let result = client.answer(slow).await["result"].clone();
    assert_eq!(answer(&result)["stdout"], "word 0 word 1 word 2 ");
    // The CLI was asked once what it can do.
    let about =
        |flag: &str| machine.runs().iter().filter(|run| run["args"] == json!([flag])).count();
    assert_eq!((about("--version"), about("--help")), (1, 1));
}

#[tokio::test]
async fn a_client_that_gave_a_token_hears_the_output_as_it_grows() {
    let machine = Machine::with("modern");
    let mut client = machine.start(&[]).await;
    let params = json!({
        "name": "copilot.chat", "arguments": asking("SLOWLY"), "_meta": {"progressToken": "mine"},
    });
    let id = client.ask("tools/call", params).await;
    let mut said = String::new();
    for number in 0..3 {
        said.push_str(&format!("word {number} "));
        let progress = client.notification("notifications/progress").await;
        assert_eq!(progress["progressToken"], "mine");
        assert_eq!(progress["message"], said);
        assert_eq!(progress["progress"].as_f64(), Some(said.len() as f64));
        fs::write(machine.path(&format!("gate{number}")), "").unwrap();
    }
    let result = client.answer(id).await["result"].clone();
    assert_eq!(answer(&result)["stdout"], said);
}

#[tokio::test]
async fn another_installed_version_is_asked_again_what_it_can_do() {
    // covers: COP-001
    let machine = Machine::with("modern");
    let mut client = machine.start(&[]).await;
    answer(&client.call("copilot.chat", asking("hi")).await);
    answer(&client.call("copilot.chat", asking("hi")).await);
    let program = machine.path("bin/copilot");
    fs::remove_file(&program).unwrap();
    fs::copy(double("copilot"), &program).unwrap();
    answer(&client.call("copilot.chat", asking("hi")).await);
    let helps = machine.runs().iter().filter(|run| run["args"] == json!(["--help"])).count();
    assert_eq!(helps, 2);
}

#[tokio::test]
async fn the_daemon_hosts_it_like_any_other_server() {
    let machine = Machine::with("modern");
    let daemon = Daemon::start().await;
    let environment: Map<String, Value> =
        machine.variables.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    let body = json!({
        "name": "copilot", "command": cofer_e2e::cofer(), "args": ["mcp", "copilot"],
        "environment": environment,
    });
    daemon.register(&body).await;
    let called = daemon.tool("copilot", "copilot.chat", &asking("hi")).await.expect(200);
    assert_eq!(answer(&called["result"])["stdout"], "no model: hi\n\n");
}
