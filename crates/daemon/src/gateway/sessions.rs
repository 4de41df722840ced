//! All sessions, by their ids: unguessable, bounded in number, and ended when nobody uses them.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::session::Session;

/// How many there may be. At the bound the one that was idle for longest makes room.
const MAX_SESSIONS: usize = 10_000;
/// Server processes that run for one session alone, over all sessions.
pub(super) const MAX_PRIVATE: usize = 64;
/// How long one is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(24 * 60 * 60);
/// The same for one that has servers of its own.
const IDLE_WITH_OWN: Duration = Duration::from_secs(30 * 60);

/// See the module.
pub(super) struct Sessions {
    by_id: RwLock<HashMap<Arc<str>, Arc<Session>>>,
    /// One permit per private process, acquired before the process is spawned and held until it
    /// is dropped. A count of the registered sessions would miss those that are still opening:
    /// concurrent `initialize` requests would all pass the check.
    private: Arc<Semaphore>,
}

impl Default for Sessions {
    fn default() -> Self {
        Self { by_id: RwLock::default(), private: Arc::new(Semaphore::new(MAX_PRIVATE)) }
    }
}

impl Sessions {
    pub(super) fn get(&self, id: &str) -> Option<Arc<Session>> {
        self.read().get(id).cloned()
    }

    /// Whether another one fits.
    pub(super) fn has_room(&self) -> bool {
        self.read().len() < MAX_SESSIONS
    }

    pub(super) fn add(&self, session: Arc<Session>) {
        self.write().insert(Arc::clone(&session.opening.id), session);
    }

    pub(super) fn remove(&self, id: &str) -> Option<Arc<Session>> {
        self.write().remove(id)
    }

    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.read().values().cloned().collect()
    }

    /// Does something with each.
    pub(super) fn for_each(&self, act: impl FnMut(&Arc<Session>)) {
        self.read().values().for_each(act);
    }

    /// Reserves one of the private processes; none while all are in use.
    pub(super) fn reserve_private(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.private).try_acquire_owned().ok()
    }

    /// Those that nobody uses any more.
    pub(super) fn idle(&self) -> Vec<Arc<Session>> {
        let is_idle = |session: &Arc<Session>| {
            session.sweep();
            let limit = if session.has_own() { IDLE_WITH_OWN } else { IDLE };
            session.idle_for().is_some_and(|idle| idle > limit)
        };
        self.all().into_iter().filter(is_idle).collect()
    }

    /// The one that nobody has used for longest.
    pub(super) fn idlest(&self) -> Option<Arc<Session>> {
        let sessions = self.all();
        let idle = sessions.into_iter().filter_map(|session| Some((session.idle_for()?, session)));
        idle.max_by_key(|(time, _)| *time).map(|(_, session)| session)
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<Arc<str>, Arc<Session>>> {
        self.by_id.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<Arc<str>, Arc<Session>>> {
        self.by_id.write().unwrap_or_else(PoisonError::into_inner)
    }
}
