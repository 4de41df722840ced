//! The daemon's gateway on this process's stdin and stdout. The daemon may be restarted
//! meanwhile, at another address and with another token: then it is found again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cofer_mcp::http::{
    Attendant, AuthFailure, Authorizer, FailureKind, ProxySettings, Remote, SetupError, Transport,
    TransportOptions, Trouble,
};
use cofer_mcp::{Frame, Incoming, LineReader, Message};
use cofer_model::{Budget, Redactor};
use http::{HeaderValue, Uri};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};

use crate::hops::hops;
use crate::parent::Parent;
use crate::serve::{MAX_MESSAGE, carry};
use crate::stdio;

/// What our errors name as their source.
const SOURCE: &str = "cofer-connect";
/// The daemon has time limits of its own; this only ends what it forgot.
const SILENCE: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a daemon that is away is waited for before a request fails: a restart takes less.
const RETURN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);
/// How long a client that cannot be served has to say what it wants, and to say more.
const FIRST_WORD: Duration = Duration::from_secs(2);
const LAST_WORD: Duration = Duration::from_millis(500);

/// Where the gateway is, and what opens it.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its endpoint.
    pub url: Uri,
    /// The value of `Authorization`, where there is a token.
    pub authorization: Option<HeaderValue>,
}

/// Knows where the gateway is now.
pub trait Whereabouts: std::fmt::Debug + Send + Sync + 'static {
    /// Looks, none where nothing is to be found now. Reads small files with blocking calls.
    fn look(&self) -> Option<Place>;
}

/// Serves the client on stdin and stdout until it leaves, `parent` is gone or `shutdown` is ready.
pub async fn connect(
    place: Place,
    whereabouts: Arc<dyn Whereabouts>,
    parent: Parent,
    shutdown: impl Future<Output = ()>,
) -> Result<(), SetupError> {
    // The token must not travel through a proxy that the environment names for the web.
    let proxies = ProxySettings::default();
    let transport = Transport::with_proxies(TransportOptions::default(), proxies)?;
    let url = place.url.clone();
    let gateway = Arc::new(Gateway { whereabouts, known: Mutex::new(place) });
    tracing::debug!(%url, "connecting");
    let remote = Remote {
        url,
        headers: hops(),
        silence: SILENCE,
        cap: MAX_MESSAGE,
        memory: Budget::unlimited(),
        source: SOURCE.to_owned(),
        transport,
        authorizer: Arc::clone(&gateway) as Arc<dyn Authorizer>,
        attendant: gateway,
        redactor: Redactor::default(),
    };
    carry(remote, parent, shutdown).await;
    Ok(())
}

/// The gateway, as it was last found.
#[derive(Debug)]
struct Gateway {
    whereabouts: Arc<dyn Whereabouts>,
    known: Mutex<Place>,
}

impl Gateway {
    fn known(&self) -> MutexGuard<'_, Place> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Authorizer for Gateway {
    async fn authorization(&self) -> Result<Option<HeaderValue>, AuthFailure> {
        Ok(self.known().authorization.clone())
    }

    fn rejected(&self, _used: &HeaderValue) {
        if let Some(place) = self.whereabouts.look() {
            *self.known() = place;
        }
    }

    fn principal(&self) -> Option<String> {
        None
    }
}

#[async_trait]
impl Attendant for Gateway {
    async fn moved(&self) -> Option<Uri> {
        let deadline = Instant::now() + RETURN;
        while Instant::now() < deadline {
            if let Some(place) = self.whereabouts.look()
                && listens(&place.url).await
            {
                let url = place.url.clone();
                *self.known() = place;
                return Some(url);
            }
            sleep(PAUSE).await;
        }
        None
    }

    fn advice(&self, trouble: &Trouble) -> Option<String> {
        let advice = match (trouble.kind, trouble.http_status) {
            (FailureKind::Connect, _) => {
                "start the daemon with `cofer serve`, or use `cofer connect --start`; then ask again."
            }
            (FailureKind::Auth, _) => {
                "the token is not the daemon's: give the data directory of the daemon with `--data-dir`, or its token in COFER_TOKEN."
            }
            (FailureKind::Http, Some(404)) => {
                "the daemon serves nothing there: `cofer server list` shows the servers that it has."
            }
            _ => return None,
        };
        Some(advice.to_owned())
    }
}

async fn listens(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    TcpStream::connect((host, url.port_u16().unwrap_or(80))).await.is_ok()
}

/// Tells a client that cannot be served why, in the answers to what it asks first. A client
/// that only sees its server end knows nothing.
pub async fn refuse(message: &str, hint: &str) {
    refuse_on(stdio::input(), stdio::output(), message, hint).await;
}

async fn refuse_on(
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    message: &str,
    hint: &str,
) {
    let mut lines = LineReader::new(input, MAX_MESSAGE);
    let mut deadline = Instant::now() + FIRST_WORD;
    while let Ok(Ok(Some(frame))) = timeout_at(deadline, lines.next()).await {
        let Frame::Line(line) = frame else { continue };
        for id in requests(&line) {
            let answer = refusal(&id, message, hint);
            let written = async {
                output.write_all(answer.as_bytes()).await?;
                output.flush().await
            };
            if !matches!(timeout_at(deadline, written).await, Ok(Ok(()))) {
                return;
            }
            deadline = Instant::now() + LAST_WORD;
        }
    }
}

fn requests(line: &Bytes) -> Vec<Bytes> {
    let messages = match Incoming::parse(line) {
        Ok(Incoming::One(message)) => vec![message],
        Ok(Incoming::Batch(messages)) => messages,
        Err(_) => Vec::new(),
    };
    let ids = messages.into_iter().filter_map(|message| match message {
        Message::Request { id, .. } => Some(id),
        Message::Notification { .. } | Message::Response { .. } => None,
    });
    ids.collect()
}

fn refusal(id: &Bytes, message: &str, hint: &str) -> String {
    let error = serde_json::json!({
        "code": -32603,
        "message": message,
        "data": {"source": SOURCE, "kind": FailureKind::Connect, "hint": hint},
    });
    let id = String::from_utf8_lossy(id);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    async fn refused(said: &str) -> Vec<Value> {
        let mut heard = Vec::new();
        refuse_on(said.as_bytes(), &mut heard, "no daemon", "start it").await;
        let text = String::from_utf8(heard).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_cannot_be_served_is_told_why() {
        let answers = refused(concat!(
            "{\"jsonrpc\":\"2.0\",\"id\":12345678901234567890,\"method\":\"initialize\"}\n",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n",
            "nonsense\n",
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/list\"}\n",
        ))
        .await;
        assert_eq!(answers.len(), 2, "{answers:?}");
        assert_eq!(answers[0]["id"].to_string(), "12345678901234567890");
        assert_eq!(answers[1]["id"], "a");
        for answer in answers {
            assert_eq!(answer["error"]["message"], "no daemon");
            assert_eq!(answer["error"]["data"]["hint"], "start it");
            assert_eq!(answer["error"]["data"]["source"], "cofer-connect");
        }
        assert_eq!(refused("").await, [] as [Value; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_is_not_waited_for() {
        let (held, silent) = tokio::io::duplex(16);
        let mut heard = Vec::new();
        refuse_on(silent, &mut heard, "no", "h").await;
        assert!(heard.is_empty());
        drop(held);
    }
}
