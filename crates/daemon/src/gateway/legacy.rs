//! Clients of the older era: a session from `initialize` on, whose requests are answered as
//! `requests` says.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use cofer_mcp::{Incoming, Message, member};
use cofer_model::Sharing;
use uuid::Uuid;

use super::Gateway;
use super::asker::client_name;
use super::door::Door;
use super::http::{
    Accepts, Entrance, LAST_EVENT, Manner, Refusal, SESSION, VERSION, accepted, check_id, header,
    respond,
};
use super::open::{WITH_BATCHES, WITH_SESSIONS, initialized, negotiate};
use super::requests::{Asked, request, take_batch};
use super::rpc::{Answer, Fault, UNSUPPORTED_VERSION, text_member};
use super::running::Running;
use super::serve::{open_own, pass_on};
use super::session::{Opening, Session};
use super::stream::parse_event_id;

/// The most that a client may say of itself.
const MAX_INITIALIZE: usize = 64 * 1024;

/// A body with one message, or with several.
pub(super) async fn post(
    gateway: &Gateway,
    entrance: Entrance,
    incoming: Incoming,
) -> Result<Response, Refusal> {
    match incoming {
        Incoming::One(Message::Request { id, method, params }) if method == "initialize" => {
            let opened = Box::pin(initialize(gateway, &entrance, params)).await;
            opened
                .map(|(answer, session)| respond_opened(&id, answer, session, entrance.accepts))
                .map_err(|refusal| refusal.to(&id))
        }
        Incoming::One(message) => {
            check_id(&message)?;
            let session = find_session(gateway, &entrance.door, &entrance.headers);
            let session = session.map_err(|refusal| match &message {
                Message::Request { id, .. } => refusal.to(id),
                Message::Notification { .. } | Message::Response { .. } => refusal,
            })?;
            let manner = entrance.manner();
            drop(entrance);
            Ok(take(gateway, &session, message, manner).await)
        }
        Incoming::Batch(messages) => {
            let session = find_session(gateway, &entrance.door, &entrance.headers)?;
            if session.opening.version != WITH_BATCHES {
                return Err(Refusal::bad_request(format!(
                    "several messages in one body are for the revision {WITH_BATCHES}"
                )));
            }
            Box::pin(take_batch(gateway, &session, messages, entrance.manner())).await
        }
    }
}

/// A stream for what belongs to no request, or the rest of one that broke off.
pub(super) fn listen(
    gateway: &Gateway,
    door: &Door,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    Accepts::read_events(headers)?;
    let session = find_session(gateway, door, headers)?;
    let resumed = header(headers, &LAST_EVENT).and_then(parse_event_id);
    let known = resumed.and_then(|(id, last)| Some((session.stream(id)?, last)));
    let reader = match known {
        Some((stream, last)) => stream.read(Some(last), false),
        None => session.open_general().read(None, session.is_primed()),
    };
    Ok(reader.into_response(gateway.0.closing.clone()))
}

/// The client ends its session.
pub(super) fn delete(
    gateway: &Gateway,
    door: &Door,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    let session = find_session(gateway, door, headers)?;
    gateway.end_session(&session);
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn find_session(
    gateway: &Gateway,
    door: &Door,
    headers: &HeaderMap,
) -> Result<Arc<Session>, Refusal> {
    let Some(id) = header(headers, &SESSION) else {
        return Err(Refusal::bad_request(
            "`Mcp-Session-Id` is missing: `initialize` opens a session and names it",
        ));
    };
    if let Some(version) = header(headers, &VERSION)
        && !WITH_SESSIONS.contains(&version)
    {
        let message = format!("`MCP-Protocol-Version` {version} is not one that has sessions");
        let fault = Fault::new(UNSUPPORTED_VERSION, message);
        return Err(Refusal { status: StatusCode::BAD_REQUEST, fault, id: None });
    }
    let session = gateway.0.sessions.get(id).filter(|session| session.opening.door.is(door));
    session.ok_or_else(|| {
        Refusal::new(StatusCode::NOT_FOUND, "there is no such session here: `initialize` opens one")
    })
}

/// Opens a session: the answer to `initialize`, and the session where there is one.
async fn initialize(
    gateway: &Gateway,
    entrance: &Entrance,
    params: Option<Bytes>,
) -> Result<(Answer, Option<Arc<Session>>), Refusal> {
    // One that is over is forgotten by its client too.
    if entrance.header(&SESSION).is_some_and(|id| gateway.0.sessions.get(id).is_some()) {
        return Err(Refusal::bad_request("this session is open already"));
    }
    let params = params.unwrap_or_else(|| Bytes::from_static(b"{}"));
    if params.len() > MAX_INITIALIZE {
        let message = format!("the params of `initialize` have more than {MAX_INITIALIZE} bytes");
        return Err(Refusal::bad_request(message));
    }
    // Kept with the session, for which the whole body would be too much.
    let params = Bytes::copy_from_slice(&params);
    let Some(wanted) = text_member(&params, "protocolVersion") else {
        return Ok((Err(Fault::bad_params("`protocolVersion` is missing")), None));
    };
    if !gateway.0.sessions.has_room() {
        let Some(idlest) = gateway.0.sessions.idlest() else {
            let message = "too many sessions are open, and all of them are in use";
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message));
        };
        gateway.end_session(&idlest);
    }
    Ok(match open(gateway, &entrance.door, negotiate(&wanted), params).await {
        Ok((result, session)) => (Ok(result), Some(session)),
        Err(fault) => (Err(fault), None),
    })
}

async fn open(
    gateway: &Gateway,
    door: &Door,
    mut version: &'static str,
    initialize: Bytes,
) -> Result<(Bytes, Arc<Session>), Fault> {
    let client = gateway.new_client();
    let standing = Arc::new(Running::new(client));
    let mut own = HashMap::new();
    let mut result = None;
    if let Door::One(handle) = door
        && handle.spec().sharing == Sharing::PerSession
    {
        let upstream = open_own(gateway, handle, initialize.clone(), &standing).await?;
        // What it says of itself is said in the client's own era, or is said by us.
        let answer = upstream
            .answer()
            .and_then(|answer| Some((answer, text_member(answer, "protocolVersion")?)));
        if let Some((answer, spoken)) = answer {
            version = negotiate(&spoken);
            result = Some(answer.clone());
        }
        own.insert(handle.id(), upstream);
    }
    let result = match result {
        Some(result) => result,
        None => initialized(gateway, door, version).await?,
    };
    match door {
        Door::One(handle) => drop(gateway.watch(handle)),
        Door::All => gateway.want_catalogue(),
    }
    let upstreams: Vec<_> = own.values().cloned().collect();
    let opening = Opening {
        id: Uuid::new_v4().simple().to_string().into(),
        client,
        name: client_name(member(&initialize, "clientInfo")),
        door: door.clone(),
        version,
        initialize,
    };
    let session = Arc::new(Session::new(opening, own));
    for upstream in upstreams {
        pass_on(gateway, &session, &upstream, Arc::clone(&standing));
    }
    gateway.0.sessions.add(Arc::clone(&session));
    tracing::debug!(client = %session.opening.name, version, "a session began");
    Ok((result, session))
}

fn respond_opened(
    id: &Bytes,
    answer: Answer,
    session: Option<Arc<Session>>,
    accepts: Accepts,
) -> Response {
    let mut response = respond(id, answer, accepts);
    if let Some(session) = session
        && let Ok(name) = HeaderValue::from_str(&session.opening.id)
    {
        response.headers_mut().insert(SESSION, name);
    }
    response
}

/// One message of a session.
pub(super) async fn take(
    gateway: &Gateway,
    session: &Arc<Session>,
    message: Message,
    manner: Manner,
) -> Response {
    match message {
        Message::Request { id, method, params } if method == "ping" => {
            session.touch();
            drop(params);
            respond(&id, Ok(Bytes::from_static(b"{}")), manner.accepts)
        }
        Message::Request { id, method, params } => {
            let asked = Asked { id, method, params };
            request(gateway, session, asked, manner).await
        }
        Message::Notification { method, params } => {
            Box::pin(notified(session, &method, params.as_ref())).await;
            accepted()
        }
        Message::Response { id, outcome } => {
            Box::pin(session.answered(id, outcome)).await;
            accepted()
        }
    }
}

/// The client tells something.
async fn notified(session: &Arc<Session>, method: &str, params: Option<&Bytes>) {
    session.touch();
    match method {
        "notifications/cancelled" => {
            if let Some(id) = params.and_then(|params| member(params, "requestId")) {
                session.cancel(id);
            }
        }
        // Servers were told by us that the conversation is open.
        "notifications/initialized" => {}
        // That of a shared server is the daemon's to say: it has no roots of its own.
        _ => {
            let own: Vec<_> = session.own.lock().await.values().cloned().collect();
            if !own.is_empty() {
                for upstream in own {
                    upstream.notify(method, params);
                }
            } else if let Door::One(handle) = &session.opening.door
                && method != "notifications/roots/list_changed"
            {
                handle.notify(method, params);
            }
        }
    }
}
