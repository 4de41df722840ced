//! All servers as one: lists come from the catalogue, and everything else goes to the server to
//! which the name or the URI in it leads, with the name that it has there.

use bytes::Bytes;
use cofer_mcp::member;
use cofer_model::{ServerId, may_be_joined_of};
use cofer_supervisor::ServerHandle;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::Gateway;
use super::asker::Asker;
use super::forward::{complete, forward};
use super::joined::RoutedTool;
use super::lists::ListKind;
use super::rpc::{Answer, Fault, INVALID_PARAMS, RESOURCE_NOT_FOUND, replace, text_member};
use super::serve::upstream;
use super::serve_one::{read_as_tool, wanted_level, watch_resource};
use super::{serve_tasks, task_ids, ui_uris};

pub(super) async fn serve(
    gateway: &Gateway,
    asker: &Asker,
    method: &str,
    params: Option<Bytes>,
) -> Answer {
    if let Some(kind) = ListKind::of_method(method) {
        return list(gateway, asker, kind).await;
    }
    let params = params.unwrap_or_else(|| Bytes::from_static(b"{}"));
    match method {
        "tools/call" => call_tool(gateway, asker, &params).await,
        "prompts/get" => get_prompt(gateway, asker, &params).await,
        "resources/read" => read_resource(gateway, asker, &params).await,
        "resources/subscribe" | "resources/unsubscribe" => {
            let (handle, params) = one_owner(gateway, asker, &params).await?;
            let upstream = upstream(gateway, asker, &handle).await?;
            watch_resource(gateway, asker, &upstream, method, Some(params)).await
        }
        "completion/complete" => complete_argument(gateway, asker, &params).await,
        "logging/setLevel" => set_level(gateway, asker, &params).await,
        method if method.starts_with("tasks/") => {
            serve_tasks::serve(gateway, asker, method, &params).await
        }
        _ => Err(Fault::no_method(method)),
    }
}

/// A whole list, on one page.
async fn list(gateway: &Gateway, asker: &Asker, kind: ListKind) -> Answer {
    gateway.want_catalogue();
    let joined = gateway.catalogue().complete().await;
    let result = joined.result(kind);
    Ok(if asker.session().is_some() { result.clone() } else { complete(kind.method(), result) })
}

async fn call_tool(gateway: &Gateway, asker: &Asker, params: &Bytes) -> Answer {
    let name = name_in(params)?;
    let mut joined = gateway.catalogue().now();
    if joined.tool(&name).is_none() {
        gateway.want_catalogue();
        joined = gateway.catalogue().complete_for(|prefix| may_be_joined_of(prefix, &name)).await;
    }
    let Some(route) = joined.tool(&name) else {
        return Err(Fault::bad_params(format!("Unknown tool: {name}")));
    };
    let handle = server(gateway, route.server)?;
    let upstream = upstream(gateway, asker, &handle).await?;
    match &route.tool {
        RoutedTool::Own(own) => {
            let params = renamed(params, own);
            gateway.check_mirrored(asker, route.server, Some(&params))?;
            let may_create_task = serve_tasks::may_create(asker, &params);
            let result = forward(&upstream, asker, "tools/call", Some(params)).await?;
            Ok(if may_create_task { task_ids::join(result, route.server) } else { result })
        }
        RoutedTool::Resource(tool) => read_as_tool(asker, &upstream, tool, params).await,
    }
}

async fn get_prompt(gateway: &Gateway, asker: &Asker, params: &Bytes) -> Answer {
    let name = name_in(params)?;
    gateway.want_catalogue();
    let joined = gateway.catalogue().complete().await;
    let Some((id, own)) = joined.prompt(&name) else {
        return Err(Fault::bad_params(format!("Unknown prompt: {name}")));
    };
    let upstream = upstream(gateway, asker, &server(gateway, *id)?).await?;
    forward(&upstream, asker, "prompts/get", Some(renamed(params, own))).await
}

/// Reads a resource at the server that knows it. Where none listed it, those that have others
/// of its scheme are asked in turn.
async fn read_resource(gateway: &Gateway, asker: &Asker, params: &Bytes) -> Answer {
    let uri = uri_in(params)?;
    let (owners, own_uri) = owners(gateway, &uri).await;
    let is_joined = own_uri != uri;
    let params = located(params, &own_uri);
    let mut last = not_found(asker, &uri);
    for handle in owners {
        let read = match upstream(gateway, asker, &handle).await {
            Ok(upstream) => forward(&upstream, asker, "resources/read", Some(params.clone())).await,
            Err(fault) => Err(fault),
        };
        match read {
            Ok(result) if is_joined => {
                return Ok(ui_uris::join_contents(&result, handle.spec().joined_prefix()));
            }
            Ok(result) => return Ok(result),
            Err(fault) => last = fault,
        }
    }
    Err(last)
}

/// The server of a resource, and the params with the URI that it has there.
async fn one_owner(
    gateway: &Gateway,
    asker: &Asker,
    params: &Bytes,
) -> Result<(ServerHandle, Bytes), Fault> {
    let uri = uri_in(params)?;
    let (owners, own_uri) = owners(gateway, &uri).await;
    let owner = owners.into_iter().next().ok_or_else(|| not_found(asker, &uri))?;
    Ok((owner, located(params, &own_uri)))
}

/// The servers that may know a resource, and the URI that it has there.
async fn owners(gateway: &Gateway, uri: &str) -> (Vec<ServerHandle>, String) {
    gateway.want_catalogue();
    let joined = gateway.catalogue().complete().await;
    let owners = joined.resource_owners(uri).into_iter();
    (owners.filter_map(|id| server(gateway, id).ok()).collect(), joined.own_uri(uri))
}

/// The object with another `uri` in it.
fn located(json: &Bytes, uri: &str) -> Bytes {
    match member(json, "uri") {
        Some(part) => replace(json, part, Value::from(uri).to_string().as_bytes()),
        None => json.clone(),
    }
}

fn not_found(asker: &Asker, uri: &str) -> Fault {
    let code = if asker.session().is_some() { RESOURCE_NOT_FOUND } else { INVALID_PARAMS };
    Fault::with(code, "Resource not found", Some(json!({"uri": uri})))
}

/// Completes an argument of a prompt or of a resource's template.
async fn complete_argument(gateway: &Gateway, asker: &Asker, params: &Bytes) -> Answer {
    gateway.want_catalogue();
    let joined = gateway.catalogue().complete().await;
    let unknown = || Fault::bad_params("`ref` leads to nothing that is known here");
    let reference = member(params, "ref").ok_or_else(unknown)?;
    let (id, params) = match text_member(reference, "type").as_deref() {
        Some("ref/prompt") => {
            let name = text_member(reference, "name").ok_or_else(unknown)?;
            let (id, own) = joined.prompt(&name).ok_or_else(unknown)?;
            (*id, replace(params, reference, &renamed(reference, own)))
        }
        Some("ref/resource") => {
            let uri = text_member(reference, "uri").ok_or_else(unknown)?;
            let owner =
                joined.template(&uri).or_else(|| joined.resource_owners(&uri).first().copied());
            let reference_there =
                located(&Bytes::copy_from_slice(reference), &joined.own_uri(&uri));
            (owner.ok_or_else(unknown)?, replace(params, reference, &reference_there))
        }
        _ => return Err(unknown()),
    };
    let upstream = upstream(gateway, asker, &server(gateway, id)?).await?;
    forward(&upstream, asker, "completion/complete", Some(params)).await
}

/// Every server that writes log messages is asked for this level.
async fn set_level(gateway: &Gateway, asker: &Asker, params: &Bytes) -> Answer {
    let Some(session) = asker.session() else {
        return Err(Fault::no_method("logging/setLevel"));
    };
    let level = wanted_level(Some(params))?;
    session.set_level(level);
    let writes_logs = |handle: &ServerHandle| {
        handle.peer().is_some_and(|peer| peer.capabilities.get("logging").is_some())
    };
    let handles = gateway.0.supervisor.list().into_iter().filter(writes_logs);
    let client = session.opening.client.0;
    let asked = handles.map(|handle| async move {
        if let Err(fault) = gateway.watch(&handle).set_level(client, Some(level)).await {
            tracing::debug!(server = %handle.spec().name, code = fault.code(), "a server did not take a log level");
        }
    });
    join_all(asked).await;
    Ok(Bytes::from_static(b"{}"))
}

fn server(gateway: &Gateway, id: ServerId) -> Result<ServerHandle, Fault> {
    let gone = || Fault::bad_params("the server that this leads to is not registered any more");
    gateway.0.supervisor.get(id).ok_or_else(gone)
}

/// The object with another `name` in it.
fn renamed(json: &[u8], name: &str) -> Bytes {
    match member(json, "name") {
        Some(part) => replace(json, part, Value::from(name).to_string().as_bytes()),
        None => Bytes::copy_from_slice(json),
    }
}

fn name_in(params: &[u8]) -> Result<String, Fault> {
    text_member(params, "name").ok_or_else(|| Fault::bad_params("`name` is missing"))
}

fn uri_in(params: &[u8]) -> Result<String, Fault> {
    text_member(params, "uri").ok_or_else(|| Fault::bad_params("`uri` is missing"))
}
