//! Clients of the newer era: each request says everything itself, in its `_meta` and in its
//! headers, and ends with its answer or with its connection.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use cofer_mcp::{Incoming, MODERN, Message, member};
use cofer_model::Sharing;
use futures_util::stream;
use memchr::memmem::Finder;
use tokio::time::{Instant, sleep, timeout};

use super::asker::{Asker, AskerEra, Stateless, client_name};
use super::capabilities::Abilities;
use super::door::Door;
use super::drive::{Drive, Step};
use super::headers::{check_headers, param_headers};
use super::held::{Held, subject};
use super::http::{
    Accepts, Entrance, Refusal, VERSION, accepted, check_id, event, header, respond,
};
use super::level::Level;
use super::listen;
use super::open::{WITH_SESSIONS, discovered, supported};
use super::rpc::{
    self, Answer, Fault, HEADER_MISMATCH, METHOD_NOT_FOUND, MISSING_CAPABILITY,
    UNSUPPORTED_VERSION, replace,
};
use super::running::{Inquiry, Related, Running};
use super::serve::{no_session, work};
use super::stream::events_response;
use super::{Gateway, http};

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
static VERSION_IN_META: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(META_VERSION));
const META_INFO: &str = "io.modelcontextprotocol/clientInfo";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// An answer that takes longer comes on a stream.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Questions that come so soon after one another are asked together.
const TOGETHER: Duration = Duration::from_millis(20);
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Methods of the older era that the newer one has no more.
const REMOVED: [&str; 5] =
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// Whether what came is of the newer era: it says so in its `_meta`, or names a revision that
/// has no sessions.
pub(super) fn is_modern(headers: &HeaderMap, incoming: &Incoming) -> bool {
    let Incoming::One(message) = incoming else {
        return false;
    };
    let params = match message {
        Message::Request { params, .. } | Message::Notification { params, .. } => params.as_ref(),
        Message::Response { .. } => None,
    };
    if params.is_some_and(|params| meta_version(params).is_some()) {
        return true;
    }
    let version = header(headers, &VERSION);
    let has_session = headers.contains_key(http::SESSION);
    version.is_some_and(|version| !WITH_SESSIONS.contains(&version)) && !has_session
}

/// The revision that a request names for itself.
fn meta_version(params: &Bytes) -> Option<&[u8]> {
    // Most requests name none; a search is much cheaper than a walk.
    VERSION_IN_META.find(params)?;
    member(member(params, "_meta")?, META_VERSION)
}

pub(super) async fn post(
    gateway: &Gateway,
    entrance: Entrance,
    incoming: Incoming,
) -> Result<Response, Refusal> {
    let Incoming::One(message) = incoming else {
        return Err(Refusal::bad_request(format!("{MODERN} has no batches")));
    };
    check_id(&message)?;
    match message {
        Message::Request { id, method, params } => {
            let request = Request { id, method, params };
            let served = serve(gateway, &entrance, request).await;
            Ok(served.unwrap_or_else(|(id, fault)| respond_fault(&id, fault)))
        }
        // What the client does with its own request it says by closing its connection.
        Message::Notification { .. } => Ok(accepted()),
        Message::Response { .. } => {
            Err(Refusal::bad_request(format!("clients of {MODERN} send no responses")))
        }
    }
}

pub(super) struct Request {
    pub(super) id: Bytes,
    pub(super) method: String,
    pub(super) params: Option<Bytes>,
}

async fn serve(
    gateway: &Gateway,
    entrance: &Entrance,
    request: Request,
) -> Result<Response, (Bytes, Fault)> {
    let stateless = match check(gateway, entrance, &request) {
        Ok(checked) => checked,
        Err(fault) => return Err((request.id, fault)),
    };
    match request.method.as_str() {
        "server/discover" => {
            let answer = discovered(gateway, &entrance.door).await;
            Ok(respond(&request.id, answer.map_err(with_status), entrance.accepts))
        }
        "subscriptions/listen" => listen::open(gateway, entrance, &request, stateless.client.0)
            .await
            .map_err(|fault| (request.id, fault)),
        method if REMOVED.contains(&method) => {
            let fault = with_status(Fault::no_method(method));
            Err((request.id, fault))
        }
        _ => run(gateway, entrance, request, stateless).await,
    }
}

/// Looks whether a request says everything that it has to, and says it twice where it must.
fn check(gateway: &Gateway, entrance: &Entrance, request: &Request) -> Result<Stateless, Fault> {
    let bad = |fault: Fault| fault.status(StatusCode::BAD_REQUEST);
    let Some(named) = entrance.header(&VERSION) else {
        return Err(bad(Fault::new(
            HEADER_MISMATCH,
            "the header `MCP-Protocol-Version` is missing",
        )));
    };
    let meta = request.params.as_ref().and_then(|params| member(params, "_meta"));
    let meta = meta.filter(|meta| meta.starts_with(b"{")).unwrap_or(b"{}");
    let text = |key| member(meta, key).and_then(|text| serde_json::from_slice::<String>(text).ok());
    let missing = |key| bad(Fault::bad_params(format!("`_meta` has no {key}")));
    let version = text(META_VERSION).ok_or_else(|| missing(META_VERSION))?;
    let capabilities = member(meta, META_CAPABILITIES).filter(|value| value.starts_with(b"{"));
    let capabilities = capabilities.ok_or_else(|| missing(META_CAPABILITIES))?;
    if version != named {
        let message = format!("`MCP-Protocol-Version` is {named}, and `_meta` says {version}");
        return Err(bad(Fault::new(HEADER_MISMATCH, message)));
    }
    if version != MODERN {
        let data = serde_json::json!({"supported": supported(), "requested": version});
        let fault = Fault::with(UNSUPPORTED_VERSION, "Unsupported protocol version", Some(data));
        return Err(bad(fault));
    }
    check_door(&entrance.door).map_err(bad)?;
    check_headers(&entrance.headers, &request.method, request.params.as_ref()).map_err(bad)?;
    let level = text(META_LEVEL);
    if level.as_deref().is_some_and(|level| Level::parse(level).is_none()) {
        return Err(bad(Fault::bad_params("the log level in `_meta` is none")));
    }
    Ok(Stateless {
        client: gateway.new_client(),
        abilities: Abilities::read(capabilities),
        level: level.as_deref().and_then(Level::parse),
        headers: param_headers(&entrance.headers),
    })
}

/// A server with a process for each session is there for clients that have sessions: whoever
/// speaks an earlier revision too goes on in that.
fn check_door(door: &Door) -> Result<(), Fault> {
    let Door::One(handle) = door else {
        return Ok(());
    };
    let spec = handle.spec();
    if spec.sharing != Sharing::PerSession {
        return Ok(());
    }
    let data = serde_json::json!({"supported": WITH_SESSIONS, "requested": MODERN});
    Err(Fault::with(UNSUPPORTED_VERSION, no_session(&spec.name), Some(data)))
}

/// The HTTP status that the newer era gives to an error.
fn with_status(fault: Fault) -> Fault {
    match fault.code() {
        METHOD_NOT_FOUND => fault.status(StatusCode::NOT_FOUND),
        HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION => {
            fault.status(StatusCode::BAD_REQUEST)
        }
        _ => fault,
    }
}

fn respond_fault(id: &Bytes, fault: Fault) -> Response {
    respond(id, Err(fault), Accepts { json: true, events: true })
}

/// A request that a server works on.
async fn run(
    gateway: &Gateway,
    entrance: &Entrance,
    request: Request,
    stateless: Stateless,
) -> Result<Response, (Bytes, Fault)> {
    let resumed = gateway.0.held.resume(&entrance.door, &request.method, request.params.as_ref());
    let held = match resumed {
        Ok(held) => held,
        Err(fault) => return Err((request.id, fault)),
    };
    let meta = request.params.as_ref().and_then(|params| member(params, "_meta"));
    let mut call = Call {
        gateway: gateway.clone(),
        id: request.id,
        door: entrance.door.clone(),
        method: request.method,
        name: subject(request.params.as_ref()),
        abilities: stateless.abilities,
        level: stateless.level,
        token: meta.and_then(|meta| member(meta, "progressToken")).map(Bytes::copy_from_slice),
        asked: Vec::new(),
        stage: Stage::Over,
    };
    match held {
        Some(mut held) => {
            call.stage = if held.answered(request.params.as_ref()).await {
                Stage::Driven(held.drive)
            } else {
                Stage::Answered(Ok(gateway.0.held.hold(held)))
            };
        }
        None => {
            let running = Arc::new(Running::new(stateless.client));
            let asker = Asker {
                name: client_name(meta.and_then(|meta| member(meta, META_INFO))),
                door: entrance.door.clone(),
                running: Arc::clone(&running),
                era: AskerEra::Stateless(Arc::new(stateless)),
                parent: entrance.parent(),
            };
            let work = work(gateway, asker, call.method.clone(), request.params);
            call.stage = Stage::Driven(Drive::new(work, running));
        }
    }
    Ok(answer(call, entrance.accepts).await)
}

/// Answers as JSON where the answer comes at once and alone, and else with a stream that owns
/// the call: whoever closes it cancels the call.
async fn answer(mut call: Call, accepts: Accepts) -> Response {
    let first = if accepts.json {
        match at_once(&mut call, accepts).await {
            AtOnce::Response(response) => return response,
            AtOnce::Begun(message) => message.map(event),
        }
    } else {
        None
    };
    let events = stream::unfold((call, first), |(mut call, first)| async move {
        let event = match first {
            Some(first) => first,
            None => call.next_event().await?,
        };
        Some((Ok::<_, std::convert::Infallible>(event), (call, None)))
    });
    events_response(Body::from_stream(events))
}

enum AtOnce {
    Response(Response),
    /// It takes longer, or something was said before the answer.
    Begun(Option<Bytes>),
}

async fn at_once(call: &mut Call, accepts: Accepts) -> AtOnce {
    let ticker = call.gateway.0.ticker.clone();
    loop {
        let next = tokio::select! {
            biased;
            next = call.next() => next,
            () = ticker.after(AT_ONCE), if accepts.events => return AtOnce::Begun(None),
        };
        match next {
            Some(Next::Answer(answer)) => {
                let answer = answer.map_err(with_status);
                return AtOnce::Response(respond(&call.id, answer, accepts));
            }
            Some(Next::Message(message)) if accepts.events => return AtOnce::Begun(Some(message)),
            Some(Next::Message(_)) => {}
            None => return AtOnce::Response(accepted()),
        }
    }
}

/// A call of one client, with what its answers need.
struct Call {
    gateway: Gateway,
    id: Bytes,
    door: Door,
    method: String,
    name: Option<String>,
    abilities: Abilities,
    level: Option<Level>,
    /// The progress token of this try, as JSON.
    token: Option<Bytes>,
    /// What the server asks and the client was not told yet.
    asked: Vec<Inquiry>,
    stage: Stage,
}

enum Stage {
    Driven(Drive),
    Answered(Answer),
    Over,
}

enum Next {
    Message(Bytes),
    Answer(Answer),
}

impl Call {
    /// The next event; none after the answer.
    async fn next_event(&mut self) -> Option<Bytes> {
        match timeout(KEEP_ALIVE, self.next()).await {
            Ok(next) => Some(event(match next? {
                Next::Message(message) => message,
                Next::Answer(answer) => rpc::response(&self.id, &answer),
            })),
            Err(_) => Some(Bytes::from_static(b":\n\n")),
        }
    }

    /// May be dropped and called again without loss.
    async fn next(&mut self) -> Option<Next> {
        loop {
            if !self.asked.is_empty() {
                sleep(TOGETHER).await;
                return Some(Next::Answer(self.wants_input()));
            }
            let step = match &mut self.stage {
                Stage::Driven(drive) => drive.step().await,
                Stage::Answered(_) => {
                    let Stage::Answered(answer) = std::mem::replace(&mut self.stage, Stage::Over)
                    else {
                        return None;
                    };
                    return Some(Next::Answer(answer));
                }
                Stage::Over => return None,
            };
            match step {
                Step::Related(Related::Asked(inquiry)) if self.answers_itself(&inquiry) => {
                    if let Some(answer) = inquiry.default_answer() {
                        inquiry.answer(Ok(answer)).await;
                    }
                }
                Step::Related(related) => {
                    if let Some(message) = self.related(related) {
                        return Some(Next::Message(message));
                    }
                }
                Step::Done(answer) => self.stage = Stage::Answered(answer),
                Step::Cancelled => self.stage = Stage::Over,
            }
        }
    }

    /// Whether the client cannot be asked this, and the answer is known without it.
    fn answers_itself(&self, inquiry: &Inquiry) -> bool {
        let (method, params) = (&inquiry.method, inquiry.params.as_deref());
        inquiry.default_answer().is_some()
            && self.abilities.lacks_capability(method, params).is_some()
    }

    fn related(&mut self, related: Related) -> Option<Bytes> {
        match related {
            Related::Progressed(params) => {
                let token = self.token.as_ref()?;
                let part = member(&params, "progressToken")?;
                let params = replace(&params, part, token);
                Some(rpc::notification("notifications/progress", Some(&params)))
            }
            Related::Told { method, params } => {
                let wanted = self.level?;
                let level = Level::of_message(params.as_ref());
                let is_heard = level.is_none_or(|level| level >= wanted);
                is_heard.then(|| rpc::notification(&method, params.as_deref()))
            }
            Related::Asked(inquiry) => {
                self.asked.push(inquiry);
                None
            }
            Related::Withdrawn(origin) => {
                self.asked.retain(|inquiry| inquiry.origin != Some(origin));
                None
            }
        }
    }

    /// The server asks: the call is held, and its answer for now is what is asked.
    fn wants_input(&mut self) -> Answer {
        let Stage::Driven(drive) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Err(Fault::new(rpc::INTERNAL, "the call has ended"));
        };
        let mut inquiries = std::mem::take(&mut self.asked);
        inquiries.extend(drive.running().take_questions());
        let (known, inquiries): (Vec<_>, Vec<_>) =
            inquiries.into_iter().partition(|inquiry| self.answers_itself(inquiry));
        for inquiry in known {
            if let Some(answer) = inquiry.default_answer() {
                // In a task: the server may not read its stdin now.
                self.gateway.0.tasks.spawn(inquiry.answer(Ok(answer)));
            }
        }
        for inquiry in &inquiries {
            let (method, params) = (&inquiry.method, inquiry.params.as_deref());
            if let Some(fault) = self.abilities.lacks_capability(method, params) {
                return Err(fault);
            }
        }
        let inquiries = inquiries.into_iter().enumerate();
        let inquiries = inquiries.map(|(at, inquiry)| (format!("q{}", at + 1), inquiry)).collect();
        Ok(self.gateway.0.held.hold(Held {
            drive,
            door: self.door.clone(),
            method: self.method.clone(),
            name: self.name.clone(),
            inquiries,
            since: Instant::now(),
        }))
    }
}
