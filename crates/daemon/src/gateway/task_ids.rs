//! Ids of tasks where all servers are joined: `SERVER_UUID.ID`, by which a request about a task
//! finds its server. They are rewritten in results and notifications, and back in requests.

use bytes::Bytes;
use cofer_mcp::member;
use cofer_model::ServerId;
use serde_json::Value;

use super::rpc::{replace, text_member};

const RELATED: &str = "io.modelcontextprotocol/related-task";

/// The server of a task, and the id that the task has there.
pub(super) fn split(joined: &str) -> Option<(ServerId, &str)> {
    let (server, own) = joined.split_once('.')?;
    Some((server.parse().ok()?, own))
}

/// The object with another `taskId` in it.
pub(super) fn with_id(json: &[u8], id: &str) -> Bytes {
    match member(json, "taskId") {
        Some(part) => replace(json, part, Value::from(id).to_string().as_bytes()),
        None => Bytes::copy_from_slice(json),
    }
}

/// The result of a request to `server`, or the params of a notification of it, with the joined
/// id: of a task (tasks/get, tasks/cancel, and every result of the tasks extension), of the task
/// that was created (2025-11-25), and of the task to which a result belongs.
pub(super) fn join(json: Bytes, server: ServerId) -> Bytes {
    let json = joined(&json, server).unwrap_or(json);
    let json = within(&json, &["task"], server).unwrap_or(json);
    within(&json, &["_meta", RELATED], server).unwrap_or(json)
}

/// A list of tasks with their joined ids, as the items of a JSON array.
pub(super) fn join_list(tasks: &[u8], server: ServerId) -> Vec<Bytes> {
    let tasks: Vec<&serde_json::value::RawValue> =
        serde_json::from_slice(tasks).unwrap_or_default();
    let task = |task: &&serde_json::value::RawValue| {
        let raw = Bytes::copy_from_slice(task.get().as_bytes());
        joined(&raw, server).unwrap_or(raw)
    };
    tasks.iter().map(task).collect()
}

fn joined(json: &[u8], server: ServerId) -> Option<Bytes> {
    let id = text_member(json, "taskId")?;
    Some(with_id(json, &format!("{server}.{id}")))
}

/// The object with the joined id in the object to which `path` leads.
fn within(json: &[u8], path: &[&str], server: ServerId) -> Option<Bytes> {
    let inner = path.iter().try_fold(json, |json, key| member(json, key))?;
    Some(replace(json, inner, &joined(inner, server)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn ids_lead_back_to_the_server() {
        let server = ServerId(Uuid::from_u128(7));
        let json = Bytes::from_static(br#"{"taskId":"a.b","n":1.0}"#);
        let there = join(json.clone(), server);
        let id = text_member(&there, "taskId").unwrap();
        assert_eq!(split(&id), Some((server, "a.b")));
        assert_eq!(with_id(&there, "a.b"), json);
        assert_eq!(split("a.b"), None);
        assert_eq!(split("a"), None);
    }

    #[test]
    fn every_place_of_an_id_is_rewritten() {
        let server = ServerId(Uuid::from_u128(7));
        for json in [
            r#"{"resultType":"task","taskId":"ID","status":"working"}"#,
            r#"{"task":{"taskId":"ID","ttl":1.0}}"#,
            r#"{"content":[],"_meta":{"x":1.0,"io.modelcontextprotocol/related-task":{"taskId":"ID"}}}"#,
        ] {
            let expected = json.replace("ID", &format!("{server}.ID"));
            assert_eq!(join(Bytes::from_static(json.as_bytes()), server), expected);
        }
        let plain = Bytes::from_static(br#"{"content":[{"taskId":"ID"}],"task":7}"#);
        assert_eq!(join(plain.clone(), server), plain);
        let list = br#"[{"taskId":"a"},{"taskId":"b"}]"#;
        assert_eq!(join_list(list, server)[1], format!(r#"{{"taskId":"{server}.b"}}"#));
    }
}
