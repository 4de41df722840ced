//! The session of the older era: what `initialize` opened, and what opens it again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::HeaderMap;
use http::header::HeaderValue;
use tokio_util::sync::CancellationToken;

use super::headers::{SESSION, VERSION};
use super::raw::text_member;
use crate::members::member;

/// One session, or the absence of one.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// Grows with each session, so that two askers know whether they mean the same one.
    pub(super) generation: u64,
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// What the server said that it can do, as JSON.
    capabilities: Bytes,
    /// Set off when the session is replaced because the server forgot it.
    pub(super) lost: CancellationToken,
}

/// What a client said to open the conversation, for saying it again.
#[derive(Debug, Clone)]
pub(super) struct Opening {
    pub(super) initialize: Bytes,
    /// The canonical id of that request.
    pub(super) id: Bytes,
    /// The notification that followed, where it did.
    pub(super) initialized: Option<Bytes>,
}

/// The session that holds now.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    state: Mutex<State>,
    /// Held by the one who opens a lost session again.
    pub(super) renewing: tokio::sync::Mutex<()>,
    /// The server has no stream of its own to listen to.
    pub(super) no_stream: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    current: Arc<Session>,
    opening: Option<Opening>,
}

impl Session {
    /// What a server's answer to `initialize` opens; its id came in the answer's head.
    pub(super) fn begun(head: &HeaderMap) -> Self {
        Self { id: head.get(SESSION).cloned(), ..Self::default() }
    }

    /// The same session, once its result is there.
    fn opened(&self, generation: u64, result: &[u8]) -> Self {
        let version = text_member(result, "protocolVersion");
        Self {
            generation,
            id: self.id.clone(),
            version: version.and_then(|version| HeaderValue::from_str(&version).ok()),
            capabilities: Bytes::copy_from_slice(member(result, "capabilities").unwrap_or(b"{}")),
            lost: CancellationToken::new(),
        }
    }

    /// Whether the server gave it an id, without which it cannot be lost.
    pub(super) fn has_id(&self) -> bool {
        self.id.is_some()
    }

    /// Adds what every request of the session carries.
    pub(super) fn stamp(&self, headers: &mut HeaderMap) {
        if let Some(id) = &self.id {
            headers.insert(SESSION, id.clone());
        }
        if let Some(version) = &self.version {
            headers.insert(VERSION, version.clone());
        }
    }

    /// The lists that may differ between two sessions, where the server can do other things or
    /// speaks another revision than before.
    pub(super) fn lists_changed_since(&self, before: &Self) -> Vec<&'static str> {
        if self.capabilities == before.capabilities && self.version == before.version {
            return Vec::new();
        }
        let has = |session: &Self, list: &str| member(&session.capabilities, list).is_some();
        let lists = ["tools", "prompts", "resources"];
        lists.into_iter().filter(|list| has(self, list) || has(before, list)).collect()
    }
}

impl Sessions {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn current(&self) -> Arc<Session> {
        Arc::clone(&self.state().current)
    }

    pub(super) fn opening(&self) -> Option<Opening> {
        self.state().opening.clone()
    }

    /// A client's `initialize` was answered with `result`.
    pub(super) fn open(&self, begun: &Session, result: &[u8], opening: Opening) {
        let mut state = self.state();
        state.current = Arc::new(begun.opened(state.current.generation + 1, result));
        state.opening = Some(opening);
        self.no_stream.store(false, Ordering::Relaxed);
    }

    /// The session was opened again. Whoever still uses the old one is told.
    pub(super) fn reopen(&self, begun: &Session, result: &[u8]) -> (Arc<Session>, Arc<Session>) {
        let mut state = self.state();
        let new = Arc::new(begun.opened(state.current.generation + 1, result));
        let old = std::mem::replace(&mut state.current, Arc::clone(&new));
        old.lost.cancel();
        (old, new)
    }

    /// The client said that it is ready.
    pub(super) fn initialized(&self, text: Bytes) {
        if let Some(opening) = &mut self.state().opening {
            opening.initialized = Some(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(result: &str) -> Session {
        Session::default().opened(1, result.as_bytes())
    }

    #[test]
    fn what_changed_is_told_only_where_something_did() {
        let plain = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}"#;
        let more = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{}}}"#;
        let newer = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#;
        assert!(session(plain).lists_changed_since(&session(plain)).is_empty());
        assert_eq!(session(more).lists_changed_since(&session(plain)), ["tools", "prompts"]);
        assert_eq!(session(plain).lists_changed_since(&session(more)), ["tools", "prompts"]);
        assert_eq!(session(newer).lists_changed_since(&session(plain)), ["tools"]);
    }

    #[test]
    fn requests_carry_the_id_and_the_revision_that_was_agreed_on() {
        let mut head = HeaderMap::new();
        head.insert(SESSION, HeaderValue::from_static("s-1"));
        let begun = Session::begun(&head);
        let mut headers = HeaderMap::new();
        begun.opened(1, br#"{"protocolVersion":"2025-03-26"}"#).stamp(&mut headers);
        assert_eq!(headers[SESSION], "s-1");
        assert_eq!(headers[VERSION], "2025-03-26");
        let mut headers = HeaderMap::new();
        Session::default().stamp(&mut headers);
        assert!(headers.is_empty());
    }
}
