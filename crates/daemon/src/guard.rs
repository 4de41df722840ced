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
use crate::public_url::PublicUrl;
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
    public_url: Option<PublicUrl>,
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
        Self { hosts, public_url: None, token }
    }

    /// Accepts the host and the origin of `--public-url` as well.
    pub(crate) fn with_public_url(self, public_url: Option<PublicUrl>) -> Self {
        Self { public_url, ..self }
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
        let own = self.hosts.first().map_or("localhost", String::as_str);
        Err(ApiError::forbidden("the `Host` of this request is not an address of this daemon").hint(
            format!("use http://{own}, or start the daemon with `--public-url` if it is reached by another name"),
        ))
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let ours = match only(headers, ORIGIN) {
            Ok(None) => true,
            Ok(Some(origin)) => self.is_own_origin(origin, headers),
            Err(Repeated) => false,
        };
        if ours {
            return Ok(());
        }
        Err(ApiError::forbidden("the `Origin` of this request is not this daemon's own"))
    }

    /// Through a forwarded port the origin is the address in `Host`, which was checked before. Another
    /// port of this machine is another page: a program that listens there may be anybody's.
    fn is_own_origin(&self, origin: &[u8], headers: &HeaderMap) -> bool {
        if self.public_url.as_ref().is_some_and(|url| url.is_origin(origin)) {
            return true;
        }
        let Some((scheme, host)) = origin.split_at_checked(b"http://".len()) else {
            return false;
        };
        let is_requested =
            || headers.get(HOST).is_some_and(|own| own.as_bytes().eq_ignore_ascii_case(host));
        scheme.eq_ignore_ascii_case(b"http://") && (self.is_listed(host) || is_requested())
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
        self.is_listed(host)
            || is_loopback_host(host)
            || self.public_url.as_ref().is_some_and(|url| url.is_host(host))
    }

    fn is_listed(&self, host: &[u8]) -> bool {
        self.hosts.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(host))
    }
}

/// Whether this is a loopback name with any port, as clients send it through `ssh -L`,
/// `kubectl port-forward` or a container's published port. DNS rebinding cannot produce it: a page
/// sends the name of its own domain.
fn is_loopback_host(host: &[u8]) -> bool {
    let names: [&[u8]; 3] = [b"localhost", b"127.0.0.1", b"[::1]"];
    names.iter().any(|name| {
        let Some((start, port)) = host.split_at_checked(name.len()) else {
            return false;
        };
        start.eq_ignore_ascii_case(name) && is_empty_or_port(port)
    })
}

fn is_empty_or_port(text: &[u8]) -> bool {
    let Some(digits) = text.strip_prefix(b":") else {
        return text.is_empty();
    };
    let port = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u16>().ok());
    port.is_some() && digits.iter().all(u8::is_ascii_digit)
}

/// Why a request is let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Its path needs no token.
    Open,
    /// It has the token.
    Token,
}

/// Paths without data: the health check, the console's files, and `/.well-known/`, under which
/// nothing is served. MCP clients look there for OAuth metadata: 404 means that there is none, and
/// 401 makes them start an authorization flow that no route of the daemon can end.
fn is_open(method: &Method, path: &str) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
        && (path == "/healthz" || path.starts_with("/.well-known/") || console::owns(path))
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
            "192.168.0.7:8787",
            "127.0.0.2:8787",
            "localhost:",
            "localhost:+80",
            "localhost:70000",
            "localhost.evil.example",
            "127.0.0.1.evil.example:8787",
            "[::1].evil.example",
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
    fn a_forwarded_port_is_a_host_and_its_own_origin() {
        let guard = guard("127.0.0.1:8787");
        for host in ["localhost:9999", "127.0.0.1:9999", "[::1]:9999", "localhost", "127.0.0.1"] {
            let host = ("host", host);
            assert_eq!(check(&guard, "/x", &[host, BEARER]), 200, "{host:?}");
            let origin = format!("http://{}", host.1);
            assert_eq!(check(&guard, "/x", &[host, BEARER, ("origin", &origin)]), 200, "{origin}");
            let other = ("origin", "http://localhost:3000");
            assert_eq!(check(&guard, "/x", &[host, BEARER, other]), 403, "{host:?}");
        }
    }

    #[test]
    fn the_public_url_is_a_host_and_an_origin() {
        let url = "https://cofer.example.com".parse().unwrap();
        let guard = guard("127.0.0.1:8787").with_public_url(Some(url));
        let public = ("host", "cofer.example.com");
        let origin = ("origin", "https://cofer.example.com");
        assert_eq!(check(&guard, "/x", &[public, BEARER]), 200);
        assert_eq!(check(&guard, "/x", &[public, BEARER, origin]), 200);
        // A proxy that sends its upstream's address as `Host`.
        assert_eq!(check(&guard, "/x", &[LOCAL, BEARER, origin]), 200);
        assert_eq!(check(&guard, "/x", &[public, origin]), 401);
        for origin in ["https://evil.example", "https://cofer.example.com.evil.example"] {
            assert_eq!(check(&guard, "/x", &[public, BEARER, ("origin", origin)]), 403, "{origin}");
        }
        assert_eq!(check(&guard, "/x", &[("host", "evil.example"), BEARER]), 403);
        assert_eq!(check(&guard, "/x", &[LOCAL, BEARER]), 200);
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
        for path in [
            "/healthz",
            "/",
            "/assets/console.css",
            "/servers/x/tools",
            "/settings",
            "/.well-known/oauth-protected-resource/mcp",
        ] {
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
