//! A door beside the daemon's for programs that cannot be told a token: it adds the token, and
//! changes nothing else but its own address to the daemon's.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, ORIGIN};
use axum::http::{Response, StatusCode};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::daemon::Daemon;
use crate::http::plain_client;

/// An open door. It closes when it is dropped.
pub struct OpenDoor {
    base: String,
    _task: JoinSet<()>,
}

struct Parts {
    /// `127.0.0.1:PORT`, here and at the daemon.
    here: String,
    there: String,
    token: HeaderValue,
    client: reqwest::Client,
}

impl OpenDoor {
    /// One to this daemon.
    pub async fn to(daemon: &Daemon) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let here = listener.local_addr().expect("it has an address").to_string();
        let token = format!("Bearer {}", daemon.token());
        let parts = Parts {
            here: here.clone(),
            there: daemon.address().to_owned(),
            token: HeaderValue::from_str(&token).expect("a token is plain text"),
            client: plain_client(),
        };
        let routes = Router::new().fallback(pass).with_state(Arc::new(parts));
        let mut task = JoinSet::new();
        task.spawn(async move { axum::serve(listener, routes).await.expect("it serves") });
        Self { base: format!("http://{here}"), _task: task }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn base(&self) -> &str {
        &self.base
    }
}

async fn pass(State(parts): State<Arc<Parts>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let url = format!("http://{}{path}", parts.there);
    let mut headers = head.headers;
    headers.insert(AUTHORIZATION, parts.token.clone());
    own_to_theirs(&mut headers, &parts);
    let body = reqwest::Body::wrap_stream(body.into_data_stream());
    let sent = parts.client.request(head.method, url).headers(headers).body(body).send().await;
    let Ok(answer) = sent else {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        return response;
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = answer.status();
    *response.headers_mut() = answer.headers().clone();
    *response.body_mut() = Body::from_stream(answer.bytes_stream());
    response
}

/// What names this door names the daemon's; a foreign name stays what it is.
fn own_to_theirs(headers: &mut HeaderMap, parts: &Parts) {
    for name in [HOST, ORIGIN] {
        let text = headers.get(&name).and_then(|value| value.to_str().ok());
        let changed = text.map(|text| text.replace(&parts.here, &parts.there));
        if let Some(value) = changed.and_then(|text| HeaderValue::from_str(&text).ok()) {
            headers.insert(name, value);
        }
    }
}
