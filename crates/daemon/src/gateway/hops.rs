//! Cycles between daemons, at the gateway: refuses this daemon's own requests, and lists the daemons
//! behind an endpoint for clients that work for another daemon. See `cofer_model`'s hops.

use axum::http::header::{HeaderName, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use cofer_model::{DAEMONS_HEADER, DaemonIds, HOPS_HEADER};
use uuid::Uuid;

use super::Gateway;
use super::door::Door;
use super::http::{Refusal, header};

const HOPS: HeaderName = HeaderName::from_static(HOPS_HEADER);
const DAEMONS: HeaderName = HeaderName::from_static(DAEMONS_HEADER);

/// The daemon on whose behalf a request came; none for every other client.
pub(super) fn read(headers: &HeaderMap) -> Option<DaemonIds> {
    header(headers, &HOPS).map(DaemonIds::parse)
}

/// Refuses a request that this daemon sent itself.
pub(super) fn check(hops: &DaemonIds, own: Uuid) -> Result<(), Refusal> {
    if !hops.contains(own) {
        return Ok(());
    }
    let message = "cycle: this request comes from this daemon itself, which hosts its own gateway; \
                   remove the server that leads here";
    Err(Refusal::new(StatusCode::LOOP_DETECTED, message))
}

/// Adds the daemons that are behind `door` now.
pub(super) fn stamp(response: &mut Response, gateway: &Gateway, door: &Door) {
    let mut daemons = DaemonIds::default();
    daemons.insert(gateway.0.daemon_id);
    match door {
        Door::One(handle) => daemons.extend(&handle.daemons()),
        Door::All => {
            for handle in gateway.0.supervisor.list() {
                daemons.extend(&handle.daemons());
            }
        }
    }
    // Ids have only characters that a header may have.
    if let Ok(value) = HeaderValue::from_str(&daemons.to_string()) {
        response.headers_mut().insert(DAEMONS, value);
    }
}
