//! What stands in the logs, and what else tells about the daemon: metrics and the API's own text.

use std::path::Path;

use cofer_e2e::{Daemon, eventually, wayward};
use reqwest::Method;
use serde_json::{Value, json};

/// All log files as one text.
fn read_all(folder: &Path) -> String {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the log folder is there")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| match path.is_dir() {
        true => read_all(path),
        false => String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned(),
    };
    paths.iter().map(read).collect()
}

fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let one = |path: &Path| match path.is_dir() {
        true => size(path),
        false => path.metadata().map_or(0, |metadata| metadata.len()),
    };
    entries.map(|entry| one(&entry.expect("an entry").path())).sum()
}

/// The lines of the daemon's log with one prefix, once the daemon has ended and written all.
async fn lines_with(daemon: &mut Daemon, prefix: &str) -> Vec<String> {
    assert!(daemon.terminate().await.success());
    let text = read_all(&daemon.data_dir().join("logs"));
    text.lines().filter(|line| line.contains(prefix)).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_servers_log_shows_its_stderr_and_its_life() {
    // covers: MGR-15
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    daemon.tool("w", "stderr", &json!({"text": "line of its own", "times": 30})).await.expect(200);
    let page = eventually("all lines are there", async || {
        let page = daemon.get("/mcp/servers/w/logs?tail=1000").await.expect(200);
        let lines = page["lines"].as_array().unwrap();
        let own = lines.iter().filter(|line| line["line"] == "line of its own");
        (own.count() == 30).then_some(page)
    })
    .await;
    let lines = page["lines"].as_array().unwrap();
    let stream = |name: &str| lines.iter().filter(|line| line["stream"] == name).count();
    assert!(stream("stderr") >= 30 && stream("lifecycle") >= 1, "{page}");
    assert!(lines.windows(2).all(|two| two[0]["seq"].as_u64() < two[1]["seq"].as_u64()));
    let tail = daemon.get("/mcp/servers/w/logs?tail=5").await.expect(200);
    assert_eq!(tail["lines"].as_array().unwrap()[..], lines[lines.len() - 5..]);
    daemon.get("/mcp/servers/w/logs?tail=many").await.failure(422, "invalid_request");
    daemon.get("/mcp/servers/nobody/logs").await.failure(404, "not_found");
}

#[tokio::test]
async fn the_log_file_marks_its_lines() {
    // covers: MGR-63
    let mut daemon = Daemon::start().await;
    daemon.register(&wayward("marked", &[])).await;
    daemon.tool("marked", "echo", &json!({})).await.expect(200);
    assert!(!lines_with(&mut daemon, "[START]").await.is_empty());
    let text = read_all(&daemon.data_dir().join("logs"));
    let has =
        |prefix: &str| text.lines().any(|line| line.contains(prefix) && line.contains("marked"));
    assert!(has("[MCP]") && has("[TOOLS]"), "{text}");
}

#[tokio::test]
async fn a_tool_call_is_logged_with_arguments_result_and_duration() {
    // covers: MGR-75, MGR-76
    let mut daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    daemon.tool("w", "echo", &json!({"word": "argument-canary"})).await.expect(200);
    daemon.tool("w", "big", &json!({"n": 5000})).await.expect(200);
    let lines = lines_with(&mut daemon, "[TOOLS]").await;
    let start =
        lines.iter().position(|line| line.contains("echo") && line.contains("argument-canary"));
    let start = start.unwrap_or_else(|| panic!("no start of the call in {lines:#?}"));
    let end = lines[start + 1..].iter().find(|line| line.contains("echo"));
    let end = end.unwrap_or_else(|| panic!("no end of the call in {lines:#?}"));
    assert!(end.contains("argument-canary"), "the result is shown: {end}");
    assert!(end.contains("duration"), "{end}");
    let longest = lines.iter().flat_map(|line| line.split(|c| c != 'b')).map(str::len).max();
    let longest = longest.unwrap_or_default();
    assert!((100..=200).contains(&longest), "200 characters of a result, not {longest}");
}

#[tokio::test]
async fn a_tool_call_that_fails_is_logged_with_its_error() {
    // covers: MGR-77
    let mut daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let arguments =
        json!({"code": -32000, "message": "error-canary", "data": {"stack": "at line 1"}});
    daemon.tool("w", "rpc_error", &arguments).await.failure(502, "mcp_error");
    daemon.tool("w", "fail", &json!({})).await.expect(200);
    let lines = lines_with(&mut daemon, "[TOOLS]").await;
    let has = |tool: &str, text: &str| {
        lines.iter().any(|line| line.contains(tool) && line.contains(text))
    };
    assert!(has("rpc_error", "error-canary"), "{lines:#?}");
    assert!(has("fail", "it went wrong"), "{lines:#?}");
    assert!(has("fail", "at wayward (tools.rs:1:1)"), "the stack is kept: {lines:#?}");
}

#[tokio::test]
async fn a_timeout_is_logged() {
    // covers: HST-2.3
    let mut daemon = Daemon::start().await;
    let mut body = wayward("w", &[]);
    body["call_timeout_ms"] = 100.into();
    daemon.register(&body).await;
    daemon.tool("w", "hang", &json!({})).await.failure(504, "timeout");
    let lines = lines_with(&mut daemon, "hang").await.join("\n").to_lowercase();
    assert!(
        lines.contains("timeout") || lines.contains("timed out") || lines.contains("within"),
        "{lines}"
    );
}

#[tokio::test]
async fn a_flood_on_stderr_is_bounded_on_disk_and_in_memory() {
    let daemon = Daemon::start().await;
    // Some 60 MB, in lines and as one line without an end.
    daemon.register(&wayward("w", &["--stderr-flood", "300000"])).await;
    let endless = "y".repeat(8 << 20);
    daemon.tool("w", "stderr", &json!({"text": endless, "times": 4})).await.expect(200);
    daemon.tool("w", "stderr", &json!({"text": "the flood is over"})).await.expect(200);
    let page = eventually("the last line is there", async || {
        let page = daemon.get("/mcp/servers/w/logs?tail=100000").await;
        page.body.contains("the flood is over").then(|| page.expect(200))
    })
    .await;
    assert!(page["lines"].as_array().unwrap().len() < 100_000);
    assert!(page.to_string().len() < 16 << 20, "what is kept in memory has a bound");
    let on_disk = size(&daemon.data_dir().join("logs"));
    assert!(on_disk < 40 << 20, "{on_disk} bytes of logs");
    daemon.tool("w", "pid", &json!({})).await.expect(200);
}

#[tokio::test]
async fn metrics_are_prometheus_text() {
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    daemon.tool("w", "echo", &json!({})).await.expect(200);
    let request = daemon.raw(Method::GET, "/metrics").bearer_auth(daemon.token());
    let answer = daemon.send(request).await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.contains("# TYPE cofer_"), "{}", answer.body);
    for line in answer.body.lines().filter(|line| !line.starts_with('#')) {
        let value = line.rsplit(' ').next().unwrap_or_default();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

#[tokio::test]
async fn the_api_describes_itself() {
    let daemon = Daemon::start().await;
    let api = daemon.get("/openapi.json").await.expect(200);
    assert!(api["openapi"].as_str().unwrap().starts_with("3.1"), "{}", api["openapi"]);
    let paths = api["paths"].as_object().unwrap();
    for (path, method) in [
        ("/mcp/servers", "post"),
        ("/mcp/servers", "get"),
        ("/mcp/servers/{id}", "patch"),
        ("/mcp/servers/{id}", "delete"),
        ("/mcp/servers/{id}/call", "post"),
        ("/mcp/servers/{id}/restart", "post"),
        ("/mcp/servers/{id}/tools", "get"),
        ("/mcp/validate", "post"),
        ("/mcp/import", "post"),
        ("/events", "get"),
        ("/activity", "get"),
    ] {
        let found = paths.iter().find(|(known, _)| known.trim_start_matches("/api/v1") == path);
        let found = found.map_or(&Value::Null, |(_, methods)| &methods[method]);
        assert!(found.is_object(), "{method} {path} is not described");
    }
}

#[tokio::test]
async fn an_unknown_route_or_method_is_refused_in_the_usual_form() {
    let daemon = Daemon::start().await;
    daemon.get("/no/such/route").await.failure(404, "not_found");
    daemon
        .send(daemon.request(Method::PUT, "/mcp/servers"))
        .await
        .failure(405, "method_not_allowed");
}
