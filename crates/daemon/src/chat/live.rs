//! What happens in conversations now: the running turn of each, its messages as they stand, and
//! its events with a memory long enough for a listener to come back after a broken connection.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cofer_chat::{EventBody, Message, Question};
use serde::Serialize;
use time::OffsetDateTime;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::questions::Asked;

/// How many events of one conversation are remembered.
const EVENTS: usize = 8192;
/// How many bytes they may have together.
const EVENT_BYTES: usize = 2 << 20;
/// How far a listener may fall behind before it is told to look anew.
const BEHIND: usize = 1024;
/// How many conversations are remembered that nobody looks at and nothing happens in.
const IDLE: usize = 16;
/// How many turns run at once.
pub(crate) const MAX_TURNS: usize = 16;

/// One event, as it is sent.
#[derive(Debug)]
pub(crate) struct ChatEvent {
    /// Only grows, also over restarts of the daemon.
    pub(crate) id: u64,
    pub(crate) name: &'static str,
    /// JSON.
    pub(crate) data: String,
    pub(crate) turn_id: Option<Uuid>,
}

/// Whose event it is, and what it tells.
#[derive(Serialize)]
struct Told<'a> {
    conversation_id: Uuid,
    turn_id: Option<Uuid>,
    #[serde(flatten)]
    body: &'a EventBody,
}

/// All conversations in which something happens, or happened a short while ago.
#[derive(Default)]
pub(crate) struct LiveConversations {
    all: Mutex<HashMap<Uuid, Arc<Live>>>,
}

/// One of them.
pub(crate) struct Live {
    pub(crate) conversation: Uuid,
    state: Mutex<State>,
    feed: broadcast::Sender<Arc<ChatEvent>>,
}

pub(super) struct State {
    last_id: u64,
    /// The newest event that was forgotten, or the one before the first.
    forgotten: u64,
    events: VecDeque<Arc<ChatEvent>>,
    bytes: usize,
    running: Option<Running>,
    /// The last turn's messages, also when it has ended: the store may have been read before.
    messages: Vec<Message>,
    turn_id: Option<Uuid>,
    pub(super) questions: Vec<Asked>,
}

struct Running {
    turn_id: Uuid,
    /// The event before the turn's first.
    before: u64,
    stop: CancellationToken,
    over: watch::Sender<bool>,
}

/// What is seen of a conversation in one moment.
pub(crate) struct Glance {
    pub(crate) running: Option<Uuid>,
    /// The last turn, running or not.
    pub(crate) turn_id: Option<Uuid>,
    pub(crate) messages: Vec<Message>,
    /// What servers want to know of the person.
    pub(crate) questions: Vec<Question>,
    pub(crate) last_id: u64,
}

/// A turn that may begin.
pub(crate) struct Begun {
    pub(crate) stop: CancellationToken,
    /// The event before the turn's first.
    pub(crate) before: u64,
}

/// Why a turn may not begin.
pub(crate) enum Busy {
    /// The conversation has one already.
    Here,
    /// Too many run elsewhere.
    Everywhere,
}

/// What a listener gets: first what it missed, then what happens.
pub(crate) struct LiveFeed {
    live: Arc<Live>,
    gap: bool,
    backlog: std::vec::IntoIter<Arc<ChatEvent>>,
    receiver: broadcast::Receiver<Arc<ChatEvent>>,
    last: u64,
}

impl LiveConversations {
    /// The live side of a conversation.
    pub(crate) fn of(&self, conversation: Uuid) -> Arc<Live> {
        let mut all = self.lock();
        if let Some(live) = all.get(&conversation) {
            return Arc::clone(live);
        }
        if all.len() >= IDLE {
            all.retain(|_, live| live.is_busy());
        }
        let live = Arc::new(Live::new(conversation));
        all.insert(conversation, Arc::clone(&live));
        live
    }

    /// Begins a turn, where the conversation has none and not too many run.
    pub(crate) fn begin(
        &self,
        conversation: Uuid,
        turn_id: Uuid,
        stop: CancellationToken,
    ) -> Result<(Arc<Live>, Begun), Busy> {
        let live = self.of(conversation);
        let others = self.lock().values().filter(|other| other.is_running()).count();
        let begun = live.begin(turn_id, stop, others >= MAX_TURNS)?;
        Ok((live, begun))
    }

    /// Whether a turn runs in the conversation.
    pub(crate) fn is_running(&self, conversation: Uuid) -> bool {
        self.lock().get(&conversation).is_some_and(|live| live.is_running())
    }

    /// Forgets a conversation that is removed.
    pub(crate) fn forget(&self, conversation: Uuid) {
        self.lock().remove(&conversation);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<Live>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    fn new(conversation: Uuid) -> Self {
        // The clock's microseconds are above every id that was given out before, unless it was
        // set back; then listeners are told to look anew.
        let now = OffsetDateTime::now_utc().unix_timestamp_nanos() / 1000;
        let first = u64::try_from(now).unwrap_or(0);
        let state = State {
            last_id: first,
            forgotten: first,
            events: VecDeque::new(),
            bytes: 0,
            running: None,
            messages: Vec::new(),
            turn_id: None,
            questions: Vec::new(),
        };
        Self { conversation, state: Mutex::new(state), feed: broadcast::Sender::new(BEHIND) }
    }

    fn begin(&self, turn_id: Uuid, stop: CancellationToken, full: bool) -> Result<Begun, Busy> {
        let mut state = self.lock();
        if state.running.is_some() {
            return Err(Busy::Here);
        }
        if full {
            return Err(Busy::Everywhere);
        }
        let before = state.last_id;
        let over = watch::Sender::new(false);
        state.running = Some(Running { turn_id, before, stop: stop.clone(), over });
        state.messages.clear();
        state.turn_id = Some(turn_id);
        Ok(Begun { stop, before })
    }

    /// The turn did not come about.
    pub(crate) fn end(&self) {
        self.lock().end();
    }

    /// Tells an event. `now` is the message that it makes or changes.
    pub(crate) fn tell(&self, turn_id: Option<Uuid>, body: &EventBody, now: Option<&Message>) {
        self.publish(&mut self.lock(), turn_id, body, now);
    }

    /// Tells the last event of a turn. In the same moment the next may begin.
    pub(crate) fn tell_end(&self, turn_id: Uuid, body: &EventBody) {
        let mut state = self.lock();
        self.publish(&mut state, Some(turn_id), body, None);
        state.end();
    }

    pub(super) fn publish(
        &self,
        state: &mut State,
        turn_id: Option<Uuid>,
        body: &EventBody,
        now: Option<&Message>,
    ) {
        let told = Told { conversation_id: self.conversation, turn_id, body };
        let data = serde_json::to_string(&told).unwrap_or_else(|_| "{}".to_owned());
        state.show(body, now);
        state.last_id += 1;
        let event = Arc::new(ChatEvent { id: state.last_id, name: body.name(), data, turn_id });
        state.remember(Arc::clone(&event));
        // Sent under the lock, so that every listener sees the one order. Nobody may listen.
        self.feed.send(event).ok();
    }

    /// Puts a message where `glance` sees it.
    pub(crate) fn show(&self, message: &Message) {
        self.lock().put(message);
    }

    /// What is true now.
    pub(crate) fn glance(&self) -> Glance {
        let state = self.lock();
        Glance {
            running: state.running.as_ref().map(|running| running.turn_id),
            turn_id: state.turn_id,
            messages: state.messages.clone(),
            questions: state.questions.iter().map(|asked| asked.question.clone()).collect(),
            last_id: state.last_id,
        }
    }

    /// Asks the running turn to end and waits until it has; false where none runs.
    pub(crate) async fn stop(&self) -> bool {
        let mut over = {
            let state = self.lock();
            let Some(running) = &state.running else { return false };
            running.stop.cancel();
            running.over.subscribe()
        };
        // A sender that is gone has ended too.
        drop(over.wait_for(|over| *over).await);
        true
    }

    /// Listens from behind event `after`; without one, from the running turn's beginning.
    pub(crate) fn listen(self: &Arc<Self>, after: Option<u64>) -> LiveFeed {
        let state = self.lock();
        let receiver = self.feed.subscribe();
        let running = state.running.as_ref().map(|running| running.before);
        let after = after.or(running).unwrap_or(state.last_id);
        let gap = after < state.forgotten || after > state.last_id;
        let start = state.events.partition_point(|event| event.id <= after);
        let backlog: Vec<_> =
            if gap { Vec::new() } else { state.events.range(start..).cloned().collect() };
        let last = if gap { state.last_id } else { after };
        LiveFeed { live: Arc::clone(self), gap, backlog: backlog.into_iter(), receiver, last }
    }

    fn is_running(&self) -> bool {
        self.lock().running.is_some()
    }

    fn is_busy(&self) -> bool {
        self.is_running() || self.feed.receiver_count() > 0
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Who waits for the end of the turn is told.
    fn end(&mut self) {
        if let Some(running) = self.running.take() {
            running.over.send_replace(true);
        }
    }

    fn show(&mut self, body: &EventBody, now: Option<&Message>) {
        if let Some(message) = now {
            return self.put(message);
        }
        let (id, delta, thought) = match body {
            EventBody::TextDelta { message_id, delta } => (message_id, delta, false),
            EventBody::ReasoningDelta { message_id, delta } => (message_id, delta, true),
            _ => return,
        };
        let message = self.messages.iter_mut().find(|message| message.id() == *id);
        if let Some(Message::Assistant(message)) = message {
            let text =
                if thought { message.reasoning.get_or_insert_default() } else { &mut message.text };
            text.push_str(delta);
        }
    }

    fn put(&mut self, message: &Message) {
        match self.messages.iter_mut().find(|kept| kept.id() == message.id()) {
            Some(kept) => *kept = message.clone(),
            None => self.messages.push(message.clone()),
        }
    }

    fn remember(&mut self, event: Arc<ChatEvent>) {
        self.bytes += event.data.len();
        self.events.push_back(event);
        while self.events.len() > EVENTS || self.bytes > EVENT_BYTES {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.data.len();
            self.forgotten = oldest.id;
        }
    }
}

impl LiveFeed {
    /// The next event; `Err` where some were missed and everything should be read anew.
    pub(crate) async fn next(&mut self) -> Option<Result<Arc<ChatEvent>, Missed>> {
        loop {
            if std::mem::take(&mut self.gap) {
                return Some(Err(Missed));
            }
            if let Some(event) = self.backlog.next() {
                self.last = event.id;
                return Some(Ok(event));
            }
            match self.receiver.recv().await {
                Ok(event) => {
                    self.last = event.id;
                    return Some(Ok(event));
                }
                // A listener that fell behind goes on from where it stood, as one that comes back.
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    *self = self.live.listen(Some(self.last));
                }
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

/// Events were missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Missed;

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
