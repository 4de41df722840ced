//! The lists that each server last had, so that they can be offered before the server is ready
//! again. What the JSON means, the store does not know.

use async_trait::async_trait;
use cofer_model::ServerId;

use crate::StoreError;
use crate::servers::{Backend, Change};

/// The statements in one dialect. Arguments and results are text.
pub(crate) struct ListSql {
    /// server.
    get: &'static str,
    /// server, spec_digest, peer, lists; changes no row if the server is not registered.
    keep: &'static str,
}

pub(crate) const SQLITE: ListSql = ListSql {
    get: "SELECT spec_digest, peer, lists FROM kb.mcp_server_lists WHERE server_id = $1",
    keep: "INSERT INTO kb.mcp_server_lists (server_id, spec_digest, peer, lists)
           SELECT id, $2, $3, $4 FROM kb.agent_workspaces
           WHERE id = $1 AND container_type = 'mcp_server'
           ON CONFLICT (server_id) DO UPDATE SET spec_digest = excluded.spec_digest,
               peer = excluded.peer, lists = excluded.lists",
};

pub(crate) const POSTGRES: ListSql = ListSql {
    get: "SELECT spec_digest, peer, lists FROM kb.mcp_server_lists WHERE server_id = $1::uuid",
    keep: "INSERT INTO kb.mcp_server_lists (server_id, spec_digest, peer, lists)
           SELECT id, $2, $3, $4 FROM kb.agent_workspaces
           WHERE id = $1::uuid AND container_type = 'mcp_server'
           ON CONFLICT (server_id) DO UPDATE SET spec_digest = excluded.spec_digest,
               peer = excluded.peer, lists = excluded.lists",
};

/// The lists of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLists {
    /// The digest of the configuration that the server ran with.
    pub spec_digest: String,
    /// The peer of the handshake, version included, as JSON.
    pub peer: String,
    /// The lists, as JSON.
    pub lists: String,
}

/// The lists that servers last had.
#[async_trait]
pub trait ListStore: Send + Sync {
    /// The lists of a server; none if none were stored.
    async fn server_lists(&self, id: ServerId) -> Result<Option<StoredLists>, StoreError>;

    /// Replaces the lists of a server. They are deleted with the server.
    async fn keep_server_lists(&self, id: ServerId, lists: StoredLists) -> Result<(), StoreError>;
}

#[async_trait]
impl<B: Backend> ListStore for B {
    async fn server_lists(&self, id: ServerId) -> Result<Option<StoredLists>, StoreError> {
        let id = vec![Some(id.to_string())];
        let rows = self.texts("read the lists of a server", B::LISTS.get, id).await?;
        let mut columns = rows.into_iter().next().unwrap_or_default().into_iter().flatten();
        Ok(match (columns.next(), columns.next(), columns.next()) {
            (Some(spec_digest), Some(peer), Some(lists)) => {
                Some(StoredLists { spec_digest, peer, lists })
            }
            _ => None,
        })
    }

    async fn keep_server_lists(&self, id: ServerId, lists: StoredLists) -> Result<(), StoreError> {
        let StoredLists { spec_digest, peer, lists } = lists;
        let arguments = vec![Some(id.to_string()), Some(spec_digest), Some(peer), Some(lists)];
        match self.change("store the lists of a server", B::LISTS.keep, arguments).await? {
            Change::Rows(1..) => Ok(()),
            Change::Rows(0) | Change::NameTaken => Err(StoreError::NotFound { id }),
        }
    }
}
