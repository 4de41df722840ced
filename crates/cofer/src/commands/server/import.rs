//! `cofer server import`: registers what another MCP client has in its `mcpServers`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::input::read_text;
use crate::commands::Context;
use crate::failure::Failure;
use crate::output::{BAD, BUSY, GOOD, say, styled, text, warn};

/// The largest configuration that is read.
const MAX_FILE: u64 = 16 << 20;

/// Register the servers of another client's configuration
///
/// Reads the `mcpServers` JSON that Claude Desktop, Cursor, VS Code and others keep, with
/// comments in it or without. The servers are started at once. `${VAR}`, `${VAR:-default}` and
/// `${env:VAR}` get the values of your environment; a server with a placeholder that has none is
/// registered switched off.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The configuration; `-` is stdin
    file: PathBuf,
    /// The folder for `${workspaceFolder}` and relative `envFile`s [default: the folder of the
    /// project that FILE is in]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Change servers that exist already; settings that FILE does not name stay as they are
    #[arg(long)]
    overwrite: bool,
}

impl ImportArgs {
    /// The folder that was given, else that of the file; clients keep theirs in a folder of their
    /// own in the project, such as `.vscode/mcp.json`.
    fn workspace(&self) -> Option<PathBuf> {
        if let Some(given) = &self.workspace {
            return std::path::absolute(given).ok();
        }
        if self.file == Path::new("-") {
            return std::env::current_dir().ok();
        }
        let file = std::path::absolute(&self.file).ok()?;
        let folder = file.parent()?;
        let is_hidden =
            folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        Some(if is_hidden { folder.parent()? } else { folder }.to_owned())
    }
}

/// The request with the variables that occur in the configuration, and no others.
fn request(
    text: &str,
    workspace: Option<&Path>,
    variable: impl Fn(&str) -> Option<String>,
) -> Value {
    let names = text.split("${").skip(1).map(|rest| {
        let inside = rest.split('}').next().unwrap_or_default();
        let name = inside.strip_prefix("env:").unwrap_or(inside);
        let name = name.split(":-").next().unwrap_or_default();
        if name == "userHome" { "HOME" } else { name }
    });
    let variables: Map<String, Value> = names
        .filter(|name| !name.is_empty() && !name.contains(['=', '\0']))
        .filter_map(|name| Some((name.to_owned(), Value::from(variable(name)?))))
        .collect();
    json!({"configuration": text, "variables": variables, "workspace": workspace})
}

/// What the daemon answers.
#[derive(Debug, Deserialize)]
struct Imported {
    servers: Vec<ImportedServer>,
}

#[derive(Debug, Deserialize)]
struct ImportedServer {
    name: String,
    status: ImportStatus,
    reason: Option<String>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ImportStatus {
    Imported,
    Skipped,
    Failed,
}

pub(super) async fn run(args: ImportArgs, context: &mut Context) -> Result<(), Failure> {
    let text = read_text(&args.file, "the configuration", MAX_FILE)?;
    let body = request(&text, args.workspace().as_deref(), |name| std::env::var(name).ok());
    let answer = context.client.import(body.to_string(), args.overwrite).await?;
    let imported: Imported = answer.read()?;
    if context.out.wants_json() {
        context.out.print_json(answer.json())?;
    } else {
        for server in &imported.servers {
            context.out.print(&describe(server))?;
            for warning in &server.warnings {
                warn(&format!("`{}`: {warning}", server.name));
            }
        }
    }
    let with = |status| imported.servers.iter().filter(|server| server.status == status).count();
    match with(ImportStatus::Failed) {
        0 if with(ImportStatus::Imported) > 0 => say("`cofer server list` shows how they do."),
        0 => say("Nothing was imported."),
        failed => {
            let servers = text::count(failed, "server");
            return Err(Failure::new(format!("{servers} could not be imported")));
        }
    }
    Ok(())
}

fn describe(server: &ImportedServer) -> String {
    let (word, style) = match server.status {
        ImportStatus::Imported => ("Imported", GOOD),
        ImportStatus::Skipped => ("Skipped", BUSY),
        ImportStatus::Failed => ("Failed", BAD),
    };
    let reason = server.reason.as_deref().map(|reason| format!(": {}", text::line(reason)));
    format!("{}: `{}`{}", styled(style, word), text::line(&server.name), reason.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_variables_that_occur_are_sent() {
        let text = r#"{"a": {"command": "${A}", "args": ["${env:B:-x}", "${C}", "${input:d}"]}}"#;
        let variable = |name: &str| match name {
            "A" | "B" | "SECRET" => Some(format!("value of {name}")),
            _ => None,
        };
        let expected = json!({
            "configuration": text, "workspace": "/w",
            "variables": {"A": "value of A", "B": "value of B"},
        });
        assert_eq!(request(text, Some(Path::new("/w")), variable), expected);
    }

    #[test]
    fn the_workspace_is_the_project_of_the_file() {
        let workspace = |file: &str, given: Option<&str>| {
            let workspace = given.map(PathBuf::from);
            ImportArgs { file: PathBuf::from(file), workspace, overwrite: false }.workspace()
        };
        assert_eq!(workspace("/p/.vscode/mcp.json", None), Some(PathBuf::from("/p")));
        assert_eq!(workspace("/p/.mcp.json", None), Some(PathBuf::from("/p")));
        assert_eq!(workspace("/p/.mcp.json", Some("/q")), Some(PathBuf::from("/q")));
        assert_eq!(workspace("-", None), std::env::current_dir().ok());
    }

    #[test]
    fn what_became_of_each_server_is_one_line() {
        let answer = r#"{"servers": [
            {"name": "fs", "status": "imported", "warnings": [], "server": {"id": 1}},
            {"name": "far", "status": "skipped", "reason": "it is remote", "warnings": []},
            {"name": "x\u001b[2J", "status": "failed", "reason": "the name is taken", "warnings": []}
        ]}"#;
        let imported: Imported = serde_json::from_str(answer).unwrap();
        let lines: Vec<String> = imported
            .servers
            .iter()
            .map(|server| anstream::adapter::strip_str(&describe(server)).to_string())
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        Imported: `fs`
        Skipped: `far`: it is remote
        Failed: `x\u{1b}[2J`: the name is taken
        ");
    }
}
