//! What a browser is given: the console's files, as they were embedded when the daemon was built.
//! They hold no data, so that they want no token; the page gets its token from the part of the
//! link after `#`, which no request carries.

mod negotiation;

use std::future::ready;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap,
    HeaderName, HeaderValue, REFERRER_POLICY, VARY,
};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use negotiation::{Encoding, encoding_for, has_version};

/// What the page may do: run and load what the daemon serves, and nothing else. Text cannot
/// become script (`require-trusted-types-for`), and no other page may show this one.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
     trusted-types 'none'",
);
/// For a file whose name changes with its content.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// For a file that keeps its name: the browser asks each time whether it has changed.
const ASK_FIRST: HeaderValue = HeaderValue::from_static("no-cache");

/// The pages of the console, all of which are its `index.html`; also with more after a `/`.
const PAGES: [&str; 5] = ["/servers", "/chat", "/activity", "/environments", "/settings"];

static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/console_files.rs"));

/// A file of the console; its compressed copies are there where it was worth it.
#[derive(Debug)]
struct File {
    path: &'static str,
    version: &'static str,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

/// The console's pages and files.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let mut routes = Router::new();
    for file in FILES {
        let handler = move |headers: HeaderMap| ready(file.answer(&headers));
        if file.path != "/index.html" {
            routes = routes.route(file.path, get(handler));
            continue;
        }
        routes = routes.route("/", get(handler));
        for page in PAGES {
            let below = format!("{page}/{{*rest}}");
            routes = routes.route(page, get(handler)).route(&below, get(handler));
        }
    }
    routes
}

/// Whether a path is the console's, which anyone may look at.
pub(crate) fn owns(path: &str) -> bool {
    let below = |page: &str| path.strip_prefix(page).is_some_and(|rest| rest.starts_with('/'));
    path == "/"
        || path.starts_with("/assets/")
        || PAGES.iter().any(|page| path == *page || below(page))
        || FILES.iter().any(|file| file.path == path && path != "/index.html")
}

impl File {
    fn answer(&self, request: &HeaderMap) -> Response {
        let (encoding, body) = self.in_encoding(encoding_for(request));
        let version = format!("{}{}", self.version, encoding.map_or("", Encoding::version_suffix));
        if has_version(request, &version) {
            return (StatusCode::NOT_MODIFIED, self.headers(encoding, &version)).into_response();
        }
        (self.headers(encoding, &version), body).into_response()
    }

    fn in_encoding(&self, wanted: Option<Encoding>) -> (Option<Encoding>, &'static [u8]) {
        let copy = match wanted {
            Some(Encoding::Brotli) => self.brotli,
            Some(Encoding::Gzip) => self.gzip,
            None => None,
        };
        copy.map_or((None, self.plain), |copy| (wanted, copy))
    }

    /// Also for an answer without a body: a browser overwrites the headers it has with those.
    fn headers(&self, encoding: Option<Encoding>, version: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut set = |name: HeaderName, value: HeaderValue| headers.insert(name, value).is_some();
        set(CONTENT_TYPE, HeaderValue::from_static(content_type(self.path)));
        set(CACHE_CONTROL, if is_hashed(self.path) { FOR_EVER } else { ASK_FIRST });
        set(VARY, HeaderValue::from_static("Accept-Encoding"));
        set(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        set(
            HeaderName::from_static("cross-origin-resource-policy"),
            HeaderValue::from_static("same-origin"),
        );
        if let Ok(version) = HeaderValue::try_from(format!("\"{version}\"")) {
            set(ETAG, version);
        }
        if let Some(encoding) = encoding {
            set(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
        }
        if self.path.ends_with(".html") {
            set(CONTENT_SECURITY_POLICY, POLICY);
            set(
                HeaderName::from_static("cross-origin-opener-policy"),
                HeaderValue::from_static("same-origin"),
            );
        }
        headers
    }
}

/// Whether the name holds a hash of the content, as Vite writes it: `index-BkQdnLsC.js`.
fn is_hashed(path: &str) -> bool {
    let Some(name) = path.strip_prefix("/assets/") else { return false };
    let stem = name.split('.').next().unwrap_or(name);
    stem.len() > 9 && stem.as_bytes().get(stem.len() - 9) == Some(&b'-')
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "webmanifest" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests;
