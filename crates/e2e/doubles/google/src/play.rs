//! Faults that can be ordered.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use crate::state::Seen;

/// What is answered instead.
#[derive(Debug, Clone)]
pub enum Play {
    /// This answer.
    Answer {
        /// The status.
        status: u16,
        /// The headers.
        headers: Vec<(String, String)>,
        /// The content.
        body: String,
    },
    /// A refusal that sends back everything it was sent, as careless gateways do.
    Echo(u16),
    /// Nothing, for as long as the asker waits.
    Hang,
    /// The usual answer, later.
    Slow(Duration),
    /// The beginning of an answer, and then the end of the connection.
    Cut {
        /// The content's type.
        content_type: String,
        /// What is sent before the end.
        beginning: String,
    },
}

impl Play {
    /// This JSON.
    pub fn json(status: u16, body: &Value) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self::Answer { status, headers, body: body.to_string() }
    }

    /// This page.
    pub fn html(status: u16, body: impl Into<String>) -> Self {
        let headers = vec![("content-type".to_owned(), "text/html; charset=UTF-8".to_owned())];
        Self::Answer { status, headers, body: body.into() }
    }

    /// With one header more.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// The answer, none where the usual one follows.
    pub(crate) async fn perform(self, seen: &Seen) -> Option<Response<Body>> {
        match self {
            Self::Echo(status) => {
                let values: Vec<String> = seen.form().into_values().collect();
                let sent = format!("{} {:?}", values.join(" "), seen.header("authorization"));
                let body = json!({"error": "invalid_grant", "error_description": sent});
                Box::pin(Self::json(status, &body).perform(seen)).await
            }
            Self::Answer { status, headers, body } => {
                let mut response = Response::new(Body::from(body));
                *response.status_mut() = StatusCode::from_u16(status).expect("a status");
                for (name, value) in headers {
                    let name: axum::http::HeaderName = name.parse().expect("a header's name");
                    let value = HeaderValue::from_str(&value).expect("a header's value");
                    response.headers_mut().insert(name, value);
                }
                Some(response)
            }
            Self::Hang => std::future::pending().await,
            Self::Slow(pause) => {
                tokio::time::sleep(pause).await;
                None
            }
            Self::Cut { content_type, beginning } => Some(cut(&content_type, beginning)),
        }
    }
}

/// An answer whose stream fails after its beginning, which ends the connection.
fn cut(content_type: &str, beginning: String) -> Response<Body> {
    let (sender, body) = crate::server::channel();
    let mut response = Response::new(body);
    let kind = HeaderValue::from_str(content_type).expect("a content type");
    response.headers_mut().insert("content-type", kind);
    // Both fit into the channel before anyone reads.
    drop(sender.try_send(Ok(Bytes::from(beginning))));
    drop(sender.try_send(Err(std::io::Error::other("cut"))));
    response
}
