//! Servers elsewhere: what their URL and the headers for them may be.

use http::header::{HeaderName, HeaderValue};
use http::uri::Uri;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Headers that belong to the connection or to the protocol.
const OURS: [&str; 12] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];
/// The longest URL, and the longest value of a header, that servers commonly take.
const MAX_LENGTH: usize = 8 * 1024;

/// How requests to a remote server are signed, beside the headers that a person gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RemoteAuth {
    /// With Google's ID tokens, as Cloud Run wants them, from the credentials that
    /// `cofer proxy` finds.
    GoogleIdToken,
}

/// Why a URL is none that a server can be reached at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RemoteUrlError {
    /// It is no URL.
    #[error("is not a URL like https://example.com/mcp")]
    NotAUrl,
    /// It is something else than HTTP.
    #[error("is not an http or https URL")]
    Scheme,
    /// It has a name or a password in it.
    #[error("has a user name or a password in it; give them as a header, such as `Authorization`")]
    User,
    /// It is longer than servers take.
    #[error("is longer than {MAX_LENGTH} bytes")]
    TooLong,
}

/// Why a header cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// HTTP has no such names.
    #[error("its name has characters that no header has")]
    Name,
    /// HTTP has no such values.
    #[error("its value has characters that no header has")]
    Value,
    /// It is set by whoever sends the request.
    #[error("`{0}` is set by Cofer itself")]
    Ours(String),
}

/// Reads a remote server's URL. What stands behind a `#` never goes over the wire.
pub fn parse_remote_url(text: &str) -> Result<Uri, RemoteUrlError> {
    let text = text.trim().split('#').next().unwrap_or_default();
    if text.len() > MAX_LENGTH {
        return Err(RemoteUrlError::TooLong);
    }
    let uri: Uri = text.parse().map_err(|_| RemoteUrlError::NotAUrl)?;
    if uri.host().is_none_or(str::is_empty) {
        return Err(RemoteUrlError::NotAUrl);
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(RemoteUrlError::User);
    }
    match uri.scheme_str() {
        Some("http" | "https") => Ok(uri),
        Some(_) => Err(RemoteUrlError::Scheme),
        None => Err(RemoteUrlError::NotAUrl),
    }
}

/// Reads a header that goes with every request. It may well be a key, and is kept out of sight.
pub fn parse_remote_header(
    name: &str,
    value: &str,
) -> Result<(HeaderName, HeaderValue), HeaderError> {
    let name: HeaderName = name.trim().parse().map_err(|_| HeaderError::Name)?;
    if OURS.contains(&name.as_str()) || name.as_str().starts_with("mcp-param-") {
        return Err(HeaderError::Ours(name.to_string()));
    }
    let value = value.trim();
    let mut value: HeaderValue = match value.len() {
        0..=MAX_LENGTH => value.parse().map_err(|_| HeaderError::Value)?,
        _ => return Err(HeaderError::Value),
    };
    value.set_sensitive(true);
    Ok((name, value))
}

/// Whether what is sent to this URL can be read by nobody on the way: it is encrypted, or it
/// does not leave this machine.
pub fn is_private_url(url: &Uri) -> bool {
    url.scheme_str() == Some("https") || url.host().is_some_and(is_loopback)
}

/// Whether a URL's host is this machine.
pub fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_http_and_names_nobody() {
        for (text, wrong) in [
            ("https://example.com/mcp", None),
            (" http://10.0.0.1:8080/mcp?x=1#part ", None),
            ("http://[::1]:1/", None),
            ("ftp://example.com/", Some(RemoteUrlError::Scheme)),
            ("ws://example.com/", Some(RemoteUrlError::Scheme)),
            ("https://me:pw@example.com/", Some(RemoteUrlError::User)),
            ("https://me@example.com/", Some(RemoteUrlError::User)),
            ("example.com/mcp", Some(RemoteUrlError::NotAUrl)),
            ("/mcp", Some(RemoteUrlError::NotAUrl)),
            ("https://", Some(RemoteUrlError::NotAUrl)),
            ("https://a b/", Some(RemoteUrlError::NotAUrl)),
            ("", Some(RemoteUrlError::NotAUrl)),
        ] {
            assert_eq!(parse_remote_url(text).err(), wrong, "{text}");
        }
        let long = format!("https://example.com/{}", "x".repeat(MAX_LENGTH));
        assert_eq!(parse_remote_url(&long), Err(RemoteUrlError::TooLong));
    }

    #[test]
    fn headers_are_checked_and_kept_out_of_sight() {
        let (name, value) = parse_remote_header("X-Api-Key", " a:b ").unwrap();
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("x-api-key", "a:b"));
        assert!(!format!("{value:?}").contains("a:b"));
        assert_eq!(parse_remote_header("a b", "c"), Err(HeaderError::Name));
        assert_eq!(parse_remote_header("a", "c\u{1}"), Err(HeaderError::Value));
        assert_eq!(parse_remote_header("a", "c\r\nd: e"), Err(HeaderError::Value));
        for ours in ["Host", "mcp-session-id", "Mcp-Param-x", "Cookie"] {
            assert!(matches!(parse_remote_header(ours, "1"), Err(HeaderError::Ours(_))), "{ours}");
        }
    }

    #[test]
    fn only_this_machine_is_private_without_tls() {
        for (text, private) in [
            ("https://example.com/", true),
            ("http://localhost:8080/", true),
            ("http://127.0.0.9/", true),
            ("http://[::1]/", true),
            ("http://127.0.0.1.example.com/", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(is_private_url(&text.parse().unwrap()), private, "{text}");
        }
    }
}
