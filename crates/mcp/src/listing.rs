//! Follows `tools/list` and its like over all their pages.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::bridge::Bridge;
use crate::call::{CallError, Request};
use crate::message::RpcError;

/// A server that gives more pages than this never ends.
const MAX_PAGES: usize = 10_000;

/// A list of a server, each item as the bytes it came in.
#[derive(Debug)]
pub struct Listing {
    /// The items of all pages, in order.
    pub items: Vec<Box<RawValue>>,
}

/// Asks for every page of `method`, whose items stand under `key`.
pub async fn collect_pages(
    bridge: &Bridge,
    method: &str,
    key: &str,
    timeout: std::time::Duration,
) -> Result<Listing, CallError> {
    let mut items = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let params =
            cursor.as_ref().map(|cursor| Bytes::from(json!({"cursor": cursor}).to_string()));
        let answer = bridge.call(Request::new(method, params, timeout)).await.result?;
        let page = Page::read(&answer, key)?;
        items.extend(page.items);
        match page.next {
            Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
            Some(_) => return Err(nonsense(method, "it gives the same cursor again and again")),
            None => return Ok(Listing { items }),
        }
    }
    Err(nonsense(method, "its pages do not end"))
}

struct Page {
    items: Vec<Box<RawValue>>,
    next: Option<String>,
}

impl Page {
    fn read(answer: &Bytes, key: &str) -> Result<Self, CallError> {
        #[derive(Deserialize)]
        struct Cursor {
            #[serde(rename = "nextCursor", default)]
            next: Option<String>,
        }
        let mut members: std::collections::BTreeMap<String, &RawValue> =
            serde_json::from_slice(answer).map_err(|error| nonsense(key, &error.to_string()))?;
        let items = match members.remove(key) {
            Some(items) => serde_json::from_str(items.get())
                .map_err(|error| nonsense(key, &error.to_string()))?,
            None => return Err(nonsense(key, &format!("it has no `{key}`"))),
        };
        let cursor: Cursor =
            serde_json::from_slice(answer).map_err(|error| nonsense(key, &error.to_string()))?;
        Ok(Self { items, next: cursor.next.filter(|next| !next.is_empty()) })
    }
}

/// A list that is none counts as an error of the server's.
fn nonsense(what: &str, reason: &str) -> CallError {
    let message = format!("the server's answer for `{what}` is not a list: {reason}");
    CallError::Rpc(RpcError::new(-32603, message))
}
