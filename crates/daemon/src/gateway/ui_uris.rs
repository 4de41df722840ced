//! `ui://` resources (MCP Apps) where all servers are joined: every server chooses its paths by
//! itself, so that equal URIs of two servers are common. The server's prefix becomes the first
//! segment: `ui://app.html` of the server `maps` is `ui://maps/app.html`.

use std::fmt::Write as _;

use bytes::Bytes;
use cofer_mcp::member;
use serde_json::Value;
use serde_json::value::RawValue;

use super::rpc::{replace, text_member};

const SCHEME: &str = "ui://";

/// The joined form of a server's URI; none if the scheme is another one, whose URIs stay.
pub(super) fn joined_uri(prefix: &str, uri: &str) -> Option<String> {
    let rest = uri.strip_prefix(SCHEME)?;
    Some(format!("{SCHEME}{}/{rest}", segment(prefix)))
}

/// The first segment of a joined URI, and the server's own URI.
pub(super) fn split(uri: &str) -> Option<(&str, String)> {
    let (segment, rest) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    Some((segment, format!("{SCHEME}{rest}")))
}

/// A prefix as a segment of a URI: percent-encoded, so that different ones stay different.
pub(super) fn segment(prefix: &str) -> String {
    let mut segment = String::with_capacity(prefix.len());
    for byte in prefix.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            segment.push(char::from(byte));
        } else {
            write!(segment, "%{byte:02X}").unwrap_or_default();
        }
    }
    segment
}

/// A tool whose `_meta` refers to a `ui://` resource, with the joined URI in it: at
/// `ui.resourceUri`, and at `ui/resourceUri`, which is how it was written first.
pub(super) fn join_tool(tool: Vec<u8>, prefix: &str) -> Vec<u8> {
    let nested =
        |meta: &[u8]| member(meta, "ui").and_then(|ui| with_joined(ui, "resourceUri", prefix));
    let Some(meta) = member(&tool, "_meta") else {
        return tool;
    };
    let mut joined = meta.to_vec();
    if let Some(ui) = nested(&joined)
        && let Some(part) = member(&joined, "ui")
    {
        joined = replace(&joined, part, &ui).to_vec();
    }
    if let Some(flat) = with_joined(&joined, "ui/resourceUri", prefix) {
        joined = flat.to_vec();
    }
    replace(&tool, meta, &joined).to_vec()
}

/// The result of `resources/read` with the joined URIs in it.
pub(super) fn join_contents(result: &Bytes, prefix: &str) -> Bytes {
    let Some(list) = member(result, "contents") else {
        return result.clone();
    };
    let Ok(contents) = serde_json::from_slice::<Vec<&RawValue>>(list) else {
        return result.clone();
    };
    let content = |content: &&RawValue| {
        let raw = content.get().as_bytes();
        with_joined(raw, "uri", prefix).unwrap_or_else(|| Bytes::copy_from_slice(raw))
    };
    let contents: Vec<Bytes> = contents.iter().map(content).collect();
    replace(result, list, &[b"[", &contents.join(&b","[..])[..], b"]"].concat())
}

/// The object with the joined form of the URI at `key`; none if there is no such URI.
pub(super) fn with_joined(json: &[u8], key: &str, prefix: &str) -> Option<Bytes> {
    let uri = joined_uri(prefix, &text_member(json, key)?)?;
    Some(replace(json, member(json, key)?, Value::from(uri).to_string().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_joined_uri_leads_back() {
        let joined = joined_uri("my maps", "ui://app/main.html?x={y}").unwrap();
        assert_eq!(joined, "ui://my%20maps/app/main.html?x={y}");
        let (first, own) = split(&joined).unwrap();
        assert_eq!((first, own.as_str()), (&*segment("my maps"), "ui://app/main.html?x={y}"));
        assert_eq!(joined_uri("a", "file:///x"), None);
        assert_eq!(split("ui://a"), None);
    }

    #[test]
    fn references_of_tools_and_contents_are_joined() {
        let tool = br#"{"name":"t","n":1.0,"_meta":{"ui":{"resourceUri":"ui://a","visibility":["app"]},"ui/resourceUri":"ui://a"}}"#;
        let expected = r#"{"name":"t","n":1.0,"_meta":{"ui":{"resourceUri":"ui://p/a","visibility":["app"]},"ui/resourceUri":"ui://p/a"}}"#;
        assert_eq!(join_tool(tool.to_vec(), "p"), expected.as_bytes());
        for same in
            [&br#"{"name":"t"}"#[..], br#"{"name":"t","_meta":{"ui":{"resourceUri":"x://a"}}}"#]
        {
            assert_eq!(join_tool(same.to_vec(), "p"), same);
        }
        let read =
            Bytes::from_static(br#"{"contents":[{"uri":"ui://a","n":1.0},{"uri":"x://b"}]}"#);
        let expected = r#"{"contents":[{"uri":"ui://p/a","n":1.0},{"uri":"x://b"}]}"#;
        assert_eq!(join_contents(&read, "p"), expected);
    }
}
