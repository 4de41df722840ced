//! MCP clients that Cofer can be put into: where each keeps its configuration, and in which
//! shape. What was looked up, and where, is in docs/clients.md.
//!
//! `edit` makes the new text of a configuration and touches nothing but one entry, by `json` or
//! `toml`; `diff` shows it; `file` reads and writes; `undo` remembers what was there before.

pub(crate) mod diff;
pub(crate) mod edit;
pub(crate) mod file;
mod json;
mod json_scan;
mod toml;
pub(crate) mod undo;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// In which language a configuration is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// JSON; comments and trailing commas are left alone where a client allows them.
    Json,
    Toml,
}

/// What an entry leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// A command that speaks MCP on stdin and stdout.
    Command { program: String, args: Vec<String> },
    /// A Streamable HTTP endpoint.
    Http { url: String, authorization: String },
}

/// One client.
pub(crate) struct McpClient {
    /// What is typed.
    pub(crate) name: &'static str,
    /// What people call it.
    pub(crate) title: &'static str,
    pub(crate) language: Language,
    /// The object that has a member for each server.
    pub(crate) key: &'static str,
    /// Where a person's own configuration is.
    user: fn(&Places) -> Option<PathBuf>,
    /// Where a project's is, below its root.
    pub(crate) project: Option<&'static str>,
    entry: fn(&Way) -> Option<Value>,
}

/// What decides where configurations are.
pub(crate) struct Places {
    pub(crate) home: PathBuf,
    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    pub(crate) config: PathBuf,
    /// Variables by which clients are told another place.
    pub(crate) variable: fn(&str) -> Option<PathBuf>,
}

impl Places {
    /// Those of this process; none without a home.
    pub(crate) fn of_this_process() -> Option<Self> {
        let variable = |name: &str| {
            let path = std::env::var_os(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let home = variable("HOME")?;
        let config = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        Some(Self { home, config, variable })
    }

    /// Where desktop applications keep their settings.
    fn applications(&self) -> PathBuf {
        match cfg!(target_os = "macos") {
            true => self.home.join("Library/Application Support"),
            false => self.config.clone(),
        }
    }
}

impl McpClient {
    /// The file of its configuration.
    pub(crate) fn path(&self, places: &Places, project: Option<&Path>) -> Option<PathBuf> {
        match project {
            Some(root) => Some(root.join(self.project?)),
            None => (self.user)(places),
        }
    }

    /// Its entry for this way; none where it cannot go there.
    pub(crate) fn entry(&self, way: &Way) -> Option<Value> {
        (self.entry)(way)
    }
}

/// The client of this name.
pub(crate) fn find(name: &str) -> Option<&'static McpClient> {
    CLIENTS.iter().find(|client| client.name == name)
}

/// All of them, in the order in which they are shown.
pub(crate) const CLIENTS: &[McpClient] = &[
    McpClient {
        name: "claude-code",
        title: "Claude Code",
        language: Language::Json,
        key: "mcpServers",
        user: |places| {
            let dir = (places.variable)("CLAUDE_CONFIG_DIR");
            Some(dir.unwrap_or_else(|| places.home.clone()).join(".claude.json"))
        },
        project: Some(".mcp.json"),
        entry: |way| Some(typed(way, "stdio", "http")),
    },
    McpClient {
        name: "claude-desktop",
        title: "Claude Desktop",
        language: Language::Json,
        key: "mcpServers",
        user: |places| Some(places.applications().join("Claude/claude_desktop_config.json")),
        project: None,
        // Its file has no remote servers: they are added in its settings.
        entry: |way| matches!(way, Way::Command { .. }).then(|| plain(way, "url")),
    },
    McpClient {
        name: "codex",
        title: "Codex",
        language: Language::Toml,
        key: "mcp_servers",
        user: |places| {
            let dir = (places.variable)("CODEX_HOME");
            Some(dir.unwrap_or_else(|| places.home.join(".codex")).join("config.toml"))
        },
        project: Some(".codex/config.toml"),
        entry: |way| {
            Some(match way {
                Way::Command { program, args } => json!({"command": program, "args": args}),
                Way::Http { url, authorization } => {
                    json!({"url": url, "http_headers": {"Authorization": authorization}})
                }
            })
        },
    },
    McpClient {
        name: "copilot",
        title: "GitHub Copilot CLI",
        language: Language::Json,
        key: "mcpServers",
        user: |places| {
            let dir = (places.variable)("COPILOT_HOME");
            Some(dir.unwrap_or_else(|| places.home.join(".copilot")).join("mcp-config.json"))
        },
        project: None,
        entry: |way| {
            let mut entry = typed(way, "local", "http");
            entry["tools"] = json!(["*"]);
            Some(entry)
        },
    },
    McpClient {
        name: "cursor",
        title: "Cursor",
        language: Language::Json,
        key: "mcpServers",
        user: |places| Some(places.home.join(".cursor/mcp.json")),
        project: Some(".cursor/mcp.json"),
        entry: |way| Some(plain(way, "url")),
    },
    McpClient {
        name: "gemini",
        title: "Gemini CLI",
        language: Language::Json,
        key: "mcpServers",
        user: |places| Some(places.home.join(".gemini/settings.json")),
        project: Some(".gemini/settings.json"),
        entry: |way| Some(plain(way, "httpUrl")),
    },
    McpClient {
        name: "vscode",
        title: "VS Code",
        language: Language::Json,
        key: "servers",
        user: |places| Some(places.applications().join("Code/User/mcp.json")),
        project: Some(".vscode/mcp.json"),
        entry: |way| Some(typed(way, "stdio", "http")),
    },
    McpClient {
        name: "windsurf",
        title: "Windsurf",
        language: Language::Json,
        key: "mcpServers",
        user: |places| Some(places.home.join(".codeium/windsurf/mcp_config.json")),
        project: None,
        entry: |way| Some(plain(way, "serverUrl")),
    },
    McpClient {
        name: "zed",
        title: "Zed",
        language: Language::Json,
        key: "context_servers",
        user: |places| Some(places.config.join("zed/settings.json")),
        project: Some(".zed/settings.json"),
        entry: |way| Some(plain(way, "url")),
    },
];

/// An entry that says by its fields what it is; `url` is what the client calls an address.
fn plain(way: &Way, url: &str) -> Value {
    match way {
        Way::Command { program, args } => json!({"command": program, "args": args}),
        Way::Http { url: address, authorization } => Value::Object(Map::from_iter([
            (url.to_owned(), Value::from(address.as_str())),
            ("headers".to_owned(), json!({"Authorization": authorization})),
        ])),
    }
}

/// An entry that says in `type` what it is.
fn typed(way: &Way, command: &str, http: &str) -> Value {
    let kind = match way {
        Way::Command { .. } => command,
        Way::Http { .. } => http,
    };
    let mut entry = Map::from_iter([("type".to_owned(), Value::from(kind))]);
    if let Value::Object(rest) = plain(way, "url") {
        entry.extend(rest);
    }
    Value::Object(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places { home: "/home/me".into(), config: "/home/me/.config".into(), variable: |_| None }
    }

    #[test]
    fn every_client_has_its_place_and_its_shape() {
        let command =
            Way::Command { program: "/bin/cofer".to_owned(), args: vec!["connect".to_owned()] };
        let http =
            Way::Http { url: "http://x/mcp".to_owned(), authorization: "Bearer t".to_owned() };
        let mut table = String::new();
        for client in CLIENTS {
            let user = client.path(&places(), None).unwrap();
            let project = client.path(&places(), Some(Path::new("/p")));
            let project = project.map_or_else(|| "-".to_owned(), |path| path.display().to_string());
            let http = client.entry(&http).map_or_else(|| "-".to_owned(), |e| e.to_string());
            table.push_str(&format!(
                "{}: {} | {project}\n  {} {}\n  {http}\n",
                client.name,
                user.display(),
                client.key,
                client.entry(&command).unwrap(),
            ));
        }
        insta::assert_snapshot!(table);
        assert!(find("cursor").is_some() && find("emacs").is_none());
    }

    #[test]
    fn variables_move_a_clients_place() {
        let moved = Places { variable: |name| Some(format!("/else/{name}").into()), ..places() };
        let path = |name: &str| find(name).unwrap().path(&moved, None).unwrap();
        assert_eq!(path("codex"), Path::new("/else/CODEX_HOME/config.toml"));
        assert_eq!(path("claude-code"), Path::new("/else/CLAUDE_CONFIG_DIR/.claude.json"));
        assert_eq!(path("copilot"), Path::new("/else/COPILOT_HOME/mcp-config.json"));
    }
}
