//! A credentials file: read with a cap, told apart by its `type`, and checked before anything is
//! sent anywhere. Nothing of a file's content stands in an error but the names of its fields.

use std::io::Read as _;
use std::path::Path;

use http::Uri;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::FileError;
use super::external::{External, ExternalFile, ExternalUser};
use super::impersonation::{Impersonated, Target};
use super::secret::Secret;
use super::service_account::ServiceAccount;
use super::source::Source;
use super::user::User;

/// No credentials are larger.
const LARGEST: u64 = 1024 * 1024;

/// Impersonation of an impersonation of…: nobody needs more.
const DEEPEST: usize = 4;

/// Reads and checks a credentials file.
pub(crate) fn read(path: &Path) -> Result<Source, FileError> {
    let unreadable = |error: std::io::Error| FileError::Unreadable(error.to_string());
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(FileError::TooLarge(LARGEST));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let json = serde_json::from_slice(bytes)
        .map_err(|error| FileError::NotJson { line: error.line(), column: error.column() })?;
    source(json, DEEPEST)
}

fn source(json: Value, depth: usize) -> Result<Source, FileError> {
    let kind = json.get("type").and_then(Value::as_str).ok_or(FileError::NoType)?.to_owned();
    match kind.as_str() {
        "service_account" => ServiceAccount::new(fields(json)?).map(Source::ServiceAccount),
        "authorized_user" => User::new(fields(json)?).map(Source::User),
        "impersonated_service_account" => impersonated(fields(json)?, depth),
        "external_account" => {
            External::new(fields::<ExternalFile>(json)?).map(Box::new).map(Source::External)
        }
        "external_account_authorized_user" => {
            ExternalUser::new(fields(json)?).map(Source::ExternalUser)
        }
        "gdch_service_account" => Err(FileError::NoIdTokens(kind)),
        _ => Err(FileError::UnknownType(kind.chars().take(50).collect())),
    }
}

#[derive(Deserialize)]
struct ImpersonatedFile {
    service_account_impersonation_url: String,
    #[serde(default)]
    delegates: Vec<String>,
    source_credentials: Value,
    #[serde(default)]
    quota_project_id: Option<String>,
}

fn impersonated(file: ImpersonatedFile, depth: usize) -> Result<Source, FileError> {
    if depth == 0 {
        return Err(FileError::Field("`source_credentials` are nested too deeply".to_owned()));
    }
    let target = Target::from_url(&file.service_account_impersonation_url)?;
    let target = target.with_delegates(file.delegates);
    let source = source(file.source_credentials, depth - 1)?;
    Ok(Source::Impersonated(Box::new(Impersonated {
        target,
        source,
        quota_project: file.quota_project_id,
    })))
}

/// The fields of one type. What serde says of a wrong one could quote a secret, so that only a
/// missing field is named.
fn fields<T: DeserializeOwned>(json: Value) -> Result<T, FileError> {
    serde_json::from_value(json).map_err(|error| {
        let said = error.to_string();
        FileError::Field(if said.starts_with("missing field") {
            said
        } else {
            "a field is not of the kind that it should be".to_owned()
        })
    })
}

/// A URL that secrets are sent to: over TLS, or to this machine.
pub(crate) fn safe_url(field: &str, text: &str) -> Result<(), FileError> {
    let url = any_url(field, text)?;
    if url.scheme_str() == Some("https") || is_loopback(&url) {
        return Ok(());
    }
    Err(FileError::Field(format!("`{field}` must begin with https://")))
}

/// A URL that is only read from: metadata servers have no TLS.
pub(crate) fn any_url(field: &str, text: &str) -> Result<Uri, FileError> {
    let url = text.parse::<Uri>().ok();
    let known = |url: &Uri| {
        matches!(url.scheme_str(), Some("http" | "https"))
            && url.host().is_some_and(|host| !host.is_empty())
    };
    url.filter(known).ok_or_else(|| FileError::Field(format!("`{field}` is not a URL")))
}

fn is_loopback(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let address = host.parse::<std::net::IpAddr>();
    address.map_or_else(|_| host.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
}

/// A text that is there and not empty.
pub(crate) fn filled(field: &str, value: &Secret) -> Result<(), FileError> {
    if value.expose().trim().is_empty() {
        return Err(FileError::Field(format!("`{field}` is empty")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(json: Value) -> String {
        source(json, DEEPEST).unwrap_err().to_string()
    }

    #[test]
    fn a_file_that_cannot_be_used_is_refused_with_a_reason() {
        // covers: PRX-2.3
        for (json, reason) in [
            (json!({"installed": {"client_id": "x"}}), "no `type`"),
            (json!({"type": "gdch_service_account"}), "gdch_service_account"),
            (json!({"type": "teapot"}), "`teapot` is not known"),
            (
                json!({"type": "service_account", "client_email": "a@b"}),
                "missing field `private_key`",
            ),
            (json!({"type": "authorized_user", "client_id": "c"}), "missing field `client_secret`"),
            (
                json!({"type": "authorized_user", "client_id": "c", "client_secret": "s",
                       "refresh_token": "  "}),
                "`refresh_token` is empty",
            ),
            (
                json!({"type": "authorized_user", "client_id": "c", "client_secret": "s",
                       "refresh_token": "r", "token_uri": "http://oauth.example.com/token"}),
                "`token_uri` must begin with https://",
            ),
        ] {
            let said = refused(json.clone());
            assert!(said.contains(reason), "{json}: {said}");
        }
    }

    #[test]
    fn a_refusal_never_quotes_the_file() {
        let said = refused(json!({"type": "service_account", "client_email": "a@b",
            "private_key": ["canary"], "token_uri": "https://x"}));
        assert_eq!(said, "a field is not of the kind that it should be");
    }

    #[test]
    fn impersonation_is_not_nested_for_ever() {
        let mut json = json!({"type": "authorized_user", "client_id": "c", "client_secret": "s",
            "refresh_token": "r"});
        let mut nested = Vec::new();
        for _ in 0..6 {
            json = json!({"type": "impersonated_service_account", "source_credentials": json,
                "service_account_impersonation_url":
                    "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@b.iam.gserviceaccount.com:generateAccessToken"});
            nested.push(source(json.clone(), DEEPEST).is_ok());
        }
        assert_eq!(nested, [true, true, true, true, false, false]);
    }
}
