//! Every call leaves a trace: in the activity, on the event bus, and in the log.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::{CallError, Called, Timing};
use cofer_model::{
    ActivityEntry, EventKind, Outcome, ServerId, Stages, ToolCallFinished, ToolCallStarted,
};
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use time::OffsetDateTime;
use tokio::time::Instant;
use uuid::Uuid;

use crate::events::EventBus;
use crate::server::ServerLog;

/// How many calls are remembered.
const MEMORY: usize = 1000;
/// How much of a tool's arguments is logged.
const LOGGED_ARGUMENTS: usize = 1000;
/// How much of a tool's result is logged.
const LOGGED_RESULT: usize = 200;
/// How much of a tool's error is logged, its stack with it.
const LOGGED_ERROR: usize = 4000;

/// The most recent calls.
#[derive(Debug, Default)]
pub struct ActivityLog {
    entries: Mutex<VecDeque<Arc<ActivityEntry>>>,
}

impl ActivityLog {
    /// The last `count` calls, newest first, those of one server where it is given.
    pub fn recent(&self, count: usize, server: Option<ServerId>) -> Vec<Arc<ActivityEntry>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted =
            entries.iter().rev().filter(|entry| server.is_none_or(|id| entry.server_id == id));
        wanted.take(count).cloned().collect()
    }

    fn push(&self, entry: Arc<ActivityEntry>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() == MEMORY {
            entries.pop_front();
        }
        entries.push_back(entry);
    }
}

/// Hears of every call that ended.
pub trait CallObserver: Send + Sync + 'static {
    /// The call, as it stands in the activity.
    fn finished(&self, entry: &ActivityEntry);
}

/// Where calls leave their traces.
#[derive(Clone)]
pub(crate) struct CallRecorder {
    pub(crate) events: EventBus,
    pub(crate) activity: Arc<ActivityLog>,
    pub(crate) observer: Arc<dyn CallObserver>,
}

/// A call that is under way. Dropped before it is finished, it counts as cancelled.
pub(crate) struct CallRecord<'a> {
    recorder: &'a CallRecorder,
    log: &'a ServerLog,
    call_id: Uuid,
    id: ServerId,
    server: Cow<'a, str>,
    method: String,
    tool: Option<String>,
    started_at: OffsetDateTime,
    started: Instant,
    request_bytes: u64,
    finished: bool,
}

impl CallRecorder {
    /// Takes note that a call begins.
    pub(crate) fn begin<'a>(
        &'a self,
        log: &'a ServerLog,
        id: ServerId,
        server: &'a str,
        method: &str,
        params: Option<&Bytes>,
    ) -> CallRecord<'a> {
        let tool = ToolCall::read(method, params);
        let record = CallRecord {
            recorder: self,
            log,
            call_id: Uuid::new_v4(),
            id,
            server: Cow::Borrowed(server),
            method: method.to_owned(),
            tool: tool.as_ref().map(|tool| tool.name.to_string()),
            started_at: OffsetDateTime::now_utc(),
            started: Instant::now(),
            request_bytes: params.map_or(0, |params| params.len() as u64),
            finished: false,
        };
        if let Some(tool) = tool {
            record.tell_start(&tool);
        }
        record
    }
}

impl CallRecord<'_> {
    /// Takes note of how the call went.
    pub(crate) fn finish(mut self, called: &Called) {
        self.finished = true;
        let (outcome, error) = match &called.result {
            Ok(result) if self.tool.is_some() && says_is_error(result) => {
                (Outcome::ToolError, None)
            }
            Ok(_) => (Outcome::Ok, None),
            Err(error) => (outcome_of(error), Some(error.to_string())),
        };
        let size = called.result.as_ref().map_or(0, |result| result.len() as u64);
        if self.tool.is_some() {
            self.log_end(outcome, &called.result);
        } else if outcome == Outcome::Timeout {
            tracing::warn!(target: "MCP", server = %self.server, method = %self.method, "a call timed out; the server was not restarted");
        }
        self.tell_end(outcome, error, size, called.timing);
    }

    fn tell_start(&self, tool: &ToolCall<'_>) {
        let arguments = tool.arguments.map_or("{}", RawValue::get);
        let arguments = self.log.redact(cut(arguments, LOGGED_ARGUMENTS).into_owned());
        tracing::info!(target: "TOOLS", server = %self.server, tool = %tool.name, call = %self.call_id, %arguments, "call started");
        let started = ToolCallStarted {
            call_id: self.call_id,
            id: self.id,
            name: self.server.to_string(),
            tool: tool.name.to_string(),
            at: self.started_at,
        };
        self.recorder.events.publish(|_| EventKind::ToolCallStarted(started));
    }

    fn log_end(&self, outcome: Outcome, result: &Result<Bytes, CallError>) {
        let tool = self.tool.as_deref().unwrap_or_default();
        let duration_ms = millis(self.started.elapsed());
        let (server, call) = (&self.server, self.call_id);
        match result {
            Ok(result) if outcome == Outcome::Ok => {
                let result = self.log.redact(cut_bytes(result, LOGGED_RESULT));
                tracing::info!(target: "TOOLS", %server, tool, %call, duration_ms, %result, "call finished");
            }
            Ok(result) => {
                let error = self.log.redact(cut_bytes(result, LOGGED_ERROR));
                tracing::warn!(target: "TOOLS", %server, tool, %call, duration_ms, %error, "the tool answered an error");
            }
            Err(CallError::Timeout(limit)) => {
                tracing::warn!(target: "TOOLS", %server, tool, %call, duration_ms, ?limit, "call timed out; the server was not restarted");
            }
            Err(error) => {
                let stack = match error {
                    CallError::Rpc(error) => {
                        error.data.as_ref().map(ToString::to_string).unwrap_or_default()
                    }
                    _ => String::new(),
                };
                let stack = self.log.redact(cut(&stack, LOGGED_ERROR).into_owned());
                let error = self.log.redact(error.to_string());
                tracing::warn!(target: "TOOLS", %server, tool, %call, duration_ms, %error, %stack, "call failed");
            }
        }
    }

    fn tell_end(
        &self,
        outcome: Outcome,
        error: Option<String>,
        response_bytes: u64,
        timing: Timing,
    ) {
        let duration_ms = millis(self.started.elapsed());
        if let Some(tool) = &self.tool {
            let finished = ToolCallFinished {
                call_id: self.call_id,
                id: self.id,
                name: self.server.to_string(),
                tool: tool.clone(),
                at: OffsetDateTime::now_utc(),
                duration_ms,
                outcome,
            };
            self.recorder.events.publish(|_| EventKind::ToolCallFinished(finished));
        }
        let entry = ActivityEntry {
            call_id: self.call_id,
            server_id: self.id,
            server: self.server.to_string(),
            method: self.method.clone(),
            tool: self.tool.clone(),
            started_at: self.started_at,
            duration_ms,
            stages: Stages {
                queue_ms: millis(timing.queue),
                write_ms: millis(timing.write),
                server_ms: millis(timing.server),
            },
            outcome,
            error: error.map(|error| self.log.redact(error)),
            request_bytes: self.request_bytes,
            response_bytes,
        };
        self.recorder.observer.finished(&entry);
        self.recorder.activity.push(Arc::new(entry));
    }
}

impl Drop for CallRecord<'_> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if let Some(tool) = &self.tool {
            let duration_ms = millis(self.started.elapsed());
            tracing::warn!(target: "TOOLS", server = %self.server, tool, call = %self.call_id, duration_ms, "the caller went away; the call was cancelled");
        }
        let timing =
            Timing { queue: Duration::ZERO, write: Duration::ZERO, server: self.started.elapsed() };
        self.tell_end(Outcome::Cancelled, Some("the caller went away".to_owned()), 0, timing);
    }
}

/// What a `tools/call` asks for.
#[derive(Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl<'a> ToolCall<'a> {
    fn read(method: &str, params: Option<&'a Bytes>) -> Option<Self> {
        if method != "tools/call" {
            return None;
        }
        params.and_then(|params| serde_json::from_slice(params).ok())
    }
}

fn outcome_of(error: &CallError) -> Outcome {
    match error {
        CallError::Rpc(_) | CallError::BadParams => Outcome::McpError,
        CallError::Timeout(_) | CallError::QueueTimeout(_) => Outcome::Timeout,
        CallError::Overloaded { .. } => Outcome::Overloaded,
        CallError::RequestTooLarge { .. } | CallError::AnswerTooLarge { .. } => Outcome::TooLarge,
        CallError::Disconnected => Outcome::Disconnected,
    }
}

/// Whether a tool's result says that the tool failed. Most do not name the member at all,
/// which a search finds out much faster than a parse.
fn says_is_error(result: &Bytes) -> bool {
    #[derive(Deserialize)]
    struct ToolResult {
        #[serde(rename = "isError", default)]
        is_error: bool,
    }
    memmem::find(result, br#""isError""#).is_some()
        && serde_json::from_slice::<ToolResult>(result).is_ok_and(|result| result.is_error)
}

fn millis(duration: Duration) -> f64 {
    // Microseconds are exact enough for people and keep the number short.
    (duration.as_nanos() / 1000) as f64 / 1000.0
}

/// The first `limit` characters.
fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

fn cut_bytes(json: &Bytes, limit: usize) -> String {
    // A character has at most four bytes, so that no more needs to be looked at.
    let head = String::from_utf8_lossy(&json[..json.len().min(limit * 4 + 4)]);
    match head.char_indices().nth(limit) {
        Some((end, _)) => head[..end].to_owned(),
        None => head.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_logged_up_to_200_characters() {
        // covers: MGR-76
        let text = cut_bytes(&Bytes::from("日".repeat(500)), LOGGED_RESULT);
        assert_eq!(text.chars().count(), 200);
        assert_eq!(cut_bytes(&Bytes::from_static(b"short"), LOGGED_RESULT), "short");
    }

    #[test]
    fn only_a_true_is_error_at_the_top_is_a_tool_error() {
        for (json, expected) in [
            (r#"{"content":[],"isError":true}"#, true),
            (r#"{"content":[],"isError":false}"#, false),
            (r#"{"content":[{"text":"\"isError\":true"}]}"#, false),
            (r#"{"structuredContent":{"isError":true}}"#, false),
            ("null", false),
        ] {
            assert_eq!(says_is_error(&Bytes::from_static(json.as_bytes())), expected, "{json}");
        }
    }
}
