//! The bus on which everything that happens is told, in one order, with a memory long
//! enough for a listener to come back after a broken connection.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use cofer_model::{Event, EventKind};
use tokio::sync::broadcast;

/// How many changes of servers and of their status are remembered.
const STATUS_MEMORY: usize = 1024;
/// How many tool call and progress events are remembered; they come by the thousand, so that
/// they have a memory of their own and do not push status changes out.
const CALL_MEMORY: usize = 1024;
/// How far a live listener may fall behind before it misses events.
const LIVE_BUFFER: usize = 1024;

/// See the module. Clones share the bus.
#[derive(Debug, Clone)]
pub struct EventBus {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    live: broadcast::Sender<Arc<Event>>,
}

#[derive(Debug)]
struct State {
    generation: u64,
    statuses: Memory,
    calls: Memory,
}

#[derive(Debug, Default)]
struct Memory {
    events: VecDeque<Arc<Event>>,
    /// The newest event that was forgotten.
    forgotten: u64,
}

impl Memory {
    fn push(&mut self, event: Arc<Event>, limit: usize) {
        self.events.push_back(event);
        if self.events.len() > limit
            && let Some(oldest) = self.events.pop_front()
        {
            self.forgotten = oldest.generation;
        }
    }

    fn after(&self, generation: u64) -> impl Iterator<Item = &Arc<Event>> {
        let start = self.events.partition_point(|event| event.generation <= generation);
        self.events.range(start..)
    }
}

/// What a listener gets: first what it missed, then what happens.
#[derive(Debug)]
pub struct Subscription {
    /// Whether status changes that the listener asked for are forgotten: it must look at
    /// everything anew.
    pub gap: bool,
    /// Remembered events after the one it named.
    pub backlog: Vec<Arc<Event>>,
    /// All later ones.
    pub live: broadcast::Receiver<Arc<Event>>,
}

impl EventBus {
    /// A bus whose generations begin behind `first`, which is to be no lower than any that an
    /// earlier daemon gave out.
    pub fn new(first: u64) -> Self {
        let forgotten = || Memory { forgotten: first, ..Memory::default() };
        let state = State { generation: first, statuses: forgotten(), calls: forgotten() };
        Self {
            inner: Arc::new(Inner {
                state: Mutex::new(state),
                live: broadcast::Sender::new(LIVE_BUFFER),
            }),
        }
    }

    /// Tells what `kind` makes of the event's generation, and returns that.
    pub fn publish(&self, kind: impl FnOnce(u64) -> EventKind) -> u64 {
        let mut state = self.lock();
        state.generation += 1;
        let generation = state.generation;
        let event = Arc::new(Event { generation, kind: kind(generation) });
        match event.kind {
            EventKind::Status(_)
            | EventKind::Added(_)
            | EventKind::Removed(_)
            | EventKind::Changed(_) => state.statuses.push(Arc::clone(&event), STATUS_MEMORY),
            EventKind::Preparing(_)
            | EventKind::ToolCallStarted(_)
            | EventKind::ToolCallFinished(_) => {
                state.calls.push(Arc::clone(&event), CALL_MEMORY);
            }
        }
        // Sent under the lock, so that every listener sees the one order. Nobody may listen.
        self.inner.live.send(event).ok();
        generation
    }

    /// Listens from now on, and to what came after generation `after` where that is given.
    pub fn subscribe(&self, after: Option<u64>) -> Subscription {
        let state = self.lock();
        let live = self.inner.live.subscribe();
        let Some(after) = after else {
            return Subscription { gap: false, backlog: Vec::new(), live };
        };
        let mut backlog: Vec<Arc<Event>> =
            state.statuses.after(after).chain(state.calls.after(after)).cloned().collect();
        backlog.sort_unstable_by_key(|event| event.generation);
        let gap = after < state.statuses.forgotten || after > state.generation;
        Subscription { gap, backlog, live }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofer_model::{ServerId, Status, StatusChange, ToolCallStarted};
    use time::OffsetDateTime;
    use uuid::Uuid;

    const FIRST: u64 = 1_000;

    fn status(bus: &EventBus) -> u64 {
        bus.publish(|generation| {
            EventKind::Status(StatusChange {
                id: ServerId(Uuid::nil()),
                name: "x".to_owned(),
                status: Status::Ready,
                previous_status: Status::Starting,
                generation,
                at: OffsetDateTime::UNIX_EPOCH,
                error: None,
            })
        })
    }

    fn tool_call(bus: &EventBus) -> u64 {
        bus.publish(|_| {
            EventKind::ToolCallStarted(ToolCallStarted {
                call_id: Uuid::nil(),
                id: ServerId(Uuid::nil()),
                name: "x".into(),
                tool: "t".into(),
                at: OffsetDateTime::UNIX_EPOCH,
            })
        })
    }

    fn generations(subscription: &Subscription) -> Vec<u64> {
        subscription.backlog.iter().map(|event| event.generation).collect()
    }

    #[test]
    fn a_listener_that_comes_back_gets_what_it_missed_in_order() {
        let bus = EventBus::new(FIRST);
        let first = status(&bus);
        let rest = [tool_call(&bus), status(&bus), tool_call(&bus)];
        let back = bus.subscribe(Some(first));
        assert!(!back.gap);
        assert_eq!(generations(&back), rest);
        assert!(bus.subscribe(None).backlog.is_empty());
    }

    #[test]
    fn tool_calls_do_not_push_status_changes_out() {
        let bus = EventBus::new(FIRST);
        let before = status(&bus);
        let wanted = status(&bus);
        for _ in 0..CALL_MEMORY * 2 {
            tool_call(&bus);
        }
        let back = bus.subscribe(Some(before));
        assert!(!back.gap);
        assert_eq!(back.backlog[0].generation, wanted);
    }

    #[test]
    fn what_is_forgotten_or_from_elsewhere_is_said() {
        let bus = EventBus::new(FIRST);
        let first = status(&bus);
        for _ in 0..STATUS_MEMORY + 1 {
            status(&bus);
        }
        assert!(bus.subscribe(Some(first)).gap);
        assert!(bus.subscribe(Some(u64::MAX)).gap, "an event that never was");
    }

    #[test]
    fn a_listener_of_an_earlier_daemon_looks_anew_and_then_gets_higher_generations() {
        let bus = EventBus::new(FIRST);
        let here = status(&bus);
        assert!(here > FIRST);
        let back = bus.subscribe(Some(FIRST - 1));
        assert!(back.gap);
        assert_eq!(generations(&back), [here]);
    }
}
