//! Notices: how a turn that has no answer is kept and told.

use time::OffsetDateTime;
use uuid::Uuid;

use crate::ModelFailure;
use crate::event::EventBody;
use crate::message::{Message, NoticeKind, NoticeMessage};
use crate::turn::Journal;

pub(crate) fn notice(turn_id: Uuid, notice: NoticeKind) -> Message {
    let (id, at) = (Uuid::now_v7(), OffsetDateTime::now_utc());
    Message::Notice(NoticeMessage { id, turn_id, at, notice })
}

pub(crate) async fn keep_notice(
    journal: &dyn Journal,
    turn_id: Uuid,
    kind: NoticeKind,
    event: impl FnOnce(&Message) -> EventBody,
) {
    let notice = notice(turn_id, kind);
    keep_or_log(journal, &notice).await;
    journal.tell(event(&notice), Some(&notice));
}

pub(crate) async fn tell_failure(journal: &dyn Journal, turn_id: Uuid, failure: ModelFailure) {
    tracing::warn!(turn = %turn_id, kind = ?failure.kind, reason = %failure, "a turn failed");
    let told = failure.clone();
    keep_notice(journal, turn_id, NoticeKind::Error { error: failure }, |_| {
        EventBody::TurnError(told)
    })
    .await;
}

/// A notice that cannot be stored is told all the same: the turn has ended either way.
pub(crate) async fn keep_or_log(journal: &dyn Journal, message: &Message) {
    if let Err(error) = journal.keep(message).await {
        tracing::warn!(%error, "a notice was not stored");
    }
}
