//! The flight recorder: the last calls down to the wire. What a call sent and got is kept as the
//! bytes it was, with a bound on their number and size; words are made of it when somebody looks.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use cofer_mcp::CallError;
use cofer_model::{ActivityEntry, LogEntry, RecordedCall, RecordedText, ServerId};
use time::Duration;
use uuid::Uuid;

use crate::server::ServerLog;

/// How many calls are kept.
const CALLS: usize = 200;
/// Up to this size a request or an answer is kept whole.
const WHOLE: usize = 512 << 10;
/// What is kept of a larger one: keeping more would take its memory from the next call's.
const BEGINNING: usize = 64 << 10;
/// Up to this size a copy is cheaper than what a slice would keep alive with it.
const COPIED: usize = 16 << 10;
/// What a slice may keep alive besides itself.
const AROUND: usize = 64 << 10;
/// Log lines kept with one call.
const LINES: usize = 200;
/// Stderr is another pipe: what was written before the answer may be read after it.
const LATE: Duration = Duration::milliseconds(250);

/// See the module.
#[derive(Debug)]
pub struct FlightRecorder {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    flights: VecDeque<Arc<Flight>>,
    bytes: usize,
    /// How many bytes they may hold together. Charged once, for the whole life of the recorder,
    /// so that recording a call changes no budget.
    limit: usize,
}

/// One call, as it was on the wire.
#[derive(Debug)]
pub struct Flight {
    entry: Arc<ActivityEntry>,
    rpc_id: Option<u64>,
    params: Option<Part>,
    answer: Option<Part>,
    is_error: bool,
    log: Arc<ServerLog>,
    /// Where the log stood when the call began.
    position: u64,
    lines: Vec<Arc<LogEntry>>,
}

/// The beginning of some bytes.
#[derive(Debug)]
pub(crate) struct Part {
    head: Bytes,
    whole: usize,
}

impl Part {
    pub(crate) fn of(bytes: &Bytes) -> Self {
        let whole = bytes.len();
        let head = match whole {
            0..=COPIED => Bytes::copy_from_slice(bytes),
            _ if whole <= WHOLE => bytes.clone(),
            // A slice would keep all of it.
            _ => Bytes::copy_from_slice(&bytes[..BEGINNING]),
        };
        Self { head, whole }
    }

    /// How many bytes there were.
    pub(crate) fn len(&self) -> u64 {
        self.whole as u64
    }

    fn is_whole(&self) -> bool {
        self.head.len() == self.whole
    }

    fn weight(&self) -> usize {
        let around = if self.head.len() > COPIED && self.is_whole() { AROUND } else { 0 };
        self.head.len() + around
    }
}

/// What is known of a call when it has ended.
pub(crate) struct Landing<'a> {
    pub(crate) entry: Arc<ActivityEntry>,
    pub(crate) rpc_id: Option<u64>,
    pub(crate) params: Option<Part>,
    pub(crate) result: Option<&'a Result<Bytes, CallError>>,
    pub(crate) log: &'a Arc<ServerLog>,
    pub(crate) position: u64,
}

impl FlightRecorder {
    /// A recorder that keeps calls of at most `limit` bytes together.
    pub(crate) fn new(limit: usize) -> Self {
        Self { kept: Mutex::new(Kept { limit, ..Kept::default() }) }
    }

    /// Keeps a call.
    pub(crate) fn keep(&self, landing: Landing<'_>) {
        let (answer, is_error) = match landing.result {
            Some(Ok(result)) => (Some(Part::of(result)), false),
            Some(Err(CallError::Rpc(error))) => (Some(Part::of(&error.to_json())), true),
            Some(Err(_)) | None => (None, false),
        };
        let flight = Arc::new(Flight {
            entry: landing.entry,
            rpc_id: landing.rpc_id,
            params: landing.params,
            answer,
            is_error,
            lines: landing.log.since(landing.position, LINES),
            log: Arc::clone(landing.log),
            position: landing.position,
        });
        // Dropped behind the lock: freeing megabytes takes its time.
        let forgotten = self.lock().push(flight);
        drop(forgotten);
    }

    /// The call with this id, while it is kept.
    pub fn get(&self, call_id: Uuid) -> Option<Arc<Flight>> {
        self.lock().flights.iter().rev().find(|flight| flight.entry.call_id == call_id).cloned()
    }

    /// The ids of all calls that are kept.
    pub fn ids(&self) -> HashSet<Uuid> {
        self.lock().flights.iter().map(|flight| flight.entry.call_id).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Returns what had to make room.
    fn push(&mut self, flight: Arc<Flight>) -> Vec<Arc<Flight>> {
        self.bytes += flight.weight();
        self.flights.push_back(flight);
        let mut forgotten = Vec::new();
        while self.flights.len() > CALLS || self.bytes > self.limit {
            let Some(oldest) = self.flights.pop_front() else { break };
            self.bytes -= oldest.weight();
            forgotten.push(oldest);
        }
        forgotten
    }
}

impl Flight {
    /// The server that was called.
    pub fn server_id(&self) -> ServerId {
        self.entry.server_id
    }

    /// The method that was called.
    pub fn method(&self) -> &str {
        &self.entry.method
    }

    /// The params as they were; an error where they are not kept whole.
    pub fn params(&self) -> Result<Option<Bytes>, Cut> {
        match &self.params {
            Some(part) if !part.is_whole() => Err(Cut { bytes: part.whole }),
            part => Ok(part.as_ref().map(|part| part.head.clone())),
        }
    }

    /// All of it in words, without the server's secrets.
    pub fn view(&self) -> RecordedCall {
        RecordedCall {
            call: ActivityEntry { recorded: true, ..ActivityEntry::clone(&self.entry) },
            request: self.request(),
            response: self.answer.as_ref().map(|part| self.text(part, self.answer_frame())),
            stderr: self.stderr(),
            replayable: self.params().is_ok(),
        }
    }

    fn request(&self) -> RecordedText {
        let id = self.rpc_id.map_or_else(|| "null".to_owned(), |id| id.to_string());
        let method = serde_json::Value::from(&*self.entry.method);
        let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method}"#);
        match &self.params {
            Some(part) => self.text(part, (format!(r#"{start},"params":"#), "}")),
            None => self.text(&Part { head: Bytes::new(), whole: 0 }, (start, "}")),
        }
    }

    /// What stood around the answer on its line.
    fn answer_frame(&self) -> (String, &'static str) {
        let id = self.rpc_id.map_or_else(|| "null".to_owned(), |id| id.to_string());
        let member = if self.is_error { "error" } else { "result" };
        (format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":"#), "}")
    }

    fn text(&self, part: &Part, (start, end): (String, &str)) -> RecordedText {
        let truncated = !part.is_whole();
        let bytes = (start.len() + part.whole + end.len()) as u64;
        let mut text = start;
        text.push_str(&String::from_utf8_lossy(&part.head));
        if !truncated {
            text.push_str(end);
        }
        let (text, redacted) = match self.log.redact(text.as_str()) {
            Cow::Owned(masked) => (masked, true),
            Cow::Borrowed(_) => (text, false),
        };
        RecordedText { text, bytes, truncated, redacted }
    }

    /// What was kept at the call's end, and what came in late.
    fn stderr(&self) -> Vec<LogEntry> {
        let last = self.lines.last().map_or(self.position, |line| line.seq);
        let took = Duration::seconds_f64(self.entry.duration_ms / 1000.0);
        let until = self.entry.started_at + took + LATE;
        let room = LINES.saturating_sub(self.lines.len());
        let late = self.log.since(last, room);
        let late = late.iter().take_while(|line| line.at <= until);
        self.lines.iter().chain(late).map(|line| LogEntry::clone(line)).collect()
    }

    fn weight(&self) -> usize {
        let parts = self.params.iter().chain(&self.answer).map(Part::weight).sum::<usize>();
        parts + self.lines.iter().map(|line| line.line.len()).sum::<usize>() + size_of::<Self>()
    }
}

/// A request that is not kept whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request had {bytes} bytes, and only its beginning is kept")]
pub struct Cut {
    /// Its size.
    pub bytes: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofer_model::{CallSource, LogStream, Outcome, Redactor, Stages};
    use std::collections::BTreeMap;
    use time::OffsetDateTime;

    const BYTES: usize = 64 << 20;

    fn log() -> (tempfile::TempDir, Arc<ServerLog>) {
        let dir = tempfile::tempdir().unwrap();
        let environment = BTreeMap::from([("API_KEY".to_owned(), "canary-0123456789".to_owned())]);
        let log = ServerLog::open(dir.path().join("x.log"), Redactor::new(&environment));
        (dir, Arc::new(log))
    }

    fn entry() -> Arc<ActivityEntry> {
        Arc::new(ActivityEntry {
            call_id: Uuid::new_v4(),
            server_id: ServerId(Uuid::nil()),
            server: "s".into(),
            method: "tools/call".into(),
            tool: None,
            client: None,
            source: CallSource::Api,
            recorded: false,
            started_at: OffsetDateTime::now_utc(),
            duration_ms: 0.0,
            stages: Stages::default(),
            outcome: Outcome::Ok,
            error: None,
            request_bytes: 0,
            response_bytes: 0,
        })
    }

    fn keep(
        recorder: &FlightRecorder,
        log: &Arc<ServerLog>,
        params: &Bytes,
        result: Bytes,
    ) -> Uuid {
        let entry = entry();
        let call_id = entry.call_id;
        let position = log.position();
        log.append(LogStream::Stderr, ["during the call".to_owned()]);
        recorder.keep(Landing {
            entry,
            rpc_id: Some(7),
            params: Some(Part::of(params)),
            result: Some(&Ok(result)),
            log,
            position,
        });
        call_id
    }

    #[test]
    fn a_call_is_shown_as_it_was_on_the_wire_with_the_lines_of_its_time() {
        let (_dir, log) = log();
        log.append(LogStream::Stderr, ["before".to_owned()]);
        let recorder = FlightRecorder::new(BYTES);
        let params = Bytes::from_static(br#"{"name" : "x",  "arguments":{}}"#);
        let id = keep(&recorder, &log, &params, Bytes::from_static(br#"{"content":[ ]}"#));
        let view = recorder.get(id).unwrap().view();
        assert_eq!(
            view.request.text,
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name" : "x",  "arguments":{}}}"#
        );
        assert_eq!(view.request.bytes, view.request.text.len() as u64);
        let response = view.response.unwrap();
        assert_eq!(response.text, r#"{"jsonrpc":"2.0","id":7,"result":{"content":[ ]}}"#);
        let lines: Vec<_> = view.stderr.iter().map(|line| line.line.as_str()).collect();
        assert_eq!(lines, ["during the call"]);
        assert_eq!(recorder.get(id).unwrap().params(), Ok(Some(params)));
    }

    #[test]
    fn secrets_are_taken_out_and_that_is_said() {
        let (_dir, log) = log();
        let recorder = FlightRecorder::new(BYTES);
        let secret = Bytes::from_static(br#"{"token":"canary-0123456789"}"#);
        let id = keep(&recorder, &log, &secret, Bytes::from_static(b"{}"));
        let view = recorder.get(id).unwrap().view();
        assert!(view.request.redacted && !view.request.text.contains("canary"));
        assert!(!view.response.unwrap().redacted);
        assert!(view.replayable, "the request itself is whole");
    }

    #[test]
    fn what_is_too_large_is_cut_and_its_size_said() {
        let (_dir, log) = log();
        let recorder = FlightRecorder::new(BYTES);
        let large = Bytes::from(vec![b'x'; WHOLE + 1]);
        let id = keep(&recorder, &log, &large, large.clone());
        let flight = recorder.get(id).unwrap();
        assert_eq!(flight.params(), Err(Cut { bytes: WHOLE + 1 }));
        let view = flight.view();
        assert!(view.request.truncated && !view.replayable);
        assert!(view.request.text.len() < BEGINNING + 200 && view.request.bytes > WHOLE as u64);
    }

    #[test]
    fn many_and_large_calls_push_the_oldest_out() {
        let (_dir, log) = log();
        let recorder = FlightRecorder::new(BYTES);
        let small = Bytes::from_static(b"{}");
        let first = keep(&recorder, &log, &small, small.clone());
        for _ in 0..CALLS {
            keep(&recorder, &log, &small, small.clone());
        }
        assert!(recorder.get(first).is_none());
        assert_eq!(recorder.ids().len(), CALLS);
        let large = Bytes::from(vec![b'x'; WHOLE]);
        for _ in 0..CALLS {
            keep(&recorder, &log, &large, large.clone());
        }
        let kept = recorder.lock();
        assert!(kept.bytes <= BYTES && kept.flights.len() >= 20, "{} calls", kept.flights.len());
    }
}
