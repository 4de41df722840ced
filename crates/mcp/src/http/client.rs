//! One HTTP exchange with the server: signed, with its cookies, followed where it redirects to
//! on its own origin, and sent again with a new token where the old one was refused.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE, HeaderName, HeaderValue, LOCATION};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};

use super::attendant::Attendant;
use super::auth::Authorizer;
use super::body::Body;
use super::cookies::Jar;
use super::failure::Failure;
use super::transport::{Origin, Transport, TransportError};

/// Carries our token where `Authorization` is the server's own.
const SECOND_AUTHORIZATION: HeaderName = HeaderName::from_static("x-serverless-authorization");
/// How often one request may be redirected.
const MAX_HOPS: usize = 5;

/// The way to one server.
#[derive(Debug)]
pub(super) struct Client {
    transport: Transport,
    authorizer: Arc<dyn Authorizer>,
    attendant: Arc<dyn Attendant>,
    url: Mutex<Uri>,
    headers: HeaderMap,
    cookies: Mutex<Jar>,
}

/// A request to be sent.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    /// The URL, if it is not the server's own.
    pub(super) to: Option<Uri>,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Whether running it twice does no harm.
    pub(super) repeatable: bool,
}

impl Client {
    pub(super) fn new(
        transport: Transport,
        authorizer: Arc<dyn Authorizer>,
        attendant: Arc<dyn Attendant>,
        url: Uri,
        headers: HeaderMap,
    ) -> Self {
        let url = Mutex::new(url);
        Self { transport, authorizer, attendant, url, headers, cookies: Mutex::default() }
    }

    pub(super) fn principal(&self) -> Option<String> {
        self.authorizer.principal()
    }

    pub(super) fn advice(&self, status: u16) -> Option<String> {
        self.authorizer.advice(status)
    }

    /// Sends `out` and waits for the head of its answer, however long that takes.
    pub(super) async fn exchange(&self, out: &Outbound) -> Result<Response<Body>, Failure> {
        let mut uri = out.to.clone().unwrap_or_else(|| self.url());
        let (mut hops, mut renewed, mut repeated, mut moved) = (0, false, false, false);
        loop {
            let authorization = self.authorizer.authorization().await?;
            let request = self.request(&uri, out, authorization.as_ref());
            let response = match self.transport.send(request).await {
                Ok(response) => response,
                Err(error @ TransportError::Broken { .. }) if out.repeatable && !repeated => {
                    tracing::debug!(%error, "sending it again, which does no harm");
                    repeated = true;
                    continue;
                }
                Err(error) if error.is_nobody_there() && !moved => {
                    moved = true;
                    match self.attendant.moved().await {
                        Some(next) => uri = self.move_to(next),
                        None => return Err(error.into()),
                    }
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            self.cookies().take(response.headers(), uri.path());
            let status = response.status();
            if status == StatusCode::UNAUTHORIZED
                && !renewed
                && let Some(used) = &authorization
            {
                tracing::debug!("the server refused the token: trying a new one");
                self.authorizer.rejected(used);
                renewed = true;
                continue;
            }
            match redirected(&uri, &response).filter(|_| hops < MAX_HOPS) {
                Some(next) => {
                    hops += 1;
                    uri = next;
                }
                None => return Ok(response),
            }
        }
    }

    fn request(
        &self,
        uri: &Uri,
        out: &Outbound,
        authorization: Option<&HeaderValue>,
    ) -> Request<Bytes> {
        let mut headers = out.headers.clone();
        for (name, value) in &self.headers {
            if !out.headers.contains_key(name) {
                headers.append(name, value.clone());
            }
        }
        if let Some(value) = authorization {
            let taken = headers.contains_key(AUTHORIZATION);
            headers.insert(if taken { SECOND_AUTHORIZATION } else { AUTHORIZATION }, value.clone());
        }
        if let Some(cookies) = self.cookies().header() {
            headers.insert(COOKIE, cookies);
        }
        let mut request = Request::new(out.body.clone());
        *request.method_mut() = out.method.clone();
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = headers;
        request
    }

    pub(super) fn url(&self) -> Uri {
        self.url.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn move_to(&self, next: Uri) -> Uri {
        tracing::debug!(url = %next, "the server is elsewhere now");
        self.url.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&next);
        next
    }

    fn cookies(&self) -> std::sync::MutexGuard<'_, Jar> {
        self.cookies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the same request is to be sent instead. Never to another origin: the token goes with it.
fn redirected<B>(from: &Uri, response: &Response<B>) -> Option<Uri> {
    if !matches!(response.status().as_u16(), 307 | 308) {
        return None;
    }
    same_origin(from, response.headers().get(LOCATION)?.to_str().ok()?)
}

/// The URL that `location` names, an absolute path or a whole URL, if it is on the origin of `from`.
pub(super) fn same_origin(from: &Uri, location: &str) -> Option<Uri> {
    let absolute = if location.starts_with('/') && !location.starts_with("//") {
        let mut parts = from.clone().into_parts();
        parts.path_and_query = Some(location.parse().ok()?);
        Uri::from_parts(parts).ok()?
    } else {
        location.parse().ok()?
    };
    (Origin::of(&absolute)? == Origin::of(from)?).then_some(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_followed_on_the_same_scheme_host_and_port_alone() {
        let from: Uri = "https://a.run.app/mcp".parse().unwrap();
        for (status, location, followed) in [
            (307, "/other", Some("https://a.run.app/other")),
            (308, "https://a.run.app/x?y", Some("https://a.run.app/x?y")),
            (307, "https://A.Run.App:443/", Some("https://A.Run.App:443/")),
            (307, "http://a.run.app/mcp", None),
            (307, "http://a.run.app:443/mcp", None),
            (307, "https://a.run.app:8443/mcp", None),
            (307, "https://b.run.app/mcp", None),
            (307, "https://a.run.app.evil.example/mcp", None),
            (307, "https://a.run.app@evil.example/mcp", None),
            (307, "//evil.example/mcp", None),
            (307, "other", None),
            (301, "/other", None),
            (302, "/other", None),
            (303, "/other", None),
        ] {
            let response = Response::builder().status(status).header(LOCATION, location);
            let next = redirected(&from, &response.body(()).unwrap());
            let followed = followed.map(|uri| uri.parse::<Uri>().unwrap());
            assert_eq!(next, followed, "{status} {location}");
        }
    }
}
