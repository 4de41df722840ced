//! `cofer client`: Cofer in the configuration of MCP clients, and out of it again, byte for byte.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use cofer_e2e::{Daemon, Ended, McpClient, cofer, run, wayward};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Each client with its own file, and the object that has its servers.
const CLIENTS: [(&str, &str, &str); 9] = [
    ("claude-code", ".claude.json", "mcpServers"),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", "mcpServers"),
    ("codex", ".codex/config.toml", "mcp_servers"),
    ("copilot", ".copilot/mcp-config.json", "mcpServers"),
    ("cursor", ".cursor/mcp.json", "mcpServers"),
    ("gemini", ".gemini/settings.json", "mcpServers"),
    ("vscode", ".config/Code/User/mcp.json", "servers"),
    ("windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers"),
    ("zed", ".config/zed/settings.json", "context_servers"),
];

/// A home with nothing in it.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    fn write(&self, below: &str, text: &str) -> PathBuf {
        let path = self.path(below);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders can be made");
        fs::write(&path, text).expect("files can be written");
        path
    }

    async fn cli(&self, args: &[&str]) -> Ended {
        let home = self.0.path().to_str().expect("text");
        let mut all = vec!["client"];
        all.extend(args);
        run(&cofer(), &all, &[("HOME", home)], "").await
    }

    async fn done(&self, args: &[&str]) -> String {
        let ended = self.cli(args).await;
        assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
        ended.stdout
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[tokio::test]
async fn every_client_gets_an_entry_and_loses_it_without_a_trace() {
    for (client, file, key) in CLIENTS {
        let home = Home::new();
        let shown = home.done(&["install", client, "--dry-run"]).await;
        assert!(shown.contains("+") && shown.contains("connect"), "{client}: {shown}");
        assert_eq!(fs::read_dir(home.0.path()).expect("a folder").count(), 0, "{client}");
        let shown = home.done(&["install", client, "--yes"]).await;
        let path = home.path(file);
        assert!(shown.contains(path.to_str().expect("text")), "{client}: {shown}");
        let text = read(&path);
        if client == "codex" {
            assert!(text.contains("[mcp_servers.cofer]\ncommand = \"/"), "{text}");
            assert!(text.contains("args = [\"connect\"]"), "{text}");
        } else {
            let config: Value = serde_json::from_str(&text).expect("strict JSON");
            let entry = &config[key]["cofer"];
            assert_eq!(entry["command"], cofer().to_str().expect("text"), "{client}: {entry}");
            assert_eq!(entry["args"], json!(["connect"]), "{client}");
        }
        assert_eq!(fs::metadata(&path).expect("it is there").mode() & 0o777, 0o600, "{client}");
        // Once more changes nothing.
        let again = home.done(&["install", client, "--yes"]).await;
        assert!(again.contains("already"), "{client}: {again}");
        assert_eq!(read(&path), text, "{client}");
        assert!(home.done(&["list"]).await.contains("cofer"), "{client}");
        home.done(&["remove", client, "--yes"]).await;
        let left: Vec<_> = walk(home.0.path());
        assert!(left.iter().all(|path| path.is_dir()), "{client}: {left:?}");
        assert!(
            !path.exists()
                && !path.parent().is_some_and(|dir| dir != home.0.path() && dir.exists()),
            "{client}"
        );
    }
}

/// Everything below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("one").path());
    entries
        .flat_map(|path| {
            if path.is_dir() { [vec![path.clone()], walk(&path)].concat() } else { vec![path] }
        })
        .collect()
}

const SETTINGS: &str = "// Zed settings\n{\n\t\"theme\": \"One Dark\", // at night\n\t\"context_servers\": {\n\t\t/* files */\n\t\t\"fs\": { \"command\": \"npx\", \"args\": [], },\n\t},\n}\n";

#[tokio::test]
async fn comments_layout_mode_and_links_stay() {
    let home = Home::new();
    let real = home.write("dotfiles/zed.json", SETTINGS);
    fs::set_permissions(&real, fs::Permissions::from_mode(0o644)).expect("its mode can be set");
    let link = home.path(".config/zed/settings.json");
    fs::create_dir_all(link.parent().expect("a folder")).expect("folders can be made");
    symlink(&real, &link).expect("a link can be made");
    home.done(&["install", "zed", "--yes"]).await;
    let changed = read(&real);
    let ours = changed.find("\n\t\t\"cofer\": {").expect("the entry is there");
    assert!(changed.starts_with(&SETTINGS[..ours]), "{changed}");
    assert!(changed.ends_with("},\n\t},\n}\n"), "{changed}");
    assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
    assert_eq!(fs::metadata(&real).expect("it is there").mode() & 0o777, 0o644);
    home.done(&["install", "zed", "--undo", "--yes"]).await;
    assert_eq!(read(&real), SETTINGS, "byte for byte");
    assert_eq!(fs::metadata(&real).expect("it is there").mode() & 0o777, 0o644);
}

#[tokio::test]
async fn what_was_changed_since_is_not_lost() {
    let home = Home::new();
    let path = home.write(".cursor/mcp.json", "{\n  \"mcpServers\": {}\n}\n");
    home.done(&["install", "cursor", "--yes"]).await;
    let changed = read(&path).replace("\"mcpServers\"", "\"theirs\": 1,\n  \"mcpServers\"");
    fs::write(&path, &changed).expect("it can be written");
    let refused = home.cli(&["install", "cursor", "--undo", "--yes"]).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("changed since"), "{}", refused.stderr);
    assert_eq!(read(&path), changed);
    home.done(&["remove", "cursor", "--yes"]).await;
    let left: Value = serde_json::from_str(&read(&path)).expect("JSON");
    assert_eq!(left, json!({"theirs": 1, "mcpServers": {}}));
    let again = home.done(&["remove", "cursor", "--yes"]).await;
    assert!(again.contains("nothing to do"), "{again}");
}

#[tokio::test]
async fn a_newer_entry_takes_the_place_of_an_older_one_and_undo_goes_back_to_the_beginning() {
    let home = Home::new();
    let text = "# mine\nmodel = \"x\"   # best\n\n[mcp_servers.fs]\ncommand = \"npx\"\n";
    let path = home.write(".codex/config.toml", text);
    home.done(&["install", "codex", "--yes"]).await;
    home.done(&["install", "codex", "--start", "--yes"]).await;
    let changed = read(&path);
    assert!(changed.starts_with(text) && changed.contains("--start"), "{changed}");
    assert_eq!(changed.matches("[mcp_servers.cofer]").count(), 1, "{changed}");
    home.done(&["remove", "codex", "--yes"]).await;
    assert_eq!(read(&path), text);
}

#[tokio::test]
async fn nothing_is_written_without_leave_nor_into_what_cannot_be_read() {
    let home = Home::new();
    let refused = home.cli(&["install", "cursor"]).await;
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("--yes"), "{}", refused.stderr);
    assert!(!home.path(".cursor").exists());
    let broken = "{ \"mcpServers\": { oops }\n";
    let path = home.write(".cursor/mcp.json", broken);
    let refused = home.cli(&["install", "cursor", "--yes"]).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("line 1, column 19"), "{}", refused.stderr);
    assert_eq!(read(&path), broken);
    let unknown = home.cli(&["install", "emacs", "--yes"]).await;
    assert_eq!(unknown.code, Some(2), "{}", unknown.stderr);
    let project = home.cli(&["install", "windsurf", "--project", "--yes"]).await;
    assert_eq!(project.code, Some(2), "{}", project.stderr);
}

#[tokio::test]
async fn the_token_is_written_where_that_is_asked_for_and_never_shown() {
    let daemon = Daemon::start().await;
    let home = Home::new();
    let (data, home_path) = (daemon.data_dir(), home.0.path().to_str().expect("text").to_owned());
    let env = [("HOME", home_path.as_str()), ("COFER_DATA_DIR", data.to_str().expect("text"))];
    for (client, file, key) in CLIENTS {
        let install = ["client", "install", client, "--http", "--yes", "--server", "way"];
        let ended = run(&cofer(), &install, &env, "").await;
        let remove = ["client", "remove", client, "--yes", "--server", "way"];
        if client == "claude-desktop" {
            assert_eq!(ended.code, Some(2), "{}", ended.stderr);
            continue;
        }
        assert_eq!(ended.code, Some(0), "{client}: {}", ended.stderr);
        let text = read(&home.path(file));
        assert!(text.contains(daemon.token()), "{client}: {text}");
        assert!(text.contains(&format!("{}/mcp/way", daemon.base())), "{client}: {text}");
        assert!(text.contains(key) && text.contains("cofer-way"), "{client}: {text}");
        assert_eq!(fs::metadata(home.path(file)).expect("it is there").mode() & 0o777, 0o600);
        let removed = run(&cofer(), &remove, &env, "").await;
        assert_eq!(removed.code, Some(0), "{client}: {}", removed.stderr);
        for said in [&ended.stdout, &ended.stderr, &removed.stdout, &removed.stderr] {
            assert!(!said.contains(daemon.token()), "{client}: {said}");
        }
        assert!(!home.path(file).exists(), "{client}");
    }
    let install = ["client", "install", "vscode", "--http", "--project", "--yes"];
    assert_eq!(run(&cofer(), &install, &env, "").await.code, Some(2), "a project is shared");
}

#[tokio::test]
async fn what_is_written_for_a_client_works() {
    // covers: GTW-3
    let daemon = Daemon::start().await;
    daemon.register(&wayward("way", &[])).await;
    let home = Home::new();
    let (data, home_path) = (daemon.data_dir(), home.0.path().to_str().expect("text").to_owned());
    let env = [("HOME", home_path.as_str()), ("COFER_DATA_DIR", data.to_str().expect("text"))];
    let install = ["client", "install", "claude-code", "--server", "way", "--yes"];
    let ended = run(&cofer(), &install, &env, "").await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let config: Value = serde_json::from_str(&read(&home.path(".claude.json"))).expect("JSON");
    let entry = &config["mcpServers"]["cofer-way"];
    let args: Vec<&str> =
        entry["args"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let program = Path::new(entry["command"].as_str().expect("a command"));
    // As a client would, which has nothing of our environment.
    let mut client =
        McpClient::start_by(program, &args, &[("HOME", home_path.as_str())], home.0.path());
    client.initialize().await;
    let told = client.call("echo", json!({"text": "through"})).await;
    assert!(told.to_string().contains("through"), "{told}");
}
