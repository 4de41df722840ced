//! Conversations: listed, read, renamed, removed; and what was chosen for each.

use cofer_chat::{AssistantState, Message, Question, ToolCard};
use cofer_store::{ConversationRecord, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::Chat;
use super::live::Glance;
use super::naming::{check_title, cursor, read_cursor};
use super::request::TurnRequest;
use crate::api::error::ApiError;

/// What was chosen for a conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Chosen {
    pub(crate) provider: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) servers: Option<Vec<String>>,
    pub(crate) tools_off: Vec<String>,
}

impl Chosen {
    fn read(settings: &Value) -> Self {
        serde_json::from_value(settings.clone()).unwrap_or_default()
    }

    /// With what a turn asks for; what it does not mention stays.
    pub(super) fn with(mut self, request: &TurnRequest) -> Self {
        if let Some(provider) = &request.provider {
            if self.provider.as_ref() != Some(provider) {
                // A model of another provider's is none of this one's.
                self.model = None;
            }
            self.provider = Some(provider.clone());
        }
        if let Some(model) = &request.model {
            self.model = Some(model.trim().to_owned());
        }
        if let Some(servers) = &request.servers {
            self.servers.clone_from(servers);
        }
        if let Some(tools_off) = &request.tools_off {
            self.tools_off.clone_from(tools_off);
        }
        self
    }

    pub(super) fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// One conversation in a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ConversationSummary {
    /// The conversation.
    pub(crate) id: Uuid,
    /// What it is called.
    pub(crate) title: String,
    /// The provider that was chosen for it.
    provider: Option<String>,
    /// The model that was chosen for it.
    model: Option<String>,
    /// Whether a turn runs in it.
    running: bool,
    /// How many messages it has.
    message_count: u64,
    /// When it began.
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// When something last happened in it.
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
}

/// Conversations, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConversationPage {
    /// Newest first.
    conversations: Vec<ConversationSummary>,
    /// For `before`, where there are more.
    next: Option<String>,
    /// How many there are, of those that the search finds.
    total: u64,
}

/// One conversation with its messages.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConversationView {
    #[serde(flatten)]
    summary: ConversationSummary,
    /// The servers whose tools are offered; null for all.
    servers: Option<Vec<String>>,
    /// Tools that are not offered, as `server/tool`.
    tools_off: Vec<String>,
    /// The turn that runs.
    turn_id: Option<Uuid>,
    /// Where to go on listening with `events?after=`, without a gap.
    last_event_id: String,
    /// Whether the last turn ended in a way after which the model can be asked to go on.
    can_continue: bool,
    /// Whether there are messages before these.
    earlier: bool,
    /// What servers want to know of the person before their calls go on.
    questions: Vec<Question>,
    /// Oldest first.
    pub(super) messages: Vec<Message>,
}

impl Chat {
    /// A page of the list.
    pub(crate) async fn list(
        &self,
        search: Option<&str>,
        before: Option<&str>,
        limit: u32,
    ) -> Result<ConversationPage, ApiError> {
        let search = search.map(str::trim).filter(|search| !search.is_empty());
        let before = before.map(read_cursor).transpose()?;
        let found = self.store.conversations(search, before.as_ref(), limit).await;
        let records = found.map_err(failed)?;
        let next = (records.len() == limit as usize).then(|| records.last().map(cursor)).flatten();
        let total = self.store.count_conversations(search).await.map_err(failed)?;
        let conversations = records.into_iter().map(|record| self.summary(record)).collect();
        Ok(ConversationPage { conversations, next, total })
    }

    /// One conversation as it stands now, a running turn included.
    pub(crate) async fn show(
        &self,
        id: Uuid,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<ConversationView, ApiError> {
        // A turn that begins and ends while the store is read would be missed.
        for _ in 0..5 {
            let turn = self.live.of(id).glance().turn_id;
            let record = self.record(id).await?;
            let (mut messages, earlier) = self.page(id, before, limit).await?;
            let glance = self.live.of(id).glance();
            if glance.turn_id != turn {
                continue;
            }
            if before.is_none() {
                overlay(&mut messages, &glance);
            }
            return Ok(self.view(record, messages, earlier, &glance));
        }
        Err(ApiError::conflict("the conversation changes faster than it can be read"))
    }

    /// Gives a conversation another title.
    pub(crate) async fn rename(
        &self,
        id: Uuid,
        title: &str,
    ) -> Result<ConversationSummary, ApiError> {
        let title = check_title(title)?;
        if !self.store.rename_conversation(id, &title).await.map_err(failed)? {
            return Err(no_such(id));
        }
        let event = cofer_chat::EventBody::ConversationChanged { title };
        self.live.of(id).tell(None, &event, None);
        Ok(self.summary(self.record(id).await?))
    }

    /// Ends what runs in a conversation and removes it.
    pub(crate) async fn remove(&self, id: Uuid) -> Result<(), ApiError> {
        self.record(id).await?;
        let live = self.live.of(id);
        live.stop().await;
        if !self.store.delete_conversation(id).await.map_err(failed)? {
            return Err(no_such(id));
        }
        live.tell(None, &cofer_chat::EventBody::ConversationDeleted {}, None);
        self.live.forget(id);
        Ok(())
    }

    /// One card with its whole result.
    pub(crate) async fn card(&self, id: Uuid, call_id: Uuid) -> Result<ToolCard, ApiError> {
        let view = self.show(id, None, u32::MAX >> 1).await?;
        let mut cards = view.messages.iter().flat_map(Message::cards);
        let card = cards.find(|card| card.call_id == call_id).cloned();
        let mut card = card.ok_or_else(|| {
            ApiError::not_found(format!("there is no call {call_id} in this conversation"))
        })?;
        if card.truncated {
            let whole = self.store.results(id, Some(call_id)).await.map_err(failed)?;
            if let Some((_, whole)) = whole.into_iter().next() {
                card.result = Some(whole);
                card.truncated = false;
            }
        }
        Ok(card)
    }

    /// All messages, each cut result whole again.
    pub(super) async fn whole(&self, id: Uuid) -> Result<ConversationView, ApiError> {
        let mut view = self.show(id, None, u32::MAX >> 1).await?;
        let results = self.store.results(id, None).await.map_err(failed)?;
        let mut results: std::collections::HashMap<_, _> = results.into_iter().collect();
        for message in &mut view.messages {
            let Message::Assistant(message) = message else { continue };
            for card in message.tool_calls.iter_mut().filter(|card| card.truncated) {
                if let Some(whole) = results.remove(&card.call_id) {
                    card.result = Some(whole);
                    card.truncated = false;
                }
            }
        }
        Ok(view)
    }

    pub(super) async fn record(&self, id: Uuid) -> Result<ConversationRecord, ApiError> {
        self.store.conversation(id).await.map_err(failed)?.ok_or_else(|| no_such(id))
    }

    /// The stored messages, as they are if nothing runs; one that cannot be read is left out.
    pub(super) async fn stored(
        &self,
        id: Uuid,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Message>, StoreError> {
        let bodies = self.store.messages(id, before, limit).await?;
        Ok(bodies.into_iter().filter_map(|body| serde_json::from_value(body).ok()).collect())
    }

    async fn page(
        &self,
        id: Uuid,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<(Vec<Message>, bool), ApiError> {
        let mut messages =
            self.stored(id, before, limit.saturating_add(1)).await.map_err(failed)?;
        let earlier = messages.len() > limit as usize;
        if earlier {
            messages.remove(0);
        }
        Ok((messages, earlier))
    }

    fn view(
        &self,
        record: ConversationRecord,
        messages: Vec<Message>,
        earlier: bool,
        glance: &Glance,
    ) -> ConversationView {
        let Chosen { servers, tools_off, .. } = Chosen::read(&record.settings);
        let running = glance.running;
        let messages: Vec<Message> = messages
            .into_iter()
            .map(|message| {
                let alive = running == Some(message.turn_id());
                if alive { message } else { message.interrupted() }.shown()
            })
            .collect();
        let mut summary = self.summary(record);
        summary.running = running.is_some();
        let count = messages.len() as u64;
        summary.message_count = summary.message_count.max(count);
        ConversationView {
            summary,
            servers,
            tools_off,
            turn_id: running,
            last_event_id: glance.last_id.to_string(),
            can_continue: running.is_none() && messages.last().is_some_and(is_open),
            earlier,
            questions: glance.questions.clone(),
            messages,
        }
    }

    pub(super) fn summary(&self, record: ConversationRecord) -> ConversationSummary {
        let Chosen { provider, model, .. } = Chosen::read(&record.settings);
        ConversationSummary {
            id: record.id,
            title: record.title,
            provider,
            model,
            running: self.live.is_running(record.id),
            message_count: record.message_count,
            created_at: record.created_at,
            updated_at: record.updated_at,
        }
    }
}

/// What was chosen for a stored conversation.
pub(super) fn chosen(record: &ConversationRecord) -> Chosen {
    Chosen::read(&record.settings)
}

/// Puts what is newer than the store over what was read from it.
fn overlay(messages: &mut Vec<Message>, glance: &Glance) {
    for newer in &glance.messages {
        match messages.iter_mut().find(|message| message.id() == newer.id()) {
            Some(message) => *message = newer.clone(),
            None => messages.push(newer.clone()),
        }
    }
}

/// Whether the model can be asked to go on behind this message.
fn is_open(message: &Message) -> bool {
    match message {
        Message::Notice(_) | Message::User(_) => true,
        Message::Assistant(message) => {
            message.state != AssistantState::Complete || !message.tool_calls.is_empty()
        }
    }
}

pub(super) fn no_such(id: Uuid) -> ApiError {
    ApiError::not_found(format!("there is no conversation {id}"))
        .hint("GET /api/v1/chat/conversations lists them")
}

pub(super) fn failed(error: StoreError) -> ApiError {
    ApiError::store(&error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_provider_forgets_the_model_of_the_first() {
        let request = |provider: &str, model: Option<&str>| TurnRequest {
            conversation_id: None,
            message: None,
            action: None,
            provider: Some(provider.to_owned()),
            model: model.map(str::to_owned),
            servers: None,
            tools_off: None,
            attended: None,
        };
        let chosen = Chosen::default().with(&request("a", Some("m")));
        assert_eq!(chosen.clone().with(&request("a", None)).model.as_deref(), Some("m"));
        assert_eq!(chosen.with(&request("b", None)).model, None);
    }
}
