//! Google's metadata server: answers only to those who say `Metadata-Flavor: Google`.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode};
use serde_json::json;

use crate::state::{Seen, State};

const ACCOUNTS: &str = "/computeMetadata/v1/instance/service-accounts";

pub(crate) fn answer(state: &State, seen: &Seen) -> Response<Body> {
    let mut response = content(state, seen);
    let headers = response.headers_mut();
    headers.insert("metadata-flavor", HeaderValue::from_static("Google"));
    headers.insert("server", HeaderValue::from_static("Metadata Server for VM"));
    response
}

fn content(state: &State, seen: &Seen) -> Response<Body> {
    let text = |status: StatusCode, kind: &'static str, body: String| {
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        response.headers_mut().insert("content-type", HeaderValue::from_static(kind));
        response
    };
    let page = |status, body: &str| text(status, "text/html; charset=UTF-8", body.to_owned());
    if seen.path == "/" {
        return text(StatusCode::OK, "application/text", "computeMetadata/\n".to_owned());
    }
    if seen.header("metadata-flavor") != Some("Google") {
        return page(
            StatusCode::FORBIDDEN,
            "<p>Your client does not have permission to get URL. Missing Metadata-Flavor:Google header.",
        );
    }
    if seen.header("x-forwarded-for").is_some() {
        return page(StatusCode::FORBIDDEN, "<p>Your client does not have permission to get URL.");
    }
    let Some(email) = state.policy().machine else {
        return page(StatusCode::NOT_FOUND, "<p>The requested URL was not found on this server.");
    };
    let query = |name: &str| seen.query.get(name).map(String::as_str).unwrap_or_default();
    match seen.path.strip_prefix(ACCOUNTS).unwrap_or_default() {
        "/default/identity" if query("audience").is_empty() => text(
            StatusCode::BAD_REQUEST,
            "text/plain",
            "non-empty audience parameter required".to_owned(),
        ),
        "/default/identity" => {
            text(StatusCode::OK, "text/html", state.id_token(&email, query("audience")))
        }
        "/default/token" => {
            let token = state.access_token(&email);
            let json = json!({"access_token": token, "expires_in": 3599, "token_type": "Bearer"});
            text(StatusCode::OK, "application/json", json.to_string())
        }
        "/default/email" => text(StatusCode::OK, "application/text", email),
        "/default/" => {
            let json = json!({"aliases": ["default"], "email": email, "scopes": []});
            text(StatusCode::OK, "application/json", json.to_string())
        }
        _ if seen.path == "/computeMetadata/v1/universe/universe-domain" => {
            text(StatusCode::OK, "application/text", "googleapis.com".to_owned())
        }
        _ if seen.path == "/computeMetadata/v1/project/project-id" => {
            text(StatusCode::OK, "application/text", "project".to_owned())
        }
        _ => page(StatusCode::NOT_FOUND, "<p>The requested URL was not found on this server."),
    }
}
