//! Who gets in, and what does not get out.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cofer_e2e::{
    Daemon, command_line, eventually, mentions, parent, pid_of, processes_with, wayward,
    wayward_path,
};
use reqwest::Method;
use serde_json::json;

const CANARY: &str = "canary-577215664901532";

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("the path is there").permissions().mode() & 0o777
}

/// Every path below a folder.
fn below(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    let deeper = paths.iter().filter(|path| path.is_dir()).flat_map(|path| below(path));
    deeper.collect::<Vec<_>>().into_iter().chain(paths.clone()).collect()
}

#[tokio::test]
async fn nothing_is_answered_without_the_token() {
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    for path in [
        "/api/v1/mcp/servers",
        "/api/v1/mcp/servers/w",
        "/api/v1/mcp/servers/w/logs",
        "/api/v1/events",
        "/api/v1/activity",
        "/api/v1/openapi.json",
        "/metrics",
        "/api/v1/no/such/route",
    ] {
        let none = daemon.send(daemon.raw(Method::GET, path)).await;
        none.failure(401, "unauthorized");
        for wrong in ["", "x", &daemon.token()[1..], &format!("{}x", daemon.token())] {
            let request = daemon.raw(Method::GET, path).bearer_auth(wrong);
            daemon.send(request).await.failure(401, "unauthorized");
        }
        let basic = daemon.raw(Method::GET, path).basic_auth("", Some(daemon.token()));
        daemon.send(basic).await.failure(401, "unauthorized");
        let query = format!("{path}?token={}&access_token={0}", daemon.token());
        daemon.send(daemon.raw(Method::GET, &query)).await.failure(401, "unauthorized");
    }
    let body = daemon.raw(Method::POST, "/api/v1/mcp/servers").json(&wayward("evil", &[]));
    daemon.send(body).await.failure(401, "unauthorized");
    daemon.get("/mcp/servers/evil").await.failure(404, "not_found");
}

#[tokio::test]
async fn the_token_is_not_printed_where_no_terminal_is() {
    let daemon = Daemon::start().await;
    let printed = eventually("the start message is printed", async || {
        Some(daemon.stderr()).filter(|text| text.contains("Console: "))
    })
    .await;
    assert!(printed.contains("`cofer console`"), "{printed}");
    assert!(!printed.contains(daemon.token()), "{printed}");
}

#[tokio::test]
async fn health_is_open_and_tells_nothing() {
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let answer = daemon.send(daemon.raw(Method::GET, "/healthz")).await;
    assert_eq!(answer.status, 200);
    assert!(
        !answer.body.contains(daemon.token()) && !answer.body.contains("wayward"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_page_from_elsewhere_gets_nothing_even_with_the_token() {
    let daemon = Daemon::start().await;
    let port = daemon.address().rsplit(':').next().unwrap().to_owned();
    for origin in [
        "http://evil.example",
        "https://127.0.0.1.evil.example",
        "null",
        "http://127.0.0.1:1",
        &format!("https://evil.example:{port}"),
    ] {
        let request = daemon.request(Method::GET, "/mcp/servers").header("Origin", origin);
        daemon.send(request).await.failure(403, "forbidden");
    }
    for host in
        ["evil.example", &format!("evil.example:{port}"), &format!("127.0.0.1.evil.example:{port}")]
    {
        let request = daemon.request(Method::GET, "/mcp/servers").header("Host", host);
        daemon.send(request).await.failure(403, "forbidden");
        let open = daemon.raw(Method::GET, "/healthz").header("Host", host);
        assert_eq!(daemon.send(open).await.status, 403, "{host}");
    }
    let own = daemon.base().to_owned();
    let request = daemon.request(Method::GET, "/mcp/servers").header("Origin", own);
    daemon.send(request).await.expect(200);
    let request =
        daemon.request(Method::GET, "/mcp/servers").header("Host", format!("localhost:{port}"));
    daemon.send(request).await.expect(200);
}

#[tokio::test]
async fn a_forwarded_port_reaches_the_daemon() {
    let daemon = Daemon::start().await;
    for host in ["localhost:9999", "127.0.0.1:9999", "[::1]:9999"] {
        let origin = format!("http://{host}");
        let request = daemon.request(Method::GET, "/mcp/servers").header("Host", host);
        daemon.send(request.header("Origin", origin)).await.expect(200);
        let page = daemon.raw(Method::GET, "/").header("Host", host);
        assert_eq!(daemon.send(page).await.status, 200, "{host}");
    }
}

#[tokio::test]
async fn a_public_url_is_accepted_and_used_in_links() {
    let daemon =
        Daemon::builder().env("COFER_PUBLIC_URL", "https://cofer.example.com/").start().await;
    let origin = "https://cofer.example.com";
    for host in ["cofer.example.com", "cofer.example.com:443", daemon.address()] {
        let request = daemon.request(Method::GET, "/mcp/servers").header("Host", host);
        daemon.send(request.header("Origin", origin)).await.expect(200);
    }
    let other = daemon.request(Method::GET, "/mcp/servers").header("Host", "example.com");
    daemon.send(other).await.failure(403, "forbidden");
    let printed = eventually("the start message is printed", async || {
        Some(daemon.stderr()).filter(|text| text.contains("Console: "))
    })
    .await;
    assert!(printed.contains("Console: https://cofer.example.com "), "{printed}");
    let ended = daemon.cli(&["console"]).await;
    let link = format!("https://cofer.example.com/#token={}", daemon.token());
    assert_eq!(ended.stdout.trim(), link, "{ended:?}");
    let own = json!({"name": "own", "url": "https://cofer.example.com/mcp"});
    daemon.post("/mcp/servers", &own).await.failure(422, "invalid_request");
    let wrong = Daemon::builder().arg("--public-url").arg("cofer.example.com").try_start().await;
    let refusal = wrong.err().expect("it is not a URL");
    assert_eq!(refusal.code, Some(2), "{refusal:?}");
    assert!(
        refusal.stderr.contains("`--public-url cofer.example.com` is not a URL"),
        "{refusal:?}"
    );
}

#[tokio::test]
async fn oauth_metadata_is_not_found_instead_of_forbidden() {
    let daemon = Daemon::start().await;
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ] {
        daemon.send(daemon.raw(Method::GET, path)).await.failure(404, "not_found");
    }
}

#[tokio::test]
async fn files_are_the_owners_alone() {
    // covers: MGR-58
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    daemon.tool("w", "stderr", &json!({"text": "something to log"})).await.expect(200);
    let data = daemon.data_dir();
    assert_eq!(mode(&data), 0o700);
    for name in ["token", "kb.db", "logs"] {
        assert!(data.join(name).exists(), "{name}");
    }
    for path in below(&data) {
        let is_socket = !path.is_file() && !path.is_dir();
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert!(is_socket || mode(&path) == expected, "{} has {:o}", path.display(), mode(&path));
    }
}

#[tokio::test]
async fn a_data_directory_that_was_open_is_closed_or_refused() {
    // covers: MGR-58
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).unwrap();
    match Daemon::builder().data_dir(&data).try_start().await {
        Ok(daemon) => assert_eq!(mode(&daemon.data_dir()), 0o700),
        Err(refusal) => assert!(refusal.stderr.contains("Error:"), "{refusal:?}"),
    }
}

#[tokio::test]
async fn values_of_variables_with_unsuspicious_names_are_not_logged() {
    // covers: MGR-58
    let mut daemon = Daemon::start().await;
    let values = [
        ("DSN", "postgres://me:canary-dsn@db/app"),
        ("COOKIE", "chip-1"),
        ("JWT", "canary.jwt"),
        ("CONFIG", r#"{"key": "canary-config"}"#),
    ];
    let mut body = wayward("w", &[]);
    body["environment"] = values.into_iter().map(|(name, value)| (name, json!(value))).collect();
    daemon.register(&body).await;
    for (_, value) in values {
        daemon
            .tool("w", "stderr", &json!({"text": format!("using {value} now")}))
            .await
            .expect(200);
        daemon.tool("w", "echo", &json!({"text": value})).await.expect(200);
        let arguments = json!({"code": -32000, "message": format!("bad {value}")});
        daemon.tool("w", "rpc_error", &arguments).await.failure(502, "mcp_error");
    }
    daemon.tool("w", "stderr", &json!({"text": "only canary-dsn here"})).await.expect(200);
    let calls = daemon.get("/activity").await.expect(200)["calls"].clone();
    let calls = calls.as_array().unwrap().iter();
    let calls = calls.map(|call| format!("/activity/{}", call["call_id"].as_str().unwrap()));
    let paths: Vec<String> = ["/mcp/servers/w/logs?tail=1000".to_owned(), "/activity".to_owned()]
        .into_iter()
        .chain(calls)
        .collect();
    assert!(paths.len() > 12, "{paths:?}");
    for path in paths {
        let answer = daemon.get(&path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(
            !answer.body.contains("canary") && !answer.body.contains("chip-1"),
            "{}",
            answer.body
        );
    }
    assert!(daemon.terminate().await.success());
    let logs = daemon.data_dir().join("logs");
    for word in ["canary", "chip-1"] {
        assert_eq!(mentions(&logs, word), Vec::<String>::new(), "{word}");
        assert!(!daemon.stderr().contains(word), "{}", daemon.stderr());
    }
}

#[tokio::test]
async fn secrets_in_arguments_are_masked_and_kept_when_the_mask_is_sent_back() {
    // covers: MGR-58
    let daemon = Daemon::start().await;
    let server = wayward_path();
    // The shell's `$0`, so that the rest is no argument of the server.
    let args = json!(["-c", "exec \"$0\"", server, "--api-key=canary-1", "--token", "canary-2"]);
    daemon.register(&json!({"name": "w", "command": "sh", "args": args})).await;
    for path in ["/mcp/servers", "/mcp/servers/w"] {
        assert!(!daemon.get(path).await.body.contains("canary"), "{path}");
    }
    for command in
        [&["server", "list"][..], &["server", "show", "w"], &["server", "list", "--json"]]
    {
        let ended = daemon.cli(command).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!ended.stdout.contains("canary"), "{ended:?}");
    }
    let mut shown = daemon.get("/mcp/servers/w").await.expect(200)["args"].clone();
    assert_eq!(shown[3], "--api-key=********");
    shown.as_array_mut().unwrap().insert(3, json!("-v"));
    daemon.patch("/mcp/servers/w", &json!({"args": shown})).await.expect(200);
    let revealed = daemon.get("/mcp/servers/w?reveal=true").await.expect(200);
    let expected =
        json!(["-c", "exec \"$0\"", server, "-v", "--api-key=canary-1", "--token", "canary-2"]);
    assert_eq!(revealed["args"], expected);
}

#[tokio::test]
async fn secrets_stay_where_they_belong() {
    // covers: MGR-58, HST-1.3
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark").to_str().unwrap().to_owned();
    let mut daemon = Daemon::start().await;
    let mut body = wayward("w", &["--pid-file", &mark]);
    body["environment"] = json!({"SERVICE_TOKEN": CANARY});
    let server = daemon.register(&body).await;
    // The server itself gives it away in every way it can.
    daemon.tool("w", "stderr", &json!({"text": format!("using {CANARY} now")})).await.expect(200);
    let told = daemon.tool("w", "env", &json!({"name": "SERVICE_TOKEN"})).await.tool_text();
    assert_eq!(told, CANARY, "a result is not touched");
    let arguments = json!({"code": -32000, "message": format!("bad {CANARY}")});
    daemon.tool("w", "rpc_error", &arguments).await.failure(502, "mcp_error");
    let mut failing = wayward("failing", &["--exit-at-start", "1"]);
    failing["environment"] = json!({"SERVICE_TOKEN": CANARY});
    daemon.post("/mcp/servers?wait=30", &failing).await.expect(201);

    for path in [
        "/mcp/servers",
        "/mcp/servers/w",
        "/mcp/servers/w/logs?tail=1000",
        "/mcp/servers/failing",
        "/activity",
    ] {
        let answer = daemon.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(!answer.body.contains(CANARY), "{path} has the secret");
    }
    let pid = pid_of(&server);
    let mut processes = processes_with(&mark);
    processes.extend([daemon.pid(), pid]);
    processes.extend(parent(pid));
    for process in processes {
        assert!(!command_line(process).contains(CANARY), "{}", command_line(process));
    }
    let token = daemon.token().to_owned();
    assert!(daemon.terminate().await.success());
    let data = daemon.data_dir();
    assert_eq!(mentions(&data.join("logs"), CANARY), Vec::<String>::new());
    assert!(!daemon.stderr().contains(CANARY), "stderr has the secret");
    assert_eq!(mentions(&data.join("logs"), &token), Vec::<String>::new());
}

#[tokio::test]
async fn the_servers_own_environment_has_no_token_of_the_daemon() {
    let daemon = Daemon::builder().env("COFER_TOKEN", "canary-token-1234").start().await;
    daemon.register(&wayward("w", &[])).await;
    let all = daemon.tool("w", "env", &json!({})).await.tool_text();
    assert!(!all.contains(daemon.token()) && !all.contains("canary-token-1234"), "{all}");
}

#[tokio::test]
async fn names_and_messages_cannot_forge_log_lines() {
    let mut daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let text = "first\n2026-01-01T00:00:00Z  INFO [START] forged line\u{1b}[2J";
    daemon.tool("w", "echo", &json!({ "text": text })).await.expect(200);
    let arguments = json!({"code": -32000, "message": text});
    daemon.tool("w", "rpc_error", &arguments).await.failure(502, "mcp_error");
    assert!(daemon.terminate().await.success());
    let logs = daemon.data_dir().join("logs");
    for path in below(&logs).into_iter().filter(|path| path.is_file()) {
        let log = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(!log.lines().any(|line| line.starts_with("2026-01-01")), "{log}");
        assert!(!log.contains('\u{1b}'), "{log}");
    }
}
