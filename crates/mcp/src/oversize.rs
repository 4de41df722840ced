//! Finds the id of a message that is too large to keep, while its bytes go by.
//!
//! A server's answer may be larger than any cap, and whoever asked must still be told. The
//! id may stand before or after the large part, so that the whole line is looked at, byte by
//! byte, in constant memory.

use bytes::Bytes;

/// The longest id worth keeping.
const MAX_ID: usize = 1024;

/// Reads a JSON object in pieces and remembers what stands under its top-level key `id`, and
/// whether it has a `method`.
#[derive(Debug, Default)]
pub struct IdScanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The top-level string that is being read, or was read last: a key if a colon follows.
    text: Vec<u8>,
    /// Set between the colon behind a top-level `"id"` and the end of its value.
    reading: bool,
    value: Vec<u8>,
    found: Option<Vec<u8>>,
    has_method: bool,
}

impl IdScanner {
    /// Takes the next bytes of the line.
    pub fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.in_string {
                self.inside_string(byte);
            } else {
                self.outside_string(byte);
            }
        }
    }

    /// The id, where the object had one that we could have given.
    pub fn id(&self) -> Option<u64> {
        let digits = self.found.as_ref().filter(|id| id.iter().all(u8::is_ascii_digit))?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// The id as JSON, where the object is a request.
    pub fn request(&self) -> Option<Bytes> {
        let id = self.found.as_ref().filter(|id| self.has_method && *id != b"null")?;
        Some(Bytes::copy_from_slice(id))
    }

    fn inside_string(&mut self, byte: u8) {
        self.keep(byte);
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == b'"' {
            self.in_string = false;
            return;
        }
        // Longer keys than "method" need not be kept whole, only told apart from it.
        if self.depth == 1 && self.text.len() < 7 {
            self.text.push(byte);
        }
    }

    fn outside_string(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.in_string = true;
                self.text.clear();
                self.keep(byte);
            }
            b'{' | b'[' => {
                self.reading = false;
                self.depth += 1;
            }
            b'}' | b']' => {
                self.end_of_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                self.reading = self.text == b"id";
                self.has_method |= self.text == b"method";
                self.value.clear();
            }
            b',' => self.end_of_value(),
            byte if byte.is_ascii_whitespace() => {}
            _ => self.keep(byte),
        }
    }

    /// Keeps a byte of the id's value; one that is too long is none.
    fn keep(&mut self, byte: u8) {
        if self.reading {
            self.value.push(byte);
            self.reading = self.value.len() <= MAX_ID;
        }
    }

    fn end_of_value(&mut self) {
        if self.depth == 1 && self.reading {
            self.found = Some(std::mem::take(&mut self.value));
            self.reading = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id_of(text: &str) -> Option<u64> {
        let mut scanner = IdScanner::default();
        scanner.feed(text.as_bytes());
        scanner.id()
    }

    #[test]
    fn the_id_is_found_before_and_behind_the_large_part() {
        assert_eq!(id_of(r#"{"jsonrpc":"2.0","id":17,"result":{"id":3,"x":["#), Some(17));
        assert_eq!(
            id_of(r#"{"result":{"id":3,"x":"\"id\":9,"},"jsonrpc":"2.0", "id" : 42 }"#),
            Some(42)
        );
    }

    #[test]
    fn other_ids_are_not_ours() {
        for text in [
            r#"{"id":"7","result":1}"#,
            r#"{"idx":7,"a":1}"#,
            r#"{"a":{"id":7}}"#,
            r#"[{"id":7}]"#,
            r#"{"x":"id","y":7}"#,
            r#"{"id":-7}"#,
            r#"{"id":7.5}"#,
        ] {
            assert_eq!(id_of(text), None, "{text}");
        }
    }

    #[test]
    fn a_request_is_known_by_its_method_and_its_id_is_kept_as_it_is() {
        let request = |text: &str| {
            let mut scanner = IdScanner::default();
            scanner.feed(text.as_bytes());
            scanner.request()
        };
        let id = request(r#"{"method":"x","params":{"id":1},"id":"a\"b"}"#);
        assert_eq!(id.unwrap(), r#""a\"b""#);
        assert_eq!(request(r#"{"id":-7.5,"params":[],"method":"x"}"#).unwrap(), "-7.5");
        for text in [
            r#"{"id":7,"result":{"method":"x"}}"#,
            r#"{"id":null,"method":"x"}"#,
            r#"{"method":"x","params":{"id":7}}"#,
            r#"{"id":{"a":1},"method":"x"}"#,
        ] {
            assert_eq!(request(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn where_the_line_is_cut_makes_no_difference(id: u64, text: String, cut in 0usize..200) {
            let line = serde_json::json!({"result": {"text": text, "id": 1}, "id": id}).to_string();
            let cut = cut.min(line.len());
            let mut scanner = IdScanner::default();
            scanner.feed(&line.as_bytes()[..cut]);
            scanner.feed(&line.as_bytes()[cut..]);
            prop_assert_eq!(scanner.id(), Some(id));
        }
    }
}
