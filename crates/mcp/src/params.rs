//! What Cofer changes in a request's params before they go to a server, and nothing else:
//! a progress token becomes the request's own id, so that two callers' tokens never meet;
//! for a server of the 2026-07-28 era, `_meta` names the protocol revision and the client.

use std::ops::Range;
use std::sync::LazyLock;

use bytes::{BufMut as _, Bytes, BytesMut};
use memchr::memmem::{self, Finder};

use crate::members::member;

/// Which of the two ways a conversation with a server is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Opened once by `initialize`: revisions up to 2025-11-25.
    Initialize,
    /// No opening; every request says what it needs: revision 2026-07-28.
    Discover,
}

static TOKEN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#""progressToken""#));

/// Params that can be sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stamped {
    pub(crate) params: Option<Bytes>,
    /// The caller's own progress token as JSON, where it asked for progress.
    pub(crate) token: Option<Bytes>,
}

/// What a modern request says of itself unless the caller does: the key and its JSON.
const MODERN_META: [(&str, &str); 3] = [
    (r#""io.modelcontextprotocol/protocolVersion""#, r#""2026-07-28""#),
    (
        r#""io.modelcontextprotocol/clientInfo""#,
        concat!(r#"{"name":"cofer","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#),
    ),
    (r#""io.modelcontextprotocol/clientCapabilities""#, "{}"),
];

/// Makes `params`, which are valid JSON, fit to be sent as request `id`; none where they are
/// neither an object nor an array, as JSON-RPC wants.
pub(crate) fn stamp(params: Option<Bytes>, id: u64, era: Era) -> Option<Stamped> {
    let params = match params {
        Some(params) if &params[..] == b"null" => None,
        Some(params) if matches!(params.first(), Some(b'{' | b'[')) => Some(on_one_line(params)),
        Some(_) => return None,
        None => None,
    };
    let (params, token) = own_token(params, id);
    let params = match era {
        Era::Initialize => params,
        Era::Discover => Some(with_modern_meta(params)),
    };
    Some(Stamped { params, token })
}

/// A line end in valid JSON is white space between tokens: a blank serves as well, and does
/// not end the line.
fn on_one_line(params: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &params).is_none() {
        return params;
    }
    params.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect()
}

fn own_token(params: Option<Bytes>, id: u64) -> (Option<Bytes>, Option<Bytes>) {
    let Some(params) = params else {
        return (None, None);
    };
    // Most requests ask for no progress; a search is much cheaper than a parse.
    if TOKEN.find(&params).is_none() {
        return (Some(params), None);
    }
    let Some(token) = find_meta(&params).and_then(|meta| meta.token) else {
        return (Some(params), None);
    };
    // Kept while the call lives, for which the whole body would be too much.
    let own = Bytes::copy_from_slice(&params[token.clone()]);
    (Some(splice(&params, token, id.to_string().as_bytes())), Some(own))
}

/// The params of a progress notification with the caller's own token.
pub(crate) fn with_token(params: &Bytes, token: &[u8]) -> Bytes {
    match member(params, "progressToken") {
        Some(ours) => splice(params, span_of(params, ours), token),
        None => params.clone(),
    }
}

/// Where `part` stands in `whole`, of which it is a slice.
fn span_of(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr() - whole.as_ptr().addr();
    start..start + part.len()
}

fn with_modern_meta(params: Option<Bytes>) -> Bytes {
    let params = params.unwrap_or_else(|| Bytes::from_static(b"{}"));
    if params.first() != Some(&b'{') {
        return params;
    }
    let meta = find_meta(&params);
    let present = meta.as_ref().map_or(&[][..], |meta| &params[meta.span.clone()]);
    let missing: Vec<String> = MODERN_META
        .iter()
        .filter(|(key, _)| memmem::find(present, key.as_bytes()).is_none())
        .map(|(key, value)| format!("{key}:{value}"))
        .collect();
    match meta {
        Some(_) if missing.is_empty() => params,
        Some(meta) => insert_first(&params, meta.span.start, &missing.join(",")),
        None => insert_first(&params, 0, &format!(r#""_meta":{{{}}}"#, missing.join(","))),
    }
}

/// Puts `members` first into the object that opens at `open`.
fn insert_first(json: &Bytes, open: usize, members: &str) -> Bytes {
    let empty = json[open + 1..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
    let separator = if empty { "" } else { "," };
    splice(json, open + 1..open + 1, format!("{members}{separator}").as_bytes())
}

fn splice(json: &Bytes, span: Range<usize>, with: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(json.len() + with.len());
    out.put_slice(&json[..span.start]);
    out.put_slice(with);
    out.put_slice(&json[span.end..]);
    out.freeze()
}

/// Where `_meta` stands in params, and the progress token in it.
struct Meta {
    span: Range<usize>,
    token: Option<Range<usize>>,
}

fn find_meta(params: &[u8]) -> Option<Meta> {
    let meta = member(params, "_meta").filter(|meta| meta.starts_with(b"{"))?;
    let token = member(meta, "progressToken").map(|token| span_of(params, token));
    Some(Meta { span: span_of(params, meta), token })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(params: &str, era: Era, expected: &str, progress: bool) {
        let stamped = stamp(Some(Bytes::copy_from_slice(params.as_bytes())), 9, era).unwrap();
        let text = String::from_utf8(stamped.params.unwrap().to_vec()).unwrap();
        assert_eq!((text.as_str(), stamped.token.is_some()), (expected, progress));
    }

    #[test]
    fn params_without_a_token_pass_untouched() {
        for params in [
            r#"{"a": 1e400, "a":"\ud800", "_meta":{"x":1}}"#,
            "[1, 2]",
            r#"{"text":"\"progressToken\""}"#,
            "{}",
        ] {
            check(params, Era::Initialize, params, false);
        }
    }

    #[test]
    fn a_token_becomes_the_id_of_the_request() {
        check(
            r#"{"_meta": {"progressToken":"abc","k":1},"x":[1.0]}"#,
            Era::Initialize,
            r#"{"_meta": {"progressToken":9,"k":1},"x":[1.0]}"#,
            true,
        );
        let params = Bytes::from_static(br#"{"_meta":{"progressToken":"a\"b"}}"#);
        let stamped = stamp(Some(params), 9, Era::Initialize).unwrap();
        let told = Bytes::from_static(br#"{"progress":1.0, "progressToken":9}"#);
        let restored = with_token(&told, &stamped.token.unwrap());
        assert_eq!(restored, br#"{"progress":1.0, "progressToken":"a\"b"}"#[..]);
        let elsewhere = r#"{"arguments":{"progressToken":1}}"#;
        check(elsewhere, Era::Initialize, elsewhere, false);
    }

    #[test]
    fn line_ends_between_tokens_become_blanks() {
        check("{\n\t\"a\":\r\n1\n}", Era::Initialize, "{ \t\"a\":  1 }", false);
    }

    #[test]
    fn only_objects_and_arrays_are_params() {
        for params in ["1", "\"x\"", "true"] {
            assert_eq!(
                stamp(Some(Bytes::from_static(params.as_bytes())), 1, Era::Initialize),
                None
            );
        }
        let none = Stamped { params: None, token: None };
        assert_eq!(stamp(Some(Bytes::from_static(b"null")), 1, Era::Initialize), Some(none));
    }

    #[test]
    fn a_modern_request_says_who_asks_unless_the_caller_does() {
        for (params, keep) in [
            ("{}", vec![]),
            (r#"{"name":"x"}"#, vec!["name"]),
            (r#"{"_meta":{}}"#, vec![]),
            (
                r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"mine","progressToken":1},"z":0}"#,
                vec!["z"],
            ),
        ] {
            let stamped =
                stamp(Some(Bytes::from_static(params.as_bytes())), 3, Era::Discover).unwrap();
            let value: serde_json::Value =
                serde_json::from_slice(&stamped.params.unwrap()).unwrap();
            let meta = value["_meta"].as_object().unwrap();
            let version = if params.contains("mine") { "mine" } else { "2026-07-28" };
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], version);
            assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
            assert!(keep.iter().all(|key| value.get(key).is_some()), "{value}");
        }
        let stamped = stamp(None, 3, Era::Discover).unwrap();
        assert!(
            stamped
                .params
                .unwrap()
                .starts_with(br#"{"_meta":{"io.modelcontextprotocol/protocolVersion""#)
        );
    }
}
