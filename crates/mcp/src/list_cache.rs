//! The pages of a peer's lists as it last sent them, for callers who would otherwise wait behind
//! a running call.
//!
//! A free peer is always asked. A busy one is not if it has sent the page before, over the same
//! connection, and no `list_changed` since.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use cofer_model::{Budget, Charge};

use crate::call::Request;
use crate::members::member;

/// The most bytes of all pages that are kept, and the number of pages.
const MAX_BYTES: usize = 1 << 20;
const MAX_PAGES: usize = 32;
/// The longest cursor of a page that is kept.
const MAX_CURSOR: usize = 1024;

const METHODS: [&str; 4] =
    ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PageKey {
    method: &'static str,
    /// As JSON; none for the first page.
    cursor: Option<Bytes>,
    /// Whether Cofer itself asks, and not a client whose capabilities the page may depend on.
    is_own: bool,
}

impl PageKey {
    /// The page that `request` asks for, if it is one that may be kept.
    pub(crate) fn of(request: &Request<'_>) -> Option<Self> {
        let method = METHODS.into_iter().find(|method| *method == request.method)?;
        let cursor = request.params.as_ref().and_then(|params| member(params, "cursor"));
        if cursor.is_some_and(|cursor| cursor.len() > MAX_CURSOR) {
            return None;
        }
        let is_own = request.caller.is_none();
        Some(Self { method, cursor: cursor.map(Bytes::copy_from_slice), is_own })
    }

    /// The same page for everybody.
    fn shared(self) -> Self {
        Self { is_own: false, ..self }
    }
}

struct Page {
    result: Bytes,
    _charge: Charge,
}

#[derive(Default)]
pub(crate) struct ListCache {
    /// Grows with each `list_changed`, under the lock of `pages`.
    version: AtomicU64,
    pages: Mutex<HashMap<PageKey, Page>>,
}

impl ListCache {
    /// The version of the lists that a request asks for which is sent now.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// The page as the peer last sent it.
    pub(crate) fn get(&self, key: &PageKey) -> Option<Bytes> {
        let pages = self.lock();
        let page = pages.get(key).or_else(|| pages.get(&key.clone().shared()));
        page.map(|page| page.result.clone())
    }

    /// Keeps a page, unless it is large, `memory` has no room for it, or a list has changed since
    /// it was asked for at `version`.
    pub(crate) fn put(&self, key: PageKey, version: u64, result: &Bytes, memory: &Arc<Budget>) {
        // Revision 2026-07-28: a private result is of no use to another client.
        let is_private = member(result, "cacheScope") == Some(br#""private""#);
        let key = match (is_private, key.is_own) {
            (true, false) => return,
            (true, true) => key,
            (false, _) => key.shared(),
        };
        let mut pages = self.lock();
        pages.remove(&key);
        let is_stale = version != self.version();
        let bytes = pages.values().map(|page| page.result.len()).sum::<usize>();
        if is_stale || bytes + result.len() > MAX_BYTES || pages.len() >= MAX_PAGES {
            return;
        }
        if let Some(charge) = memory.try_charge(result.len()) {
            pages.insert(key, Page { result: result.clone(), _charge: charge });
        }
    }

    /// Removes the pages which the notification `method` says have changed.
    pub(crate) fn notified(&self, method: &str) {
        let changed = method.strip_prefix("notifications/");
        let Some(kind) = changed.and_then(|kind| kind.strip_suffix("/list_changed")) else {
            return;
        };
        let mut pages = self.lock();
        self.version.fetch_add(1, Ordering::Relaxed);
        pages.retain(|key, _| {
            key.method.strip_prefix(kind).is_none_or(|rest| !rest.starts_with('/'))
        });
    }

    /// Removes the pages of the list `method`.
    pub(crate) fn forget(&self, method: &str) {
        self.lock().retain(|key, _| key.method != method);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PageKey, Page>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for ListCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ListCache").field("pages", &self.lock().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(method: &str, params: &'static str) -> Option<PageKey> {
        let params = Some(Bytes::from_static(params.as_bytes()));
        PageKey::of(&Request::new(method, params, Duration::ZERO))
    }

    #[test]
    fn a_page_is_kept_until_its_list_changes() {
        let (cache, memory) = (ListCache::default(), Budget::new(1000));
        let page = Bytes::from_static(br#"{"tools":[]}"#);
        let [first, second] = [r#"{"_meta":{}}"#, r#"{"cursor":"2"}"#]
            .map(|params| key("tools/list", params).unwrap());
        let templates = key("resources/templates/list", "{}").unwrap();
        cache.put(first.clone(), 0, &page, &memory);
        cache.put(templates.clone(), 0, &page, &memory);
        assert_eq!(cache.get(&key("tools/list", "{}").unwrap()), Some(page.clone()));
        assert_eq!(cache.get(&second), None);
        cache.notified("notifications/prompts/list_changed");
        assert!(cache.get(&first).is_some());
        cache.notified("notifications/tools/list_changed");
        assert!(cache.get(&first).is_none() && cache.get(&templates).is_some());
        cache.put(first.clone(), 0, &page, &memory);
        assert_eq!(cache.get(&first), None, "it was asked for before the change");
        cache.notified("notifications/resources/list_changed");
        assert_eq!((cache.get(&templates), memory.used()), (None, 0));
        assert_eq!(key("tools/call", "{}"), None);
    }

    #[test]
    fn a_private_page_is_shared_by_no_clients() {
        let (cache, memory) = (ListCache::default(), Budget::unlimited());
        let page = Bytes::from_static(br#"{"tools":[],"cacheScope":"private"}"#);
        let own = key("tools/list", "{}").unwrap();
        cache.put(own.clone().shared(), 0, &page, &memory);
        assert_eq!(cache.get(&own), None);
        cache.put(own.clone(), 0, &page, &memory);
        assert_eq!((cache.get(&own), cache.get(&own.clone().shared())), (Some(page), None));
    }

    #[test]
    fn a_page_without_memory_is_not_kept() {
        let (cache, memory) = (ListCache::default(), Budget::new(10));
        let own = key("tools/list", "{}").unwrap();
        cache.put(own.clone(), 0, &Bytes::from_static(br#"{"tools":[]}"#), &memory);
        assert_eq!((cache.get(&own), memory.used()), (None, 0));
    }
}
