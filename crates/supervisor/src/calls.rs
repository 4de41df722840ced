//! Every call leaves a trace: in the activity, on the event bus, and in the log.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::{CallError, Called, Timing, member, member_beginning};
use cofer_model::{
    ActivityEntry, CallSource, EventKind, Outcome, ServerId, Stages, ToolCallFinished,
    ToolCallStarted,
};
use time::OffsetDateTime;
use tokio::time::Instant;
use uuid::Uuid;

use crate::events::EventBus;
use crate::flight::{FlightRecorder, Landing, Part};
use crate::server::{ServerLog, ToolStep};
use crate::trace::CallTrace;

/// How many calls are remembered.
const MEMORY: usize = 1000;
/// How much of a tool's arguments is logged.
const LOGGED_ARGUMENTS: usize = 1000;
/// How much of a tool's result is logged.
const LOGGED_RESULT: usize = 200;
/// How much of a tool's error is logged, its stack with it.
const LOGGED_ERROR: usize = 4000;
/// The longest method or name of a tool that is kept: a thousand calls keep theirs.
const MAX_NAME: usize = 1024;

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
    /// Whether it wants to know what a trace says of calls; what nobody wants is not gathered.
    fn wants_traces(&self) -> bool {
        false
    }
    /// The call, as it stands in the activity.
    fn finished(&self, entry: &Arc<ActivityEntry>, trace: Option<Box<CallTrace>>);
}

/// Where calls leave their traces.
#[derive(Clone)]
pub(crate) struct CallRecorder {
    pub(crate) events: EventBus,
    pub(crate) activity: Arc<ActivityLog>,
    pub(crate) flights: Arc<FlightRecorder>,
    pub(crate) observer: Arc<dyn CallObserver>,
}

/// A call that is under way. Dropped before it is finished, it counts as cancelled.
pub(crate) struct CallRecord<'a> {
    recorder: &'a CallRecorder,
    log: &'a Arc<ServerLog>,
    call_id: Uuid,
    id: ServerId,
    server: Arc<str>,
    method: Arc<str>,
    tool: Option<Arc<str>>,
    started_at: OffsetDateTime,
    started: Instant,
    /// What the flight recorder keeps of the params, which themselves are let go once sent.
    params: Option<Part>,
    client: Option<Arc<str>>,
    source: CallSource,
    trace: Option<Box<CallTrace>>,
    /// Where the server's log stood.
    position: u64,
    finished: bool,
}

/// When a call was sent.
pub(crate) struct Start {
    at: OffsetDateTime,
    moment: Instant,
    /// Where the server's log stood.
    position: u64,
}

impl Start {
    pub(crate) fn now(log: &ServerLog) -> Self {
        Self { at: OffsetDateTime::now_utc(), moment: Instant::now(), position: log.position() }
    }
}

/// A call that has begun.
pub(crate) struct Beginning<'a, 'p> {
    pub(crate) start: Start,
    pub(crate) log: &'a Arc<ServerLog>,
    pub(crate) id: ServerId,
    /// The server's name.
    pub(crate) server: Arc<str>,
    pub(crate) method: &'p str,
    pub(crate) params: Option<&'p Bytes>,
    /// Who calls.
    pub(crate) client: Option<Arc<str>>,
    /// By which way.
    pub(crate) source: CallSource,
    /// The call's id, where the caller gave it one.
    pub(crate) call_id: Option<Uuid>,
    /// What a trace says of it, where one is wanted.
    pub(crate) trace: Option<Box<CallTrace>>,
}

impl CallRecorder {
    /// Takes note that a call has begun.
    pub(crate) fn begin<'a>(&'a self, beginning: Beginning<'a, '_>) -> CallRecord<'a> {
        let Beginning { start, log, id, server, method, params, client, source, call_id, trace } =
            beginning;
        let tool = ToolCall::read(method, params);
        let record = CallRecord {
            recorder: self,
            log,
            call_id: call_id.unwrap_or_else(Uuid::new_v4),
            id,
            server,
            method: head_of(method, MAX_NAME).into(),
            tool: tool.as_ref().map(|tool| Arc::clone(&tool.name)),
            started_at: start.at,
            started: start.moment,
            params: params.map(Part::of),
            client,
            source,
            trace,
            position: start.position,
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
            Err(error) => (outcome_of(error), Some(head_of(&error.to_string(), LOGGED_ERROR))),
        };
        let size = called.result.as_ref().map_or(0, |result| result.len() as u64);
        if self.tool.is_some() {
            self.log_end(outcome, &called.result);
        } else if outcome == Outcome::Timeout {
            tracing::warn!(target: "MCP", server = %self.server, method = %self.method, "a call timed out; the server was not restarted");
        }
        if let Some(trace) = &mut self.trace {
            trace.end(called);
        }
        let entry = self.tell_end(outcome, error, size, called.timing);
        self.land(entry, called.id, Some(&called.result));
    }

    /// Keeps the call for the flight recorder.
    fn land(
        &mut self,
        entry: Arc<ActivityEntry>,
        rpc_id: Option<u64>,
        result: Option<&Result<Bytes, CallError>>,
    ) {
        self.recorder.flights.keep(Landing {
            entry,
            rpc_id,
            params: self.params.take(),
            result,
            log: self.log,
            position: self.position,
        });
    }

    fn tell_start(&self, tool: &ToolCall<'_>) {
        let arguments = excerpt(self.log, tool.arguments, LOGGED_ARGUMENTS);
        tracing::info!(target: "TOOLS", server = %self.server, tool = %tool.name, call = %self.call_id, %arguments, "call started");
        let started = ToolCallStarted {
            call_id: self.call_id,
            id: self.id,
            name: Arc::clone(&self.server),
            tool: Arc::clone(&tool.name),
            at: self.started_at,
        };
        self.recorder.events.publish(|_| EventKind::ToolCallStarted(started));
        self.log.tool_step(&tool.name, ToolStep::Started);
    }

    fn log_end(&self, outcome: Outcome, result: &Result<Bytes, CallError>) {
        let tool = self.tool.as_deref().unwrap_or_default();
        let duration_ms = millis(self.started.elapsed());
        let (server, call) = (&self.server, self.call_id);
        match result {
            Ok(result) if outcome == Outcome::Ok => {
                let result = excerpt(self.log, result, LOGGED_RESULT);
                tracing::info!(target: "TOOLS", %server, tool, %call, duration_ms, %result, "call finished");
            }
            Ok(result) => {
                let error = excerpt(self.log, result, LOGGED_ERROR);
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
                let stack = excerpt(self.log, stack.as_bytes(), LOGGED_ERROR);
                let error = self.log.redact(head_of(&error.to_string(), LOGGED_ERROR));
                tracing::warn!(target: "TOOLS", %server, tool, %call, duration_ms, %error, %stack, "call failed");
            }
        }
    }

    fn tell_end(
        &mut self,
        outcome: Outcome,
        error: Option<String>,
        response_bytes: u64,
        timing: Timing,
    ) -> Arc<ActivityEntry> {
        let duration_ms = millis(self.started.elapsed().saturating_sub(timing.input));
        if let Some(tool) = &self.tool {
            let finished = ToolCallFinished {
                call_id: self.call_id,
                id: self.id,
                name: Arc::clone(&self.server),
                tool: Arc::clone(tool),
                at: OffsetDateTime::now_utc(),
                duration_ms,
                outcome,
            };
            self.recorder.events.publish(|_| EventKind::ToolCallFinished(finished));
            self.log.tool_step(tool, ToolStep::Finished { outcome, duration_ms });
        }
        let entry = Arc::new(ActivityEntry {
            call_id: self.call_id,
            server_id: self.id,
            server: Arc::clone(&self.server),
            method: Arc::clone(&self.method),
            tool: self.tool.clone(),
            client: self.client.take(),
            source: self.source,
            recorded: true,
            started_at: self.started_at,
            duration_ms,
            stages: Stages {
                queue_ms: millis(timing.queue),
                queue_ahead: timing.queue_ahead as u64,
                write_ms: millis(timing.write),
                server_ms: millis(timing.server),
                input_ms: millis(timing.input),
                read_ms: millis(timing.read),
            },
            outcome,
            error: error.map(|error| self.log.redact(error).into_owned()),
            request_bytes: self.params.as_ref().map_or(0, Part::len),
            response_bytes,
        });
        self.recorder.observer.finished(&entry, self.trace.take());
        self.recorder.activity.push(Arc::clone(&entry));
        entry
    }
}

impl Drop for CallRecord<'_> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if let Some(tool) = self.tool.as_deref() {
            let duration_ms = millis(self.started.elapsed());
            tracing::warn!(target: "TOOLS", server = %self.server, tool, call = %self.call_id, duration_ms, "the caller went away; the call was cancelled");
        }
        let nothing = Duration::ZERO;
        let server = self.started.elapsed();
        let timing = Timing {
            queue: nothing,
            queue_ahead: 0,
            write: nothing,
            server,
            input: nothing,
            read: nothing,
        };
        let why = "the caller went away".to_owned();
        let entry = self.tell_end(Outcome::Cancelled, Some(why), 0, timing);
        self.land(entry, None, None);
    }
}

/// What a `tools/call` asks for; the arguments as they stand in the params, as far as they are
/// logged.
struct ToolCall<'a> {
    name: Arc<str>,
    arguments: &'a [u8],
}

impl<'a> ToolCall<'a> {
    fn read(method: &str, params: Option<&'a Bytes>) -> Option<Self> {
        if method != "tools/call" {
            return None;
        }
        let params = params?;
        let name = text(member(params, "name").filter(|name| name.len() <= MAX_NAME)?)?;
        let arguments = member_beginning(params, "arguments", looked_at(LOGGED_ARGUMENTS));
        Some(Self { name, arguments: arguments.unwrap_or(b"{}") })
    }
}

/// The first `limit` bytes of a text, or a little less where a character would be cut.
fn head_of(text: &str, limit: usize) -> String {
    text[..text.floor_char_boundary(limit)].to_owned()
}

/// The JSON string as text.
fn text(json: &[u8]) -> Option<Arc<str>> {
    match serde_json::from_slice::<&str>(json) {
        Ok(plain) => Some(plain.into()),
        // One with escapes in it cannot be taken from where it stands.
        Err(_) => serde_json::from_slice::<String>(json).ok().map(Arc::from),
    }
}

fn outcome_of(error: &CallError) -> Outcome {
    match error {
        CallError::Rpc(_) | CallError::BadParams => Outcome::McpError,
        CallError::Timeout(_) | CallError::QueueTimeout(_) => Outcome::Timeout,
        CallError::Overloaded { .. } | CallError::OutOfMemory { .. } => Outcome::Overloaded,
        CallError::RequestTooLarge { .. } | CallError::AnswerTooLarge { .. } => Outcome::TooLarge,
        CallError::Disconnected => Outcome::Disconnected,
    }
}

/// Whether a tool's result says that the tool failed.
fn says_is_error(result: &Bytes) -> bool {
    member(result, "isError") == Some(b"true")
}

fn millis(duration: Duration) -> f64 {
    // Microseconds are exact enough for people and keep the number short.
    (duration.as_nanos() / 1000) as f64 / 1000.0
}

/// The first `limit` characters of a text, without secrets.
fn excerpt<'a>(log: &ServerLog, text: &'a [u8], limit: usize) -> Cow<'a, str> {
    let head = String::from_utf8_lossy(&text[..text.len().min(looked_at(limit))]);
    let head = log.redact(head);
    // No more characters than bytes.
    if head.len() <= limit {
        return head;
    }
    match (head.char_indices().nth(limit), head) {
        (Some((end, _)), Cow::Borrowed(head)) => Cow::Borrowed(&head[..end]),
        (Some((end, _)), Cow::Owned(head)) => Cow::Owned(head[..end].to_owned()),
        (None, head) => head,
    }
}

/// How many bytes are looked at for the first `limit` characters: more, so that a secret which
/// the limit cuts in two is known for one; but no more than needed of a text that may have many
/// megabytes.
fn looked_at(limit: usize) -> usize {
    /// Longer than any secret that is worth the name.
    const MARGIN: usize = 16 * 1024;
    // A character has at most four bytes.
    limit * 4 + MARGIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofer_model::Redactor;
    use std::collections::BTreeMap;

    fn log_with_secret(secret: &str) -> (tempfile::TempDir, ServerLog) {
        let dir = tempfile::tempdir().unwrap();
        let environment = BTreeMap::from([("API_KEY".to_owned(), secret.to_owned())]);
        let log = ServerLog::open(dir.path().join("x.log"), Redactor::new(&environment));
        (dir, log)
    }

    #[test]
    fn a_result_is_logged_up_to_200_characters() {
        // covers: MGR-76
        let (_dir, log) = log_with_secret("canary-0123456789");
        let long = "日".repeat(500);
        let text = excerpt(&log, long.as_bytes(), LOGGED_RESULT);
        assert_eq!(text.chars().count(), 200);
        assert_eq!(excerpt(&log, b"short", LOGGED_RESULT), "short");
    }

    #[test]
    fn a_secret_that_the_limit_cuts_in_two_is_masked_all_the_same() {
        let (_dir, log) = log_with_secret("canary-0123456789");
        let text = format!("{}canary-0123456789", "x".repeat(LOGGED_RESULT - 8));
        assert!(!excerpt(&log, text.as_bytes(), LOGGED_RESULT).contains("canary"));
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
