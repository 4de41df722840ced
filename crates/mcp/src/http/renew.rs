//! Opens a session again that the server forgot, once for all who noticed, and sends what has
//! no answer: notifications, and the client's own answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::body::Body;
use super::client::Outbound;
use super::failure::{Failure, FailureKind};
use super::headers::{VERSION, describe};
use super::raw::{Kind, Raw, canonical, messages};
use super::request::is_event_stream;
use super::session::{Opening, Session};
use super::sse::{Item, Parser};
use super::wire::{Verdict, Wire};

/// What is sent where the client never said that it was ready.
const INITIALIZED: Bytes =
    Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);

/// How long the server's own stream is waited for before requests go on.
const OPENING: Duration = Duration::from_millis(500);

impl Wire {
    /// Opens a session in the place of `lost`, unless somebody did so already. In a task of its
    /// own: who noticed may be cancelled, and the others want the session all the same.
    pub(super) async fn renew(self: &Arc<Self>, lost: &Arc<Session>) -> Result<(), Failure> {
        let (wire, lost) = (Arc::clone(self), Arc::clone(lost));
        let (tell, told) = oneshot::channel();
        self.spawn(async move {
            let renewed = wire.renew_now(&lost).await;
            // Nobody waits where all who noticed were cancelled.
            drop(tell.send(renewed));
        });
        told.await.unwrap_or_else(|_| Err(not_opened("the proxy ends")))
    }

    async fn renew_now(self: &Arc<Self>, lost: &Session) -> Result<(), Failure> {
        let _turn = self.sessions.renewing.lock().await;
        if self.sessions.current().generation != lost.generation {
            return Ok(());
        }
        let Some(opening) = self.sessions.opening() else {
            return Err(not_opened("nothing opened it in the first place"));
        };
        tracing::info!("the server forgot the session: opening it again");
        let (begun, result) = self.initialize_again(&opening).await?;
        let (old, new) = self.sessions.reopen(&begun, &result);
        self.accept(&opening.initialized.unwrap_or(INITIALIZED), "notifications/initialized", &new)
            .await;
        for list in new.lists_changed_since(&old) {
            let told =
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/{list}/list_changed"}}"#);
            self.output.send(told.into()).await;
        }
        opened(self.listen(new)).await;
        Ok(())
    }

    /// Says `initialize` once more, and keeps the answer from the client, which has one.
    async fn initialize_again(&self, opening: &Opening) -> Result<(Session, Bytes), Failure> {
        let mut headers = HeaderMap::new();
        describe(&mut headers, "initialize", None);
        let sent = self.post(&opening.initialize, headers, true, Some(self.silence)).await?;
        let response = match self.judge(sent, false).await? {
            Verdict::Answer(response) => response,
            Verdict::Told(raw) => return Err(refused(&raw)),
            Verdict::SessionLost(failure) => return Err(failure),
        };
        let (head, body) = response.into_parts();
        let raw = if is_event_stream(&head.headers) {
            self.answer_in_stream(body, &opening.id).await?
        } else {
            let text = body.collect_within(self.cap, Some(self.silence), &self.memory).await?;
            answer_in(&text, &opening.id)
        };
        match raw.as_ref().map(|raw| &raw.kind) {
            Some(Kind::Response { result: Some(result), error: None, .. }) => {
                Ok((Session::begun(&head.headers), result.clone()))
            }
            Some(_) => Err(raw.as_ref().map_or_else(|| not_opened("it was refused"), refused)),
            None => Err(not_opened("the server did not answer `initialize`")),
        }
    }

    async fn answer_in_stream(&self, mut body: Body, id: &Bytes) -> Result<Option<Raw>, Failure> {
        let mut parser = Parser::new(self.cap, &self.memory);
        while let Some(chunk) = body.chunk_within(Some(self.silence)).await? {
            parser.push(chunk);
            while let Some(item) = parser.next() {
                if let Item::Message(data) = item
                    && let Some(raw) = answer_in(&data, id)
                {
                    return Ok(Some(raw));
                }
            }
        }
        Ok(None)
    }

    /// Sends what has no answer. What becomes of it is only logged: nobody waits for it.
    pub(super) async fn tell(self: &Arc<Self>, raw: Raw) {
        let (method, params) = match &raw.kind {
            Kind::Notification { method, params } => (method.as_str(), params.as_ref()),
            _ => ("", None),
        };
        let modern = super::raw::own_version(params)
            .and_then(|version| version.parse().ok())
            .or_else(|| self.modern_version().filter(|_| self.sessions.opening().is_none()));
        if let Some(version) = modern {
            let mut headers = HeaderMap::new();
            headers.insert(VERSION, version);
            describe(&mut headers, method, params);
            let sent = self.post(&raw.text, headers, false, Some(self.silence)).await;
            return self.note(method, sent.map(drop));
        }
        let session = self.sessions.current();
        if !self.accept(&raw.text, method, &session).await {
            return;
        }
        match self.renew(&session).await {
            Ok(()) => {
                self.accept(&raw.text, method, &self.sessions.current()).await;
            }
            Err(failure) => self.note(method, Err(failure)),
        }
    }

    /// Sends what has no answer in a session, and tells whether the session was lost.
    pub(super) async fn accept(&self, text: &Bytes, method: &str, session: &Session) -> bool {
        let mut headers = HeaderMap::new();
        if !method.is_empty() {
            describe(&mut headers, method, None);
        }
        session.stamp(&mut headers);
        let sent = match self.post(text, headers, false, Some(self.silence)).await {
            Ok(response) => self.judge(response, session.has_id()).await,
            Err(failure) => Err(failure),
        };
        match sent {
            Ok(Verdict::SessionLost(_)) => return true,
            // Whatever stands in it, nobody asked for; read, its connection serves again.
            Ok(Verdict::Answer(response)) => drop(response.into_body().beginning(4096).await),
            Ok(Verdict::Told(raw)) => self.note(method, Err(refused(&raw))),
            Err(failure) => self.note(method, Err(failure)),
        }
        false
    }

    fn note(&self, method: &str, sent: Result<(), Failure>) {
        if let Err(failure) = sent
            && !self.is_ending()
        {
            tracing::warn!(method, kind = ?failure.kind, "a message was not delivered: {failure}");
        }
    }

    /// Tells the server that nobody waits for request `id` any more.
    pub(super) fn tell_given_up(self: &Arc<Self>, id: &Bytes, reason: &str) {
        let text = cancelled(id, reason);
        let wire = Arc::clone(self);
        let session = self.sessions.current();
        self.spawn(async move {
            wire.accept(&text, "notifications/cancelled", &session).await;
        });
    }

    /// Ends the session, if the server hears it within `limit`.
    pub(super) async fn close_session(&self, limit: Duration) {
        let session = self.sessions.current();
        if !session.has_id() {
            return;
        }
        let mut headers = HeaderMap::new();
        session.stamp(&mut headers);
        let out =
            Outbound { method: Method::DELETE, headers, repeatable: true, ..Outbound::default() };
        match timeout(limit, self.client.exchange(&out)).await {
            Ok(Ok(response)) => {
                tracing::debug!(status = %response.status(), "the session is ended");
            }
            Ok(Err(failure)) => tracing::debug!(%failure, "the session could not be ended"),
            Err(_) => tracing::debug!("the server did not hear in time that the session is ended"),
        }
    }

    /// Listens to the server's own stream, where it has one, in the place of an older one. What
    /// is returned is closed when the server has said whether there is one.
    pub(super) fn listen(self: &Arc<Self>, session: Arc<Session>) -> oneshot::Receiver<()> {
        let (answered, answer) = oneshot::channel();
        // The stream of HTTP+SSE is open already, and is the only one.
        if self.endpoint.get().is_none() && !self.sessions.no_stream.load(Ordering::Relaxed) {
            let listener = self.spawn(Arc::clone(self).hear(session, answered));
            self.listen_by(listener);
        }
        answer
    }
}

/// Waits until the server's own stream is open: what a server says there before that is lost
/// with many of them. Some open it only when there is something to say.
pub(super) async fn opened(answer: oneshot::Receiver<()>) {
    drop(timeout(OPENING, answer).await);
}

/// The notification that request `id` is given up.
pub(super) fn cancelled(id: &Bytes, reason: &str) -> Bytes {
    let reason = serde_json::Value::from(reason);
    let id = String::from_utf8_lossy(id);
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":{reason}}}}}"#).into()
}

/// The answer to request `id`, where it is in `text`.
fn answer_in(text: &Bytes, id: &Bytes) -> Option<Raw> {
    messages(text).ok()?.into_iter().flatten().find(|raw| match &raw.kind {
        Kind::Response { id: Some(found), .. } => canonical(found) == *id,
        Kind::Response { id: None, error: Some(_), .. } => true,
        _ => false,
    })
}

fn refused(raw: &Raw) -> Failure {
    let Kind::Response { error: Some(error), .. } = &raw.kind else {
        return not_opened("the server's answer is none");
    };
    not_opened(&format!("the server answered {}", String::from_utf8_lossy(error)))
}

fn not_opened(reason: &str) -> Failure {
    Failure::new(
        FailureKind::Session,
        format!("the server forgot the session, and it could not be opened again: {reason}"),
        "ask again; where that does not help, start the MCP client again.",
    )
}
