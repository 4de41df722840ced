//! The fake itself: one listener on loopback for everything, on a thread of its own, so that a
//! test may block; and the tunnel behind which it is every host of Google's.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::play::Play;
use crate::state::{Seen, State};
use crate::token::Reply;
use crate::tunnel::Tunnel;
use crate::{aws, iam, metadata, sts, token};

/// What is sent to it at most.
const LARGEST: usize = 1024 * 1024;

/// A fake Google that runs until it is dropped.
pub struct Google {
    state: Arc<State>,
    address: SocketAddr,
    tunnel: Tunnel,
    _running: Running,
}

impl Google {
    /// Starts one.
    pub fn start() -> Self {
        let state = Arc::new(State::new());
        let (listener, address) = listen();
        let app = Router::new().fallback(answer).with_state(Arc::clone(&state));
        let running = Running::start("fake-google", async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            axum::serve(listener, app).await.expect("serving");
        });
        let tunnel = Tunnel::start(address);
        Self { state, address, tunnel, _running: running }
    }

    pub(crate) fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// For `GCE_METADATA_HOST`.
    pub fn metadata_host(&self) -> String {
        self.address.to_string()
    }

    /// For `HTTPS_PROXY`: behind it, every host is the fake.
    pub fn proxy(&self) -> String {
        self.tunnel.url()
    }

    /// The certificate that signs the hosts behind the proxy, for `--cacert`.
    pub fn ca_pem(&self) -> &str {
        self.tunnel.ca_pem()
    }

    /// Behind the proxy, this host is somebody else on loopback.
    pub fn host(&self, name: &str, address: SocketAddr) {
        self.tunnel.host(name, address);
    }

    /// Where the keys are that check ID tokens.
    pub fn certs_url(&self) -> String {
        format!("{}/oauth2/v3/certs", self.url())
    }

    /// What it was asked until now.
    pub fn seen(&self) -> Vec<Seen> {
        self.state.known().seen.clone()
    }

    /// What it was asked at paths that end so.
    pub fn seen_at(&self, path_end: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.path.ends_with(path_end)).collect()
    }

    /// Forgets what it was asked until now.
    pub fn forget(&self) {
        self.state.known().seen.clear();
    }

    /// Plays this once, at the next path that ends so.
    pub fn play(&self, path_end: &str, play: Play) {
        self.state.play(path_end, Some(1), play);
    }

    /// Plays this at every path that ends so.
    pub fn play_always(&self, path_end: &str, play: Play) {
        self.state.play(path_end, None, play);
    }

    /// Plays nothing any more.
    pub fn play_nothing(&self) {
        self.state.play_nothing();
    }

    /// From now on ID tokens live so many seconds; they may be over when they are given.
    pub fn set_life(&self, seconds: i64) {
        self.state.known().policy.life = seconds;
    }

    /// From now on this refresh token is the good one.
    pub fn set_refresh_token(&self, token: &str) {
        token.clone_into(&mut self.state.known().policy.refresh_token);
    }

    /// From now on a person's login has these scopes.
    pub fn set_login_scopes(&self, scopes: &[&str]) {
        self.state.known().policy.login_scopes =
            scopes.iter().map(|scope| (*scope).to_owned()).collect();
    }

    /// From now on a person's login is one of this OAuth client.
    pub fn set_login_client(&self, client_id: &str) {
        client_id.clone_into(&mut self.state.known().policy.client_id);
    }

    /// From now on these alone may impersonate a service account.
    pub fn set_impersonators(&self, target: &str, callers: &[&str]) {
        let callers = callers.iter().map(|caller| (*caller).to_owned()).collect();
        self.state.known().policy.impersonators.insert(target.to_owned(), callers);
    }

    /// The machine has this service account, or none.
    pub fn set_machine(&self, email: Option<&str>) {
        self.state.known().policy.machine = email.map(str::to_owned);
    }

    /// The subject token that the pools take.
    pub fn subject_token(&self) -> String {
        self.state.policy().subject_token
    }

    /// An ID token, as the real one would give it.
    pub fn id_token(&self, email: &str, audience: &str) -> String {
        self.state.id_token(email, audience)
    }
}

async fn answer(Shared(state): Shared<Arc<State>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, LARGEST).await.unwrap_or_default();
    let seen = Seen::of(&parts, &body);
    state.known().seen.push(seen.clone());
    let play = state.next_play(&seen.path);
    if let Some(play) = play
        && let Some(response) = play.perform(&seen).await
    {
        return response;
    }
    route(&state, &seen)
}

fn route(state: &State, seen: &Seen) -> Response<Body> {
    let path = seen.path.as_str();
    match (seen.method.as_str(), path) {
        ("POST", "/token") => json_response(token::answer(state, seen)),
        ("POST", "/v1/token") => json_response(sts::exchange(state, seen)),
        ("POST", "/v1/oauthtoken") => json_response(sts::workforce(state, seen)),
        ("POST", _) if path.starts_with("/v1/projects/-/serviceAccounts/") => {
            json_response(iam::answer(state, seen))
        }
        ("GET", "/oauth2/v3/certs") => {
            json_response((StatusCode::OK, json!({"keys": [state.issuer.jwk()]})))
        }
        ("GET", "/subject") if seen.header("metadata") == Some("True") => {
            json_response((StatusCode::OK, json!({"access_token": state.policy().subject_token})))
        }
        (_, _) if path.starts_with("/latest/") => {
            let (status, text) = aws::answer(seen);
            with_status(Response::new(Body::from(text)), status)
        }
        ("GET", _) => metadata::answer(state, seen),
        _ => with_status(Response::new(Body::from("Not Found")), StatusCode::NOT_FOUND),
    }
}

fn json_response((status, body): Reply) -> Response<Body> {
    let mut response = Response::new(Body::from(text(&body)));
    let kind = HeaderValue::from_static("application/json; charset=utf-8");
    response.headers_mut().insert("content-type", kind);
    with_status(response, status)
}

fn text(body: &Value) -> String {
    serde_json::to_string_pretty(body).expect("JSON can be written")
}

pub(crate) fn with_status(mut response: Response<Body>, status: StatusCode) -> Response<Body> {
    *response.status_mut() = status;
    response
}

/// A listener on a free port of loopback.
pub(crate) fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.set_nonblocking(true).expect("a listener can wait");
    let address = listener.local_addr().expect("a listener has an address");
    (listener, address)
}

/// A body that is written while it is read.
pub(crate) fn channel() -> (mpsc::Sender<std::io::Result<Bytes>>, Body) {
    let (sender, mut receiver) = mpsc::channel(16);
    let stream = futures_util::stream::poll_fn(move |context| receiver.poll_recv(context));
    (sender, Body::from_stream(stream))
}

/// Something that runs on a thread of its own until it is dropped.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(name: &str, work: impl Future<Output = ()> + Send + 'static) -> Self {
        let (stop, stopped) = oneshot::channel();
        let body = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                tokio::select! {
                    () = work => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
        Self { stop: Some(stop), thread: Some(thread.expect("a thread")) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of its own has been printed already.
            drop(thread.join());
        }
    }
}
