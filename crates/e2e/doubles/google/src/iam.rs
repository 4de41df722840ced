//! `iamcredentials.googleapis.com`: tokens of service accounts, for those who may impersonate them.

use axum::http::StatusCode;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::state::{Seen, State};
use crate::token::{Reply, refuse};
use crate::words::Words;

/// `/v1/projects/-/serviceAccounts/NAME:VERB`.
pub(crate) fn answer(state: &State, seen: &Seen) -> Reply {
    let name = seen.path.rsplit('/').next().unwrap_or_default();
    let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned();
    let Some((target, verb)) = name.split_once(':') else {
        return refuse(404, Words::unknown_account(&name));
    };
    let bearer = seen.header("authorization").and_then(|it| it.strip_prefix("Bearer "));
    let Some(caller) = bearer.and_then(|token| caller(state, token)) else {
        return refuse(401, Words::unauthenticated());
    };
    let body = seen.json();
    if let Some(reply) = refused(state, target, verb, &caller, &body) {
        return reply;
    }
    match (verb, body["audience"].as_str(), body["scope"].as_array()) {
        ("generateIdToken", Some(audience), _) if !audience.is_empty() => {
            let token = state.id_token(target, audience);
            (StatusCode::OK, json!({ "token": token }))
        }
        ("generateAccessToken", _, Some(scopes)) if !scopes.is_empty() => {
            let end = OffsetDateTime::now_utc() + time::Duration::hours(1);
            let end = end.replace_nanosecond(0).ok().and_then(|end| end.format(&Rfc3339).ok());
            let token = state.access_token(target);
            (StatusCode::OK, json!({"accessToken": token, "expireTime": end}))
        }
        _ => refuse(
            400,
            Words::api(400, "INVALID_ARGUMENT", "Request contains an invalid argument.", json!([])),
        ),
    }
}

/// Whom an access token stands for. A service account may sign one itself.
fn caller(state: &State, token: &str) -> Option<String> {
    let given = state.known().access.get(token).cloned();
    given.or_else(|| {
        let claims = crate::keys::claims(token)?;
        let own = state.account.signed(token) && claims["scope"].is_string();
        own.then(|| claims["iss"].as_str().map(str::to_owned))?
    })
}

/// Every link of the chain must be allowed: caller to first delegate, and so on to the target.
fn refused(state: &State, target: &str, verb: &str, caller: &str, body: &Value) -> Option<Reply> {
    let permission = match verb {
        "generateIdToken" => "iam.serviceAccounts.getOpenIdToken",
        _ => "iam.serviceAccounts.getAccessToken",
    };
    let delegates = body["delegates"].as_array().cloned().unwrap_or_default();
    let prefix = "projects/-/serviceAccounts/";
    let mut chain: Vec<String> = vec![caller.to_owned()];
    for delegate in &delegates {
        let Some(name) = delegate.as_str().and_then(|name| name.strip_prefix(prefix)) else {
            let message = "Invalid form of account ID in delegates.";
            return Some(refuse(400, Words::api(400, "INVALID_ARGUMENT", message, json!([]))));
        };
        chain.push(name.to_owned());
    }
    chain.push(target.to_owned());
    let impersonators = state.policy().impersonators;
    for link in chain.windows(2) {
        let Some(allowed) = impersonators.get(&link[1]) else {
            return Some(refuse(404, Words::unknown_account(&link[1])));
        };
        if !allowed.iter().any(|name| name == "*" || *name == link[0]) {
            return Some(refuse(403, Words::denied(permission, &link[1])));
        }
    }
    None
}
