//! Who a client finds behind a door: the answers to `initialize` and to `server/discover`.

use bytes::Bytes;
use cofer_mcp::{LATEST_WITH_INITIALIZE, MODERN};
use cofer_supervisor::ServerHandle;
use serde_json::{Value, json};

use super::Gateway;
use super::door::Door;
use super::rpc::{Answer, Fault};
use super::upstream::Upstream;

/// The revisions with sessions, oldest first.
pub(super) const WITH_SESSIONS: [&str; 4] =
    ["2024-11-05", "2025-03-26", "2025-06-18", LATEST_WITH_INITIALIZE];
/// The one that allowed several messages in one body.
pub(super) const WITH_BATCHES: &str = "2025-03-26";
/// How much of what servers tell models is passed on where they are joined.
const MAX_INSTRUCTIONS: usize = 32 * 1024;

/// Capabilities that are declared at the endpoint of all servers if a server declares them.
const MERGED: [&str; 2] = ["extensions", "tasks"];

/// Who is there.
struct Introduction {
    capabilities: Value,
    info: Value,
    instructions: Option<String>,
}

/// The revision that is spoken with a client that wants this one.
pub(super) fn negotiate(wanted: &str) -> &'static str {
    let known = WITH_SESSIONS.into_iter().find(|known| *known == wanted);
    known.unwrap_or(LATEST_WITH_INITIALIZE)
}

/// The answer to `initialize`.
pub(super) async fn initialized(gateway: &Gateway, door: &Door, version: &str) -> Answer {
    let Introduction { capabilities, info, instructions } = introduce(gateway, door, false).await?;
    let mut result =
        json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": info});
    if let Some(instructions) = instructions {
        result["instructions"] = instructions.into();
    }
    Ok(Bytes::from(result.to_string()))
}

/// The answer to `server/discover`.
pub(super) async fn discovered(gateway: &Gateway, door: &Door) -> Answer {
    let Introduction { mut capabilities, info, instructions } =
        introduce(gateway, door, true).await?;
    if let Some(capabilities) = capabilities.as_object_mut() {
        // What the newer era knows by this name is something else.
        capabilities.remove("tasks");
    }
    let mut result = json!({
        "resultType": "complete",
        "supportedVersions": supported(),
        "capabilities": capabilities,
        "_meta": {"io.modelcontextprotocol/serverInfo": info},
        "ttlMs": 0,
        "cacheScope": "private",
    });
    if let Some(instructions) = instructions {
        result["instructions"] = instructions.into();
    }
    Ok(Bytes::from(result.to_string()))
}

/// All revisions that are spoken here, newest first.
pub(super) fn supported() -> Vec<&'static str> {
    std::iter::once(MODERN).chain(WITH_SESSIONS.into_iter().rev()).collect()
}

async fn introduce(gateway: &Gateway, door: &Door, stateless: bool) -> Result<Introduction, Fault> {
    match door {
        Door::One(handle) => introduce_one(gateway, handle, stateless).await,
        Door::All => Ok(introduce_all(gateway)),
    }
}

async fn introduce_one(
    gateway: &Gateway,
    handle: &ServerHandle,
    stateless: bool,
) -> Result<Introduction, Fault> {
    let starting = if handle.peer().is_none() { gateway.known_peer(handle) } else { None };
    let mut upstream = Upstream::shared(handle.clone());
    let peer = match starting {
        Some(peer) => peer,
        None => {
            upstream.ready().await?;
            // Its capabilities may differ between the two protocols.
            if stateless && let Some(second) = upstream.stateless().await {
                upstream = second;
            }
            let peer = upstream.peer_when_known().await;
            peer.ok_or_else(|| Fault::not_connected(&upstream.name(), handle.snapshot().status))?
        }
    };
    let mut capabilities = peer.capabilities.clone();
    if handle.spec().include_resources
        && let Some(capabilities) = capabilities.as_object_mut()
    {
        capabilities.entry("tools").or_insert_with(|| json!({}));
    }
    let mut info = peer.server_info.clone();
    if !info.is_object() {
        info = json!({"name": upstream.name(), "version": ""});
    }
    Ok(Introduction { capabilities, info, instructions: peer.instructions.clone() })
}

/// All of them can do everything, as the servers that cannot yet may be joined by one that can.
fn introduce_all(gateway: &Gateway) -> Introduction {
    let mut servers = gateway.0.supervisor.list();
    servers.sort_by_key(|handle| handle.spec().name.clone());
    let mut all = String::new();
    let changing = json!({"listChanged": true});
    let mut capabilities = json!({
        "tools": changing, "prompts": changing,
        "resources": {"subscribe": true, "listChanged": true},
        "logging": {}, "completions": {},
    });
    for handle in servers {
        let Some(peer) = gateway.known_peer(&handle) else {
            continue;
        };
        for key in MERGED {
            if let Some(declared) = peer.capabilities.get(key).filter(|value| value.is_object()) {
                merge(&mut capabilities[key], declared);
            }
        }
        let instructions = peer.instructions.clone();
        if let Some(instructions) = instructions.filter(|text| !text.trim().is_empty()) {
            let section = format!("# {}\n{}\n\n", handle.spec().name, instructions.trim());
            if all.len() + section.len() <= MAX_INSTRUCTIONS {
                all.push_str(&section);
            }
        }
    }
    Introduction {
        capabilities,
        info: json!({"name": "cofer", "title": "Cofer", "version": env!("CARGO_PKG_VERSION")}),
        instructions: Some(all.trim_end().to_owned()).filter(|all| !all.is_empty()),
    }
}

/// Adds the members of `more` that `into` does not have; lists get the items that they lack.
fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(more)) => {
            let new: Vec<Value> =
                more.iter().filter(|item| !into.contains(item)).cloned().collect();
            into.extend(new);
        }
        (into @ Value::Null, more) => *into = more.clone(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_of_several_servers_are_merged() {
        let mut all = Value::Null;
        merge(&mut all, &json!({"a/ui": {"mimeTypes": ["text/html"]}, "a/x": {"n": 1}}));
        merge(&mut all, &json!({"a/ui": {"mimeTypes": ["text/html", "text/x"]}, "a/x": {"n": 2}}));
        merge(&mut all, &json!({"a/y": {}}));
        let ui = json!({"mimeTypes": ["text/html", "text/x"]});
        assert_eq!(all, json!({"a/ui": ui, "a/x": {"n": 1}, "a/y": {}}));
    }
}
