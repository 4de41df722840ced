//! The calls of one answer: run side by side, kept as they end, cancelled when the turn is stopped.

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde_json::Value;
use time::OffsetDateTime;
use tokio::time::Instant;

use crate::ModelFailure;
use crate::event::EventBody;
use crate::history::answer_text;
use crate::message::{AssistantMessage, AssistantState, CallEnd, CallStatus, Message, ToolCard};
use crate::model::{Entry, ToolAnswer};
use crate::result::cut_result;
use crate::tools::{CallOutcome, Offer, ToolRequest};
use crate::turn::{End, Progress};

/// Calls of one answer beyond this are not made.
const CALLS_PER_STEP: usize = 32;

impl Progress<'_> {
    /// Runs the calls of one answer side by side; each is kept as it ends.
    pub(crate) async fn run_calls(
        &mut self,
        mut message: AssistantMessage,
        offer: &Offer,
    ) -> Result<(), End> {
        self.tell_starts(&message);
        let (tools, stop) = (self.turn.tools, self.turn.stop);
        let mut running: FuturesUnordered<_> = message
            .tool_calls
            .iter()
            .enumerate()
            .map(|(index, card)| {
                let prepared = prepare(index, card, offer);
                async move {
                    let started = Instant::now();
                    let outcome = match prepared {
                        Ok(request) => tools.call(request).await,
                        Err(refused) => *refused,
                    };
                    (index, outcome, started.elapsed())
                }
            })
            .collect();
        let mut answers: Vec<Option<ToolAnswer>> = vec![None; message.tool_calls.len()];
        loop {
            let next = tokio::select! {
                biased;
                () = stop.cancelled() => None,
                next = running.next() => match next {
                    Some(next) => Some(next),
                    None => break,
                },
            };
            let Some((index, outcome, took)) = next else {
                drop(running);
                return Err(self.cancel_calls(message).await);
            };
            let card = &mut message.tool_calls[index];
            card.duration_ms = Some((took.as_micros() as f64) / 1000.0);
            let whole = outcome.result.clone();
            settle(card, outcome);
            answers[index] = Some(ToolAnswer {
                id: card.model_call_id.clone(),
                name: card.name.clone(),
                text: answer_text(card, whole.as_ref()),
            });
            self.keep_call(&message, index, whole.as_ref()).await?;
        }
        drop(running);
        message.state = AssistantState::Complete;
        self.turn.journal.keep(&Message::Assistant(message)).await?;
        self.turn.history.push(Entry::Tools(answers.into_iter().flatten().collect()));
        Ok(())
    }

    fn tell_starts(&self, message: &AssistantMessage) {
        let now = Message::Assistant(message.clone());
        for card in &message.tool_calls {
            self.turn.journal.tell(EventBody::started(message.id, card), Some(&now));
        }
    }

    async fn keep_call(
        &self,
        message: &AssistantMessage,
        index: usize,
        whole: Option<&Value>,
    ) -> Result<(), ModelFailure> {
        let card = &message.tool_calls[index];
        if let (true, Some(whole)) = (card.truncated, whole) {
            self.turn.journal.keep_result(card.call_id, whole).await?;
        }
        let now = Message::Assistant(message.clone());
        let kept = self.turn.journal.keep(&now).await;
        let event = EventBody::finished(message.id, card, OffsetDateTime::now_utc());
        self.turn.journal.tell(event, Some(&now));
        kept
    }

    async fn cancel_calls(&self, mut message: AssistantMessage) -> End {
        message.state = AssistantState::Stopped;
        let mut cancelled = Vec::new();
        for (index, card) in message.tool_calls.iter_mut().enumerate() {
            if card.status == CallStatus::Running {
                card.cancel("the turn was stopped");
                cancelled.push(index);
            }
        }
        let now = Message::Assistant(message.clone());
        for index in cancelled {
            let card = &message.tool_calls[index];
            let event = EventBody::finished(message.id, card, OffsetDateTime::now_utc());
            self.turn.journal.tell(event, Some(&now));
        }
        match self.turn.journal.keep(&now).await {
            Ok(()) => End::Stopped,
            Err(failure) => End::Failed(failure),
        }
    }
}

/// What to do for a card: the request, or why none is made.
fn prepare(index: usize, card: &ToolCard, offer: &Offer) -> Result<ToolRequest, Box<CallOutcome>> {
    let Some(tool) = offer.tools.iter().find(|tool| tool.name == card.name) else {
        let message = format!("there is no tool named `{}`", card.name);
        return Err(Box::new(CallOutcome::not_made(CallEnd::NotFound, message)));
    };
    if index >= CALLS_PER_STEP {
        let message = format!("at most {CALLS_PER_STEP} tools are called at once; call it again");
        return Err(Box::new(CallOutcome::not_made(CallEnd::Overloaded, message)));
    }
    if !card.arguments.is_object() {
        let message = "the arguments are not a JSON object; call it again with one";
        return Err(Box::new(CallOutcome::not_made(CallEnd::BadArguments, message)));
    }
    Ok(ToolRequest {
        call_id: card.call_id,
        server: tool.server.clone(),
        tool: tool.tool.clone(),
        kind: tool.kind,
        arguments: card.arguments.clone(),
    })
}

/// Models that call a tool without arguments write nothing, null or `{}`.
pub(crate) fn arguments(given: &Value) -> Value {
    match given {
        Value::Null => Value::Object(serde_json::Map::new()),
        Value::String(text) if text.trim().is_empty() => Value::Object(serde_json::Map::new()),
        given => given.clone(),
    }
}

fn settle(card: &mut ToolCard, outcome: CallOutcome) {
    card.status = match outcome.end {
        CallEnd::Ok => CallStatus::Done,
        CallEnd::Cancelled => CallStatus::Cancelled,
        _ => CallStatus::Error,
    };
    card.outcome = Some(outcome.end);
    card.result_bytes = outcome.result_bytes;
    if let Some(result) = &outcome.result {
        let (cut, truncated) = cut_result(result);
        card.result = Some(cut);
        card.truncated = truncated;
    }
    card.error = outcome.error;
    card.recorded = outcome.recorded;
}
