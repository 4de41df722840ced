//! A stream of events to a client that outlives its connection: what was sent is kept for a
//! while, and a client that comes back with the last event it saw gets what came after it.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::charged::Charged;

/// So many events, and so many bytes of them, are kept after they were sent.
const KEPT_EVENTS: usize = 256;
const KEPT_BYTES: usize = 1 << 20;
/// So much may wait for a client that does not read. Beyond it notifications are dropped.
const WAITING_EVENTS: usize = 1024;
const WAITING_BYTES: usize = 8 << 20;
/// A sign of life for whatever stands between us and the client.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// When a client whose connection broke should come back.
const RETRY_MS: u64 = 1000;

/// See the module.
#[derive(Debug)]
pub(super) struct EventStream {
    pub(super) id: u64,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    /// The number of the first event that is kept.
    first: u64,
    events: VecDeque<Charged>,
    /// The first event that no connection has taken yet.
    unsent: u64,
    kept_bytes: usize,
    waiting_bytes: usize,
    is_finished: bool,
    /// Which connection reads it now; an older one ends.
    reader: u64,
    is_attached: bool,
    touched: Instant,
}

impl EventStream {
    pub(super) fn new(id: u64) -> Self {
        let state = State {
            first: 1,
            events: VecDeque::new(),
            unsent: 1,
            kept_bytes: 0,
            waiting_bytes: 0,
            is_finished: false,
            reader: 0,
            is_attached: false,
            touched: Instant::now(),
        };
        Self { id, state: Mutex::new(state), changed: Notify::new() }
    }

    /// Adds a message, which has no line end in it. A `droppable` one is discarded, and counted,
    /// where too much waits already; false then.
    pub(super) fn push(&self, message: Charged, droppable: bool) -> bool {
        let mut state = self.lock();
        let waiting = state.events.len() - state.sent();
        let is_full = waiting >= WAITING_EVENTS || state.waiting_bytes >= WAITING_BYTES;
        if droppable && is_full {
            message.count_loss();
            return false;
        }
        if state.is_finished {
            return false;
        }
        state.waiting_bytes += message.len();
        state.events.push_back(message);
        drop(state);
        self.changed.notify_one();
        true
    }

    /// Nothing more comes.
    pub(super) fn finish(&self) {
        let mut state = self.lock();
        state.is_finished = true;
        state.touched = Instant::now();
        drop(state);
        self.changed.notify_one();
    }

    /// Whether a connection reads it.
    pub(super) fn is_attached(&self) -> bool {
        self.lock().is_attached
    }

    /// Since when nobody has read it, while nobody does.
    pub(super) fn abandoned_for(&self) -> Option<Duration> {
        let state = self.lock();
        (!state.is_attached).then(|| state.touched.elapsed())
    }

    pub(super) fn is_finished(&self) -> bool {
        self.lock().is_finished
    }

    /// What was not sent to anybody, taken out.
    pub(super) fn take_unsent(&self) -> Vec<Charged> {
        let mut state = self.lock();
        let sent = state.sent();
        state.waiting_bytes = 0;
        state.events.drain(sent..).collect()
    }

    /// Reads it from behind event `after`, or from what nobody has read yet.
    pub(super) fn read(self: &Arc<Self>, after: Option<u64>, prime: bool) -> Reader {
        let mut state = self.lock();
        state.reader += 1;
        state.is_attached = true;
        let next = after.map_or(state.unsent, |after| after.saturating_add(1));
        let next = next.clamp(state.first, state.unsent);
        let reader = Reader {
            stream: Arc::clone(self),
            number: state.reader,
            next,
            prime,
            numbered: true,
            beside: None,
        };
        drop(state);
        self.changed.notify_waiters();
        reader
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// How many of the kept events were sent.
    fn sent(&self) -> usize {
        usize::try_from(self.unsent - self.first).unwrap_or(usize::MAX).min(self.events.len())
    }

    fn event(&self, number: u64) -> Option<Bytes> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.events.get(at).map(|event| event.bytes().clone())
    }

    fn may_forget(&self) -> bool {
        self.sent() > 1 || self.events.front().is_some_and(|event| event.memory().is_tight())
    }

    /// Notes that an event was sent, and forgets the oldest of those that were. A single event
    /// over `KEPT_BYTES` is kept for a client that comes back, unless its server is short of memory.
    fn mark_sent(&mut self, number: u64, bytes: usize) {
        if number < self.unsent {
            return;
        }
        self.unsent = number + 1;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
        self.kept_bytes += bytes;
        while self.sent() > KEPT_EVENTS || self.kept_bytes > KEPT_BYTES && self.may_forget() {
            if let Some(oldest) = self.events.pop_front() {
                self.kept_bytes = self.kept_bytes.saturating_sub(oldest.len());
            }
            self.first += 1;
        }
    }
}

/// A connection that reads a stream.
pub(super) struct Reader {
    stream: Arc<EventStream>,
    number: u64,
    next: u64,
    /// Whether the first event is an empty one, whose id a client can come back with.
    prime: bool,
    /// Whether events have ids that a client can come back with.
    numbered: bool,
    /// What lives as long as the connection does.
    beside: Option<Box<dyn Any + Send>>,
}

enum Next {
    Event { number: u64, data: Bytes },
    Wait,
    End,
}

impl Reader {
    /// The same without ids, and with something that is dropped when the connection ends.
    pub(super) fn plain(mut self, beside: impl Any + Send) -> Self {
        self.numbered = false;
        self.beside = Some(Box::new(beside));
        self
    }

    /// The stream as an HTTP answer, until `closing`.
    pub(super) fn into_response(self, closing: CancellationToken) -> Response {
        let pieces = stream::unfold(self, |mut reader| async move {
            let pieces = reader.pieces().await?;
            Some((stream::iter(pieces.map(Ok::<_, std::convert::Infallible>)), reader))
        });
        let body = pieces.flatten().take_until(closing.cancelled_owned());
        events_response(Body::from_stream(body))
    }

    async fn pieces(&mut self) -> Option<impl Iterator<Item = Bytes> + use<>> {
        if std::mem::take(&mut self.prime) {
            let id =
                format!("id: {}-{}\nretry: {RETRY_MS}\ndata:\n\n", self.stream.id, self.next - 1);
            return Some(one(id.into()));
        }
        loop {
            let stream = Arc::clone(&self.stream);
            let changed = stream.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.look() {
                Next::Event { number, data } => {
                    let head = if self.numbered {
                        format!("id: {}-{number}\ndata: ", self.stream.id)
                    } else {
                        "data: ".to_owned()
                    };
                    return Some([head.into(), data, Bytes::from_static(b"\n\n")].into_iter());
                }
                Next::End => return None,
                Next::Wait => {}
            }
            if tokio::time::timeout(KEEP_ALIVE, changed).await.is_err() {
                return Some(one(Bytes::from_static(b":\n\n")));
            }
        }
    }

    fn look(&mut self) -> Next {
        let mut state = self.stream.lock();
        if state.reader != self.number {
            return Next::End;
        }
        self.next = self.next.max(state.first);
        let number = self.next;
        match state.event(number) {
            Some(data) => {
                self.next += 1;
                state.mark_sent(number, data.len());
                Next::Event { number, data }
            }
            None if state.is_finished => Next::End,
            None => Next::Wait,
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.stream.lock();
        if state.reader == self.number {
            state.is_attached = false;
            state.touched = Instant::now();
        }
    }
}

fn one(piece: Bytes) -> std::array::IntoIter<Bytes, 3> {
    [piece, Bytes::new(), Bytes::new()].into_iter()
}

/// A body of Server-Sent Events with the headers that it wants.
pub(super) fn events_response(body: Body) -> Response {
    static BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
        (BUFFERING.clone(), HeaderValue::from_static("no")),
    ];
    (headers, body).into_response()
}

/// A line end in valid JSON is white space between tokens; in an event it would end the line.
pub(super) fn on_one_line(json: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &json).is_none() {
        return json;
    }
    json.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect()
}

/// The stream and the number in an event id of ours.
pub(super) fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, number) = id.split_once('-')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofer_model::Budget;

    async fn texts(reader: &mut Reader, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        while texts.len() < count {
            let pieces = reader.pieces().await.expect("the stream goes on");
            let text: Vec<u8> = pieces.flatten().collect();
            let text = String::from_utf8(text).unwrap();
            texts.push(text.replace(r#"{"jsonrpc":"2.0","method":""#, "").replace("\"}", ""));
        }
        texts
    }

    fn push(stream: &EventStream, text: &'static str) -> bool {
        stream.push(message(text), true)
    }

    /// A notification; what stands around its method is taken off again by `texts`.
    fn message(method: &str) -> Charged {
        Charged::notification(&Budget::unlimited(), method, None).unwrap()
    }

    #[tokio::test]
    async fn a_client_that_comes_back_gets_what_came_after_its_last_event() {
        let stream = Arc::new(EventStream::new(7));
        let mut reader = stream.read(None, true);
        for text in ["1", "2", "3"] {
            push(&stream, text);
        }
        let seen = texts(&mut reader, 3).await;
        assert_eq!(
            seen,
            ["id: 7-0\nretry: 1000\ndata:\n\n", "id: 7-1\ndata: 1\n\n", "id: 7-2\ndata: 2\n\n"]
        );
        drop(reader);
        push(&stream, "4");
        stream.finish();
        let mut back = stream.read(Some(1), false);
        assert_eq!(
            texts(&mut back, 3).await,
            ["id: 7-2\ndata: 2\n\n", "id: 7-3\ndata: 3\n\n", "id: 7-4\ndata: 4\n\n"]
        );
        assert!(back.pieces().await.is_none());
        assert!(!push(&stream, "5"), "it is finished");
    }

    #[tokio::test]
    async fn a_second_connection_takes_over() {
        let stream = Arc::new(EventStream::new(1));
        let mut first = stream.read(None, false);
        let mut second = stream.read(None, false);
        push(&stream, "x");
        assert!(first.pieces().await.is_none());
        drop(first);
        assert!(stream.is_attached(), "the second still reads");
        assert_eq!(texts(&mut second, 1).await, ["id: 1-1\ndata: x\n\n"]);
    }

    #[tokio::test]
    async fn what_is_kept_is_bounded_and_what_waits_too() {
        let stream = Arc::new(EventStream::new(1));
        let mut reader = stream.read(None, false);
        for _ in 0..WAITING_EVENTS {
            assert!(push(&stream, "x"));
        }
        assert!(!push(&stream, "one too many"));
        assert!(stream.push(message("an answer"), false), "answers always fit");
        texts(&mut reader, WAITING_EVENTS + 1).await;
        assert_eq!(stream.lock().events.len(), KEPT_EVENTS);
        drop(reader);
        let mut back = stream.read(Some(0), false);
        let first = texts(&mut back, 1).await;
        assert_eq!(first, [format!("id: 1-{}\ndata: x\n\n", WAITING_EVENTS + 2 - KEPT_EVENTS)]);
    }

    #[tokio::test]
    async fn a_large_event_is_kept_after_it_was_sent_unless_memory_is_short() {
        for (limit, is_kept) in [(100 << 20, true), (3 << 20, false)] {
            let memory = Budget::new(limit);
            let stream = Arc::new(EventStream::new(1));
            let mut reader = stream.read(None, false);
            let large = "x".repeat(2 << 20);
            let event = Charged::notification(&memory, &large, None).unwrap();
            assert!(stream.push(event, false));
            texts(&mut reader, 1).await;
            assert_eq!(memory.used() > 0, is_kept, "of {limit} bytes");
        }
    }

    #[test]
    fn an_event_has_no_line_ends_in_it() {
        assert_eq!(on_one_line(Bytes::from_static(b"{\r\n\"a\": 1}")), "{  \"a\": 1}");
        assert_eq!(parse_event_id("3-17"), Some((3, 17)));
        assert_eq!(parse_event_id("x"), None);
    }
}
