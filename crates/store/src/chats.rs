//! The chats: conversations, their messages as the JSON they were given, large results, and
//! the providers of models with their keys. What the JSON means, the store does not know.

mod record;
mod sql;

use async_trait::async_trait;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

pub use record::{ConversationRecord, Cursor, ProviderRecord};
pub(crate) use sql::{ChatSql, POSTGRES, SQLITE};

use crate::StoreError;
use crate::servers::{Argument, Backend, Change, time_text};

/// One row, each column as text.
pub(crate) type Texts = Vec<Option<String>>;

/// The chats. What a method has returned `Ok` for is on the disk.
#[async_trait]
pub trait ChatStore: Send + Sync {
    /// Conversations, newest first, from behind `before` on; those whose title has `search` in
    /// it, whatever its case. One that cannot be read is left out.
    async fn conversations(
        &self,
        search: Option<&str>,
        before: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<ConversationRecord>, StoreError>;

    /// How many conversations there are, of those that `search` finds.
    async fn count_conversations(&self, search: Option<&str>) -> Result<u64, StoreError>;

    /// The conversation with this id.
    async fn conversation(&self, id: Uuid) -> Result<Option<ConversationRecord>, StoreError>;

    /// Adds a conversation.
    async fn insert_conversation(&self, record: &ConversationRecord) -> Result<(), StoreError>;

    /// Gives a conversation another title; false where it is not there.
    async fn rename_conversation(&self, id: Uuid, title: &str) -> Result<bool, StoreError>;

    /// Keeps what was chosen for a conversation, and that something happened in it; false where
    /// it is not there.
    async fn touch_conversation(
        &self,
        id: Uuid,
        settings: &Value,
        updated_at: OffsetDateTime,
    ) -> Result<bool, StoreError>;

    /// Removes a conversation with all that belongs to it; false where it was not there.
    async fn delete_conversation(&self, id: Uuid) -> Result<bool, StoreError>;

    /// Adds a message behind all others, or replaces the one with this id.
    async fn keep_message(
        &self,
        conversation: Uuid,
        id: Uuid,
        body: &Value,
    ) -> Result<(), StoreError>;

    /// The last `limit` messages before `before`, oldest first. One that is not JSON any more is
    /// left out.
    async fn messages(
        &self,
        conversation: Uuid,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Value>, StoreError>;

    /// Keeps a large result.
    async fn keep_result(
        &self,
        conversation: Uuid,
        call: Uuid,
        result: &Value,
    ) -> Result<(), StoreError>;

    /// The large results of a conversation, or the one of `call`.
    async fn results(
        &self,
        conversation: Uuid,
        call: Option<Uuid>,
    ) -> Result<Vec<(Uuid, Value)>, StoreError>;

    /// The providers by id.
    async fn providers(&self) -> Result<Vec<ProviderRecord>, StoreError>;

    /// Adds or replaces a provider; one that is the default takes that from the others.
    async fn keep_provider(
        &self,
        record: &ProviderRecord,
        updated_at: OffsetDateTime,
    ) -> Result<(), StoreError>;

    /// Removes a provider; false where it was not there.
    async fn delete_provider(&self, id: &str) -> Result<bool, StoreError>;
}

#[async_trait]
impl<B: Backend> ChatStore for B {
    async fn conversations(
        &self,
        search: Option<&str>,
        before: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<ConversationRecord>, StoreError> {
        let arguments = vec![
            search.map(folded),
            before.map(|cursor| time_text(cursor.updated_at)),
            before.map(|cursor| cursor.id.to_string()),
            Some(limit.to_string()),
        ];
        let rows = self.texts("list the conversations", B::CHAT.list, arguments).await?;
        Ok(rows.into_iter().filter_map(readable).collect())
    }

    async fn count_conversations(&self, search: Option<&str>) -> Result<u64, StoreError> {
        let search = vec![search.map(folded)];
        let rows = self.texts("count the conversations", B::CHAT.count, search).await?;
        let count = rows.into_iter().flatten().flatten().next();
        Ok(count.and_then(|count| count.parse().ok()).unwrap_or(0))
    }

    async fn conversation(&self, id: Uuid) -> Result<Option<ConversationRecord>, StoreError> {
        let rows = self.texts("read a conversation", B::CHAT.get, vec![text(id)]).await?;
        Ok(rows.into_iter().next().map(ConversationRecord::from_row).transpose()?)
    }

    async fn insert_conversation(&self, record: &ConversationRecord) -> Result<(), StoreError> {
        let arguments = vec![
            text(record.id),
            Some(clean(&record.title)),
            Some(folded(&record.title)),
            Some(record.settings.to_string()),
            Some(time_text(record.created_at)),
            Some(time_text(record.updated_at)),
        ];
        self.change("store a conversation", B::CHAT.insert, arguments).await.map(drop)
    }

    async fn rename_conversation(&self, id: Uuid, title: &str) -> Result<bool, StoreError> {
        let arguments = vec![text(id), Some(clean(title)), Some(folded(title))];
        changed(self.change("rename a conversation", B::CHAT.rename, arguments).await?)
    }

    async fn touch_conversation(
        &self,
        id: Uuid,
        settings: &Value,
        updated_at: OffsetDateTime,
    ) -> Result<bool, StoreError> {
        let arguments = vec![text(id), Some(settings.to_string()), Some(time_text(updated_at))];
        changed(self.change("change a conversation", B::CHAT.touch, arguments).await?)
    }

    async fn delete_conversation(&self, id: Uuid) -> Result<bool, StoreError> {
        changed(self.change("remove a conversation", B::CHAT.delete, vec![text(id)]).await?)
    }

    async fn keep_message(
        &self,
        conversation: Uuid,
        id: Uuid,
        body: &Value,
    ) -> Result<(), StoreError> {
        let arguments = vec![text(id), text(conversation), Some(body.to_string())];
        self.change("store a message", B::CHAT.keep_message, arguments).await.map(drop)
    }

    async fn messages(
        &self,
        conversation: Uuid,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Value>, StoreError> {
        let arguments = vec![text(conversation), before.and_then(text), Some(limit.to_string())];
        let rows = self.texts("read the messages", B::CHAT.messages, arguments).await?;
        let bodies = rows.into_iter().rev().filter_map(|row| row.into_iter().next().flatten());
        Ok(bodies.filter_map(|body| serde_json::from_str(&body).ok()).collect())
    }

    async fn keep_result(
        &self,
        conversation: Uuid,
        call: Uuid,
        result: &Value,
    ) -> Result<(), StoreError> {
        let arguments = vec![text(call), text(conversation), Some(result.to_string())];
        self.change("store a result", B::CHAT.keep_result, arguments).await.map(drop)
    }

    async fn results(
        &self,
        conversation: Uuid,
        call: Option<Uuid>,
    ) -> Result<Vec<(Uuid, Value)>, StoreError> {
        let arguments = vec![text(conversation), call.and_then(text)];
        let rows = self.texts("read the results", B::CHAT.results, arguments).await?;
        let read = |row: Texts| {
            let mut columns = row.into_iter().flatten();
            let call = columns.next()?.parse().ok()?;
            Some((call, serde_json::from_str(&columns.next()?).ok()?))
        };
        Ok(rows.into_iter().filter_map(read).collect())
    }

    async fn providers(&self) -> Result<Vec<ProviderRecord>, StoreError> {
        let rows = self.texts("read the providers", B::CHAT.providers, vec![]).await?;
        Ok(rows.into_iter().map(ProviderRecord::from_row).collect())
    }

    async fn keep_provider(
        &self,
        record: &ProviderRecord,
        updated_at: OffsetDateTime,
    ) -> Result<(), StoreError> {
        let arguments = vec![
            Some(record.id.clone()),
            Some(record.kind.clone()),
            Some(clean(&record.name)),
            Some(record.base_url.clone()),
            record.api_key.clone(),
            record.default_model.as_deref().map(clean),
            Some(record.is_default.to_string()),
            Some(time_text(updated_at)),
        ];
        self.change("store a provider", B::CHAT.keep_provider, arguments).await?;
        if record.is_default {
            let id = vec![Some(record.id.clone())];
            self.change("choose a provider", B::CHAT.make_default, id).await?;
        }
        Ok(())
    }

    async fn delete_provider(&self, id: &str) -> Result<bool, StoreError> {
        let id = vec![Some(clean(id))];
        changed(self.change("remove a provider", B::CHAT.delete_provider, id).await?)
    }
}

fn text(id: Uuid) -> Argument {
    Some(id.to_string())
}

/// PostgreSQL has no NUL in text.
fn clean(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}

fn folded(text: &str) -> String {
    clean(text).to_lowercase()
}

fn changed(change: Change) -> Result<bool, StoreError> {
    Ok(matches!(change, Change::Rows(1..)))
}

fn readable(row: Texts) -> Option<ConversationRecord> {
    let record = ConversationRecord::from_row(row);
    record.inspect_err(|bad| tracing::warn!(error = %bad, "a conversation was left out")).ok()
}
