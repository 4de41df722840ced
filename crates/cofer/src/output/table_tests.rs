//! What the tables look like, as text.

use super::*;
use serde_json::json;

/// A connected server, as the API shows one.
pub(crate) fn a_server(name: &str) -> ServerView {
    let view: ServerView = serde_json::from_str(
        r#"{
        "id": "01990000-0000-7000-8000-000000000001", "name": "NAME", "description": null,
        "kind": "process", "command": "npx", "args": ["-y", "server", "/tmp/a b"],
        "cwd": null, "image": null, "url": null, "stdio_bridge": true, "ports": [],
        "environment": {}, "volumes": [],
        "resource_limits": {"cpu": "0.5", "memory": "512M", "disk": "1G", "pids": 256},
        "restart_policy": "always", "provider": null, "enabled": true,
        "include_resources": false, "call_timeout_ms": 30000, "start_timeout_ms": 60000,
        "max_in_flight": 1, "heartbeat": {"interval_ms": 15000, "timeout_ms": 10000},
        "sharing": "shared", "network": "egress", "require": null,
        "status": "ready", "process_status": "running", "error": null, "pid": 4242,
        "container_id": null, "endpoints": [], "started_at": "2026-01-02T03:04:05Z",
        "uptime_seconds": 3725.5, "restart_count": 2, "last_crash_at": null,
        "next_restart_at": null, "health": "ok", "health_reasons": [],
        "usage": {"cpu_percent": 1.25, "memory_bytes": 50000000, "pids": 2, "disk_bytes": null},
        "isolation": null, "capabilities": {"tools": {}},
        "server_info": {"name": "server-filesystem", "version": "0.2.0"},
        "protocol_version": "2025-11-25", "epoch": 1, "warnings": [],
        "created_at": "2026-01-01T00:00:00.123456Z", "updated_at": "2026-01-01T00:00:00Z"
    }"#,
    )
    .unwrap();
    ServerView { name: name.to_owned(), ..view }
}

/// The same server after it failed to start.
pub(crate) fn a_failed_server(name: &str) -> ServerView {
    let error = json!({
        "kind": "exited_early", "message": "the process exited with code 3 before it was ready",
        "hint": "run the command by hand to see more.", "exit_code": 3,
        "stderr": "cannot find module\n\u{1b}[31mred\u{1b}[0m\n"
    });
    ServerView {
        status: Status::Error,
        enabled: false,
        error: serde_json::from_value(error).unwrap(),
        pid: None,
        uptime_seconds: None,
        started_at: None,
        usage: None,
        server_info: None,
        protocol_version: None,
        capabilities: None,
        ..a_server(name)
    }
}

/// A volume of a server, which may be gone.
pub(crate) fn a_volume(name: &str, server: Option<&str>) -> VolumeView {
    let volume = json!({
        "name": name, "server": server, "path": "/data",
        "server_id": "01990000-0000-7000-8000-000000000001",
        "bytes": 4096,
    });
    serde_json::from_value(volume).unwrap()
}

/// A connected server in a container.
fn a_container(name: &str) -> ServerView {
    let view = serde_json::to_value(a_server(name)).unwrap();
    let Value::Object(mut view) = view else { panic!() };
    let more = json!({
        "kind": "container", "command": null, "image": "ghcr.io/me/db:1", "args": ["--stdio"],
        "container_id": "0123456789abcdef0123456789abcdef",
        "image_digest": "sha256:00ff", "endpoints": ["http://127.0.0.1:40000"],
        "mcp_endpoint": "http://127.0.0.1:40000/mcp", "volumes": ["/data"],
        "isolation": {"runtime": "runsc", "capabilities": [], "read_only_root": true},
        "openings": {"capabilities": ["NET_RAW"], "writable_root": true},
        "usage": {"cpu_percent": 1.25, "memory_bytes": 50000000, "pids": 2, "disk_bytes": 4096},
    });
    view.extend(more.as_object().unwrap().clone());
    serde_json::from_value(Value::Object(view)).unwrap()
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn a_remote_server_tells_its_address_and_its_headers() {
    let mut server = a_server("docs");
    server.kind = Kind::Remote;
    server.command = None;
    server.args = Vec::new();
    server.url = Some("https://docs.example.com/mcp".to_owned());
    server.headers = [("X-Key".to_owned(), cofer_model::MASK.to_owned())].into();
    let shown = super::server(&server);
    assert!(shown.contains("https://docs.example.com/mcp"), "{shown}");
    assert!(shown.contains("URL") && shown.contains("X-Key: ********"), "{shown}");
}

#[test]
fn servers_stand_in_a_table() {
    let list = [a_server("filesystem"), a_failed_server("日本語\u{1b}[2J")];
    insta::assert_snapshot!(plain(&servers(&list, None)), @r"
    STATUS     NAME             UPTIME     RESTARTS  PROCESS  COMMAND
    Connected  filesystem       1 h 2 min  2         4242     npx -y server '/tmp/a b'
    Error      日本語\u{1b}[2J  -          2         -        npx -y server '/tmp/a b'
    ");
}

#[test]
fn a_narrow_terminal_wraps_the_command() {
    insta::assert_snapshot!(plain(&servers(&[a_server("filesystem")], Some(72))), @"
    STATUS     NAME        UPTIME     RESTARTS  PROCESS  COMMAND
    Connected  filesystem  1 h 2 min  2         4242     npx -y server
                                                         '/tmp/a b'
    ");
}

#[test]
fn the_status_has_its_colour() {
    let shown = servers(&[a_server("fs"), a_failed_server("gh")], None);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[1].starts_with("\u{1b}[32mConnected\u{1b}[0m "), "{:?}", lines[1]);
    assert!(lines[2].starts_with("\u{1b}[31mError\u{1b}[0m "), "{:?}", lines[2]);
}

#[test]
fn a_connected_server_is_shown_whole() {
    // covers: HST-4.1, MGR-59
    let shown = ServerView {
        description: Some("files\nof mine".to_owned()),
        environment: [("A".to_owned(), "1".to_owned()), ("B".to_owned(), "2".to_owned())].into(),
        cwd: Some("/srv".to_owned()),
        warnings: vec!["`API_KEY` is stored in plain text".to_owned()],
        health: Health::Warning,
        health_reasons: vec!["crashed 4 times in a minute".to_owned()],
        ..a_server("fs")
    };
    insta::assert_snapshot!(plain(&server(&shown)), @"
    Name         fs
    Status       Connected
    Enabled      yes
    Health       crashed 4 times in a minute
    Process      4242
    Uptime       1 h 2 min
    Restarts     2
    Usage        1.2 % of a core, 47.7 MiB, processes: 2
    MCP server   server-filesystem 0.2.0
    MCP version  2025-11-25
    Command      npx -y server '/tmp/a b'
    Directory    /srv
    Description  files
                 of mine
    Environment  A=1
                 B=2
    Restart      always
    Time limits  start 60 s, call 30 s
    In flight    1
    Registered   2026-01-01T00:00:00Z
    Id           01990000-0000-7000-8000-000000000001
    Warning      `API_KEY` is stored in plain text
    ");
}

#[test]
fn a_failed_server_shows_its_error_and_last_words() {
    // covers: MGR-28
    insta::assert_snapshot!(plain(&server(&a_failed_server("gh"))), @r"
    Name         gh
    Status       Error
    Enabled      no
    Error        the process exited with code 3 before it was ready
    Stderr       cannot find module
                 \u{1b}[31mred\u{1b}[0m
    Hint         run the command by hand to see more.
    Restarts     2
    Command      npx -y server '/tmp/a b'
    Restart      always
    Time limits  start 60 s, call 30 s
    In flight    1
    Registered   2026-01-01T00:00:00Z
    Id           01990000-0000-7000-8000-000000000001
    ");
}

#[test]
fn a_container_shows_what_isolates_it() {
    // covers: HST-4.1, HST-5.2
    insta::assert_snapshot!(plain(&server(&a_container("db"))), @"
    Name         db
    Status       Connected
    Enabled      yes
    Process      4242
    Container    0123456789ab
    Digest       sha256:00ff
    Endpoints    http://127.0.0.1:40000
    MCP at       http://127.0.0.1:40000/mcp
    Isolation    runtime: runsc
                 capabilities: none
                 read_only_root: yes
    Uptime       1 h 2 min
    Restarts     2
    Usage        1.2 % of a core, 47.7 MiB, processes: 2, 4.0 KiB on disk
    MCP server   server-filesystem 0.2.0
    MCP version  2025-11-25
    Image        ghcr.io/me/db:1 --stdio
    Limits       0.5 cores, 512M of memory, 1G of disk, 256 processes
    Network      egress
    Volumes      /data
    Openings     capabilities: NET_RAW
                 writable_root: yes
    Restart      always
    Time limits  start 60 s, call 30 s
    In flight    1
    Registered   2026-01-01T00:00:00Z
    Id           01990000-0000-7000-8000-000000000001
    ");
}

#[test]
fn volumes_tell_whose_they_are() {
    // covers: HST-6.1
    let list = [a_volume("cofer-a", Some("db")), a_volume("cofer-b", None)];
    insta::assert_snapshot!(plain(&volumes(&list, None)), @"
    VOLUME   SERVER     PATH   SIZE     SERVER ID
    cofer-a  db         /data  4.0 KiB  01990000-0000-7000-8000-000000000001
    cofer-b  (removed)  /data  4.0 KiB  01990000-0000-7000-8000-000000000001
    ");
}

#[test]
fn tools_show_which_arguments_may_be_left_out() {
    let list = [
        json!({"name": "read", "description": "\nReads a file.\nAnd more.", "inputSchema": {
            "properties": {"path": {}, "head": {}}, "required": ["path"]}}),
        json!({"name": "evil\u{1b}]0;x\u{7}", "description": "\u{1b}[8mhidden"}),
        json!({"name": 3}),
    ];
    insta::assert_snapshot!(plain(&tools(&list, None)), @r"
    NAME                 ARGUMENTS   DESCRIPTION
    read                 path head?  Reads a file.
    evil\u{1b}]0;x\u{7}              \u{1b}[8mhidden
    ");
}

#[test]
fn resources_and_prompts_stand_in_tables() {
    let list = [json!({"uri": "file:///a", "name": "a", "mimeType": "text/plain"})];
    insta::assert_snapshot!(plain(&resources(&list, None)), @"
    URI        NAME  TYPE        DESCRIPTION
    file:///a  a     text/plain
    ");
    let list = [json!({"name": "review", "arguments": [
        {"name": "code", "required": true}, {"name": "style"}], "description": "Reviews"})];
    insta::assert_snapshot!(plain(&prompts(&list, None)), @"
    NAME    ARGUMENTS    DESCRIPTION
    review  code style?  Reviews
    ");
}

#[test]
fn log_lines_tell_who_speaks() {
    let tagged = |stream, tag, line: &str| {
        let at = a_server("x").created_at;
        plain(&log_line(&LogEntry { seq: 1, at, stream, tag, line: line.to_owned() }))
    };
    let line = |stream, text: &str| tagged(stream, None, text);
    let shown = [
        line(LogStream::Stderr, "listening\u{1b}[2J"),
        line(LogStream::Stdout, "debug print"),
        line(LogStream::Lifecycle, "started as process 7"),
        tagged(LogStream::Lifecycle, Some(LogTag::Start), "starting"),
        tagged(LogStream::Lifecycle, Some(LogTag::Tools), "echo: call started"),
    ];
    insta::assert_snapshot!(shown.join("\n"), @r"
    2026-01-01T00:00:00Z listening\u{1b}[2J
    2026-01-01T00:00:00Z stdout: debug print
    2026-01-01T00:00:00Z -- started as process 7
    2026-01-01T00:00:00Z [START] starting
    2026-01-01T00:00:00Z [TOOLS] echo: call started
    ");
}
