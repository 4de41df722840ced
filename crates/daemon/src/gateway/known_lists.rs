//! Answers from the catalogue without a request to the server: while it starts, its server info and
//! its last lists; once it is ready, its lists until `list_changed`.

use std::sync::Arc;

use bytes::Bytes;
use cofer_mcp::{Listing, member};
use cofer_model::{PeerInfo, ServerSpec, Sharing};
use cofer_supervisor::ServerHandle;

use super::Gateway;
use super::asker::Asker;
use super::catalogue::Put;
use super::forward::complete;
use super::lists::{List, ListKind, Lists};
use super::resource_tools::resource_tools;

impl Gateway {
    /// A list of a server as it is known; none if the server is off, failed, was never asked or has
    /// announced another list.
    pub(crate) fn known_list(&self, handle: &ServerHandle, kind: ListKind) -> Option<Arc<List>> {
        let (known, was_asked) = self.catalogue().known(handle.id())?;
        let is_ready = handle.era().is_some();
        let is_current = || was_asked && self.watch(handle).is_current();
        known.lists.known(kind).filter(|_| !is_ready || is_current()).cloned()
    }

    /// Takes over a list that the server was asked for.
    pub(crate) fn learn_list(&self, handle: &ServerHandle, kind: ListKind, listing: Listing) {
        let (id, digest) = (handle.id(), handle.spec().run_digest());
        if let Some(list) = self.watch(handle).accept(kind, listing)
            && self.catalogue().put(id, &digest, kind, list) != Put::Ignored
        {
            self.rejoin(None);
            let gateway = self.clone();
            self.0.tasks.spawn(async move { gateway.save_lists(id).await });
        }
    }

    /// The result of the server's handshake; while it starts, that of its last run.
    pub(crate) fn known_peer(&self, handle: &ServerHandle) -> Option<Arc<PeerInfo>> {
        handle.peer().or_else(|| self.catalogue().known(handle.id())?.0.peer)
    }

    /// The answer to a list method at the endpoint of a server that starts; none if it is to be
    /// asked, and waited for.
    pub(super) fn list_while_starting(
        &self,
        asker: &Asker,
        handle: &ServerHandle,
        method: &str,
        params: Option<&Bytes>,
    ) -> Option<Bytes> {
        let kind = ListKind::of_method(method)?;
        let spec = handle.spec();
        let has_cursor = params.is_some_and(|params| member(params, "cursor").is_some());
        if handle.era().is_some() || spec.sharing == Sharing::PerSession || has_cursor {
            return None;
        }
        let (known, _) = self.catalogue().known(handle.id())?;
        let page = page(&spec, kind, &known.lists)?;
        Some(if asker.session().is_some() { page } else { complete(method, &page) })
    }
}

/// A whole list on one page, with the tools that the registration hides or adds.
fn page(spec: &ServerSpec, kind: ListKind, lists: &Lists) -> Option<Bytes> {
    let list = lists.known(kind)?;
    let added = if kind == ListKind::Tools && spec.include_resources {
        resource_tools(lists)
    } else {
        Vec::new()
    };
    let items: Vec<&str> = match kind {
        ListKind::Tools => {
            let offered = lists.get(kind).iter().filter(|tool| spec.offers_tool(&tool.key));
            let added = added.iter().filter(|tool| spec.offers_tool(&tool.name));
            let added = added.map(|tool| tool.definition.as_str());
            offered.map(|tool| tool.raw.get()).chain(added).collect()
        }
        ListKind::Prompts | ListKind::Resources | ListKind::Templates => list.raw_items().collect(),
    };
    Some(Bytes::from(format!(r#"{{"{}":[{}]}}"#, kind.key(), items.join(","))))
}
