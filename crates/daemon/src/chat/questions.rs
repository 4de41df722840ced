//! The questions of servers that are open in a conversation: shown to everybody who looks, and
//! closed by the first answer, by the server, or by the end of the call.

use std::sync::Arc;

use cofer_chat::{EventBody, Question, QuestionReply};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::Chat;
use super::live::Live;
use crate::api::error::ApiError;

/// How many may be open in one conversation.
const MAX_OPEN: usize = 16;

/// One that is open, and the way back of its answer.
pub(super) struct Asked {
    pub(super) question: Question,
    reply: oneshot::Sender<QuestionReply>,
}

/// A question that is open as long as this lives.
pub(super) struct OpenQuestion {
    live: Arc<Live>,
    turn_id: Uuid,
    id: Uuid,
    call_id: Uuid,
    reply: oneshot::Receiver<QuestionReply>,
}

impl OpenQuestion {
    /// What the person answers; none where nobody will.
    pub(super) async fn reply(&mut self) -> Option<QuestionReply> {
        (&mut self.reply).await.ok()
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let mut state = self.live.lock();
        state.questions.retain(|asked| asked.question.id != self.id);
        let closed = EventBody::QuestionClosed { question_id: self.id, call_id: self.call_id };
        self.live.publish(&mut state, Some(self.turn_id), &closed, None);
    }
}

impl Live {
    /// Shows a question; none where too many are open.
    pub(super) fn ask(self: &Arc<Self>, turn_id: Uuid, question: Question) -> Option<OpenQuestion> {
        let mut state = self.lock();
        if state.questions.len() >= MAX_OPEN {
            return None;
        }
        let (sender, reply) = oneshot::channel();
        let (id, call_id) = (question.id, question.call_id);
        self.publish(&mut state, Some(turn_id), &EventBody::QuestionAsked(question.clone()), None);
        state.questions.push(Asked { question, reply: sender });
        drop(state);
        Some(OpenQuestion { live: Arc::clone(self), turn_id, id, call_id, reply })
    }

    fn answer(&self, id: Uuid, reply: QuestionReply) -> Result<(), ApiError> {
        let gone = || {
            ApiError::not_found("there is no such question, or it has been answered")
                .hint("GET the conversation to see which are open")
        };
        let mut state = self.lock();
        let place = state.questions.iter().position(|asked| asked.question.id == id);
        let place = place.ok_or_else(gone)?;
        let wish = &state.questions[place].question.wish;
        wish.check(&reply).map_err(|why| ApiError::invalid_part("content", why))?;
        let asked = state.questions.swap_remove(place);
        drop(state);
        asked.reply.send(reply).map_err(|_| gone())
    }
}

impl Chat {
    /// Gives a server the person's answer to what it asked.
    pub(crate) async fn answer(
        &self,
        conversation: Uuid,
        question: Uuid,
        reply: QuestionReply,
    ) -> Result<(), ApiError> {
        self.record(conversation).await?;
        self.live.of(conversation).answer(question, reply)
    }
}
