//! What the proxy is told: which server, how, and in whose name.

use std::path::PathBuf;
use std::time::Duration;

use cofer_model::{is_loopback, parse_remote_header};
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Uri};

/// Everything that can be asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// The server, as `parse_url` lets it through.
    pub url: Uri,
    /// The longest silence allowed of a server that owes an answer.
    pub timeout: Duration,
    /// For whom tokens are, where it is not the URL's origin.
    pub audience: Option<String>,
    /// In the name of which service account, where it is not the credentials' own.
    pub impersonate: Option<String>,
    /// What goes with every request.
    pub headers: HeaderMap,
    /// Send no token.
    pub no_auth: bool,
    /// A PEM file of certificates that are trusted too.
    pub cacert: Option<PathBuf>,
}

/// Why a URL cannot be a target.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It is none.
    #[error("it is not a URL like https://my-server.run.app/mcp")]
    NotAUrl,
    /// It has a name or a password in it.
    #[error("it has a user name in it; the proxy signs requests with a token")]
    User,
    /// A token would go over the network for everybody to read.
    #[error("plain http is for servers on this machine only; use https")]
    Plain,
    /// Without a token only this machine is asked.
    #[error("--no-auth is for servers on this machine only")]
    Unsigned,
}

/// Reads the server's URL; `no_auth` says that no token will be sent.
pub fn parse_url(text: &str, no_auth: bool) -> Result<Uri, UrlError> {
    let text = text.trim().split('#').next().unwrap_or_default();
    let uri: Uri = text.parse().map_err(|_| UrlError::NotAUrl)?;
    let host = uri.host().filter(|host| !host.is_empty()).ok_or(UrlError::NotAUrl)?;
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(UrlError::User);
    }
    let local = is_loopback(host);
    match uri.scheme_str() {
        Some("https") => {}
        Some("http") if local => {}
        Some("http") => return Err(UrlError::Plain),
        _ => return Err(UrlError::NotAUrl),
    }
    if no_auth && !local {
        return Err(UrlError::Unsigned);
    }
    Ok(uri)
}

/// Why a header cannot be sent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// There is no colon.
    #[error("it is not like 'Name: value'")]
    NoColon,
    /// It is none, or none of a person's.
    #[error(transparent)]
    Header(#[from] cofer_model::HeaderError),
}

/// Reads a header as it is typed, `Name: value`.
pub fn parse_header(text: &str) -> Result<(HeaderName, HeaderValue), HeaderError> {
    let (name, value) = text.split_once(':').ok_or(HeaderError::NoColon)?;
    Ok(parse_remote_header(name, value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_only_go_over_tls_or_stay_on_this_machine() {
        // covers: PRX-4.1, PRX-6.1
        for (text, no_auth, wrong) in [
            ("https://a.run.app/mcp", false, None),
            (" https://a.run.app/mcp#part ", false, None),
            ("http://localhost:8080/mcp", true, None),
            ("http://127.0.0.9", false, None),
            ("http://[::1]:1/", true, None),
            ("http://a.run.app/mcp", false, Some(UrlError::Plain)),
            ("http://127.0.0.1.example.com/", false, Some(UrlError::Plain)),
            ("https://a.run.app/mcp", true, Some(UrlError::Unsigned)),
            ("https://me:pw@a.run.app/", false, Some(UrlError::User)),
            ("ftp://localhost/", false, Some(UrlError::NotAUrl)),
            ("a.run.app", false, Some(UrlError::NotAUrl)),
            ("/mcp", false, Some(UrlError::NotAUrl)),
            ("https://", false, Some(UrlError::NotAUrl)),
            ("", false, Some(UrlError::NotAUrl)),
        ] {
            assert_eq!(parse_url(text, no_auth).err(), wrong, "{text}");
        }
    }

    #[test]
    fn headers_are_read_and_kept_out_of_sight() {
        let (name, value) = parse_header("X-Api-Key:  a:b ").unwrap();
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("x-api-key", "a:b"));
        assert!(!format!("{value:?}").contains("a:b"));
        assert_eq!(parse_header("X-Api-Key").unwrap_err(), HeaderError::NoColon);
        assert_eq!(
            parse_header("a b: c").unwrap_err(),
            HeaderError::Header(cofer_model::HeaderError::Name)
        );
        assert!(matches!(parse_header("a: c\u{1}"), Err(HeaderError::Header(_))));
        assert!(matches!(parse_header("Mcp-Session-Id: 1"), Err(HeaderError::Header(_))));
    }
}
