//! `oauth2.googleapis.com/token`: assertions of service accounts, and people's refresh tokens.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::files::{CLIENT_SECRET, SERVICE_ACCOUNT};
use crate::keys;
use crate::state::{Seen, State, now};
use crate::words::Words;

/// An answer: status and JSON.
pub(crate) type Reply = (StatusCode, Value);

const ENDPOINT: &str = "https://oauth2.googleapis.com/token";

pub(crate) fn answer(state: &State, seen: &Seen) -> Reply {
    let form = seen.form();
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    if seen.header("content-type") != Some("application/x-www-form-urlencoded") {
        return refuse(400, Words::oauth("invalid_request", "Required parameter is missing"));
    }
    match field("grant_type") {
        "urn:ietf:params:oauth:grant-type:jwt-bearer" => assertion(state, field("assertion")),
        "refresh_token" => {
            refresh(state, field("client_id"), field("client_secret"), field("refresh_token"))
        }
        other => refuse(
            400,
            Words::oauth("unsupported_grant_type", &format!("Invalid grant_type: {other}")),
        ),
    }
}

fn assertion(state: &State, assertion: &str) -> Reply {
    let invalid = |description: &str| refuse(400, Words::oauth("invalid_grant", description));
    let Some(claims) = keys::claims(assertion) else {
        return refuse(400, Words::oauth("invalid_request", "Bad JWT"));
    };
    if claims["iss"] != SERVICE_ACCOUNT {
        return invalid("Invalid grant: account not found");
    }
    if !state.account.signed(assertion) {
        return invalid("Invalid JWT Signature.");
    }
    if claims["aud"] != ENDPOINT {
        return invalid("Invalid JWT: Failed audience check.");
    }
    let time = |name: &str| claims[name].as_u64().unwrap_or_default();
    let (iat, exp) = (time("iat"), time("exp"));
    if iat > now() + 300 || exp + 300 < now() || exp.saturating_sub(iat) > 3600 || exp <= iat {
        return refuse(400, Words::wrong_time());
    }
    match (claims["target_audience"].as_str(), claims["scope"].as_str()) {
        (Some(audience), None) => {
            (StatusCode::OK, json!({"id_token": state.id_token(SERVICE_ACCOUNT, audience)}))
        }
        (None, Some(_)) => {
            let token = state.access_token(SERVICE_ACCOUNT);
            let body = json!({"access_token": token, "expires_in": 3599, "token_type": "Bearer"});
            (StatusCode::OK, body)
        }
        _ => refuse(
            400,
            Words::oauth("invalid_scope", "Invalid OAuth scope or ID token audience provided."),
        ),
    }
}

fn refresh(state: &State, client: &str, secret: &str, token: &str) -> Reply {
    let policy = state.policy();
    if client != policy.client_id || secret != CLIENT_SECRET {
        return refuse(401, Words::oauth("invalid_client", "The OAuth client was not found."));
    }
    if token != policy.refresh_token {
        return refuse(400, Words::revoked());
    }
    let mut body = json!({
        "access_token": state.access_token(crate::files::PERSON),
        "expires_in": 3599,
        "scope": policy.login_scopes.join(" "),
        "token_type": "Bearer",
    });
    if policy.login_scopes.iter().any(|scope| scope == "openid") {
        body["id_token"] = state.login_token().into();
    }
    (StatusCode::OK, body)
}

pub(crate) fn refuse(status: u16, body: Value) -> Reply {
    (StatusCode::from_u16(status).expect("a status"), body)
}
