//! Follows `tools/list` and its like over all their pages.

use bytes::Bytes;
use cofer_model::Charge;
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, SeqAccess, Visitor};
use serde_json::json;
use serde_json::value::RawValue;

use crate::bridge::Bridge;
use crate::call::{CallError, Request};
use crate::members::member;
use crate::message::RpcError;

/// A server that gives more pages than this never ends.
const MAX_PAGES: usize = 10_000;

/// The longest cursor: it is sent back with the request for the next page.
const MAX_CURSOR: usize = 64 * 1024;
/// What an item costs besides its bytes: its allocation and its place in the list.
const ITEM: usize = 64;
/// The list is charged in steps of this size.
const STEP: usize = 64 * 1024;

/// A list of a server, each item as the bytes it came in.
#[derive(Debug)]
pub struct Listing {
    /// The items of all pages, in order.
    pub items: Vec<Box<RawValue>>,
    /// The memory of the items, to be kept for as long as they are.
    pub charge: Charge,
}

/// Asks for every page of `method`, whose items stand under `key`. All pages together may be as
/// large as one message.
pub async fn collect_pages(
    bridge: &Bridge,
    method: &str,
    key: &str,
    timeout: std::time::Duration,
) -> Result<Listing, CallError> {
    let listing = read_pages(bridge, method, key, timeout).await;
    if listing.is_err() {
        // Its pages may be of no use, and without end.
        bridge.forget_list(method);
    }
    listing
}

async fn read_pages(
    bridge: &Bridge,
    method: &str,
    key: &str,
    timeout: std::time::Duration,
) -> Result<Listing, CallError> {
    let mut pages = Pages::new(bridge);
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let params =
            cursor.as_ref().map(|cursor| Bytes::from(json!({"cursor": cursor}).to_string()));
        let answer = bridge.call(Request::new(method, params, timeout)).await.result?;
        match pages.add(&answer, key)? {
            Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
            Some(_) => return Err(nonsense(method, "it gives the same cursor again and again")),
            None => return Ok(Listing { items: pages.items, charge: pages.charge }),
        }
    }
    Err(nonsense(method, "its pages do not end"))
}

/// What was read so far.
struct Pages {
    items: Vec<Box<RawValue>>,
    bytes: usize,
    cap: usize,
    charge: Charge,
    is_full: bool,
}

impl Pages {
    fn new(bridge: &Bridge) -> Self {
        let (cap, charge) = (bridge.max_message(), Charge::none(bridge.memory()));
        Self { items: Vec::new(), bytes: 0, cap, charge, is_full: false }
    }

    /// Takes a page in, and gives the cursor of the next one.
    fn add(&mut self, answer: &Bytes, key: &str) -> Result<Option<String>, CallError> {
        let Some(items) = member(answer, key) else {
            return Err(nonsense(key, &format!("it has no `{key}`")));
        };
        let mut reader = serde_json::Deserializer::from_slice(items);
        let read = Items(self).deserialize(&mut reader).and_then(|()| reader.end());
        if self.is_full {
            let memory = self.charge.budget();
            memory.count_loss();
            let limit = memory.limit().min(self.cap as u64);
            return Err(CallError::OutOfMemory { what: "all pages of the list", limit });
        }
        read.map_err(|error| nonsense(key, &error.to_string()))?;
        let next = member(answer, "nextCursor").filter(|next| *next != b"null");
        if next.is_some_and(|next| next.len() > MAX_CURSOR) {
            return Err(nonsense(key, &format!("its cursor has more than {MAX_CURSOR} bytes")));
        }
        let next = next.map(serde_json::from_slice::<String>).transpose();
        let next = next.map_err(|error| nonsense(key, &error.to_string()))?;
        Ok(next.filter(|next| !next.is_empty()))
    }

    /// Charges an item before it is kept.
    fn afford(&mut self, item: &RawValue) -> bool {
        self.bytes += item.get().len() + ITEM;
        let charged = self.bytes.next_multiple_of(STEP);
        self.is_full = self.bytes > self.cap
            || charged as u64 > self.charge.bytes() && !self.charge.resize(charged);
        !self.is_full
    }
}

/// Reads the items of a page one by one: a page of the shortest items would take ten times its own
/// memory before it could be counted.
struct Items<'a>(&'a mut Pages);

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(item) = seq.next_element::<&RawValue>()? {
            if !self.0.afford(item) {
                return Err(A::Error::custom("the list is too large"));
            }
            self.0.items.push(item.to_owned());
        }
        Ok(())
    }
}

/// A list that is none counts as an error of the server's.
fn nonsense(what: &str, reason: &str) -> CallError {
    let message = format!("the server's answer for `{what}` is not a list: {reason}");
    CallError::Rpc(RpcError::new(-32603, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofer_model::Budget;
    use proptest::prelude::*;

    fn pages(cap: usize, limit: u64) -> Pages {
        let charge = Charge::none(&Budget::new(limit));
        Pages { items: Vec::new(), bytes: 0, cap, charge, is_full: false }
    }

    fn page(items: usize, size: usize) -> Bytes {
        let items = vec![format!("\"{}\"", "x".repeat(size)); items].join(",");
        Bytes::from(format!(r#"{{"tools":[{items}],"nextCursor":"more"}}"#))
    }

    #[test]
    fn a_page_of_short_items_is_charged_as_what_it_takes() {
        let mut list = pages(1 << 20, 1 << 30);
        let error = list.add(&page(100_000, 1), "tools").unwrap_err();
        assert!(matches!(error, CallError::OutOfMemory { limit: 0x10_0000, .. }), "{error:?}");
        assert!(list.items.len() <= (1 << 20) / ITEM);
    }

    proptest! {
        /// The bound in bytes: of all pages together, however they are cut.
        #[test]
        fn pages_never_exceed_the_cap_or_the_budget(
            shapes in prop::collection::vec((0usize..200, 0usize..3000), 1..8),
            cap in 0usize..2_000_000, limit in 0u64..2_000_000,
        ) {
            let mut list = pages(cap, limit);
            let mut expected = 0;
            for (items, size) in shapes {
                expected += items;
                let added = list.add(&page(items, size), "tools");
                let kept: usize = list.items.iter().map(|item| item.get().len() + ITEM).sum();
                prop_assert!(kept <= cap && kept as u64 <= list.charge.bytes());
                prop_assert!(list.charge.budget().used() <= limit);
                if added.is_err() {
                    return Ok(());
                }
                prop_assert_eq!(list.items.len(), expected);
            }
        }
    }
}
