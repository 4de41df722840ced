//! Keeps the lists of servers in the store, so that the next daemon offers them before the servers
//! are ready. Written after a server was asked, and only if something differs.

use std::sync::Arc;
use std::time::Duration;

use cofer_model::{PeerInfo, ServerId};
use cofer_store::{StoreError, StoredLists};
use cofer_supervisor::ServerHandle;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Gateway;
use super::catalogue::Known;
use super::lists::{List, ListKind, Lists, catalogue_bytes};

/// The most bytes of lists that are stored of one server. A model's context has room for far less.
const MAX_STORED: usize = 4 << 20;
/// How long the end of the daemon waits for the store.
const LAST_SAVE: Duration = Duration::from_secs(2);

/// The lists in the store; those that were not known are missing.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Stored {
    tools: Option<Vec<Box<RawValue>>>,
    prompts: Option<Vec<Box<RawValue>>>,
    resources: Option<Vec<Box<RawValue>>>,
    resource_templates: Option<Vec<Box<RawValue>>>,
}

impl Stored {
    fn take(&mut self, kind: ListKind) -> Option<Vec<Box<RawValue>>> {
        match kind {
            ListKind::Tools => self.tools.take(),
            ListKind::Prompts => self.prompts.take(),
            ListKind::Resources => self.resources.take(),
            ListKind::Templates => self.resource_templates.take(),
        }
    }
}

impl Gateway {
    /// Takes over what the store has of each server, and asks the servers as they become ready.
    pub(crate) async fn restore(&self) {
        for handle in self.0.supervisor.list() {
            match self.0.store.server_lists(handle.id()).await {
                Ok(Some(stored)) if stored.spec_digest == handle.spec().run_digest() => {
                    self.restore_one(&handle, &stored);
                }
                Ok(_) => {}
                Err(error) => {
                    let server = handle.spec().name.to_string();
                    tracing::warn!(target: "START", server, %error, "the lists of a server could not be read from the store; they are offered when it is ready");
                }
            }
        }
        self.reconcile();
    }

    fn restore_one(&self, handle: &ServerHandle, stored: &StoredLists) {
        let (peer, lists) = match parse(stored) {
            Ok(parsed) => parsed,
            Err(error) => {
                let server = handle.spec().name.to_string();
                tracing::warn!(target: "START", server, %error, "the stored lists of a server are not valid; they are offered when it is ready");
                return;
            }
        };
        let Some(known) = self.charged(handle, stored, peer, lists) else {
            handle.memory().count_loss();
            tracing::warn!(target: "START", server = %handle.spec().name, "the stored lists of a server have no room in its memory; they are offered when it is ready");
            return;
        };
        self.0.catalogue.restore(handle, known);
    }

    fn charged(
        &self,
        handle: &ServerHandle,
        stored: &StoredLists,
        peer: PeerInfo,
        mut lists: Stored,
    ) -> Option<Known> {
        let charge = handle.memory().try_charge(stored.peer.len())?;
        let mut known = Known {
            digest: stored.spec_digest.clone(),
            peer: Some(Arc::new(peer)),
            lists: Lists::default(),
            charge: Some(Arc::new(charge)),
        };
        for kind in ListKind::ALL {
            let Some(items) = lists.take(kind) else {
                continue;
            };
            let charge = handle.memory().try_charge(catalogue_bytes(&items))?;
            if kind == ListKind::Tools {
                self.watch(handle).mirrored.learn_items(&items);
            }
            known.lists.set(kind, List::read(kind, items, Some(charge)));
        }
        Some(known)
    }

    /// Stores the lists that were read just before the daemon ends.
    pub(super) async fn save_all_lists(&self) {
        let saving = async {
            for id in self.0.catalogue.unsaved_servers() {
                self.save_lists(id).await;
            }
        };
        // A database that does not answer must not delay the end of the servers.
        drop(tokio::time::timeout(LAST_SAVE, saving).await);
    }

    /// Stores the lists of a server if they are not what the store has.
    pub(super) async fn save_lists(&self, id: ServerId) {
        let _one_at_a_time = self.0.saving.lock().await;
        let Some((known, changes)) = self.0.catalogue.unsaved(id) else {
            return;
        };
        let lists = StoredLists {
            spec_digest: known.digest,
            peer: serde_json::to_string(&known.peer).unwrap_or_default(),
            lists: stored_text(&known.lists),
        };
        match self.0.store.keep_server_lists(id, lists).await {
            // The server may have been removed meanwhile.
            Ok(()) | Err(StoreError::NotFound { .. }) => self.0.catalogue.set_saved(id, changes),
            Err(error) => {
                tracing::warn!(target: "MCP", %id, %error, "the lists of a server could not be stored; after a restart of the daemon they are offered when it is ready");
            }
        }
    }
}

fn parse(stored: &StoredLists) -> Result<(PeerInfo, Stored), serde_json::Error> {
    Ok((serde_json::from_str(&stored.peer)?, serde_json::from_str(&stored.lists)?))
}

/// The lists as one JSON object; none of them if they are too large.
fn stored_text(lists: &Lists) -> String {
    let mut text = String::from("{");
    for kind in ListKind::ALL {
        let Some(list) = lists.known(kind) else {
            continue;
        };
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&format!(r#""{}":["#, kind.key()));
        for (index, item) in list.raw_items().enumerate() {
            if index > 0 {
                text.push(',');
            }
            if text.len() + item.len() > MAX_STORED {
                return "{}".to_owned();
            }
            text.push_str(item);
        }
        text.push(']');
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(kind: ListKind, items: &[String]) -> List {
        let raw = |item: &String| RawValue::from_string(item.clone()).unwrap();
        List::read(kind, items.iter().map(raw).collect(), None)
    }

    #[test]
    fn lists_are_stored_byte_by_byte_and_unknown_ones_stay_unknown() {
        let mut lists = Lists::default();
        let tools =
            [r#"{"z":1.0, "name":"a"}"#.to_owned(), "7".to_owned(), r#"{"name":"b"}"#.to_owned()];
        lists.set(ListKind::Tools, list(ListKind::Tools, &tools));
        lists.set(ListKind::Templates, List::default());
        let text = stored_text(&lists);
        let expected = r#"{"tools":[{"z":1.0, "name":"a"},7,{"name":"b"}],"resourceTemplates":[]}"#;
        assert_eq!(text, expected);
        let mut read: Stored = serde_json::from_str(&text).unwrap();
        let items = read.take(ListKind::Tools).unwrap();
        assert_eq!(items.iter().map(|item| item.get()).collect::<Vec<_>>(), tools);
        assert!(read.take(ListKind::Templates).is_some_and(|items| items.is_empty()));
        assert!(read.take(ListKind::Prompts).is_none());
    }

    #[test]
    fn lists_that_are_too_large_are_not_stored() {
        let mut lists = Lists::default();
        let large = format!(r#"{{"name":"a","d":"{}"}}"#, "x".repeat(MAX_STORED));
        lists.set(ListKind::Tools, list(ListKind::Tools, &[large]));
        assert_eq!(stored_text(&lists), "{}");
    }
}
