//! Who may talk to the daemon: requests that are meant for it (`Host`), that no foreign web
//! page made (`Origin`), and that show the token.
//!
//! A function and no layer of a router: it stands before every call, and each layer costs a
//! call some allocations.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use axum::extract::Request;
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderName,
    HeaderValue, ORIGIN, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{Method, Uri};
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;

use crate::api::error::{ApiError, answer_panic};
use crate::connections::Connection;
use crate::console;
use crate::gateway;
use crate::token::Token;

/// What is set on every answer that does not set it itself.
static HEADERS: [(HeaderName, HeaderValue); 3] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

/// When a client may try again that found too many connections.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Knows the names under which the daemon is reached, and the token.
#[derive(Debug)]
pub(crate) struct Guard {
    hosts: Vec<String>,
    token: Token,
}

impl Guard {
    /// For a daemon that listens on `address`, with the port it really has.
    pub(crate) fn new(address: SocketAddr, token: Token) -> Self {
        let port = address.port();
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        let mut hosts = vec![format!("localhost:{port}")];
        hosts.extend(loopback.map(|ip| SocketAddr::new(ip, port).to_string()));
        if !hosts.contains(&address.to_string()) {
            hosts.push(address.to_string());
        }
        if port == 80 {
            // Clients leave out a scheme's own port.
            let bare = hosts.iter().filter_map(|host| host.strip_suffix(":80")).map(str::to_owned);
            hosts.extend(bare.collect::<Vec<_>>());
        }
        Self { hosts, token }
    }

    /// Refuses what is not meant for us or was made by a foreign page, then what has no token.
    pub(crate) fn check(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Access, ApiError> {
        self.check_host(uri, headers)?;
        self.check_origin(headers)?;
        if is_open(method, uri.path()) {
            return Ok(Access::Open);
        }
        self.check_token(headers)?;
        Ok(Access::Token)
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        let host = only(headers, HOST).is_ok_and(|host| host.is_some_and(|host| self.knows(host)));
        // A request line with a whole URL names a host too, and servers heed that one.
        let named = uri.authority().is_none_or(|named| self.knows(named.as_str().as_bytes()));
        if host && named {
            return Ok(());
        }
        Err(ApiError::forbidden("the `Host` of this request is not an address of this daemon")
            .hint(format!("use http://{}", self.hosts.first().map_or("localhost", String::as_str))))
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let ours = match only(headers, ORIGIN) {
            Ok(None) => true,
            Ok(Some(origin)) => {
                origin.split_at_checked(b"http://".len()).is_some_and(|(scheme, host)| {
                    scheme.eq_ignore_ascii_case(b"http://") && self.knows(host)
                })
            }
            Err(Repeated) => false,
        };
        if ours {
            return Ok(());
        }
        Err(ApiError::forbidden("the `Origin` of this request is not this daemon's own"))
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Ok(Some(authorization)) = only(headers, AUTHORIZATION) else {
            return Err(ApiError::unauthorized("this request has no bearer token"));
        };
        match bearer(authorization) {
            Some(shown) if self.token.matches(shown) => Ok(()),
            Some(_) => Err(ApiError::unauthorized("the bearer token is not this daemon's")),
            None => Err(ApiError::unauthorized("`Authorization` is not a bearer token")),
        }
    }

    fn knows(&self, host: &[u8]) -> bool {
        self.hosts.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(host))
    }
}

/// Why a request is let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Its path needs no token.
    Open,
    /// It has the token.
    Token,
}

/// Where anyone may look: the sign of life, and the console's files, which hold no data.
fn is_open(method: &Method, path: &str) -> bool {
    matches!(*method, Method::GET | Method::HEAD) && (path == "/healthz" || console::owns(path))
}

struct Repeated;

/// The header's value; one that stands there twice has no meaning that two readers agree on.
fn only(headers: &HeaderMap, name: HeaderName) -> Result<Option<&[u8]>, Repeated> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().map(HeaderValue::as_bytes);
    if values.next().is_some() { Err(Repeated) } else { Ok(value) }
}

fn bearer(authorization: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = authorization.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

/// Answers what the guard lets through as `inner` does. A panic there becomes an answer too.
pub(crate) async fn guarded<F: Future<Output = Response>>(
    guard: &Guard,
    request: Request,
    connection: &Connection,
    inner: impl FnOnce(Request) -> F,
) -> Response {
    let checked = guard.check(request.method(), request.uri(), request.headers());
    let admitted = checked.and_then(|access| match access {
        Access::Token if !connection.authenticate() => Err(too_many_connections()),
        Access::Token | Access::Open => Ok(()),
    });
    let response = match admitted {
        Ok(()) => {
            let answered = AssertUnwindSafe(async { inner(request).await }).catch_unwind().await;
            answered.unwrap_or_else(answer_panic)
        }
        Err(refusal) => refuse(request.uri().path(), refusal),
    };
    with_headers(response)
}

fn too_many_connections() -> ApiError {
    ApiError::busy(
        "the daemon has too many open connections, and none of them is idle",
        "close connections that are not used, or raise the daemon's limit of open files",
        RETRY_AFTER,
    )
}

fn refuse(path: &str, refusal: ApiError) -> Response {
    match path.strip_prefix("/mcp") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => gateway::respond_refused(refusal),
        _ => refusal.into_response(),
    }
}

fn with_headers(mut response: Response) -> Response {
    for (name, value) in &HEADERS {
        response.headers_mut().entry(name).or_insert_with(|| value.clone());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;

    fn guard(address: &str) -> Guard {
        Guard::new(address.parse().unwrap(), token())
    }

    fn token() -> Token {
        Token::new("0123456789abcdef0123456789abcdef").unwrap()
    }

    /// The status of the refusal of `GET path` with these headers, 200 where there is none.
    fn check(guard: &Guard, path: &str, headers: &[(&str, &str)]) -> StatusCode {
        check_method(guard, &Method::GET, path, headers)
    }

    fn check_method(g: &Guard, method: &Method, path: &str, pairs: &[(&str, &str)]) -> StatusCode {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        match g.check(method, &path.parse().unwrap(), &headers) {
            Ok(_) => StatusCode::OK,
            Err(refusal) => refusal.into_response().status(),
        }
    }

    const BEARER: (&str, &str) = ("authorization", "Bearer 0123456789abcdef0123456789abcdef");
    const LOCAL: (&str, &str) = ("host", "127.0.0.1:8787");

    #[test]
    fn only_the_daemons_own_addresses_are_hosts() {
        let on_loopback = guard("127.0.0.1:8787");
        for host in ["127.0.0.1:8787", "localhost:8787", "LOCALHOST:8787", "[::1]:8787"] {
            assert_eq!(check(&on_loopback, "/x", &[("host", host), BEARER]), 200, "{host}");
        }
        for host in [
            "evil.example:8787",
            "127.0.0.1",
            "127.0.0.1:8788",
            "localhost",
            "192.168.0.7:8787",
            "localhost:8787.evil.example",
            "",
        ] {
            assert_eq!(check(&on_loopback, "/x", &[("host", host), BEARER]), 403, "{host}");
            assert_eq!(check(&on_loopback, "/healthz", &[("host", host)]), 403, "{host}");
        }
        assert_eq!(check(&on_loopback, "/x", &[BEARER]), 403);
        assert_eq!(check(&on_loopback, "/x", &[LOCAL, LOCAL, BEARER]), 403);
        assert_eq!(check(&on_loopback, "http://evil.example/x", &[LOCAL, BEARER]), 403);
    }

    #[test]
    fn an_address_in_the_network_is_a_host_where_the_daemon_listens_on_it() {
        let in_network = guard("192.168.0.7:80");
        for host in ["192.168.0.7:80", "192.168.0.7", "localhost", "127.0.0.1:80"] {
            assert_eq!(check(&in_network, "/x", &[("host", host), BEARER]), 200, "{host}");
        }
        assert_eq!(check(&in_network, "/x", &[("host", "192.168.0.8:80"), BEARER]), 403);
    }

    #[test]
    fn a_foreign_page_gets_nothing_even_with_the_token() {
        let guard = guard("127.0.0.1:8787");
        for origin in ["http://127.0.0.1:8787", "http://localhost:8787", "http://[::1]:8787"] {
            assert_eq!(check(&guard, "/x", &[LOCAL, BEARER, ("origin", origin)]), 200, "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://evil.example",
            "https://127.0.0.1:8787",
            "http://127.0.0.1:3000",
            "http://127.0.0.1:8787.evil.example",
            "127.0.0.1:8787",
        ] {
            assert_eq!(check(&guard, "/x", &[LOCAL, BEARER, ("origin", origin)]), 403, "{origin}");
            assert_eq!(check(&guard, "/", &[LOCAL, ("origin", origin)]), 403, "{origin}");
        }
        let ours = ("origin", "http://127.0.0.1:8787");
        assert_eq!(check(&guard, "/x", &[LOCAL, BEARER, ours, ours]), 403);
    }

    #[test]
    fn everything_but_the_sign_of_life_and_the_consoles_files_wants_the_token() {
        let guard = guard("127.0.0.1:8787");
        for path in ["/healthz", "/", "/assets/console.css", "/servers/x/tools", "/settings"] {
            assert_eq!(check(&guard, path, &[LOCAL]), 200, "{path}");
            assert_eq!(check_method(&guard, &Method::POST, path, &[LOCAL]), 401, "{path}");
        }
        for path in ["/api/v1/mcp/servers", "/metrics", "/mcp", "/healthz/", "/assets", "/nothing"]
        {
            assert_eq!(check(&guard, path, &[LOCAL]), 401, "{path}");
            assert_eq!(check(&guard, path, &[LOCAL, BEARER]), 200, "{path}");
        }
    }

    #[test]
    fn only_the_whole_token_is_the_token() {
        let guard = guard("127.0.0.1:8787");
        let right = token().reveal().to_owned();
        for (authorization, status) in [
            (format!("bearer {right}"), 200),
            (format!("BEARER  {right}"), 200),
            (format!("Bearer {right}x"), 401),
            (format!("Bearer {}", &right[1..]), 401),
            ("Bearer ".to_owned(), 401),
            ("Bearer".to_owned(), 401),
            (right.clone(), 401),
            (format!("Basic {right}"), 401),
            (String::new(), 401),
        ] {
            let pair = ("authorization", authorization.as_str());
            assert_eq!(check(&guard, "/x", &[LOCAL, pair]), status, "{authorization:?}");
        }
        assert_eq!(check(&guard, "/x", &[LOCAL, BEARER, BEARER]), 401);
    }
}
