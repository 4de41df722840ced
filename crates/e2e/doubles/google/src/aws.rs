//! The metadata server of AWS (version 2, with sessions), and what Google's Security Token Service
//! makes of a signed `GetCallerIdentity`.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::files::{AWS_KEY, AWS_REGION, AWS_ROLE, AWS_SECRET, AWS_SESSION};
use crate::state::Seen;

/// What a signed question is called at the Security Token Service.
pub(crate) const TOKEN_TYPE: &str = "urn:ietf:params:aws:token-type:aws4_request";

const SESSION: &str = "imds-session-canary";

/// `/latest/…`: status and text.
pub(crate) fn answer(seen: &Seen) -> (StatusCode, String) {
    if seen.path == "/latest/api/token" {
        let life = seen.header("x-aws-ec2-metadata-token-ttl-seconds");
        return match (seen.method.as_str(), life) {
            ("PUT", Some("300")) => (StatusCode::OK, SESSION.to_owned()),
            _ => (StatusCode::BAD_REQUEST, "Bad Request".to_owned()),
        };
    }
    if seen.header("x-aws-ec2-metadata-token") != Some(SESSION) {
        return (StatusCode::UNAUTHORIZED, "Unauthorized".to_owned());
    }
    match seen.path.strip_prefix("/latest/meta-data/").unwrap_or_default() {
        "placement/availability-zone" => (StatusCode::OK, format!("{AWS_REGION}b")),
        "iam/security-credentials" => (StatusCode::OK, AWS_ROLE.to_owned()),
        path if path == format!("iam/security-credentials/{AWS_ROLE}") => {
            let keys = json!({
                "Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": AWS_KEY,
                "SecretAccessKey": AWS_SECRET, "Token": AWS_SESSION,
            });
            (StatusCode::OK, keys.to_string())
        }
        _ => (StatusCode::NOT_FOUND, "Not Found".to_owned()),
    }
}

/// Whether a subject token is a question to AWS that is signed and meant for this pool.
pub(crate) fn check_signed(token: &str, audience: &str) -> Result<(), String> {
    let wrong = |reason: &str| Err(format!("Error in the signed AWS request: {reason}"));
    let text = percent_encoding::percent_decode_str(token).decode_utf8_lossy();
    let Ok(question) = serde_json::from_str::<Value>(&text) else {
        return wrong("not JSON");
    };
    let url = format!(
        "https://sts.{AWS_REGION}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15"
    );
    if question["method"] != "POST" || question["url"] != url {
        return wrong("method or URL");
    }
    let header = |name: &str| {
        let headers = question["headers"].as_array().into_iter().flatten();
        let mut found = headers
            .filter(|it| it["key"].as_str().is_some_and(|key| key.eq_ignore_ascii_case(name)));
        found.next().and_then(|it| it["value"].as_str()).unwrap_or_default().to_owned()
    };
    if header("x-goog-cloud-target-resource") != audience {
        return wrong("x-goog-cloud-target-resource");
    }
    let authorization = header("authorization");
    let date = header("x-amz-date");
    let scope =
        format!("{AWS_KEY}/{}/{AWS_REGION}/sts/aws4_request", date.get(..8).unwrap_or_default());
    if !authorization.starts_with(&format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=")) {
        return wrong("the scope of the signature");
    }
    for name in ["host", "x-amz-date", "x-amz-security-token"] {
        let signed = authorization.contains(name) && !header(name).is_empty();
        if !signed {
            return wrong(&format!("{name} is not signed"));
        }
    }
    Ok(())
}
