//! What the CLI said, as it is given back: raw, with its exit code, and honest about what a
//! JSON string could not hold.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofer_model::Exit;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::capture::Captured;

/// How the CLI was talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// Over its pipes, with flags.
    Pipe,
    /// Over a pseudo-terminal, as a person would.
    Tty,
}

/// What the CLI said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
    /// None where it had not ended by itself.
    pub(crate) exit: Option<Exit>,
    pub(crate) mode: Mode,
}

impl Answer {
    /// The structured content. Beyond the four members that are always there, it has `signal`
    /// where one ended the CLI, `stdout_base64` where the bytes are not UTF-8, and `truncated`
    /// with the number of bytes that were dropped.
    pub(crate) fn json(&self) -> Value {
        let mut content = Map::new();
        let mut dropped = Map::new();
        for (name, captured) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            content.insert(name.to_owned(), json!(String::from_utf8_lossy(&captured.bytes)));
            if std::str::from_utf8(&captured.bytes).is_err() && captured.dropped == 0 {
                let encoded = STANDARD.encode(&captured.bytes);
                content.insert(format!("{name}_base64"), encoded.into());
            }
            if captured.dropped > 0 {
                dropped.insert(name.to_owned(), captured.dropped.into());
            }
        }
        content.insert("exit_code".to_owned(), json!(self.exit.and_then(|exit| exit.code)));
        content.insert("mode".to_owned(), json!(self.mode));
        if let Some(signal) = self.exit.and_then(|exit| exit.signal) {
            content.insert("signal".to_owned(), signal.into());
        }
        if !dropped.is_empty() {
            content.insert("truncated".to_owned(), dropped.into());
        }
        content.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(stdout: &[u8], dropped: u64) -> Value {
        let exit = Some(Exit { code: Some(3), signal: None });
        let stdout = Captured { bytes: stdout.to_vec(), dropped };
        Answer { stdout, stderr: Captured::default(), exit, mode: Mode::Pipe }.json()
    }

    #[test]
    fn what_was_said_is_given_back_as_it_was() {
        // covers: COP-003
        let said = " \u{1b}[1mhi\u{1b}[0m\r\n\n";
        let expected = json!({"stdout": said, "stderr": "", "exit_code": 3, "mode": "pipe"});
        assert_eq!(answer(said.as_bytes(), 0), expected);
    }

    #[test]
    fn bytes_that_are_no_text_are_there_too() {
        let content = answer(b"a\xff", 0);
        assert_eq!(content["stdout"], "a\u{fffd}");
        assert_eq!(content["stdout_base64"], "Yf8=");
    }

    #[test]
    fn what_was_dropped_is_said() {
        assert_eq!(answer(b"a", 7)["truncated"], json!({"stdout": 7}));
    }
}
