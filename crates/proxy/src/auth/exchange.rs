//! One question to a token endpoint: sent, repeated while the other side is in trouble, and its
//! refusal put into words.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use cofer_mcp::http::{Transport, TransportError};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::environment::Clock;
use super::error::{Refusal, Service, TokenError};
use super::secret::{Secret, shown};

/// How long one attempt may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait before each further attempt.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(1500)];

/// The longest wish of the other side that is granted.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// No answer of a token endpoint is larger.
const LARGEST_ANSWER: usize = 1024 * 1024;

/// Asks token endpoints. Redirects are not followed: no token endpoint has any.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) transport: Transport,
    pub(crate) clock: Clock,
}

/// A question, which can be asked again.
pub(crate) struct Question<'a> {
    service: &'a Service,
    request: Request<Bytes>,
    /// What is taken out of anything that is shown.
    secrets: Vec<&'a str>,
}

impl<'a> Question<'a> {
    /// A question without content; the reason where the URL is none.
    pub(crate) fn new(service: &'a Service, method: Method, url: &str) -> Result<Self, TokenError> {
        let request = Request::builder().method(method).uri(url).body(Bytes::new());
        let request = request.map_err(|_| nonsense(service, "its URL is not one"))?;
        Ok(Self { service, request, secrets: Vec::new() })
    }

    /// With a header, whose value is taken for a secret.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Result<Self, TokenError> {
        let header = HeaderName::from_bytes(name.as_bytes()).ok();
        let pair = header.zip(HeaderValue::from_str(value).ok());
        let (header, mut value) =
            pair.ok_or_else(|| nonsense(self.service, &format!("the header `{name}` is none")))?;
        value.set_sensitive(true);
        self.request.headers_mut().insert(header, value);
        Ok(self)
    }

    /// In the name of whoever has this access token.
    pub(crate) fn bearer(mut self, token: &'a Secret) -> Result<Self, TokenError> {
        self.secrets.push(token.expose());
        self.header(AUTHORIZATION.as_str(), &format!("Bearer {}", token.expose()))
    }

    /// With a user's name and password.
    fn basic(mut self, user: &str, password: &'a Secret) -> Result<Self, TokenError> {
        self.secrets.push(password.expose());
        let pair = BASE64_STANDARD.encode(format!("{user}:{}", password.expose()));
        self.header(AUTHORIZATION.as_str(), &format!("Basic {pair}"))
    }

    /// With JSON.
    pub(crate) fn json(mut self, body: &serde_json::Value) -> Self {
        *self.request.body_mut() = body.to_string().into();
        self.content("application/json")
    }

    /// With a form.
    fn form(mut self, fields: &[(&str, &'a str)]) -> Self {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        *self.request.body_mut() = body.into();
        // What is not secret may be named in a refusal: grant types and audiences help a reader.
        let secret = |value: &&str| !value.starts_with("urn:") && !value.contains("://");
        self.secrets.extend(fields.iter().map(|(_, value)| *value).filter(secret));
        self.content("application/x-www-form-urlencoded")
    }

    fn content(mut self, kind: &'static str) -> Self {
        let headers = self.request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        self
    }

    fn host(&self) -> String {
        self.request.uri().authority().map_or_else(String::new, ToString::to_string)
    }
}

impl Exchange {
    /// Posts a form, and reads the answer as JSON.
    pub(crate) async fn form<T: DeserializeOwned>(
        &self,
        service: &Service,
        url: &str,
        fields: &[(&str, &str)],
        client: Option<(&str, &Secret)>,
    ) -> Result<T, TokenError> {
        let mut question = Question::new(service, Method::POST, url)?.form(fields);
        if let Some((user, password)) = client {
            question = question.basic(user, password)?;
        }
        self.json(question).await
    }

    /// Asks, and reads the answer as JSON.
    pub(crate) async fn json<T: DeserializeOwned>(
        &self,
        question: Question<'_>,
    ) -> Result<T, TokenError> {
        let body = self.ask(&question).await?;
        // The parser's own words could quote a token.
        serde_json::from_str(&body)
            .map_err(|_| nonsense(question.service, "a field is missing, or it is not JSON"))
    }

    /// Asks, again after trouble that passes, and gives the answer's text.
    pub(crate) async fn ask(&self, question: &Question<'_>) -> Result<String, TokenError> {
        let mut pauses = PAUSES.iter();
        loop {
            let failed = match tokio::time::timeout(PATIENCE, self.once(question)).await {
                Ok(Ok(body)) => return Ok(body),
                Ok(Err(failed)) => failed,
                Err(_) => silent(question),
            };
            match pauses.next() {
                Some(pause) if failed.passes => {
                    tracing::debug!(error = %failed.error, "asking again");
                    let wished = failed.wish.unwrap_or_default().min(LONGEST_PAUSE);
                    tokio::time::sleep(wished.max(*pause)).await;
                }
                _ => return Err(failed.error),
            }
        }
    }

    async fn once(&self, question: &Question<'_>) -> Result<String, Failed> {
        let unsent = |error| unsent(question, error);
        let response = self.transport.send(question.request.clone()).await.map_err(unsent)?;
        let status = response.status();
        let wish = wished_pause(response.headers());
        let skew = skew(response.headers(), self.clock.now());
        let body = response.into_body().collect(LARGEST_ANSWER).await.map_err(unsent)?;
        let body = String::from_utf8_lossy(&body);
        if status == StatusCode::OK {
            return Ok(body.into_owned());
        }
        let refusal = refusal(question.service, status, &body, &question.secrets, skew);
        let passes = passes(status, &refusal.code);
        Err(Failed { error: TokenError::Refused(Box::new(refusal)), passes, wish })
    }
}

/// An attempt that brought nothing.
struct Failed {
    error: TokenError,
    /// Whether another attempt may bring something.
    passes: bool,
    /// How long the other side wants to be left alone.
    wish: Option<Duration>,
}

fn nonsense(service: &Service, reason: &str) -> TokenError {
    TokenError::Answer { service: service.clone(), reason: reason.to_owned() }
}

fn silent(question: &Question<'_>) -> Failed {
    let (service, host) = (question.service.clone(), question.host());
    let error = TokenError::Silent { service, host, waited: PATIENCE };
    Failed { error, passes: true, wish: None }
}

fn unsent(question: &Question<'_>, error: TransportError) -> Failed {
    // A certificate that is not trusted is not trusted a second later either, and a body that is
    // too large stays so.
    let passes = !matches!(
        error,
        TransportError::Tls { .. } | TransportError::TooLarge { .. } | TransportError::Url(_)
    );
    let (service, host) = (question.service.clone(), question.host());
    let error = TokenError::Unreachable { service, host, source: Box::new(error) };
    Failed { error, passes, wish: None }
}

fn passes(status: StatusCode, code: &str) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
        || matches!(code, "internal_failure" | "server_error" | "temporarily_unavailable")
}

fn wished_pause(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// How many seconds the other side's clock is ahead of ours.
fn skew(headers: &HeaderMap, now: SystemTime) -> Option<i64> {
    let theirs = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
    Some(match theirs.duration_since(now) {
        Ok(ahead) => i64::try_from(ahead.as_secs()).unwrap_or(i64::MAX),
        Err(behind) => -i64::try_from(behind.duration().as_secs()).unwrap_or(i64::MAX),
    })
}

/// OAuth says `error` and `error_description`; Google's other APIs have an object in `error`; a
/// metadata server and everything in between may send anything.
#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorField,
    #[serde(default)]
    error_description: Option<String>,
    #[serde(default)]
    error_subtype: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ErrorField {
    Code(String),
    Status {
        #[serde(default)]
        message: String,
        #[serde(default)]
        status: String,
        #[serde(default)]
        details: Vec<Detail>,
    },
}

#[derive(Deserialize)]
struct Detail {
    #[serde(default)]
    reason: Option<String>,
}

fn refusal(
    service: &Service,
    status: StatusCode,
    body: &str,
    secrets: &[&str],
    skew: Option<i64>,
) -> Refusal {
    let (code, description, reason) = match serde_json::from_str::<ErrorBody>(body) {
        Ok(ErrorBody { error: ErrorField::Code(code), error_description, error_subtype }) => {
            (code, error_description.unwrap_or_default(), error_subtype)
        }
        Ok(ErrorBody { error: ErrorField::Status { message, status, details }, .. }) => {
            (status, message, details.into_iter().find_map(|detail| detail.reason))
        }
        Err(_) => (String::new(), without_tags(body), None),
    };
    Refusal {
        service: service.clone(),
        status: status.as_u16(),
        code: shown(&code, secrets),
        description: shown(&description, secrets),
        reason: reason.map(|reason| shown(&reason, secrets)),
        skew,
    }
}

/// A page of HTML, as its words.
fn without_tags(body: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for c in body.chars() {
        match c {
            '<' => inside = true,
            '>' if inside => {
                inside = false;
                text.push(' ');
            }
            c if !inside => text.push(c),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(status: u16, body: &str) -> String {
        let status = StatusCode::from_u16(status).unwrap();
        refusal(&Service::Login, status, body, &["canary-refresh-token"], None).to_string()
    }

    #[test]
    fn a_refusal_is_told_in_the_other_sides_words() {
        let oauth = r#"{"error":"invalid_grant","error_description":"reauth related error",
            "error_subtype":"invalid_rapt"}"#;
        assert_eq!(
            words(400, oauth),
            "Google's token endpoint refused with HTTP 400: invalid_grant, invalid_rapt, \
             reauth related error"
        );
        let api = r#"{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED",
            "details":[{"@type":"x"},{"reason":"SERVICE_DISABLED"}]}}"#;
        assert_eq!(
            words(403, api),
            "Google's token endpoint refused with HTTP 403: PERMISSION_DENIED, SERVICE_DISABLED, no"
        );
        assert_eq!(
            words(502, "<html><title>Bad</title><p>Gateway"),
            "Google's token endpoint refused with HTTP 502: Bad Gateway"
        );
        assert_eq!(words(500, ""), "Google's token endpoint refused with HTTP 500");
    }

    #[test]
    fn a_refusal_that_echoes_a_secret_does_not_show_it() {
        let echo = r#"{"error":"invalid_grant","error_description":"bad canary-refresh-token"}"#;
        let said = words(400, echo);
        assert!(!said.contains("canary") && said.contains("bad"), "{said}");
    }

    #[test]
    fn trouble_that_passes_is_told_from_a_refusal() {
        for status in [408, 429, 500, 502, 503, 504] {
            assert!(passes(StatusCode::from_u16(status).unwrap(), ""), "{status}");
        }
        for status in [400, 401, 403, 404] {
            assert!(!passes(StatusCode::from_u16(status).unwrap(), "invalid_grant"), "{status}");
        }
        assert!(passes(StatusCode::BAD_REQUEST, "temporarily_unavailable"));
    }
}
