//! `cofer client list`: which clients there are, and which have Cofer.

use serde_json::{Value, json};

use super::{ENTRY, path, places};
use crate::failure::Failure;
use crate::mcp_clients::file::Config;
use crate::mcp_clients::{CLIENTS, McpClient, edit};
use crate::output::{DIM, GOOD, Output, styled, text};

pub(super) fn run(out: &mut Output) -> Result<(), Failure> {
    places()?;
    if out.wants_json() {
        let clients: Vec<Value> = CLIENTS.iter().map(as_json).collect();
        return Ok(out.print_json(&json!({ "clients": clients }).to_string())?);
    }
    let lines: Vec<String> = CLIENTS.iter().map(line).collect();
    Ok(out.print(&lines.join("\n"))?)
}

/// The entries of ours in a configuration; none where it cannot be read, or is not there.
fn entries(client: &McpClient, project: bool) -> Option<Vec<String>> {
    let path = path(client, project).ok()?;
    let config = Config::read(&path).ok()?;
    let found = edit::names(client, config.text.as_deref()?).ok()?;
    let ours = |name: &String| *name == ENTRY || name.starts_with(&format!("{ENTRY}-"));
    Some(found.into_iter().filter(ours).collect())
}

fn line(client: &McpClient) -> String {
    let (user, project) = (entries(client, false), entries(client, true));
    let found = [("", &user), (" (project)", &project)].into_iter().flat_map(|(scope, entries)| {
        let entries = entries.iter().flatten();
        entries.map(move |entry| format!("{}{scope}", text::line(entry)))
    });
    let found: Vec<String> = found.collect();
    let state = match (found.is_empty(), &user) {
        (false, _) => styled(GOOD, &found.join(", ")),
        (true, Some(_)) => "configured, without Cofer".to_owned(),
        (true, None) => styled(DIM, "no configuration"),
    };
    format!("{:<15} {:<20} {state}", client.name, client.title)
}

fn as_json(client: &McpClient) -> Value {
    json!({
        "client": client.name,
        "title": client.title,
        "path": path(client, false).ok(),
        "project_path": path(client, true).ok(),
        "entries": entries(client, false),
        "project_entries": entries(client, true),
    })
}
