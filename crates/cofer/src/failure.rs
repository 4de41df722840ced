//! From errors to words and exit codes: the one table of the command line.
//!
//! Every failure looks the same: what failed, why in numbered causes, the evidence, and what to
//! do next. Text from servers and from the daemon is made harmless for a terminal here.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

use cofer_daemon::DaemonError;
use cofer_model::{ErrorDetail, ErrorKind, FieldError, ServerView};

use crate::client::ClientError;
use crate::output::{BAD, DIM, HINT, say, styled, text};

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It failed.
    Failed,
    /// It failed in a way that scripts tell apart by the code.
    FailedWith(u8),
    /// It was mistyped.
    Mistyped,
    /// Nobody reads the output any more, which is the reader's good right.
    ReaderGone,
}

/// What went wrong, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    exit: Exit,
    kind: Option<ErrorKind>,
    message: String,
    causes: Vec<String>,
    /// Lines under the causes, such as the fields that are wrong or a server's last words.
    evidence: Vec<String>,
    hint: Option<String>,
    trace: Option<Box<str>>,
}

impl Failure {
    /// What was attempted and failed.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Failed,
            kind: None,
            message: message.into(),
            causes: Vec::new(),
            evidence: Vec::new(),
            hint: None,
            trace: None,
        }
    }

    /// What was typed cannot be meant.
    pub(crate) fn mistyped(message: impl Into<String>) -> Self {
        Self { exit: Exit::Mistyped, ..Self::new(message) }
    }

    /// The same, with an exit code of its own.
    pub(crate) fn code(self, code: u8) -> Self {
        Self { exit: Exit::FailedWith(code), ..self }
    }

    /// An error and all that it came from.
    pub(crate) fn from_chain(error: &(dyn Error + 'static)) -> Self {
        let mut failure = Self::new(error.to_string());
        let mut source = error.source();
        while let Some(cause) = source {
            failure = failure.caused_by(cause);
            source = cause.source();
        }
        failure
    }

    /// One cause further down.
    pub(crate) fn caused_by(mut self, cause: impl ToString) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    /// One line of evidence.
    pub(crate) fn showing(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }

    /// What to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into()).filter(|hint: &String| !hint.is_empty());
        self
    }

    /// The API's kind, where the API said so.
    pub(crate) fn kind(&self) -> Option<ErrorKind> {
        self.kind
    }

    /// What failed, in one sentence.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// What to do next.
    pub(crate) fn advice(&self) -> &str {
        self.hint.as_deref().unwrap_or_default()
    }

    /// A server that was asked to run and does not.
    pub(crate) fn not_started(server: &ServerView) -> Self {
        let name = &server.name;
        let failure = Self::new(format!("server `{name}` did not start"));
        let Some(error) = &server.error else {
            return failure.caused_by(format!("its status is {}", server.status));
        };
        let mut failure = failure.caused_by(&error.message);
        if let Some(stderr) = error.stderr.as_deref().filter(|text| !text.trim().is_empty()) {
            failure = failure.showing("Its last words on stderr:");
            failure.evidence.extend(stderr.trim_end().lines().map(|line| format!("  {line}")));
        }
        if !server.enabled {
            failure = failure.showing(format!(
                "`{name}` stays registered and switched off: `cofer server enable` tries again, `cofer server remove` forgets it."
            ));
        }
        failure.hint(&error.hint)
    }

    /// The words, with styles in them.
    pub(crate) fn render(&self) -> String {
        let mut words = format!("{} {}", styled(BAD.bold(), "Error:"), text::line(&self.message));
        if !self.causes.is_empty() {
            words.push_str("\nCaused by:");
        }
        for (number, cause) in self.causes.iter().enumerate() {
            // Writing to a String cannot fail.
            write!(words, "\n{}: {}", number + 1, text::line(cause)).unwrap_or_default();
        }
        for line in &self.evidence {
            words.push('\n');
            words.push_str(&text::line(line));
        }
        if let Some(hint) = &self.hint {
            let heading = styled(HINT.bold(), "Hint:");
            write!(words, "\n{heading} {}", text::line(hint)).unwrap_or_default();
        }
        if let Some(trace) = &self.trace {
            let trace = format!("Trace id: {trace}");
            write!(words, "\n{}", styled(DIM, &trace)).unwrap_or_default();
        }
        words
    }

    /// Says it, unless nobody is there to hear, and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if self.exit != Exit::ReaderGone {
            say(&self.render());
        }
        match self.exit {
            Exit::Failed => ExitCode::from(1),
            Exit::FailedWith(code) => ExitCode::from(code),
            Exit::Mistyped => ExitCode::from(2),
            Exit::ReaderGone => ExitCode::SUCCESS,
        }
    }
}

impl From<DaemonError> for Failure {
    fn from(error: DaemonError) -> Self {
        let hint = error.hint().unwrap_or_default();
        Self::from_chain(&error).hint(hint)
    }
}

impl From<cofer_copilot::ServeError> for Failure {
    fn from(error: cofer_copilot::ServeError) -> Self {
        Self::from_chain(&error)
            .hint("an MCP client starts this command and talks to it; `--help` shows how.")
    }
}

impl From<cofer_environments::ServeError> for Failure {
    fn from(error: cofer_environments::ServeError) -> Self {
        Self::from_chain(&error)
            .hint("an MCP client starts this command and talks to it; `--help` shows how.")
    }
}

impl From<cofer_environments::Failure> for Failure {
    fn from(failure: cofer_environments::Failure) -> Self {
        Self::new(failure.message).hint(failure.recovery)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        if let ClientError::Api(detail) = &error {
            return Self::from(detail.as_ref());
        }
        let hint = error.hint();
        Self::from_chain(&error).hint(hint)
    }
}

impl From<&ErrorDetail> for Failure {
    fn from(detail: &ErrorDetail) -> Self {
        let details = |key: &str| detail.details.as_ref().and_then(|details| details.get(key));
        let fields = details("fields").cloned();
        let fields: Vec<FieldError> =
            fields.and_then(|fields| serde_json::from_value(fields).ok()).unwrap_or_default();
        // The daemon's message has all the mistakes in one line.
        let message = match fields.len() {
            0 | 1 => detail.message.clone(),
            mistakes => format!("{mistakes} things are wrong with this"),
        };
        let mut failure = Self {
            kind: Some(detail.kind),
            trace: Some(detail.trace_id.to_string().into()),
            ..Self::new(message)
        };
        for FieldError { field, message } in fields.iter().filter(|_| fields.len() > 1) {
            failure = failure.showing(format!("- {field}: {message}"));
        }
        if let Some(data) = details("data").filter(|data| !data.is_null()) {
            failure = failure.showing(format!("The server adds: {data}"));
        }
        failure.hint(command_line_hint(detail))
    }
}

/// The API's hint, in the words of the command line where the API speaks of its own fields.
fn command_line_hint(detail: &ErrorDetail) -> String {
    match (detail.kind, &detail.hint) {
        (ErrorKind::Timeout, _) => "the server was not restarted; `--timeout` gives this call more time, `cofer server set NAME --call-timeout` all of its calls.".to_owned(),
        (_, hint) => hint.clone().unwrap_or_default(),
    }
}

/// Only output goes through plain `io::Result` in the commands.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { exit: Exit::ReaderGone, ..Self::new("the reader went away") };
        }
        Self::new("could not write the output").caused_by(error)
    }
}

/// What the process ends with after a panic.
pub(crate) const OUR_BUG: u8 = 255;

/// Makes a panic read like every other failure, and asks for a report.
pub(crate) fn install_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("no message");
        let mut failure = Failure::new(format!("a bug in cofer: {message}"));
        if let Some(place) = panic.location() {
            failure = failure.caused_by(format!("panicked at {place}"));
        }
        let trace = std::backtrace::Backtrace::capture();
        if trace.status() == std::backtrace::BacktraceStatus::Captured {
            failure.evidence.extend(trace.to_string().lines().map(str::to_owned));
        }
        let version = env!("CARGO_PKG_VERSION");
        let hint = format!(
            "this is our fault, not yours. Please report it with these lines, the version ({version}) and what you did; RUST_BACKTRACE=1 shows more."
        );
        say(&failure.hint(hint).render());
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::tests::a_failed_server;
    use serde_json::json;

    fn plain(failure: &Failure) -> String {
        anstream::adapter::strip_str(&failure.render()).to_string()
    }

    #[test]
    fn a_server_that_did_not_start_is_told_with_its_last_words() {
        // covers: MGR-14, MGR-15
        let failure = Failure::not_started(&a_failed_server("github"));
        insta::assert_snapshot!(plain(&failure), @r"
        Error: server `github` did not start
        Caused by:
        1: the process exited with code 3 before it was ready
        Its last words on stderr:
          cannot find module
          \u{1b}[31mred\u{1b}[0m
        `github` stays registered and switched off: `cofer server enable` tries again, `cofer server remove` forgets it.
        Hint: run the command by hand to see more.
        ");
    }

    #[test]
    fn causes_are_numbered_from_the_first_to_the_last() {
        #[derive(Debug, thiserror::Error)]
        #[error("could not run `npx`")]
        struct Spawn(#[source] io::Error);
        let error = Spawn(io::Error::from_raw_os_error(2));
        let failure = Failure::from_chain(&error).hint("install Node.js.");
        insta::assert_snapshot!(plain(&failure), @"
        Error: could not run `npx`
        Caused by:
        1: No such file or directory (os error 2)
        Hint: install Node.js.
        ");
    }

    #[test]
    fn an_answer_of_the_api_shows_fields_hint_and_trace() {
        let detail: ErrorDetail = serde_json::from_value(json!({
            "kind": "invalid_request", "message": "the registration has mistakes",
            "hint": "correct the fields.", "trace_id": "01990000-0000-7000-8000-000000000001",
            "details": {"fields": [
                {"field": "name", "message": "Name is required"},
                {"field": "command", "message": "`npx\u{1b}[2J` was not found"},
            ]},
        }))
        .unwrap();
        insta::assert_snapshot!(plain(&Failure::from(&detail)), @r"
        Error: 2 things are wrong with this
        - name: Name is required
        - command: `npx\u{1b}[2J` was not found
        Hint: correct the fields.
        Trace id: 01990000-0000-7000-8000-000000000001
        ");
    }

    #[test]
    fn one_mistake_is_told_in_one_line_and_time_limits_in_our_flags() {
        let detail = |kind: &str| -> ErrorDetail {
            serde_json::from_value(json!({
                "kind": kind, "message": "Name is required", "hint": "use `timeout_ms`",
                "trace_id": "01990000-0000-7000-8000-000000000001",
                "details": {"fields": [{"field": "name", "message": "Name is required"}]},
            }))
            .unwrap()
        };
        let shown = plain(&Failure::from(&detail("invalid_request")));
        assert!(shown.starts_with("Error: Name is required\nHint: use `timeout_ms`\n"), "{shown}");
        let shown = plain(&Failure::from(&detail("timeout")));
        assert!(shown.contains("Hint: the server was not restarted; `--timeout`"), "{shown}");
    }

    #[test]
    fn a_json_rpc_error_shows_the_data_the_server_sent() {
        let detail: ErrorDetail = serde_json::from_value(json!({
            "kind": "mcp_error", "message": "the server answered -32602: bad path",
            "trace_id": "01990000-0000-7000-8000-000000000001",
            "details": {"code": -32602, "message": "bad path", "data": {"path": "/x"}},
        }))
        .unwrap();
        insta::assert_snapshot!(plain(&Failure::from(&detail)), @r#"
        Error: the server answered -32602: bad path
        The server adds: {"path":"/x"}
        Trace id: 01990000-0000-7000-8000-000000000001
        "#);
    }

    #[test]
    fn a_reader_that_goes_away_is_no_failure() {
        let gone = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(gone.exit, Exit::ReaderGone);
        let full = Failure::from(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(full.exit, Exit::Failed);
    }

    #[test]
    fn error_and_hint_are_coloured_for_a_terminal() {
        let shown = Failure::new("x").hint("y").render();
        assert_eq!(
            shown,
            "\u{1b}[1m\u{1b}[31mError:\u{1b}[0m x\n\u{1b}[1m\u{1b}[36mHint:\u{1b}[0m y"
        );
    }
}
