//! One message to the peer, as it is written.

use std::io::Write as _;

use bytes::{Buf, Bytes};

/// Up to here a payload is copied beside its envelope; above, it is written from where it is.
const SMALL: usize = 16 * 1024;

/// Why writing to memory does not fail.
const TAKES_ALL: &str = "a vector takes all that is written to it";

/// One message on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// Our request's id, where it is one.
    pub(crate) id: Option<u64>,
    pub(crate) head: Vec<u8>,
    body: Bytes,
    tail: &'static [u8],
}

impl Outgoing {
    /// A request, or a notification where it has no id.
    pub(crate) fn request(id: Option<u64>, method: &str, params: Option<&Bytes>) -> Self {
        let mut head = Vec::with_capacity(
            64 + method.len() + params.map_or(0, |params| params.len().min(SMALL)),
        );
        head.extend_from_slice(br#"{"jsonrpc":"2.0","#);
        if let Some(id) = id {
            write!(head, r#""id":{id},"#).expect(TAKES_ALL);
        }
        head.extend_from_slice(br#""method":"#);
        serde_json::to_writer(&mut head, method).expect(TAKES_ALL);
        if let Some(params) = params {
            head.extend_from_slice(br#","params":"#);
            return Self::with_payload(id, head, params);
        }
        head.extend_from_slice(b"}\n");
        Self { id, head, body: Bytes::new(), tail: b"" }
    }

    /// The answer to a request of the peer's; `member` is `result` or `error`.
    pub(crate) fn response(id: &Bytes, member: &str, payload: &Bytes) -> Self {
        let mut head = br#"{"jsonrpc":"2.0","id":"#.to_vec();
        head.extend_from_slice(id);
        head.extend_from_slice(format!(r#","{member}":"#).as_bytes());
        Self::with_payload(None, head, payload)
    }

    /// A message that is written as it is.
    pub(crate) fn line(text: Bytes) -> Self {
        if text.len() > SMALL {
            return Self { id: None, head: Vec::new(), body: text, tail: b"\n" };
        }
        let mut head = Vec::with_capacity(text.len() + 1);
        head.extend_from_slice(&text);
        head.push(b'\n');
        Self { id: None, head, body: Bytes::new(), tail: b"" }
    }

    /// Nothing to be written: it takes the place in the queue of a request that was begun already.
    pub(crate) fn begun(id: Option<u64>) -> Self {
        Self { id, head: Vec::new(), body: Bytes::new(), tail: b"" }
    }

    /// All of it, from where it is.
    pub(crate) fn parts(&self) -> impl Buf {
        self.head.as_slice().chain(&self.body[..]).chain(self.tail)
    }

    fn with_payload(id: Option<u64>, mut head: Vec<u8>, payload: &Bytes) -> Self {
        if payload.len() > SMALL {
            return Self { id, head, body: payload.clone(), tail: b"}\n" };
        }
        head.extend_from_slice(payload);
        head.extend_from_slice(b"}\n");
        Self { id, head, body: Bytes::new(), tail: b"" }
    }

    /// Whether all of it is in `head`.
    pub(crate) fn is_small(&self) -> bool {
        self.body.is_empty()
    }
}
