//! Conversations, messages and providers in Rust, and the way from text in a row to them.

use std::fmt;

use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use super::Texts;
use crate::BadRow;
use crate::servers::{parse, parse_time};

/// One conversation without its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationRecord {
    /// The conversation.
    pub id: Uuid,
    /// What it is called.
    pub title: String,
    /// What was chosen for it.
    pub settings: Value,
    /// When it began.
    pub created_at: OffsetDateTime,
    /// When something last happened in it.
    pub updated_at: OffsetDateTime,
    /// How many messages it has; not read when it is stored.
    pub message_count: u64,
}

impl ConversationRecord {
    pub(super) fn from_row(row: Texts) -> Result<Self, BadRow> {
        let mut columns = row.into_iter().map(Option::unwrap_or_default);
        let mut next = || columns.next().unwrap_or_default();
        let (id, title, settings) = (next(), next(), next());
        let (created_at, updated_at, count) = (next(), next(), next());
        let read = || -> Result<Self, String> {
            Ok(Self {
                id: id.parse().map_err(|error| format!("column id: {error}"))?,
                title: title.clone(),
                settings: parse("settings", &settings)?,
                created_at: parse_time("created_at", &created_at)?,
                updated_at: parse_time("updated_at", &updated_at)?,
                message_count: count.parse().unwrap_or(0),
            })
        };
        read().map_err(|problem| BadRow { id: id.clone(), name: title.clone(), problem })
    }
}

/// A place in the list of conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// The time of the last one that was seen.
    pub updated_at: OffsetDateTime,
    /// Its id.
    pub id: Uuid,
}

/// One provider of models.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderRecord {
    /// By which it is named.
    pub id: String,
    /// What it speaks.
    pub kind: String,
    /// For people.
    pub name: String,
    /// Where it is.
    pub base_url: String,
    /// A secret.
    pub api_key: Option<String>,
    /// The model that is asked where none is named.
    pub default_model: Option<String>,
    /// Whether it is asked where none is named.
    pub is_default: bool,
}

impl fmt::Debug for ProviderRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderRecord")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("base_url", &self.base_url)
            .field("has_key", &self.api_key.is_some())
            .field("is_default", &self.is_default)
            .finish_non_exhaustive()
    }
}

impl ProviderRecord {
    pub(super) fn from_row(row: Texts) -> Self {
        let mut columns = row.into_iter();
        let mut next = || columns.next().flatten();
        Self {
            id: next().unwrap_or_default(),
            kind: next().unwrap_or_default(),
            name: next().unwrap_or_default(),
            base_url: next().unwrap_or_default(),
            api_key: next(),
            default_model: next(),
            is_default: next().as_deref() == Some("true"),
        }
    }
}
