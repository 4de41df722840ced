//! A client of the newer era and a server of the older one, which asks while it works: the call
//! is held, its questions become a result that wants input, and the client's next try, which
//! carries the answers, goes on with it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::member;
use cofer_model::ServerId;
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use super::door::Door;
use super::drive::Drive;
use super::rpc::{Fault, text_member};
use super::running::Inquiry;

/// How many calls may be held; the oldest makes room, and is cancelled.
const MAX_HELD: usize = 64;
/// How long a call is held for its client to come back.
const KEPT: Duration = Duration::from_secs(10 * 60);
/// After this time a held call makes way for others at the same server: while it is there, it
/// takes one of the server's places, and nobody else there can be asked anything.
const UNDISTURBED: Duration = Duration::from_secs(60);
/// How the state of a held call begins, so that it is not taken for a server's.
const PREFIX: &str = "cofer-held-";

/// A call that waits for its client.
pub(super) struct Held {
    pub(super) drive: Drive,
    pub(super) door: Door,
    /// What was asked for: nothing else goes on with it.
    pub(super) method: String,
    pub(super) name: Option<String>,
    /// What is asked, by the keys under which the client knows it.
    pub(super) inquiries: Vec<(String, Inquiry)>,
    pub(super) since: Instant,
}

/// See the module.
#[derive(Default)]
pub(super) struct HeldCalls {
    calls: Mutex<HashMap<String, Held>>,
}

impl HeldCalls {
    /// Holds a call: the result that tells the client what is asked.
    pub(super) fn hold(&self, held: Held) -> Bytes {
        let state = format!("{PREFIX}{}", Uuid::new_v4().simple());
        let requests: Vec<String> = held.inquiries.iter().map(as_request).collect();
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{{{}}},"requestState":"{state}"}}"#,
            requests.join(",")
        );
        let mut calls = self.lock();
        let oldest =
            calls.iter().min_by_key(|(_, held)| held.since).map(|(state, _)| state.clone());
        let dropped =
            oldest.filter(|_| calls.len() >= MAX_HELD).and_then(|state| calls.remove(&state));
        calls.insert(state, held);
        drop(calls);
        // Cancels it at its server, outside the lock.
        drop(dropped);
        Bytes::from(result)
    }

    /// The call that this request goes on with; none where it begins one of its own.
    pub(super) fn resume(
        &self,
        door: &Door,
        method: &str,
        params: Option<&Bytes>,
    ) -> Result<Option<Held>, Fault> {
        let state = params.and_then(|params| text_member(params, "requestState"));
        let Some(state) = state.filter(|state| state.starts_with(PREFIX)) else {
            return Ok(None);
        };
        let unknown = || {
            Fault::bad_params(
                "`requestState` names no call that waits here: it ended, was waited for too long, or was never one",
            )
        };
        let mut calls = self.lock();
        let held = calls.get(&state).ok_or_else(unknown)?;
        if held.method != method || held.name != subject(params) || !held.door.is(door) {
            return Err(unknown());
        }
        Ok(calls.remove(&state))
    }

    /// Somebody else comes to the server.
    pub(super) fn make_way(&self, server: ServerId) {
        let mut calls = self.lock();
        if calls.is_empty() {
            return;
        }
        let in_the_way = |held: &Held| {
            held.drive.running().server.get() == Some(&server) && held.since.elapsed() > UNDISTURBED
        };
        let gone: Vec<Held> =
            calls.extract_if(|_, held| in_the_way(held)).map(|(_, held)| held).collect();
        drop(calls);
        drop(gone);
    }

    pub(super) fn sweep(&self) {
        let stale: Vec<Held> = self
            .lock()
            .extract_if(|_, held| held.since.elapsed() > KEPT)
            .map(|(_, held)| held)
            .collect();
        drop(stale);
    }

    pub(super) fn clear(&self) {
        let calls = std::mem::take(&mut *self.lock());
        drop(calls);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Passes the client's answers on. True where nothing is left to be asked.
    pub(super) async fn answered(&mut self, params: Option<&Bytes>) -> bool {
        let responses = params.and_then(|params| member(params, "inputResponses")).unwrap_or(b"{}");
        for (key, inquiry) in std::mem::take(&mut self.inquiries) {
            match member(responses, &key).filter(|answer| answer.starts_with(b"{")) {
                Some(answer) => inquiry.answer(Ok(Bytes::copy_from_slice(answer))).await,
                None => self.inquiries.push((key, inquiry)),
            }
        }
        self.inquiries.is_empty()
    }
}

/// What a request is about, by which its next try is known.
pub(super) fn subject(params: Option<&Bytes>) -> Option<String> {
    let params = params?;
    text_member(params, "name").or_else(|| text_member(params, "uri"))
}

fn as_request((key, inquiry): &(String, Inquiry)) -> String {
    let method = Value::from(inquiry.method.as_str());
    let params = inquiry.params.as_deref().and_then(|params| std::str::from_utf8(params).ok());
    format!(r#""{key}":{{"method":{method},"params":{}}}"#, params.unwrap_or("{}"))
}
