//! The requests that have no answer yet. Whoever takes a request out of here answers it, so
//! that each is answered once.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// The table of requests by their canonical ids.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    table: Mutex<Table>,
    /// Told when the last request that has an end was taken out.
    drained: Notify,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<Bytes, Entry>,
    /// How many of them have an end.
    finite: usize,
}

/// One request.
#[derive(Debug)]
pub(super) struct Entry {
    /// As the client wrote it.
    pub(super) id: Bytes,
    pub(super) modern: bool,
    pub(super) is_initialize: bool,
    /// It listens until somebody ends it.
    pub(super) endless: bool,
    /// The task that carries it.
    pub(super) task: Option<AbortHandle>,
}

/// Why a request was not taken in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    SameId,
    TooMany,
}

impl InFlight {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, key: Bytes, entry: Entry, most: usize) -> Result<(), Refused> {
        let mut table = self.table();
        if table.entries.len() >= most {
            return Err(Refused::TooMany);
        }
        let finite = usize::from(!entry.endless);
        match table.entries.entry(key) {
            Slot::Occupied(_) => return Err(Refused::SameId),
            Slot::Vacant(slot) => slot.insert(entry),
        };
        table.finite += finite;
        Ok(())
    }

    /// Says which task carries a request, unless it is done already.
    pub(super) fn carried_by(&self, key: &Bytes, task: AbortHandle) {
        if let Some(entry) = self.table().entries.get_mut(key) {
            entry.task = Some(task);
        }
    }

    /// Takes a request out, for whoever answers it or knows that nobody waits any more.
    pub(super) fn take(&self, key: &Bytes) -> Option<Entry> {
        self.take_if(key, |_| true)
    }

    pub(super) fn take_if(&self, key: &Bytes, wanted: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let mut table = self.table();
        table.entries.get(key).filter(|entry| wanted(entry))?;
        let entry = table.entries.remove(key)?;
        table.finite -= usize::from(!entry.endless);
        if table.finite == 0 {
            self.drained.notify_waiters();
        }
        Some(entry)
    }

    /// Takes all out.
    pub(super) fn take_all(&self) -> Vec<Entry> {
        let mut table = self.table();
        table.finite = 0;
        table.entries.drain().map(|(_, entry)| entry).collect()
    }

    /// Whether something is left that has an end.
    pub(super) fn any(&self) -> bool {
        self.table().finite > 0
    }

    /// Waits until nothing is left that has an end.
    pub(super) async fn drained(&self) {
        loop {
            let drained = self.drained.notified();
            if !self.any() {
                return;
            }
            drained.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(endless: bool) -> Entry {
        Entry { id: Bytes::new(), modern: false, is_initialize: false, endless, task: None }
    }

    #[test]
    fn a_request_is_taken_out_once() {
        let requests = InFlight::default();
        let key = Bytes::from_static(b"1");
        assert_eq!(requests.insert(key.clone(), entry(false), 9), Ok(()));
        assert_eq!(requests.insert(key.clone(), entry(false), 9), Err(Refused::SameId));
        assert_eq!(
            requests.insert(Bytes::from_static(b"2"), entry(false), 1),
            Err(Refused::TooMany)
        );
        assert!(requests.take_if(&key, |entry| entry.modern).is_none());
        assert!(requests.take(&key).is_some());
        assert!(requests.take(&key).is_none());
    }

    #[tokio::test]
    async fn what_never_ends_is_not_waited_for() {
        let requests = InFlight::default();
        requests.insert(Bytes::from_static(b"1"), entry(true), 9).unwrap();
        requests.insert(Bytes::from_static(b"2"), entry(false), 9).unwrap();
        let mut drained = tokio_test::task::spawn(requests.drained());
        assert!(drained.poll().is_pending());
        requests.take(&Bytes::from_static(b"2"));
        assert!(drained.is_woken() && drained.poll().is_ready());
    }
}
