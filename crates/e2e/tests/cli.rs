//! The command line as a person uses it, against a running daemon.

use cofer_e2e::{Daemon, Ended, cofer, follow, run, wayward, wayward_path, within};
use serde_json::{Value, json};

/// Runs a command that must work.
async fn done(daemon: &Daemon, args: &[&str]) -> String {
    let ended = daemon.cli(args).await;
    assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
    assert!(!ended.stdout.contains('\u{1b}'), "colours only on a terminal: {ended:?}");
    ended.stdout
}

/// Runs a command that must work and print JSON.
async fn json_of(daemon: &Daemon, args: &[&str]) -> Value {
    let text = done(daemon, args).await;
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error} in {text}"))
}

/// Runs a command that must fail, in the form every failure has.
async fn failed(daemon: &Daemon, args: &[&str]) -> Ended {
    let ended = daemon.cli(args).await;
    assert_eq!(ended.code, Some(1), "{args:?}: {ended:?}");
    assert!(ended.stderr.contains("Error:"), "{args:?}: {ended:?}");
    assert!(ended.stderr.contains("Hint:"), "{args:?}: {ended:?}");
    ended
}

#[tokio::test]
async fn a_server_from_add_to_remove() {
    let daemon = Daemon::start().await;
    let wayward = wayward_path();
    let wayward = wayward.to_str().unwrap();
    let added = done(
        &daemon,
        &["server", "add", "w", "--env", "GREETING=hello", "--", wayward, "--resources", "2"],
    )
    .await;
    assert!(added.contains('w'), "{added}");
    let server = daemon.server("w").await;
    assert_eq!(server["status"], "ready");
    assert_eq!(server["args"], json!(["--resources", "2"]));

    let list = done(&daemon, &["server", "list"]).await;
    assert!(list.contains('w') && list.contains("Connected"), "{list}");
    let shown = done(&daemon, &["server", "show", "w"]).await;
    assert!(shown.contains(server["id"].as_str().unwrap()) && !shown.contains("hello"), "{shown}");
    let revealed = done(&daemon, &["server", "show", "w", "--reveal"]).await;
    assert!(revealed.contains("hello"), "{revealed}");
    let tools = done(&daemon, &["server", "tools", "w"]).await;
    assert!(tools.contains("count_in_flight"), "{tools}");
    let called =
        done(&daemon, &["server", "call", "w", "--tool", "env", r#"{"name":"GREETING"}"#]).await;
    assert!(called.contains("hello"), "{called}");
    let called =
        done(&daemon, &["server", "call", "w", "echo/raw", r#"{"n":9007199254740993}"#]).await;
    assert!(called.contains("9007199254740993"), "{called}");
    daemon.tool("w", "stderr", &json!({"text": "a line for the log"})).await.expect(200);
    let logs = done(&daemon, &["server", "logs", "w"]).await;
    assert!(logs.contains("a line for the log"), "{logs}");

    let pid = daemon.server_pid("w").await;
    done(&daemon, &["server", "restart", "w"]).await;
    assert_ne!(daemon.server_pid("w").await, pid);
    done(&daemon, &["server", "disable", "w"]).await;
    assert_eq!(daemon.server("w").await["status"], "stopped");
    let list = done(&daemon, &["server", "list"]).await;
    assert!(list.contains("Stopped"), "{list}");
    done(&daemon, &["server", "enable", "w"]).await;
    assert_eq!(daemon.server("w").await["status"], "ready");
    done(&daemon, &["server", "remove", "w"]).await;
    daemon.get("/mcp/servers/w").await.failure(404, "not_found");
}

#[tokio::test]
async fn many_servers_are_switched_by_one_command() {
    let daemon = Daemon::start().await;
    for name in ["git-a", "git-b", "time"] {
        daemon.register(&cofer_e2e::wayward(name, &[])).await;
    }
    let off = done(&daemon, &["server", "disable", "git-*"]).await;
    assert!(off.contains("git-a") && off.contains("git-b") && !off.contains("time"), "{off}");
    assert_eq!(daemon.server("git-b").await["status"], "stopped");
    assert_eq!(daemon.server("time").await["status"], "ready");
    let pid = daemon.server_pid("time").await;
    done(&daemon, &["server", "restart", "--all"]).await;
    assert_ne!(daemon.server_pid("time").await, pid);
    assert_eq!(daemon.server("git-a").await["status"], "stopped", "what is off stays off");
    let mut broken = cofer_e2e::wayward("broken", &["--exit-at-start", "3"]);
    broken["enabled"] = false.into();
    daemon.post("/mcp/servers", &broken).await.expect(201);
    let ended = daemon.cli(&["server", "enable", "--all"]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("Failed: `broken`"), "{ended:?}");
    assert!(ended.stderr.contains("3 servers enabled, 1 failed."), "{ended:?}");
    assert_eq!(daemon.server("git-a").await["status"], "ready");
}

#[tokio::test]
async fn json_is_what_the_api_says() {
    let daemon = Daemon::start().await;
    let wayward = wayward_path();
    let added =
        json_of(&daemon, &["--json", "server", "add", "w", "--", wayward.to_str().unwrap()]).await;
    assert_eq!(added["name"], "w");
    let list = json_of(&daemon, &["server", "list", "--json"]).await;
    assert_eq!(list["servers"][0]["status"], "ready");
    let shown = json_of(&daemon, &["server", "show", "w", "--json"]).await;
    assert_eq!(shown["id"], added["id"]);
    let tools = json_of(&daemon, &["server", "tools", "w", "--json"]).await;
    assert_eq!(tools["total"].as_u64().unwrap() as usize, tools["tools"].as_array().unwrap().len());
    let called = json_of(&daemon, &["server", "call", "w", "ping", "--json"]).await;
    assert_eq!(called, json!({"result": {}}));
    let logs = json_of(&daemon, &["server", "logs", "w", "--json"]).await;
    assert!(!logs.to_string().is_empty());
}

#[tokio::test]
async fn a_failure_says_what_and_what_to_do() {
    let daemon = Daemon::start().await;
    let missing = failed(&daemon, &["server", "show", "nobody"]).await;
    assert!(missing.stderr.contains("nobody"), "{missing:?}");
    let mut body = wayward("off", &[]);
    body["enabled"] = false.into();
    daemon.post("/mcp/servers", &body).await.expect(201);
    let off = failed(&daemon, &["server", "tools", "off"]).await;
    assert!(off.stderr.contains("enable"), "{off:?}");
    let wayward = wayward_path();
    let wayward = wayward.to_str().unwrap();
    failed(&daemon, &["server", "add", "off", "--", wayward]).await;
    let broken =
        failed(&daemon, &["server", "add", "bad", "--", wayward, "--exit-at-start", "7"]).await;
    assert!(broken.stderr.contains("cannot start") && broken.stderr.contains('7'), "{broken:?}");
    daemon.register(&cofer_e2e::wayward("w", &[])).await;
    let error = daemon.cli(&["server", "call", "w", "--tool", "fail"]).await;
    assert_eq!(error.code, Some(1), "{error:?}");
    let error = daemon.cli(&["server", "call", "w", "no/such"]).await;
    assert_eq!(error.code, Some(1), "{error:?}");
    assert!(error.stderr.contains("-32601"), "{error:?}");
}

#[tokio::test]
async fn mistyped_is_exit_code_2() {
    let home = tempfile::tempdir().unwrap();
    let env = [("HOME", home.path().to_str().unwrap())];
    for args in [
        &["server", "ad"][..],
        &["serve", "--no-such-flag"],
        &["server", "add", "x"],
        &["nonsense"],
    ] {
        let ended = run(&cofer(), args, &env, "").await;
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(!ended.stderr.is_empty() && ended.stdout.is_empty(), "{ended:?}");
    }
    let listen = run(&cofer(), &["serve", "--listen", "nonsense"], &env, "").await;
    assert_eq!(listen.code, Some(2), "{listen:?}");
}

#[tokio::test]
async fn without_a_daemon_it_says_how_to_start_one() {
    let home = tempfile::tempdir().unwrap();
    let env = [("HOME", home.path().to_str().unwrap()), ("COFER_URL", "http://127.0.0.1:1")];
    let ended = run(&cofer(), &["server", "list"], &env, "").await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("Error:") && ended.stderr.contains("cofer serve"), "{ended:?}");
}

#[tokio::test]
async fn help_and_version_are_on_stdout() {
    for args in
        [&["--help"][..], &["--version"], &["serve", "--help"], &["server", "add", "--help"]]
    {
        let ended = run(&cofer(), args, &[], "").await;
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
        assert!(!ended.stdout.is_empty() && ended.stderr.is_empty(), "{ended:?}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let ended = run(&cofer(), &["completions", shell], &[], "").await;
        assert!(ended.code == Some(0) && ended.stdout.contains("cofer"), "{ended:?}");
    }
}

#[tokio::test]
async fn doctor_looks_at_everything() {
    let daemon = Daemon::start().await;
    let well = daemon.cli(&["doctor"]).await;
    assert_eq!(well.code, Some(0), "{well:?}");
    assert!(well.stdout.contains(daemon.data_dir().to_str().unwrap()), "{well:?}");
    assert!(!well.stdout.contains(daemon.token()), "{well:?}");
    daemon.register(&wayward("w", &[])).await;
    let server = daemon.wait_status("w", "ready").await;
    let containment = server["isolation"]["containment"].as_str().unwrap();
    let report = done(&daemon, &["doctor", "--json"]).await;
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == "containment").unwrap();
    assert!(check["message"].as_str().unwrap().starts_with(containment), "{check}");
}

#[tokio::test]
async fn names_from_servers_cannot_play_with_the_terminal() {
    let daemon = Daemon::start().await;
    let mut body = wayward("w", &[]);
    body["description"] = "red \u{1b}[31m and a bell \u{7}".into();
    daemon.register(&body).await;
    let shown = done(&daemon, &["server", "show", "w"]).await;
    assert!(!shown.contains('\u{7}'), "{shown:?}");
    daemon.tool("w", "stderr", &json!({"text": "clear \u{1b}[2J screen"})).await.expect(200);
    let logs = done(&daemon, &["server", "logs", "w"]).await;
    assert!(logs.contains("screen"), "{logs:?}");
}

#[tokio::test]
async fn an_environment_of_the_caller_is_passed_without_showing_it() {
    let daemon = Daemon::start().await;
    let data = daemon.data_dir();
    let wayward = wayward_path();
    let args = ["server", "add", "w", "--env", "MY_TOKEN", "--", wayward.to_str().unwrap()];
    let env = [
        ("COFER_DATA_DIR", data.to_str().unwrap()),
        ("HOME", data.to_str().unwrap()),
        ("MY_TOKEN", "canary-1414213562"),
    ];
    let ended = run(&cofer(), &args, &env, "").await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        !ended.stdout.contains("canary-1414213562") && !ended.stderr.contains("canary-1414213562")
    );
    let read = daemon.tool("w", "env", &json!({"name": "MY_TOKEN"})).await.tool_text();
    assert_eq!(read, "canary-1414213562");
}

#[tokio::test]
async fn a_log_is_followed_while_it_grows() {
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let data = daemon.data_dir();
    let env = [("COFER_DATA_DIR", data.to_str().unwrap())];
    let (_child, mut lines) = follow(&cofer(), &["server", "logs", "w", "-f"], &env);
    let mut wait_for = async |text: &str| {
        let reading = async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if line.contains(text) {
                    return;
                }
            }
            panic!("the log ended before `{text}`");
        };
        within(text, reading).await;
    };
    // What is there already shows that it is connected; what comes later is seen as it comes.
    wait_for("ready").await;
    daemon.tool("w", "stderr", &json!({"text": "written later"})).await.expect(200);
    wait_for("written later").await;
}

#[tokio::test]
async fn a_configuration_is_imported_from_a_file() {
    let daemon = Daemon::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp.json");
    let config = json!({"mcpServers": {"one": {"command": wayward_path()}}});
    std::fs::write(&file, config.to_string()).unwrap();
    done(&daemon, &["server", "import", file.to_str().unwrap()]).await;
    daemon.wait_status("one", "ready").await;
}

#[tokio::test]
async fn an_import_expands_the_callers_variables_and_keeps_what_the_file_says() {
    let daemon = Daemon::start().await;
    let project = tempfile::tempdir().unwrap();
    std::fs::create_dir(project.path().join(".vscode")).unwrap();
    std::fs::write(project.path().join(".env"), "FROM_FILE=canary-file-1\n").unwrap();
    let file = project.path().join(".vscode/mcp.json");
    let config = json!({"servers": {
        "one": {
            "command": "${RUN}", "args": ["--page", "${PAGE:-7}"], "envFile": "${workspaceFolder}/.env",
            "env": {"KEY": "${env:MY_TOKEN}"}, "timeout": 45, "includeTools": ["env", "echo"],
        },
        "two": {"command": wayward_path(), "env": {"KEY": "${NOBODY_HAS_THIS}"}},
    }});
    std::fs::write(&file, config.to_string()).unwrap();
    let data = daemon.data_dir();
    let (data, wayward) = (data.to_str().unwrap(), wayward_path());
    let env = [
        ("COFER_DATA_DIR", data),
        ("HOME", data),
        ("RUN", wayward.to_str().unwrap()),
        ("MY_TOKEN", "canary-1618033988"),
    ];
    let import = ["server", "import", file.to_str().unwrap()];
    let ended = run(&cofer(), &import, &env, "").await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("`${NOBODY_HAS_THIS}` in `env.KEY` has no value"), "{ended:?}");
    let one = daemon.wait_status("one", "ready").await;
    assert_eq!(one["args"], json!(["--page", "7"]));
    assert_eq!(one["tools_allow"], json!(["env", "echo"]));
    assert_eq!(one["call_timeout_ms"], 45_000);
    for (name, value) in [("KEY", "canary-1618033988"), ("FROM_FILE", "canary-file-1")] {
        let read = daemon.tool("one", "env", &json!({ "name": name })).await.tool_text();
        assert_eq!(read, value);
        assert!(!daemon.stderr().contains(value) && !ended.stderr.contains(value));
    }
    let two = daemon.server("two").await;
    assert_eq!((&two["enabled"], &two["status"]), (&json!(false), &json!("stopped")));
    let set = ["server", "set", "one", "--tools-deny", "fail", "--sharing", "per-session"];
    done(&daemon, &set).await;
    // Once more, over what is there: other settings stay.
    let env = [env[0], env[1], env[2], env[3], ("NOBODY_HAS_THIS", "now")];
    let ended = run(&cofer(), &[&import[..], &["--overwrite"]].concat(), &env, "").await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let one = daemon.server("one").await;
    assert_eq!((&one["tools_deny"], &one["sharing"]), (&json!(["fail"]), &json!("per_session")));
    let two = daemon.get("/mcp/servers/two?reveal=true").await.expect(200);
    assert_eq!(two["environment"]["KEY"], "now");
    daemon.wait_status("two", "ready").await;
}
