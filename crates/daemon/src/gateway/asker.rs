//! Who makes a request, and in which era: everything about a client that work on its request
//! has to know.

use std::sync::Arc;

use axum::http::HeaderMap;
use bytes::Bytes;
use cofer_mcp::{ClientId, member, read_object};
use cofer_model::TraceParent;
use cofer_supervisor::Origin;

use super::capabilities::Abilities;
use super::door::Door;
use super::level::Level;
use super::running::Running;
use super::session::Session;

/// See the module. A cheap clone.
#[derive(Clone)]
pub(super) struct Asker {
    /// What the client calls itself.
    pub(super) name: Arc<str>,
    pub(super) door: Door,
    pub(super) running: Arc<Running>,
    pub(super) era: AskerEra,
    /// The span to which the HTTP request belongs.
    pub(super) parent: Option<TraceParent>,
}

/// The client's era, and what is known of the client in it.
#[derive(Clone)]
pub(super) enum AskerEra {
    Session(Arc<Session>),
    Stateless(Arc<Stateless>),
}

/// What a request of the newer era says of its client.
pub(super) struct Stateless {
    pub(super) client: ClientId,
    pub(super) abilities: Abilities,
    /// The log messages that it wants to hear of this request.
    pub(super) level: Option<Level>,
    /// Its arguments as its headers say them.
    pub(super) headers: HeaderMap,
}

impl Asker {
    pub(super) fn of_session(
        session: &Arc<Session>,
        running: Arc<Running>,
        parent: Option<TraceParent>,
    ) -> Self {
        Self {
            name: Arc::clone(&session.opening.name),
            door: session.opening.door.clone(),
            running,
            era: AskerEra::Session(Arc::clone(session)),
            parent,
        }
    }

    /// Who asks, for whoever traces the call.
    pub(super) fn origin(&self) -> Origin {
        let session = self.session().map(|session| Arc::clone(&session.opening.id));
        Origin { parent: self.parent, session }
    }

    pub(super) fn session(&self) -> Option<&Arc<Session>> {
        match &self.era {
            AskerEra::Session(session) => Some(session),
            AskerEra::Stateless(_) => None,
        }
    }
}

/// What a client calls itself in `info`, its `clientInfo`.
pub(super) fn client_name(info: Option<&[u8]>) -> Arc<str> {
    /// Longer names are cut: they are shown, and kept with each call.
    const MAX_CHARS: usize = 80;
    let name = info.and_then(|info| member(info, "name"));
    let name: Option<String> = name.and_then(|name| serde_json::from_slice(name).ok());
    let clean = |name: String| -> String {
        name.chars().filter(|c| !c.is_control()).take(MAX_CHARS).collect()
    };
    name.map(clean).unwrap_or_default().into()
}

/// Params with `members` in their `_meta`.
pub(super) fn with_meta(params: Option<&Bytes>, members: &[u8]) -> Bytes {
    use super::rpc::{replace, with_members};
    let Some(params) = params.filter(|params| params.starts_with(b"{")) else {
        return [br#"{"_meta":{"#, members, b"}}"].concat().into();
    };
    match member(params, "_meta").filter(|meta| meta.starts_with(b"{")) {
        Some(meta) => replace(params, meta, &with_members(meta, members)),
        None => with_members(params, &[br#""_meta":{"#, members, b"}"].concat()),
    }
}

/// Members of `_meta` that only the stateless protocol has.
const ENVELOPE: [&str; 4] = [
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
];

/// Params for a connection that `initialize` opened. The Python SDK refuses requests with the
/// envelope of the stateless protocol there.
pub(super) fn without_envelope(params: &Bytes) -> Bytes {
    let Some(meta) = member(params, "_meta").filter(|meta| meta.starts_with(b"{")) else {
        return params.clone();
    };
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut any = false;
    let read = read_object(meta, |key, value| {
        if is_envelope(key) {
            any = true;
        } else {
            kept.push([b"\"", key, b"\":", value].concat());
        }
    });
    if read.is_err() || !any {
        return params.clone();
    }
    super::rpc::replace(params, meta, &[b"{", &kept.join(&b","[..])[..], b"}"].concat())
}

/// Whether a key, as it stands in the text, is one of the envelope's. Some encoders escape `/`.
fn is_envelope(key: &[u8]) -> bool {
    let is_one = |key: &[u8]| ENVELOPE.iter().any(|name| name.as_bytes() == key);
    if !key.contains(&b'\\') {
        return is_one(key);
    }
    let quoted = [b"\"", key, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).is_ok_and(|key| is_one(key.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_is_removed_and_other_members_of_meta_stay() {
        let check = |params: &'static str| without_envelope(&Bytes::from_static(params.as_bytes()));
        assert_eq!(
            check(concat!(
                r#"{"a":1.0,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
                r#""progressToken":"p\u00e9","io.modelcontextprotocol/clientInfo":{"name":"c"},"#,
                r#""io.modelcontextprotocol\/clientCapabilities":{},"x":[1e3]}}"#,
            )),
            r#"{"a":1.0,"_meta":{"progressToken":"p\u00e9","x":[1e3]}}"#
        );
        for same in [r#"{"a":{"_meta":{}}}"#, r#"{"_meta":{"x":1}}"#, "{}"] {
            assert_eq!(check(same), same);
        }
    }

    #[test]
    fn meta_is_added_to_what_is_there() {
        let add = |params: &'static str| {
            with_meta(Some(&Bytes::from_static(params.as_bytes())), br#""k":1"#)
        };
        assert_eq!(add("{}"), r#"{"_meta":{"k":1}}"#);
        assert_eq!(add(r#"{"a":1.0}"#), r#"{"_meta":{"k":1},"a":1.0}"#);
        assert_eq!(add(r#"{"a":1,"_meta":{"p":2}}"#), r#"{"a":1,"_meta":{"k":1,"p":2}}"#);
        assert_eq!(with_meta(None, br#""k":1"#), r#"{"_meta":{"k":1}}"#);
    }

    #[test]
    fn a_clients_name_is_short_and_clean() {
        assert_eq!(&*client_name(Some(br#"{"name":"a\u001b[2Jb"}"#)), "a[2Jb");
        assert_eq!(
            client_name(Some(format!(r#"{{"name":"{}"}}"#, "x".repeat(500)).as_bytes())).len(),
            80
        );
        assert_eq!(&*client_name(None), "");
    }
}
