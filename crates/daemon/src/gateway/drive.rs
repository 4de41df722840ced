//! Takes a request to its answer, step by step: what the server says meanwhile comes out before
//! the answer, in the order in which it was said.

use std::pin::Pin;
use std::sync::Arc;

use super::rpc::Answer;
use super::running::{Related, Running};

/// The work on one request. Dropping it cancels the request at the server.
pub(super) type Work = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// What happens next to a request.
pub(super) enum Step {
    /// The server says something about it.
    Related(Related),
    /// It is answered; nothing comes after this.
    Done(Answer),
    /// Its client wants no answer any more; nothing comes after this.
    Cancelled,
}

/// A request that is being worked on.
pub(super) struct Drive {
    work: Work,
    running: Arc<Running>,
    /// Known, and held back until everything that was said before it is out.
    answer: Option<Answer>,
}

impl Drive {
    pub(super) fn new(work: Work, running: Arc<Running>) -> Self {
        Self { work, running, answer: None }
    }

    pub(super) fn running(&self) -> &Arc<Running> {
        &self.running
    }

    /// May be dropped and called again without loss.
    pub(super) async fn step(&mut self) -> Step {
        loop {
            if self.running.is_cancelled() {
                return Step::Cancelled;
            }
            if let Some(related) = self.running.take() {
                return Step::Related(related);
            }
            if let Some(answer) = self.answer.take() {
                return Step::Done(answer);
            }
            tokio::select! {
                biased;
                answer = &mut self.work => self.answer = Some(answer),
                () = self.running.woken() => {}
            }
        }
    }
}
