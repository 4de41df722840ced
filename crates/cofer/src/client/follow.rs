//! A log that goes on: the daemon's Server-Sent Events, one line of the log each.

use cofer_model::LogEntry;

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
            if let Some(data) = self.events.next() {
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

/// Finds the data in an event stream that comes in pieces. Each of the daemon's events has its
/// data on one line; names, ids and comments are not needed here.
#[derive(Debug, Default)]
struct Events {
    pending: Vec<u8>,
}

impl Events {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        if self.pending.len() + bytes.len() > MAX_EVENT {
            return Err(ClientError::TooLarge);
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    fn next(&mut self) -> Option<String> {
        loop {
            let end = self.pending.iter().position(|byte| *byte == b'\n')?;
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            if let Some(data) = line.strip_prefix("data:") {
                return Some(data.trim().to_owned());
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
            assert_eq!(found, [r#"{"é":1}"#, r#"{"b":2}"#], "pieces of {size}");
        }
    }

    #[test]
    fn an_event_without_an_end_is_given_up() {
        let mut events = Events::default();
        events.push(&vec![b'x'; MAX_EVENT]).unwrap();
        assert!(matches!(events.push(b"x"), Err(ClientError::TooLarge)));
    }
}
