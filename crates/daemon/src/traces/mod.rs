//! Traces, where OpenTelemetry's variables ask for them: every recorded call as a span, sent to
//! an OTLP collector.
//!
//! ```text
//!  a call ends ──► queue (bounded, never waits) ──► exporter ──► POST …/v1/traces
//!                  sampler                           batches, tries again
//! ```
//!
//! `settings` reads the variables, `span` writes a call as OTLP's JSON, `exporter` sends. A
//! collector that is slow or away costs spans, which are counted, and never a call.

mod exporter;
mod sampler;
mod settings;
mod span;

use std::sync::Arc;

use cofer_model::ActivityEntry;
use cofer_supervisor::CallTrace;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::metrics::{Metrics, SpanMetrics};
use exporter::Exporter;
use sampler::Sampler;
use settings::Settings;

/// The exporter, where there is one.
#[derive(Debug)]
pub(crate) struct Traces {
    queue: Option<SpanQueue>,
    tasks: TaskTracker,
    ended: CancellationToken,
}

/// A call that ended, until it is written as a span.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) entry: Arc<ActivityEntry>,
    pub(crate) trace: Box<CallTrace>,
}

/// The way to the exporter. A cheap clone.
#[derive(Debug, Clone)]
pub(crate) struct SpanQueue {
    sender: mpsc::Sender<Ended>,
    sampler: Sampler,
    metrics: SpanMetrics,
}

impl Traces {
    /// Begins to export where the variables of the environment ask for it. What is wrong with
    /// them is said, and stops nothing.
    pub(crate) fn start(metrics: &Metrics, variable: impl Fn(&str) -> Option<String>) -> Self {
        let (settings, complaints) = Settings::read(variable);
        for complaint in complaints {
            tracing::warn!(target: "START", "{complaint}");
        }
        let mut traces =
            Self { queue: None, tasks: TaskTracker::new(), ended: CancellationToken::new() };
        if let Some(settings) = settings {
            traces.begin(settings, metrics);
        }
        traces
    }

    fn begin(&mut self, settings: Settings, metrics: &Metrics) {
        let endpoint = settings.shown_endpoint();
        let (sender, receiver) = mpsc::channel(settings.queue_size);
        let (sampler, metrics) = (settings.sampler, metrics.spans());
        match Exporter::new(settings, metrics.clone(), receiver) {
            Ok(exporter) => {
                tracing::info!(target: "START", endpoint, "every call is exported as a span");
                self.tasks.spawn(exporter.run(self.ended.clone()));
                self.queue = Some(SpanQueue { sender, sampler, metrics });
            }
            Err(error) => {
                tracing::warn!(target: "START", endpoint, %error, "no spans are exported");
            }
        }
    }

    /// Where calls that ended go; none where nobody asked for traces.
    pub(crate) fn queue(&self) -> Option<SpanQueue> {
        self.queue.clone()
    }

    /// Sends what is still there, within a few seconds.
    pub(crate) async fn close(&self) {
        self.ended.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl SpanQueue {
    /// Takes a call on; where the queue is full it is counted and let go.
    pub(crate) fn push(&self, entry: &Arc<ActivityEntry>, trace: Box<CallTrace>) {
        if !self.sampler.keeps(trace.parent, span::trace_id(entry, &trace)) {
            return;
        }
        let ended = Ended { entry: Arc::clone(entry), trace };
        if self.sender.try_send(ended).is_err() {
            self.metrics.dropped.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_variables_there_is_no_queue_and_nothing_in_the_metrics() {
        let metrics = Metrics::default();
        let traces = Traces::start(&metrics, |_| None);
        assert!(traces.queue().is_none());
        assert!(!metrics.render([]).unwrap().contains("cofer_spans_total"));
        traces.close().await;
    }

    #[tokio::test]
    async fn a_full_queue_costs_spans_and_never_waits() {
        let metrics = Metrics::default();
        let (sender, mut receiver) = mpsc::channel(2);
        let queue = SpanQueue { sender, sampler: Sampler::default(), metrics: metrics.spans() };
        let entry = Arc::new(span::tests::entry());
        for _ in 0..5 {
            queue.push(&entry, Box::default());
        }
        let text = metrics.render([]).unwrap();
        assert!(text.contains("cofer_spans_total{result=\"dropped\"} 3\n"), "{text}");
        assert!(receiver.try_recv().is_ok());
    }
}
