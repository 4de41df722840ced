//! Where a client comes in: at one server, or at all of them.

use cofer_model::ServerId;
use cofer_supervisor::ServerHandle;

/// See the module.
#[derive(Clone)]
pub(super) enum Door {
    One(ServerHandle),
    All,
}

impl Door {
    /// Whether what the server `id` says is for clients at this door as it is.
    pub(super) fn is_server(&self, id: ServerId) -> bool {
        matches!(self, Self::One(handle) if handle.id() == id)
    }

    pub(super) fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// Whether both are the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::One(a), Self::One(b)) => a.id() == b.id(),
            (Self::All, Self::All) => true,
            (Self::One(_), Self::All) | (Self::All, Self::One(_)) => false,
        }
    }
}
