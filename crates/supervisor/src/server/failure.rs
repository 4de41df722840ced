//! Why a server did not become ready, or did not stay so, in words for people.

use cofer_mcp::HandshakeError;
use cofer_model::{Exit, Failure, FailureKind};
use cofer_runtime::StartError;

use super::run::Run;

/// The failure of a server whose process could not be started.
pub(super) fn not_launched(error: &StartError) -> Failure {
    let (kind, hint) = match error {
        StartError::CommandNotFound(_) => (
            FailureKind::CommandNotFound,
            "install it, or give its full path in `command`; the daemon searches its own PATH, \
             or the PATH in the server's `environment`",
        ),
        _ => (FailureKind::SpawnFailed, "check `command`, `cwd` and the permissions of both"),
    };
    failure(kind, chain(error), hint, None)
}

/// Ends a server that did not shake hands, and tells why it did not.
pub(super) async fn not_ready(run: Run, error: &HandshakeError) -> Failure {
    // A server that went away by itself has an exit to tell of.
    let exit = match error {
        HandshakeError::Ended => run.exit().await,
        _ => None,
    };
    let stderr = run.clear().await;
    match exit {
        Some(exit) => exited(FailureKind::ExitedEarly, exit, "before it was ready", stderr),
        None => refused(error, stderr),
    }
}

/// The failure of a server that had been ready; without an exit, it closed its stdout and ran on.
pub(super) fn crashed(exit: Option<Exit>, stderr: Option<String>) -> Failure {
    match exit {
        Some(exit) => exited(FailureKind::Crashed, exit, "unexpectedly", stderr),
        None => {
            let message = "the server closed its stdout, ran on and was killed".to_owned();
            let hint = "an MCP server speaks on stdout; what it wrote to stderr may tell more";
            failure(FailureKind::Crashed, message, hint, stderr)
        }
    }
}

fn exited(kind: FailureKind, exit: Exit, when: &str, stderr: Option<String>) -> Failure {
    let hint = match &stderr {
        Some(_) => "what it wrote to stderr tells why",
        None => "it wrote nothing to stderr; run its command in a terminal to see what it does",
    };
    let message = format!("the server {exit} {when}");
    let told = failure(kind, message, hint, stderr);
    Failure { exit_code: exit.code, signal: exit.signal, ..told }
}

fn refused(error: &HandshakeError, stderr: Option<String>) -> Failure {
    let (kind, hint) = match error {
        HandshakeError::Silent { .. } => (
            FailureKind::StartTimeout,
            "if it needs longer to start (a first `npx` or `uvx` downloads packages), raise `start_timeout_ms`; \
             if it is no MCP server on stdio, it will never answer",
        ),
        HandshakeError::Ended => (
            FailureKind::HandshakeFailed,
            "it closed its stdout and ran on; an MCP server speaks on stdout",
        ),
        HandshakeError::Refused { .. }
        | HandshakeError::NoCommonRevision(_)
        | HandshakeError::Nonsense { .. } => (
            FailureKind::HandshakeFailed,
            "check that the command starts an MCP server in its stdio mode",
        ),
    };
    failure(kind, format!("the server runs but is not ready: {error}"), hint, stderr)
}

fn failure(kind: FailureKind, message: String, hint: &str, stderr: Option<String>) -> Failure {
    Failure { kind, message, hint: hint.to_owned(), exit_code: None, signal: None, stderr }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
