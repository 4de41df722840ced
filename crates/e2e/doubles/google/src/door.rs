//! Cloud Run's front door: checks the ID token of every request, and then forwards it to the
//! service behind it, or plays a fault.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, Response, StatusCode, header};

use crate::claims::{Verified, verify};
use crate::play::Play;
use crate::server::{Google, Running, listen, with_status};
use crate::service;
use crate::state::{Seen, State};
use crate::words::Words;

/// What is sent through it at most.
const LARGEST: usize = 64 * 1024 * 1024;

/// What it lets through, and where to.
#[derive(Debug, Clone, Default)]
pub struct DoorOptions {
    /// The audience that tokens must have; its own URL where none is given.
    pub audience: Option<String>,
    /// Who has `roles/run.invoker`; anyone where none is given.
    pub invokers: Option<Vec<String>>,
    /// The URL behind it, without a path; where there is none a small MCP server stands there.
    pub upstream: Option<String>,
    /// The host that it is behind the fake Google's proxy, as `demo-1.a.run.app`.
    pub host: Option<String>,
}

/// A front door that stands until it is dropped.
pub struct FrontDoor {
    inner: Arc<Inner>,
    address: SocketAddr,
    _running: Running,
}

struct Inner {
    google: Arc<State>,
    audience: String,
    options: DoorOptions,
    client: reqwest::Client,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    seen: Vec<(Seen, Result<Verified, String>)>,
    /// Played after the token was found good, and before it is looked at.
    inside: Vec<Play>,
    outside: Vec<Play>,
    /// Tokens that are not taken any more.
    barred: Vec<String>,
}

/// Where the workspace is built as a whole, reqwest has TLS and wants a provider for it.
fn client() -> reqwest::Client {
    rustls::crypto::ring::default_provider().install_default().ok();
    reqwest::Client::builder().no_proxy().build().expect("an HTTP client")
}

impl FrontDoor {
    /// Builds one in front of a service.
    pub fn start(google: &Google, options: DoorOptions) -> Self {
        let (listener, address) = listen();
        let own = match &options.host {
            Some(host) => {
                google.host(host, address);
                format!("https://{host}")
            }
            None => format!("http://{address}"),
        };
        let inner = Arc::new(Inner {
            google: Arc::clone(google.state()),
            audience: options.audience.clone().unwrap_or(own),
            options,
            client: client(),
            log: Mutex::default(),
        });
        let app = Router::new().fallback(enter).with_state(Arc::clone(&inner));
        let running = Running::start("fake-cloud-run", async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            axum::serve(listener, app).await.expect("serving");
        });
        Self { inner, address, _running: running }
    }

    /// Its URL, without a path.
    pub fn url(&self) -> String {
        match &self.inner.options.host {
            Some(host) => format!("https://{host}"),
            None => format!("http://{}", self.address),
        }
    }

    /// Plays this for the next request whose token is good.
    pub fn play(&self, play: Play) {
        self.inner.log().inside.push(play);
    }

    /// Plays this for the next request, whatever its token.
    pub fn play_outside(&self, play: Play) {
        self.inner.log().outside.push(play);
    }

    /// Takes none of the tokens that were good until now.
    pub fn bar_known_tokens(&self) {
        let mut log = self.inner.log();
        let known: Vec<String> =
            log.seen.iter().filter_map(|(seen, _)| token(&seen.headers_map())).collect();
        log.barred.extend(known);
    }

    /// Every request, with what was made of its token.
    pub fn seen(&self) -> Vec<(Seen, Result<Verified, String>)> {
        self.inner.log().seen.clone()
    }
}

impl Inner {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request may enter, and else the answer.
    fn check(&self, headers: &HeaderMap) -> (Result<Verified, String>, Option<Play>) {
        let Some(token) = token(headers) else {
            // Cloud Run takes a request without a token for one of nobody, who has no role.
            return (Err("there is no token".to_owned()), Some(forbidden()));
        };
        if self.log().barred.contains(&token) {
            return (Err("the token is barred".to_owned()), Some(unauthorized()));
        }
        match verify(&self.google, &token, &self.audience) {
            Err(reason) => (Err(reason.to_owned()), Some(unauthorized())),
            Ok(verified) => {
                let invokers = self.options.invokers.as_ref();
                let allowed = invokers.is_none_or(|all| all.contains(&verified.email));
                (Ok(verified), (!allowed).then(forbidden))
            }
        }
    }
}

impl Seen {
    fn headers_map(&self) -> HeaderMap {
        let pairs = self.headers.iter();
        pairs.filter_map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?))).collect()
    }
}

fn token(headers: &HeaderMap) -> Option<String> {
    let serverless = headers.get("x-serverless-authorization");
    let value = serverless.or_else(|| headers.get(header::AUTHORIZATION))?.to_str().ok()?;
    value.strip_prefix("Bearer ").map(str::to_owned)
}

fn unauthorized() -> Play {
    let sentence = "Your client does not have permission to the requested URL <code>/</code>.";
    Play::html(401, Words::page(401, "Unauthorized", sentence)).with(
        "www-authenticate",
        "Bearer error=\"invalid_token\" error_description=\"The access token could not be verified\"",
    )
}

fn forbidden() -> Play {
    let sentence =
        "Your client does not have permission to get URL <code>/</code> from this server.";
    Play::html(403, Words::page(403, "Forbidden", sentence))
}

async fn enter(Shared(inner): Shared<Arc<Inner>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, LARGEST).await.unwrap_or_default();
    let (verdict, refusal) = inner.check(&parts.headers);
    let seen = Seen::of(&parts, &body);
    let (inside, outside) = {
        let mut log = inner.log();
        log.seen.push((seen.clone(), verdict));
        let outside = (!log.outside.is_empty()).then(|| log.outside.remove(0));
        let may_enter = refusal.is_none() && outside.is_none() && !log.inside.is_empty();
        (may_enter.then(|| log.inside.remove(0)), outside)
    };
    for play in [outside, refusal, inside].into_iter().flatten() {
        if let Some(response) = play.perform(&seen).await {
            return response;
        }
    }
    match &inner.options.upstream {
        Some(upstream) => forward(&inner.client, upstream, parts, body).await,
        None => service::answer(&seen),
    }
}

/// Passes a request on, and its answer back as it comes.
async fn forward(
    client: &reqwest::Client,
    upstream: &str,
    parts: axum::http::request::Parts,
    body: Bytes,
) -> Response<Body> {
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut headers = parts.headers;
    headers.remove(header::HOST);
    headers.remove(header::CONTENT_LENGTH);
    let url = format!("{upstream}{path}");
    let sent = client.request(parts.method, url).headers(headers).body(body).send().await;
    let Ok(answer) = sent else {
        let page = Words::page(502, "Bad Gateway", "The service did not answer.");
        return with_status(Response::new(Body::from(page)), StatusCode::BAD_GATEWAY);
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = answer.status();
    for (name, value) in answer.headers() {
        if name != header::TRANSFER_ENCODING && name != header::CONNECTION {
            response.headers_mut().append(name, value.clone());
        }
    }
    *response.body_mut() = Body::from_stream(answer.bytes_stream());
    response
}
