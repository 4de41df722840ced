//! What goes on: the daemon's Server-Sent Events, as the lines of a log or the events of a chat.

use cofer_model::LogEntry;
use serde_json::Value;

use super::{Client, ClientError};

/// The longest event; the daemon's log lines are far shorter.
const MAX_EVENT: usize = 16 << 20;

/// Gives the lines of a log as they come.
pub(crate) struct Follower<'a> {
    client: &'a Client,
    response: reqwest::Response,
    events: Events,
}

impl<'a> Follower<'a> {
    pub(super) fn new(client: &'a Client, response: reqwest::Response) -> Self {
        Self { client, response, events: Events::default() }
    }

    /// The next line; none when the daemon ends or the server is removed.
    pub(crate) async fn next(&mut self) -> Result<Option<LogEntry>, ClientError> {
        loop {
            if let Some((_, data)) = self.events.next() {
                return serde_json::from_str(&data).map(Some).map_err(ClientError::Unreadable);
            }
            let chunk = self.response.chunk().await;
            match chunk.map_err(|error| self.client.failed(error, None))? {
                Some(chunk) => self.events.push(&chunk)?,
                None => return Ok(None),
            }
        }
    }
}

/// Gives the events of a chat as they come.
pub(crate) struct ChatFeed<'a> {
    client: &'a Client,
    response: reqwest::Response,
    events: Events,
}

impl<'a> ChatFeed<'a> {
    pub(super) fn new(client: &'a Client, response: reqwest::Response) -> Self {
        Self { client, response, events: Events::default() }
    }

    /// The next event's name and data; none when the turn or the daemon has ended.
    pub(crate) async fn next(&mut self) -> Result<Option<(String, Value)>, ClientError> {
        loop {
            if let Some((name, data)) = self.events.next() {
                let data = serde_json::from_str(&data).map_err(ClientError::Unreadable)?;
                return Ok(Some((name, data)));
            }
            let chunk = self.response.chunk().await;
            match chunk.map_err(|error| self.client.failed(error, None))? {
                Some(chunk) => self.events.push(&chunk)?,
                None => return Ok(None),
            }
        }
    }
}

/// Finds names and data in an event stream that comes in pieces. Each of the daemon's events has
/// its data on one line, behind its name; ids and comments are not needed here.
#[derive(Debug, Default)]
struct Events {
    pending: Vec<u8>,
    name: String,
}

impl Events {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        if self.pending.len() + bytes.len() > MAX_EVENT {
            return Err(ClientError::TooLarge);
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    fn next(&mut self) -> Option<(String, String)> {
        loop {
            let end = self.pending.iter().position(|byte| *byte == b'\n')?;
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            if let Some(name) = line.strip_prefix("event:") {
                name.trim().clone_into(&mut self.name);
            }
            if let Some(data) = line.strip_prefix("data:") {
                return Some((std::mem::take(&mut self.name), data.trim().to_owned()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_found_in_whatever_pieces_it_comes() {
        let stream = "id: 1\nevent: logLine\ndata: {\"é\":1}\n\n:\n\ndata: {\"b\":2}\r\n\r\n";
        for size in [1, 2, 7, stream.len()] {
            let mut events = Events::default();
            let mut found = Vec::new();
            for piece in stream.as_bytes().chunks(size) {
                events.push(piece).unwrap();
                while let Some(data) = events.next() {
                    found.push(data);
                }
            }
            let expected = [("logLine", r#"{"é":1}"#), ("", r#"{"b":2}"#)];
            let expected = expected.map(|(name, data)| (name.to_owned(), data.to_owned()));
            assert_eq!(found, expected, "pieces of {size}");
        }
    }

    #[test]
    fn an_event_without_an_end_is_given_up() {
        let mut events = Events::default();
        events.push(&vec![b'x'; MAX_EVENT]).unwrap();
        assert!(matches!(events.push(b"x"), Err(ClientError::TooLarge)));
    }
}
