//! The same server over Streamable HTTP: one message in a POST, its answer in the body. It gives
//! out a session at the handshake and wants it back, as servers that keep state do.

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::options::{Era, Options};
use crate::order::Order;
use crate::server::Server;
use crate::wire::Incoming;

const SESSION: &str = "mcp-session-id";

struct Site {
    server: Arc<Server>,
    /// The one session this process gives out.
    session: String,
}

/// Serves until the process is ended.
pub(crate) async fn serve(port: u16, options: Arc<Options>, order: Order) {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await;
    let listener = listener.unwrap_or_else(|error| panic!("port {port}: {error}"));
    let session = uuid::Uuid::new_v4().to_string();
    let site = Arc::new(Site { server: Arc::new(Server::new(options, order)), session });
    let routes = Router::new().route("/mcp", any(handle)).with_state(site);
    crate::say(&format!("wayward: listening on port {port}"));
    axum::serve(listener, routes).await.expect("a listener that is bound goes on");
}

async fn handle(
    State(site): State<Arc<Site>>,
    method: axum::http::Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match method.as_str() {
        "POST" => site.post(&headers, &body).await,
        "DELETE" => StatusCode::OK.into_response(),
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

impl Site {
    async fn post(&self, headers: &HeaderMap, body: &[u8]) -> Response {
        let Ok(message) = serde_json::from_slice::<Incoming>(body) else {
            return (StatusCode::BAD_REQUEST, "not a JSON-RPC message").into_response();
        };
        let method = message.method.unwrap_or_default();
        if let Some(status) = self.refuse(&method, headers) {
            return (status, "no such session").into_response();
        }
        let Some(id) = message.id else {
            // What it would start is for a server on pipes.
            let mut unused = JoinSet::new();
            self.server.notification(&method, message.params.as_deref(), &mut unused);
            return StatusCode::ACCEPTED.into_response();
        };
        let begins = method == "initialize";
        let reply = self.server.request(&id, method, message.params).await;
        let Some(message) = reply.message(&id) else {
            return StatusCode::ACCEPTED.into_response();
        };
        let mut response = self.body(message);
        if begins {
            let session = self.session.parse().expect("a UUID fits a header");
            response.headers_mut().insert(SESSION, session);
        }
        response
    }

    /// A request of the older era needs the session, but for the one that opens it.
    fn refuse(&self, method: &str, headers: &HeaderMap) -> Option<StatusCode> {
        if method == "initialize" || self.server.options.era != Era::Legacy {
            return None;
        }
        match headers.get(SESSION) {
            None => Some(StatusCode::BAD_REQUEST),
            Some(session) if session.as_bytes() == self.session.as_bytes() => None,
            Some(_) => Some(StatusCode::NOT_FOUND),
        }
    }

    fn body(&self, message: String) -> Response {
        if self.server.options.http_stream {
            let event = format!("event: message\ndata: {message}\n\n");
            ([(header::CONTENT_TYPE, "text/event-stream")], event).into_response()
        } else {
            ([(header::CONTENT_TYPE, "application/json")], message).into_response()
        }
    }
}
