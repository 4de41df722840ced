//! One server, whole: everything is passed on but what is about the session, and the tools that
//! the registration hides or adds.

use bytes::Bytes;
use cofer_mcp::{Era, member};
use cofer_model::ServerSpec;
use cofer_supervisor::ServerHandle;
use serde_json::value::RawValue;

use super::Gateway;
use super::asker::{Asker, AskerEra};
use super::forward::{complete, forward};
use super::level::Level;
use super::lists::{List, ListKind, Lists};
use super::resource_tools::{self, ResourceTool, resource_tools};
use super::rpc::{Answer, Fault, replace, text_member};
use super::serve::upstream;
use super::upstream::Upstream;

pub(super) async fn serve(
    gateway: &Gateway,
    asker: &Asker,
    handle: &ServerHandle,
    method: &str,
    params: Option<Bytes>,
) -> Answer {
    if let Some(list) = gateway.list_while_starting(asker, handle, method, params.as_ref()) {
        return Ok(list);
    }
    let upstream = upstream(gateway, asker, handle).await?;
    match method {
        "logging/setLevel" => Box::pin(set_level(gateway, asker, &upstream, params)).await,
        "resources/subscribe" | "resources/unsubscribe" => {
            Box::pin(watch_resource(gateway, asker, &upstream, method, params)).await
        }
        "tools/list" => Box::pin(list_tools(gateway, asker, &upstream, params)).await,
        "tools/call" => call_tool(gateway, asker, &upstream, params).await,
        _ => forward(&upstream, asker, method, params).await,
    }
}

/// How low the level of log messages is to be for this client.
async fn set_level(
    gateway: &Gateway,
    asker: &Asker,
    upstream: &Upstream,
    params: Option<Bytes>,
) -> Answer {
    let Some(session) = asker.session() else {
        return Err(Fault::no_method("logging/setLevel"));
    };
    let level = wanted_level(params.as_ref())?;
    if upstream.is_own() {
        session.set_level(level);
        return forward(upstream, asker, "logging/setLevel", params).await;
    }
    if !has_capability(upstream, "logging").await? {
        return Err(Fault::no_method("logging/setLevel"));
    }
    let watcher = gateway.watch(upstream.handle());
    watcher.set_level(session.opening.client.0, Some(level)).await?;
    session.set_level(level);
    Ok(Bytes::from_static(b"{}"))
}

pub(super) fn wanted_level(params: Option<&Bytes>) -> Result<Level, Fault> {
    let name = params.and_then(|params| text_member(params, "level"));
    let level = name.as_deref().and_then(Level::parse);
    level.ok_or_else(|| Fault::bad_params("`level` is no level of log messages"))
}

async fn has_capability(upstream: &Upstream, name: &str) -> Result<bool, Fault> {
    upstream.ready().await?;
    Ok(upstream.peer_when_known().await.is_some_and(|peer| peer.capabilities.get(name).is_some()))
}

pub(super) async fn watch_resource(
    gateway: &Gateway,
    asker: &Asker,
    upstream: &Upstream,
    method: &str,
    params: Option<Bytes>,
) -> Answer {
    let Some(session) = asker.session() else {
        return Err(Fault::no_method(method));
    };
    if upstream.is_own() && upstream.ready().await? == Era::Initialize {
        return forward(upstream, asker, method, params).await;
    }
    let uri = params.as_ref().and_then(|params| text_member(params, "uri"));
    let uri = uri.ok_or_else(|| Fault::bad_params("`uri` is missing"))?;
    let watcher = gateway.watch(upstream.handle());
    let client = session.opening.client.0;
    if method == "resources/subscribe" {
        watcher.subscribe(client, &uri).await
    } else {
        watcher.unsubscribe(client, &uri).await
    }
}

async fn list_tools(
    gateway: &Gateway,
    asker: &Asker,
    upstream: &Upstream,
    params: Option<Bytes>,
) -> Answer {
    let spec = upstream.handle().spec();
    let is_first = params.as_ref().is_none_or(|params| member(params, "cursor").is_none());
    let page = forward(upstream, asker, "tools/list", params).await;
    let page = match page {
        // A server without tools can still have resources that are offered as tools.
        Err(fault) if spec.include_resources && fault.code() == super::rpc::METHOD_NOT_FOUND => {
            empty_page(asker)
        }
        page => page?,
    };
    if matches!(asker.era, AskerEra::Stateless(_)) {
        gateway.learn_headers(upstream.id(), &page, is_first);
    }
    if !spec.filters_tools() && !spec.include_resources {
        return Ok(page);
    }
    Ok(offered(upstream, &spec, &page).await)
}

fn empty_page(asker: &Asker) -> Bytes {
    let empty = Bytes::from_static(br#"{"tools":[]}"#);
    if asker.session().is_some() { empty } else { complete("tools/list", &empty) }
}

/// The page without the tools that are hidden, and on the last page with those that are added.
async fn offered(upstream: &Upstream, spec: &ServerSpec, page: &Bytes) -> Bytes {
    let Some(list) = member(page, "tools") else {
        return page.clone();
    };
    let Ok(tools) = serde_json::from_slice::<Vec<&RawValue>>(list) else {
        return page.clone();
    };
    let is_offered = |tool: &&RawValue| {
        let name = text_member(tool.get().as_bytes(), "name").unwrap_or_default();
        spec.offers_tool(&name)
    };
    let mut kept: Vec<String> =
        tools.into_iter().filter(is_offered).map(|tool| tool.get().to_owned()).collect();
    if spec.include_resources && member(page, "nextCursor").is_none() {
        let added = added_tools(upstream).await.into_iter();
        kept.extend(added.filter(|tool| spec.offers_tool(&tool.name)).map(|tool| tool.definition));
    }
    replace(page, list, format!("[{}]", kept.join(",")).as_bytes())
}

async fn added_tools(upstream: &Upstream) -> Vec<ResourceTool> {
    let mut lists = Lists::default();
    for kind in [ListKind::Tools, ListKind::Resources, ListKind::Templates] {
        if let Ok(listing) = upstream.handle().list(kind.method(), kind.key()).await {
            lists.set(kind, List::read(kind, listing.items, Some(listing.charge)));
        }
    }
    resource_tools(&lists)
}

async fn call_tool(
    gateway: &Gateway,
    asker: &Asker,
    upstream: &Upstream,
    params: Option<Bytes>,
) -> Answer {
    let spec = upstream.handle().spec();
    if spec.filters_tools() || spec.include_resources {
        let name = params.as_ref().and_then(|params| text_member(params, "name"));
        let name = name.unwrap_or_default();
        if !spec.offers_tool(&name) {
            return Err(Fault::bad_params(format!("Unknown tool: {name}")));
        }
        if spec.include_resources && resource_tools::may_be(&name) {
            let added = Box::pin(added_tools(upstream)).await;
            if let Some(tool) = added.iter().find(|tool| tool.name == name) {
                let params = params.unwrap_or_default();
                return Box::pin(read_as_tool(asker, upstream, tool, &params)).await;
            }
        }
    }
    gateway.check_mirrored(asker, upstream.id(), params.as_deref())?;
    forward(upstream, asker, "tools/call", params).await
}

/// Reads a resource as if that were a tool.
pub(super) async fn read_as_tool(
    asker: &Asker,
    upstream: &Upstream,
    tool: &ResourceTool,
    params: &Bytes,
) -> Answer {
    let uri = resource_tools::wanted_uri(tool, params)?;
    let read = resource_tools::read_params(&uri, params);
    let read = forward(upstream, asker, "resources/read", Some(read)).await?;
    let result = resource_tools::as_tool_result(&read)?;
    Ok(if asker.session().is_some() { result } else { complete("tools/call", &result) })
}
