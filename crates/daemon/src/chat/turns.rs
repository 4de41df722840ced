//! Turns as tasks of the daemon's own: a lost connection does not end one.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cofer_chat::{
    Action, ChatModel as _, EventBody, Finished, Message, ModelFailure, ModelFailureKind,
    ProviderModel, ProviderSettings, Reason, TokenUsage, Turn, UserMessage, Wholes, history,
    result_text,
};
use cofer_mcp::ClientId;
use cofer_store::ConversationRecord;
use time::OffsetDateTime;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Chat;
use super::conversations::{Chosen, chosen, failed, no_such};
use super::journal::{StoreJournal, not_kept};
use super::live::{Begun, Busy, Live, LiveFeed, MAX_TURNS};
use super::naming::title_of;
use super::person::Person;
use super::request::TurnRequest;
use super::toolbox::Toolbox;
use crate::api::error::ApiError;

/// What a model is shown at most of the past.
const HISTORY: u32 = 2000;

/// A turn that runs.
pub(crate) struct Started {
    pub(crate) conversation_id: Uuid,
    pub(crate) turn_id: Uuid,
    /// The turn's events, from its first on.
    pub(crate) feed: LiveFeed,
}

/// What a turn's task is given.
struct Task {
    live: Arc<Live>,
    turn_id: Uuid,
    action: Action,
    stop: CancellationToken,
    chosen: Chosen,
    attended: bool,
    model: Result<(ProviderSettings, Option<String>), ModelFailure>,
}

impl Chat {
    /// Begins a turn, where it can. A caller that goes away meanwhile changes nothing.
    pub(crate) async fn start(self: &Arc<Self>, request: TurnRequest) -> Result<Started, ApiError> {
        let chat = Arc::clone(self);
        let started = self.turns.spawn(async move { chat.begin(request).await }).await;
        started.unwrap_or_else(|stopped| Err(ApiError::internal(stopped.to_string())))
    }

    async fn begin(self: &Arc<Self>, request: TurnRequest) -> Result<Started, ApiError> {
        let known = match request.conversation_id {
            Some(id) => Some(self.record(id).await?),
            None => None,
        };
        let before = known.as_ref().map(chosen).unwrap_or_default();
        self.check(&request, known.as_ref()).await?;
        let now = Chosen::with(before, &request);
        let model = self.choose(now.provider.as_deref(), now.model.as_deref()).await;
        let conversation_id = known.as_ref().map_or_else(Uuid::now_v7, |record| record.id);
        let turn_id = Uuid::now_v7();
        let (live, begun) =
            self.live.begin(conversation_id, turn_id, self.closing.child_token()).map_err(busy)?;
        let guard = TurnGuard { live: Arc::clone(&live), turn_id, over: false };
        let opening = self.open(&live, &request, known, &now, turn_id);
        let (title, message) = opening.await.inspect_err(|_| live.end())?;
        let chosen_model = model.as_ref().ok();
        let first = EventBody::TurnStarted {
            action: request.action(),
            message: message.clone(),
            title,
            provider: chosen_model.map(|(settings, _)| settings.id.clone()),
            model: chosen_model.and_then(|(_, model)| model.clone()),
            at: OffsetDateTime::now_utc(),
        };
        live.tell(Some(turn_id), &first, message.map(Message::User).as_ref());
        let Begun { stop, before } = begun;
        let feed = live.listen(Some(before));
        let (action, attended) = (request.action(), request.attended == Some(true));
        let task = Task { live, turn_id, action, stop, chosen: now, attended, model };
        let chat = Arc::clone(self);
        self.turns.spawn(async move { chat.run(task, guard).await });
        Ok(Started { conversation_id, turn_id, feed })
    }

    /// Asks a running turn to end, and waits until it has.
    pub(crate) async fn stop(&self, id: Uuid) -> Result<bool, ApiError> {
        self.record(id).await?;
        Ok(self.live.of(id).stop().await)
    }

    /// Listens to a conversation.
    pub(crate) async fn listen(&self, id: Uuid, after: Option<u64>) -> Result<LiveFeed, ApiError> {
        self.record(id).await?;
        Ok(self.live.of(id).listen(after))
    }

    async fn check(
        &self,
        request: &TurnRequest,
        known: Option<&ConversationRecord>,
    ) -> Result<(), ApiError> {
        if request.action() != Action::Message
            && known.is_none_or(|record| record.message_count == 0)
        {
            return Err(ApiError::invalid_part("action", "there is nothing yet to go on from"));
        }
        if let Some(provider) = &request.provider
            && !self.all_providers().await?.iter().any(|known| known.settings.id == *provider)
        {
            return Err(ApiError::invalid_part(
                "provider",
                format!("there is no provider `{provider}`"),
            ));
        }
        Ok(())
    }

    /// Stores what the turn begins with: the conversation, and what the person said.
    async fn open(
        &self,
        live: &Live,
        request: &TurnRequest,
        known: Option<ConversationRecord>,
        now: &Chosen,
        turn_id: Uuid,
    ) -> Result<(String, Option<UserMessage>), ApiError> {
        let at = OffsetDateTime::now_utc();
        let id = live.conversation;
        let title = match known {
            Some(record) => {
                let there = self.store.touch_conversation(id, &now.to_value(), at).await;
                if !there.map_err(failed)? {
                    return Err(no_such(id));
                }
                record.title
            }
            None => {
                let title = title_of(request.message.as_deref().unwrap_or_default());
                let record = ConversationRecord {
                    id,
                    title: title.clone(),
                    settings: now.to_value(),
                    created_at: at,
                    updated_at: at,
                    message_count: 0,
                };
                self.store.insert_conversation(&record).await.map_err(failed)?;
                title
            }
        };
        let Some(text) = request.message.clone() else {
            return Ok((title, None));
        };
        let message = UserMessage { id: Uuid::now_v7(), turn_id, at, text };
        let body = serde_json::to_value(Message::User(message.clone()))
            .map_err(|error| ApiError::internal(error.to_string()))?;
        self.store.keep_message(id, message.id, &body).await.map_err(failed)?;
        Ok((title, Some(message)))
    }

    async fn run(&self, task: Task, mut guard: TurnGuard) {
        let Task { live, turn_id, action, stop, chosen, attended, model } = task;
        let journal =
            StoreJournal { store: Arc::clone(&self.store), live: Arc::clone(&live), turn_id };
        let finished = match self.prepare(live.conversation, turn_id, model).await {
            Ok((model, messages, wholes)) => {
                tracing::info!(conversation = %live.conversation, turn = %turn_id, provider = model.provider(), model = model.name(), "a turn began");
                let person = self.person(&live, turn_id, &model, attended);
                let tools =
                    Toolbox::new(self.tools.clone(), chosen.servers, chosen.tools_off.clone())
                        .attended_by(person);
                let calls = messages.iter().flat_map(Message::cards).map(|card| card.n).max();
                let turn = Turn {
                    id: turn_id,
                    action,
                    model: &model,
                    tools: &tools,
                    journal: &journal,
                    stop: &stop,
                    history: history(&messages, &wholes),
                    calls_before: calls.unwrap_or(0),
                };
                turn.run().await
            }
            Err(failure) => Turn::fail(&journal, turn_id, failure).await,
        };
        guard.finish(finished);
        tracing::info!(conversation = %live.conversation, turn = %turn_id, reason = ?finished.reason, steps = finished.steps, "a turn ended");
    }

    /// Who can be asked by servers during a turn. The gateway counts its clients from below.
    fn person(
        &self,
        live: &Arc<Live>,
        turn_id: Uuid,
        model: &ProviderModel,
        is_there: bool,
    ) -> Person {
        let client = ClientId(u64::MAX - self.last_client.fetch_add(1, Ordering::Relaxed));
        Person { is_there, live: Arc::clone(live), turn_id, model: model.clone(), client }
    }

    /// The model and the conversation so far.
    async fn prepare(
        &self,
        conversation: Uuid,
        turn_id: Uuid,
        model: Result<(ProviderSettings, Option<String>), ModelFailure>,
    ) -> Result<(ProviderModel, Vec<Message>, Wholes), ModelFailure> {
        let (settings, named) = model?;
        let name = match named {
            Some(name) => name,
            None => self.only_model(&settings).await?,
        };
        let stored = self.stored(conversation, None, HISTORY).await;
        let messages: Vec<Message> = stored
            .map_err(|error| not_kept(&error))?
            .into_iter()
            .map(
                |message| {
                    if message.turn_id() == turn_id { message } else { message.interrupted() }
                },
            )
            .collect();
        let results = self.store.results(conversation, None).await;
        let wholes = results.map_err(|error| not_kept(&error))?;
        let wholes = wholes.into_iter().map(|(call, whole)| (call, result_text(&whole))).collect();
        Ok((self.providers.model(settings, name).await?, messages, wholes))
    }

    /// The model of a provider that has just one, such as a server of one's own.
    async fn only_model(&self, settings: &ProviderSettings) -> Result<String, ModelFailure> {
        let models = self.providers.models(settings).await?;
        match <[String; 1]>::try_from(models) {
            Ok([model]) => Ok(model),
            Err(_) => Err(ModelFailure::no_model(&settings.id)),
        }
    }
}

fn busy(busy: Busy) -> ApiError {
    match busy {
        Busy::Here => ApiError::conflict("a turn is already running in this conversation")
            .hint("wait for it, or stop it with POST …/stop"),
        Busy::Everywhere => ApiError::busy(
            format!("{MAX_TURNS} turns are running"),
            "wait for one of them to end, or stop one",
            Duration::from_secs(5),
        ),
    }
}

/// Sees to it that a turn has an end, also one whose task panics.
struct TurnGuard {
    live: Arc<Live>,
    turn_id: Uuid,
    over: bool,
}

impl TurnGuard {
    fn finish(&mut self, finished: Finished) {
        self.over = true;
        let Finished { reason, steps, usage } = finished;
        let event = EventBody::TurnFinished { reason, steps, usage, at: OffsetDateTime::now_utc() };
        self.live.tell_end(self.turn_id, &event);
    }
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        if !self.over && self.live.glance().running == Some(self.turn_id) {
            let failure =
                ModelFailure::new(ModelFailureKind::Internal, "the daemon made a mistake")
                    .hint("its log has more; please report it");
            self.live.tell(Some(self.turn_id), &EventBody::TurnError(failure), None);
            self.finish(Finished { reason: Reason::Error, steps: 0, usage: TokenUsage::default() });
        }
    }
}
