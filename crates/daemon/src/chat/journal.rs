//! Keeps what happens in a turn: in the store, and where everybody who looks on sees it.

use std::sync::Arc;

use async_trait::async_trait;
use cofer_chat::{EventBody, Journal, Message, ModelFailure, ModelFailureKind};
use cofer_store::{Store, StoreError};
use serde_json::Value;
use uuid::Uuid;

use super::live::Live;

/// The journal of one turn.
pub(super) struct StoreJournal {
    pub(super) store: Arc<dyn Store>,
    pub(super) live: Arc<Live>,
    pub(super) turn_id: Uuid,
}

#[async_trait]
impl Journal for StoreJournal {
    fn tell(&self, event: EventBody, now: Option<&Message>) {
        self.live.tell(Some(self.turn_id), &event, now);
    }

    async fn keep(&self, message: &Message) -> Result<(), ModelFailure> {
        self.live.show(message);
        let body = serde_json::to_value(message).map_err(|error| unwritten(&error))?;
        let kept = self.store.keep_message(self.live.conversation, message.id(), &body).await;
        kept.map_err(|error| not_kept(&error))
    }

    async fn keep_result(&self, call_id: Uuid, result: &Value) -> Result<(), ModelFailure> {
        let kept = self.store.keep_result(self.live.conversation, call_id, result).await;
        kept.map_err(|error| not_kept(&error))
    }
}

/// The store did not keep it.
pub(super) fn not_kept(error: &StoreError) -> ModelFailure {
    let message = format!("what happened could not be stored: {error}");
    ModelFailure::new(ModelFailureKind::Internal, message)
        .hint("the daemon's log has the cause; the turn was ended")
}

fn unwritten(error: &serde_json::Error) -> ModelFailure {
    ModelFailure::new(ModelFailureKind::Internal, format!("a message has no JSON form: {error}"))
}
