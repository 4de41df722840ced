//! The daemon that hosts this process, for the daemon that it connects to: see `cofer_model`'s hops.

use cofer_model::{HOPS_HEADER, HOPS_VARIABLE};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The header that names the hosting daemon; empty where a person or another client started us.
pub(crate) fn hops() -> HeaderMap {
    let id = std::env::var(HOPS_VARIABLE).ok();
    let value = id.and_then(|id| HeaderValue::from_str(&id).ok());
    value.map(|value| (HeaderName::from_static(HOPS_HEADER), value)).into_iter().collect()
}
