//! What Prometheus is told: calls, how long they took, restarts, servers by status, and what
//! became of spans.

use std::fmt;
use std::time::Duration;

use cofer_model::{Budget, Outcome, ServerName, Status};
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// What `GET /metrics` says its answer is.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// From a call that only crosses the bridge to one that meets the default deadline.
const SECONDS: [f64; 14] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0,
];

const OUTCOMES: [Outcome; 8] = [
    Outcome::Ok,
    Outcome::ToolError,
    Outcome::McpError,
    Outcome::Timeout,
    Outcome::Cancelled,
    Outcome::Overloaded,
    Outcome::Disconnected,
    Outcome::TooLarge,
];

const STATUSES: [Status; 7] = [
    Status::Stopped,
    Status::Starting,
    Status::Ready,
    Status::Unresponsive,
    Status::Restarting,
    Status::Stopping,
    Status::Error,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfServer {
    server: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCall {
    server: String,
    outcome: Word,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfBudget {
    /// `daemon`, `clients` or `server`.
    budget: Word,
    /// Empty unless it is the budget of a server.
    server: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfStatus {
    status: Word,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfResult {
    result: Word,
}

/// A label's value that is one of a few.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Word(&'static str);

impl EncodeLabelValue for Word {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }
}

/// All there is to tell; shared by the whole daemon.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    calls: Family<OfCall, Counter>,
    durations: Family<OfServer, Histogram, fn() -> Histogram>,
    restarts: Family<OfServer, Gauge>,
    servers: Family<OfStatus, Gauge>,
    spans: Family<OfResult, Counter>,
    memory: MemoryMetrics,
}

/// The memory budgets, read when they are asked for.
#[derive(Debug, Default)]
struct MemoryMetrics {
    used: Family<OfBudget, Gauge>,
    limit: Family<OfBudget, Gauge>,
    losses: Family<OfBudget, Gauge>,
}

/// One server's part, looked up once: counting a call then touches no map.
#[derive(Debug, Clone)]
pub(crate) struct ServerMetrics {
    calls: [Counter; OUTCOMES.len()],
    duration: Histogram,
}

/// What became of the spans that a collector was to have.
#[derive(Debug, Clone)]
pub(crate) struct SpanMetrics {
    /// It has them.
    pub(crate) exported: Counter,
    /// Too many were waiting already.
    pub(crate) dropped: Counter,
    /// It could not be reached, or did not want them.
    pub(crate) failed: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            registry: Registry::default(),
            calls: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            restarts: Family::default(),
            servers: Family::default(),
            spans: Family::default(),
            memory: MemoryMetrics::default(),
        };
        metrics.registered()
    }
}

impl Metrics {
    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register(
            "cofer_calls",
            "Calls to a server, by how they ended",
            self.calls.clone(),
        );
        registry.register(
            "cofer_call_duration_seconds",
            "How long calls to a server took",
            self.durations.clone(),
        );
        registry.register(
            "cofer_restarts",
            "How often a server was started again after a crash, since a person last started it",
            self.restarts.clone(),
        );
        registry.register("cofer_servers", "Servers, by status", self.servers.clone());
        registry.register(
            "cofer_spans",
            "Spans for the collector of traces, by what became of them",
            self.spans.clone(),
        );
        let MemoryMetrics { used, limit, losses } = &self.memory;
        registry.register(
            "cofer_memory_used_bytes",
            "Bytes of messages that are kept, by the budget that they are charged against",
            used.clone(),
        );
        registry.register("cofer_memory_limit_bytes", "The limit of a budget", limit.clone());
        registry.register(
            "cofer_memory_losses",
            "Messages rejected or discarded because of a budget, since its server was started",
            losses.clone(),
        );
        self
    }

    /// The part of the server `name`, all zero where it is new.
    pub(crate) fn server(&self, name: &ServerName) -> ServerMetrics {
        let of_server = OfServer { server: name.to_string() };
        ServerMetrics {
            calls: OUTCOMES.map(|outcome| self.calls.get_or_create_owned(&of_call(name, outcome))),
            duration: self.durations.get_or_create_owned(&of_server),
        }
    }

    /// The counters of spans; there from the first call on.
    pub(crate) fn spans(&self) -> SpanMetrics {
        let of = |result| self.spans.get_or_create_owned(&OfResult { result: Word(result) });
        SpanMetrics { exported: of("exported"), dropped: of("dropped"), failed: of("failed") }
    }

    /// Forgets the server `name`. What its `ServerMetrics` still counts is told to nobody.
    pub(crate) fn remove(&self, name: &ServerName) {
        let of_server = OfServer { server: name.to_string() };
        for outcome in OUTCOMES {
            self.calls.remove(&of_call(name, outcome));
        }
        self.durations.remove(&of_server);
    }

    /// Takes the state of the memory budgets: of the daemon, of its clients, and of each server.
    pub(crate) fn set_memory<'a>(
        &self,
        daemon: &Budget,
        clients: &Budget,
        servers: impl IntoIterator<Item = (String, &'a Budget)>,
    ) {
        let MemoryMetrics { used, limit, losses } = &self.memory;
        used.clear();
        limit.clear();
        losses.clear();
        let set = |label: OfBudget, budget: &Budget| {
            let gauge = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
            used.get_or_create(&label).set(gauge(budget.used()));
            limit.get_or_create(&label).set(gauge(budget.limit()));
            losses.get_or_create(&label).set(gauge(budget.losses()));
        };
        set(OfBudget { budget: Word("daemon"), server: String::new() }, daemon);
        set(OfBudget { budget: Word("clients"), server: String::new() }, clients);
        for (server, budget) in servers {
            set(OfBudget { budget: Word("server"), server }, budget);
        }
    }

    /// Everything as text, with the servers that there are now: name, status, restarts.
    pub(crate) fn render(
        &self,
        servers: impl IntoIterator<Item = (String, Status, u32)>,
    ) -> Result<String, fmt::Error> {
        let mut counts = [0_i64; STATUSES.len()];
        self.restarts.clear();
        for (server, status, restarts) in servers {
            self.restarts.get_or_create(&OfServer { server }).set(restarts.into());
            if let Some(at) = STATUSES.iter().position(|known| *known == status) {
                counts[at] += 1;
            }
        }
        for (status, count) in STATUSES.iter().zip(counts) {
            self.servers.get_or_create(&OfStatus { status: Word(status.as_str()) }).set(count);
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

impl ServerMetrics {
    /// A call ended.
    pub(crate) fn call_finished(&self, outcome: Outcome, duration: Duration) {
        self.calls[place(outcome)].inc();
        self.duration.observe(duration.as_secs_f64());
    }
}

fn of_call(name: &ServerName, outcome: Outcome) -> OfCall {
    OfCall { server: name.to_string(), outcome: Word(word(outcome)) }
}

/// Where `outcome` stands in `OUTCOMES`.
fn place(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Ok => 0,
        Outcome::ToolError => 1,
        Outcome::McpError => 2,
        Outcome::Timeout => 3,
        Outcome::Cancelled => 4,
        Outcome::Overloaded => 5,
        Outcome::Disconnected => 6,
        Outcome::TooLarge => 7,
    }
}

/// The same word as in JSON.
fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::ToolError => "tool_error",
        Outcome::McpError => "mcp_error",
        Outcome::Timeout => "timeout",
        Outcome::Cancelled => "cancelled",
        Outcome::Overloaded => "overloaded",
        Outcome::Disconnected => "disconnected",
        Outcome::TooLarge => "too_large",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ServerName {
        ServerName::new(text).unwrap()
    }

    fn has(text: &str, line: &str) -> bool {
        text.lines().any(|known| known == line)
    }

    #[test]
    fn the_words_are_those_of_the_api_and_stand_in_their_places() {
        for (at, outcome) in OUTCOMES.into_iter().enumerate() {
            assert_eq!(place(outcome), at);
            assert_eq!(serde_json::to_value(outcome).unwrap(), word(outcome));
        }
    }

    #[test]
    fn calls_restarts_and_servers_are_told() {
        let metrics = Metrics::default();
        let fs = metrics.server(&name("fs"));
        fs.call_finished(Outcome::Ok, Duration::from_millis(2));
        fs.call_finished(Outcome::Ok, Duration::from_millis(3));
        metrics.server(&name("fs")).call_finished(Outcome::Timeout, Duration::from_secs(30));
        let servers = [("fs", Status::Ready, 1), ("b", Status::Ready, 0), ("c", Status::Error, 0)];
        let servers = servers.map(|(name, status, restarts)| (name.to_owned(), status, restarts));
        let text = metrics.render(servers).unwrap();
        for line in [
            r#"cofer_calls_total{server="fs",outcome="ok"} 2"#,
            r#"cofer_calls_total{server="fs",outcome="timeout"} 1"#,
            r#"cofer_calls_total{server="fs",outcome="overloaded"} 0"#,
            r#"cofer_call_duration_seconds_count{server="fs"} 3"#,
            r#"cofer_call_duration_seconds_bucket{le="0.0025",server="fs"} 1"#,
            r#"cofer_restarts{server="fs"} 1"#,
            r#"cofer_servers{status="ready"} 2"#,
            r#"cofer_servers{status="stopped"} 0"#,
        ] {
            assert!(has(&text, line), "{line} is not in\n{text}");
        }
        let text = metrics.render([]).unwrap();
        assert!(has(&text, r#"cofer_servers{status="ready"} 0"#), "{text}");
    }

    #[test]
    fn memory_budgets_are_shown_by_owner() {
        let metrics = Metrics::default();
        let daemon = Budget::new(1000);
        let (clients, server) = (daemon.child(500), daemon.child(300));
        let _held = server.try_charge(120).unwrap();
        server.count_loss();
        metrics.set_memory(&daemon, &clients, [("fs".to_owned(), &*server)]);
        let text = metrics.render([]).unwrap();
        for line in [
            r#"cofer_memory_used_bytes{budget="daemon",server=""} 120"#,
            r#"cofer_memory_used_bytes{budget="server",server="fs"} 120"#,
            r#"cofer_memory_limit_bytes{budget="clients",server=""} 500"#,
            r#"cofer_memory_losses{budget="server",server="fs"} 1"#,
        ] {
            assert!(has(&text, line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_removed_server_is_forgotten_and_comes_back_with_nothing() {
        let metrics = Metrics::default();
        let gone = metrics.server(&name("gone"));
        gone.call_finished(Outcome::Ok, Duration::ZERO);
        metrics.server(&name("stays"));
        metrics.remove(&name("gone"));
        let text = metrics.render([]).unwrap();
        assert!(!text.contains("gone") && text.contains("stays"), "{text}");
        metrics.server(&name("gone"));
        let text = metrics.render([]).unwrap();
        assert!(has(&text, r#"cofer_calls_total{server="gone",outcome="ok"} 0"#), "{text}");
    }

    #[test]
    fn a_name_cannot_break_the_text() {
        let metrics = Metrics::default();
        let text = metrics.render([(r#"a"} 1 {b=""#.to_owned(), Status::Ready, 1)]).unwrap();
        assert!(has(&text, r#"cofer_restarts{server="a\"} 1 {b=\""} 1"#), "{text}");
    }
}
