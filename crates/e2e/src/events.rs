//! A reader of the daemon's Server-Sent Events.

use std::pin::Pin;

use futures_util::{Stream, StreamExt as _};
use serde_json::Value;

use crate::wait::within;

type Chunks = Pin<Box<dyn Stream<Item = Vec<u8>> + Send>>;

/// One event of the stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What `Last-Event-ID` takes to go on behind it.
    pub id: String,
    /// `mcpServerStatusChanged`, `toolCallStarted`, `toolCallFinished`.
    pub name: String,
    /// Its data.
    pub data: Value,
}

impl Event {
    /// Whether it tells that the server `name` has this status now.
    pub fn is_status(&self, name: &str, status: &str) -> bool {
        self.name == "mcpServerStatusChanged"
            && self.data["name"] == name
            && self.data["status"] == status
    }
}

/// An open event stream.
pub struct Events {
    chunks: Chunks,
    buffer: Vec<u8>,
}

impl Events {
    pub(crate) fn new(response: reqwest::Response) -> Self {
        let chunks = response.bytes_stream().map(|chunk| chunk.map(Vec::from).unwrap_or_default());
        Self { chunks: Box::pin(chunks), buffer: Vec::new() }
    }

    /// The next event; none where the stream ended.
    pub async fn next(&mut self) -> Option<Event> {
        within("an event comes", self.read()).await
    }

    /// The events up to and with the first one that `wanted` takes.
    pub async fn until(&mut self, what: &str, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut seen = Vec::new();
        let reading = async {
            while let Some(event) = self.read().await {
                let found = wanted(&event);
                seen.push(event);
                if found {
                    return true;
                }
            }
            false
        };
        match tokio::time::timeout(*crate::DEADLINE, reading).await {
            Ok(true) => seen,
            Ok(false) => panic!("the stream ended before: {what}; seen {seen:#?}"),
            Err(_) => panic!("waited in vain: {what}; seen {seen:#?}"),
        }
    }

    async fn read(&mut self) -> Option<Event> {
        loop {
            while let Some(end) = self.buffer.windows(2).position(|two| two == b"\n\n") {
                let frame: Vec<u8> = self.buffer.drain(..end + 2).collect();
                if let Some(event) = parse(&String::from_utf8_lossy(&frame)) {
                    return Some(event);
                }
            }
            match self.chunks.next().await {
                Some(chunk) if !chunk.is_empty() => self.buffer.extend(chunk),
                _ => return None,
            }
        }
    }
}

/// A frame as an event; none for a comment that only keeps the connection open.
fn parse(frame: &str) -> Option<Event> {
    let field = |key: &str| {
        let lines = frame.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix(':'));
        let values: Vec<&str> =
            lines.map(|value| value.strip_prefix(' ').unwrap_or(value)).collect();
        (!values.is_empty()).then(|| values.join("\n"))
    };
    let data = field("data")?;
    let data = serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error} in {data}"));
    Some(Event { id: field("id").unwrap_or_default(), name: field("event")?, data })
}
