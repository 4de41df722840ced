//! `sts.googleapis.com`: exchanges another cloud's token, and refreshes workforce logins.

use axum::http::StatusCode;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::aws;
use crate::files::{CLIENT_ID, CLIENT_SECRET, POOL, WORKFORCE_POOL};
use crate::state::{Seen, State};
use crate::token::{Reply, refuse};
use crate::words::Words;

const TOKEN_TYPES: [&str; 4] = [
    "urn:ietf:params:oauth:token-type:jwt",
    "urn:ietf:params:oauth:token-type:id_token",
    "urn:ietf:params:oauth:token-type:saml2",
    aws::TOKEN_TYPE,
];

/// `/v1/token`.
pub(crate) fn exchange(state: &State, seen: &Seen) -> Reply {
    let form = seen.form();
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let invalid = |error: &str, description: &str| refuse(400, Words::oauth(error, description));
    if field("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange" {
        return invalid("unsupported_grant_type", "Invalid grant type.");
    }
    if field("requested_token_type") != "urn:ietf:params:oauth:token-type:access_token"
        || field("scope").is_empty()
    {
        return invalid("invalid_request", "Invalid requested_token_type or scope.");
    }
    if !TOKEN_TYPES.contains(&field("subject_token_type")) {
        return invalid("invalid_request", "Invalid subject_token_type.");
    }
    let audience = field("audience");
    if audience != POOL && audience != WORKFORCE_POOL {
        return invalid(
            "invalid_target",
            "The target service indicated by the \"audience\" parameters is invalid.",
        );
    }
    if audience == WORKFORCE_POOL
        && basic(seen).is_none()
        && !field("options").contains("userProject")
    {
        return invalid("invalid_request", "A userProject or client authentication is required.");
    }
    let good = match field("subject_token_type") {
        aws::TOKEN_TYPE => aws::check_signed(field("subject_token"), audience),
        _ if field("subject_token") == state.policy().subject_token => Ok(()),
        _ => Err("The subject token is expired or not for this provider.".to_owned()),
    };
    if let Err(reason) = good {
        return invalid("invalid_grant", &reason);
    }
    let principal = format!("principal:{audience}/subject/workload");
    (StatusCode::OK, access(state, &principal))
}

/// `/v1/oauthtoken`.
pub(crate) fn workforce(state: &State, seen: &Seen) -> Reply {
    let form = seen.form();
    if basic(seen) != Some((CLIENT_ID.to_owned(), CLIENT_SECRET.to_owned())) {
        return refuse(401, Words::oauth("invalid_client", "The client is not known."));
    }
    if form.get("refresh_token") != Some(&state.policy().refresh_token) {
        return refuse(400, Words::revoked());
    }
    (StatusCode::OK, access(state, "principal://iam.googleapis.com/person"))
}

fn access(state: &State, principal: &str) -> Value {
    json!({
        "access_token": state.access_token(principal),
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "token_type": "Bearer",
        "expires_in": 3600,
    })
}

fn basic(seen: &Seen) -> Option<(String, String)> {
    let pair = seen.header("authorization")?.strip_prefix("Basic ")?;
    let pair = String::from_utf8(BASE64_STANDARD.decode(pair).ok()?).ok()?;
    let (user, password) = pair.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}
