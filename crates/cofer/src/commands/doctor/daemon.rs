//! Whether the daemon answers, is of our version, knows our token, and how its servers are.

use cofer_model::{Health, ServerList, Status};
use serde_json::Value;

use super::{Check, Level};
use crate::client::{Client, ClientError};
use crate::output::text;

/// The findings, and how many servers are registered.
pub(super) async fn check(client: &Client) -> (Vec<Check>, Option<usize>) {
    let url = client.target().url.clone();
    let health = match client.health().await {
        Ok(answer) => answer.read::<Value>().unwrap_or_default(),
        Err(error) => return (vec![unwell("daemon", &error)], None),
    };
    let mut checks = vec![check_version(&url, health.get("version").and_then(Value::as_str))];
    let listed = client.servers().await.and_then(|answer| answer.read::<ServerList>());
    checks.push(match &listed {
        Ok(list) => check_servers(list),
        Err(error) => unwell("servers", error),
    });
    (checks, listed.ok().map(|list| list.servers.len()))
}

/// No daemon is a state like another; one that answers wrongly is not.
fn unwell(name: &str, error: &ClientError) -> Check {
    let level = match error {
        ClientError::NotRunning { .. } | ClientError::Unreachable { .. } => Level::Missing,
        _ => Level::Broken,
    };
    Check::new(name, level, error.to_string()).hint(error.hint())
}

fn check_version(url: &str, version: Option<&str>) -> Check {
    let ours = env!("CARGO_PKG_VERSION");
    match version {
        Some(theirs) if theirs == ours => {
            Check::new("daemon", Level::Ok, format!("{theirs} at {url}"))
        }
        theirs => {
            let theirs = theirs.unwrap_or("of an unknown version");
            Check::new("daemon", Level::Warning, format!("{theirs} at {url}, and this is {ours}"))
                .hint("restart the daemon from the same binary.")
        }
    }
}

fn check_servers(list: &ServerList) -> Check {
    let unwell: Vec<&str> = list
        .servers
        .iter()
        .filter(|server| {
            matches!(server.status, Status::Error | Status::Unresponsive)
                || server.health == Health::Warning
        })
        .map(|server| server.name.as_str())
        .collect();
    let total = text::count(list.servers.len(), "server");
    match unwell.as_slice() {
        [] => Check::new("servers", Level::Ok, total),
        names => {
            Check::new("servers", Level::Warning, format!("{total}, unwell: {}", names.join(", ")))
                .hint("`cofer server show NAME` says what is wrong.")
        }
    }
}
