//! One answer of the model: asked for, told piece by piece, and asked for again where the
//! provider wants a pause.

use std::time::Duration;

use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;

use crate::event::EventBody;
use crate::message::{AssistantMessage, Message};
use crate::model::{Answer, ChatModel, ModelEvent, ModelRequest};
use crate::retry::{self, RETRIES};
use crate::turn::Journal;
use crate::{ModelFailure, ModelFailureKind};

/// More text than this is no answer but a model that has lost its way.
const MAX_TEXT: usize = 4 << 20;

/// Why there is no whole answer.
#[derive(Debug)]
pub(crate) enum Broken {
    Stopped,
    Failed(ModelFailure),
}

/// Who asks, and who is told.
pub(crate) struct Asking<'a> {
    pub(crate) model: &'a dyn ChatModel,
    pub(crate) journal: &'a dyn Journal,
    pub(crate) stop: &'a CancellationToken,
}

impl Asking<'_> {
    /// Fills `message` with what comes. `begun` tells whether anything came at all.
    pub(crate) async fn answer(
        &self,
        request: ModelRequest,
        message: &mut AssistantMessage,
        begun: &mut bool,
    ) -> Result<Answer, Broken> {
        let mut tried = 0;
        loop {
            let failure = match self.once(request.clone(), message, begun).await {
                Err(Broken::Failed(failure)) if !*begun => failure,
                ended => return ended,
            };
            let Some(pause) = retry::pause(&failure, tried) else {
                return Err(Broken::Failed(failure));
            };
            tried += 1;
            self.wait(pause, tried, &failure).await?;
        }
    }

    async fn wait(&self, pause: Duration, tried: u32, why: &ModelFailure) -> Result<(), Broken> {
        let after_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        tracing::info!(attempt = tried, after_ms, reason = %why, "the provider asks to wait");
        let told = EventBody::Retrying {
            attempt: tried,
            of: RETRIES,
            after_ms,
            kind: why.kind,
            message: why.message.clone(),
        };
        self.journal.tell(told, None);
        tokio::select! {
            () = tokio::time::sleep(pause) => Ok(()),
            () = self.stop.cancelled() => Err(Broken::Stopped),
        }
    }

    async fn once(
        &self,
        request: ModelRequest,
        message: &mut AssistantMessage,
        begun: &mut bool,
    ) -> Result<Answer, Broken> {
        let mut stream = self.model.ask(request);
        loop {
            let next = tokio::select! {
                biased;
                () = self.stop.cancelled() => return Err(Broken::Stopped),
                next = stream.next() => next,
            };
            let event = match next {
                Some(Ok(event)) => event,
                Some(Err(failure)) => return Err(Broken::Failed(failure)),
                None => return Err(Broken::Failed(cut_off())),
            };
            if !std::mem::replace(begun, true) {
                self.begin(message);
            }
            match event {
                ModelEvent::Text(delta) => self.text(message, delta)?,
                ModelEvent::Reasoning(delta) => self.reasoning(message, delta)?,
                ModelEvent::End(answer) => return Ok(answer),
            }
        }
    }

    fn begin(&self, message: &AssistantMessage) {
        let started = EventBody::MessageStarted {
            message_id: message.id,
            step: message.step,
            provider: message.provider.clone(),
            model: message.model.clone(),
            at: message.at,
        };
        self.journal.tell(started, Some(&Message::Assistant(message.clone())));
    }

    fn text(&self, message: &mut AssistantMessage, delta: String) -> Result<(), Broken> {
        room_for(message.text.len() + delta.len())?;
        message.text.push_str(&delta);
        self.journal.tell(EventBody::TextDelta { message_id: message.id, delta }, None);
        Ok(())
    }

    fn reasoning(&self, message: &mut AssistantMessage, delta: String) -> Result<(), Broken> {
        let reasoning = message.reasoning.get_or_insert_default();
        room_for(reasoning.len() + delta.len())?;
        reasoning.push_str(&delta);
        self.journal.tell(EventBody::ReasoningDelta { message_id: message.id, delta }, None);
        Ok(())
    }
}

fn room_for(bytes: usize) -> Result<(), Broken> {
    if bytes <= MAX_TEXT {
        return Ok(());
    }
    let message = format!("the model's answer is longer than {MAX_TEXT} bytes and was ended");
    Err(Broken::Failed(ModelFailure::new(ModelFailureKind::ProviderError, message)))
}

fn cut_off() -> ModelFailure {
    ModelFailure::new(ModelFailureKind::StreamCut, "the model's answer broke off")
        .hint("try again; if it happens often, look at the provider or at a proxy between")
}
