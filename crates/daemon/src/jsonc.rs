//! JSON as people write it in settings files, with comments and trailing commas, to JSON.
//! What is taken out becomes spaces, so that places in error messages stay true.

/// `text` without its comments and trailing commas. What is wrong in other ways stays wrong.
pub(crate) fn to_json(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // Only ASCII bytes are replaced, each by one other or as a whole comment, so that the rest
    // keeps its characters.
    let mut bytes = text.as_bytes().to_vec();
    blank_comments(&mut bytes);
    blank_trailing_commas(&mut bytes);
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

fn blank_comments(bytes: &mut [u8]) {
    let mut at = 0;
    while at < bytes.len() {
        let end = match &bytes[at..] {
            [b'"', ..] => {
                at = end_of_string(bytes, at);
                continue;
            }
            [b'/', b'/', rest @ ..] => rest.iter().position(|byte| *byte == b'\n'),
            [b'/', b'*', rest @ ..] => {
                rest.windows(2).position(|pair| pair == b"*/").map(|end| end + 2)
            }
            _ => {
                at += 1;
                continue;
            }
        };
        let end = end.map_or(bytes.len(), |end| at + 2 + end);
        for byte in &mut bytes[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
}

fn blank_trailing_commas(bytes: &mut [u8]) {
    let mut comma = None;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                comma = None;
                at = end_of_string(bytes, at);
                continue;
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += 1;
    }
}

/// The place after the string that begins at `start`.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(text: &str) -> Result<Value, serde_json::Error> {
        serde_json::from_str(&to_json(text))
    }

    #[test]
    fn comments_and_trailing_commas_go() {
        let text = "\u{feff}// first\n{\"a\": [1, 2, /* , */ ], # not one\n}";
        assert!(read(text).is_err());
        let text = "\u{feff}// first ü\n{\"a\": [1, 2, /* , ] ü */ ], // last\n}/**/";
        assert_eq!(read(text).unwrap(), json!({"a": [1, 2]}));
        assert_eq!(read("[1,/* x */\n// y\n]").unwrap(), json!([1]));
    }

    #[test]
    fn strings_stay_as_they_are() {
        for text in [r#"["// x", "/* y */", ",]", "\"//", "\\"]"#, r#"{"a,}": "é,]"}"#] {
            assert_eq!(to_json(text), text);
        }
    }

    #[test]
    fn what_is_wrong_in_other_ways_stays_wrong_in_its_place() {
        for text in ["[,]x", "[1,,2]", "{\"a\"", "\"", "\"\\", "/*", "/", ","] {
            assert!(read(text).is_err(), "{text}");
        }
        let error = read("// one\n/* two\n */ {\"a\" 1}").unwrap_err();
        assert_eq!((error.line(), error.column()), (3, 10));
    }
}
