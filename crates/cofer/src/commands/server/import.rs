//! `cofer server import`: registers what another MCP client has in its `mcpServers`.

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;

use super::input::read_text;
use crate::commands::Context;
use crate::failure::Failure;
use crate::output::{BAD, BUSY, GOOD, say, styled, text, warn};

/// The largest configuration that is read.
const MAX_FILE: u64 = 16 << 20;

/// Register the servers of another client's configuration
///
/// Reads the `mcpServers` JSON that Claude Desktop, Cursor, VS Code and others keep, with
/// comments in it or without. The servers are started at once.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The configuration; `-` is stdin
    file: PathBuf,
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
    let answer =
        context.client.import(read_text(&args.file, "the configuration", MAX_FILE)?).await?;
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
