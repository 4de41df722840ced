//! JSON-RPC messages, and how they go over stdin and stdout, with payloads kept as the bytes they came in.

use std::io::{self, BufRead as _, Write as _};

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// One message from the client.
#[derive(Debug, Deserialize)]
pub(crate) struct Incoming {
    /// None for a notification.
    pub(crate) id: Option<Box<RawValue>>,
    pub(crate) method: Option<String>,
    pub(crate) params: Option<Box<RawValue>>,
}

/// What a request is answered with.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A result, sent as it stands.
    Result(Box<RawValue>),
    Error {
        code: i64,
        message: String,
        data: Option<Value>,
    },
    /// Nothing: the request was cancelled, or the server was told to hang.
    Silence,
}

impl Reply {
    pub(crate) fn result(value: &Value) -> Self {
        Self::Result(to_raw_value(value).expect("a JSON value is written as JSON"))
    }

    pub(crate) fn error(code: i64, message: impl Into<String>) -> Self {
        Self::Error { code, message: message.into(), data: None }
    }

    /// The whole message that answers the request `id`; nothing for silence.
    pub(crate) fn message(&self, id: &RawValue) -> Option<String> {
        match self {
            Self::Silence => None,
            Self::Result(result) => {
                Some(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{}}}"#, id.get(), result.get()))
            }
            Self::Error { code, message, data } => {
                let mut error = json!({"code": code, "message": message});
                if let Some(data) = data {
                    error["data"] = data.clone();
                }
                Some(format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.get()))
            }
        }
    }
}

/// Reads lines on a thread of its own; the channel ends with stdin.
pub(crate) fn read_lines() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(64);
    std::thread::spawn(move || {
        let mut input = io::BufReader::with_capacity(1 << 16, io::stdin().lock());
        loop {
            let mut line = Vec::new();
            match input.read_until(b'\n', &mut line) {
                Ok(read) if read > 0 => {}
                _ => return,
            }
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Writes messages, each in one go, with noise between them where that was ordered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) noise: bool,
}

impl Output {
    pub(crate) fn answer(self, id: &RawValue, reply: &Reply) {
        if let Some(message) = reply.message(id) {
            self.send(message);
        }
    }

    pub(crate) fn notify(self, method: &str, params: &str) {
        self.send(format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#));
    }

    pub(crate) fn ask(self, id: &str, method: &str, params: &str) {
        self.send(format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}","params":{params}}}"#
        ));
    }

    fn send(self, mut message: String) {
        if self.noise {
            self.babble(1);
        }
        message.push('\n');
        self.write(message.as_bytes());
    }

    /// Lines that have no business on stdout.
    pub(crate) fn babble(self, times: u64) {
        for _ in 0..times {
            self.write(b"this line is noise\n{\"half\": \n\n[1, 2]\n\"text\"\nnull\n");
            self.write(b"\xff\xfe not even text\n{\"jsonrpc\":\"2.0\"}\n");
            self.write(b"{\"jsonrpc\":\"2.0\",\"id\":\"nobody-asked\",\"result\":{}}\r\n");
        }
    }

    fn write(self, bytes: &[u8]) {
        let mut stdout = io::stdout().lock();
        if stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err() {
            crate::leave(0);
        }
    }
}
