//! Tasks at the endpoint of all servers: a request about a task goes to the server that its id
//! names. With sessions these are the tasks of 2025-11-25, without them those of the extension
//! `io.modelcontextprotocol/tasks`, which has no `tasks/list` and no `tasks/result`.

use bytes::Bytes;
use cofer_mcp::{Era, member};
use cofer_supervisor::ServerHandle;
use serde_json::json;

use super::Gateway;
use super::asker::{Asker, AskerEra};
use super::forward::forward;
use super::rpc::{Answer, Fault, text_member};
use super::serve::upstream;
use super::task_ids;

/// The pages of one server's list that are read, and the tasks that are listed.
const MAX_PAGES: usize = 100;
const MAX_TASKS: usize = 10_000;

pub(super) async fn serve(
    gateway: &Gateway,
    asker: &Asker,
    method: &str,
    params: &Bytes,
) -> Answer {
    match (&asker.era, method) {
        (AskerEra::Session(_), "tasks/list") => return list(gateway, asker).await,
        (AskerEra::Session(_), "tasks/get" | "tasks/result" | "tasks/cancel") => {}
        (AskerEra::Stateless(stateless), "tasks/get" | "tasks/update" | "tasks/cancel") => {
            stateless.abilities.require_tasks(method)?;
        }
        _ => return Err(Fault::no_method(method)),
    }
    let id = text_member(params, "taskId");
    let id = id.ok_or_else(|| Fault::bad_params("`taskId` is missing"))?;
    let unknown = || Fault::bad_params(format!("Task not found: {id}"));
    let (server, own) = task_ids::split(&id).ok_or_else(unknown)?;
    let handle = gateway.0.supervisor.get(server).ok_or_else(unknown)?;
    let upstream = upstream(gateway, asker, &handle).await?;
    let params = task_ids::with_id(params, own);
    let result = forward(&upstream, asker, method, Some(params)).await?;
    Ok(task_ids::join(result, server))
}

/// Whether a call can be answered with a task: the client asks for one, or says that it knows
/// them.
pub(super) fn may_create(asker: &Asker, params: &[u8]) -> bool {
    match &asker.era {
        AskerEra::Session(_) => member(params, "task").is_some(),
        AskerEra::Stateless(stateless) => stateless.abilities.has_tasks(),
    }
}

/// The tasks of all servers that list theirs, on one page. A server that fails is left out.
async fn list(gateway: &Gateway, asker: &Asker) -> Answer {
    let mut servers: Vec<ServerHandle> = gateway.0.supervisor.list();
    servers.retain(lists_tasks);
    if servers.is_empty() {
        return Err(Fault::no_method("tasks/list"));
    }
    servers.sort_by_cached_key(|handle| handle.spec().name.clone());
    let mut tasks: Vec<Bytes> = Vec::new();
    for handle in servers {
        if let Err(fault) = add_tasks(gateway, asker, &handle, &mut tasks).await {
            tracing::debug!(server = %handle.spec().name, code = fault.code(), "a server did not list its tasks");
        }
    }
    tasks.truncate(MAX_TASKS);
    Ok([br#"{"tasks":["#, &tasks.join(&b","[..])[..], b"]}"].concat().into())
}

fn lists_tasks(handle: &ServerHandle) -> bool {
    let declares = |handle: &ServerHandle| {
        handle.peer().is_some_and(|peer| peer.capabilities["tasks"].get("list").is_some())
    };
    handle.era() == Some(Era::Initialize) && declares(handle)
}

async fn add_tasks(
    gateway: &Gateway,
    asker: &Asker,
    handle: &ServerHandle,
    tasks: &mut Vec<Bytes>,
) -> Result<(), Fault> {
    let upstream = upstream(gateway, asker, handle).await?;
    let mut params = Bytes::from_static(b"{}");
    for _ in 0..MAX_PAGES {
        let page = forward(&upstream, asker, "tasks/list", Some(params)).await?;
        let listed = member(&page, "tasks").unwrap_or(b"[]");
        tasks.extend(task_ids::join_list(listed, handle.id()));
        match text_member(&page, "nextCursor") {
            Some(cursor) if tasks.len() < MAX_TASKS => {
                params = Bytes::from(json!({"cursor": cursor}).to_string());
            }
            _ => break,
        }
    }
    Ok(())
}
