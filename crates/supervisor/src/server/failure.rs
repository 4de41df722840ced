//! Why a server did not become ready, or did not stay so, in words for people.

use std::net::SocketAddr;
use std::time::Duration;

use cofer_mcp::HandshakeError;
use cofer_model::{DaemonIds, Exit, Failure, FailureKind};
use cofer_runtime::{StartError, out_of_files};

use super::package_cache::repair_hint;
use super::run::Run;
use crate::launch::Explanation;

/// Why a server that was launched is not ready.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotReady {
    /// It does not speak MCP as it should.
    #[error(transparent)]
    Handshake(HandshakeError),
    /// Nobody listens on its port.
    #[error(
        "nothing accepted a connection on its port {port}, which is published at {address}, within {waited:.1?}"
    )]
    DoorClosed { port: u16, address: SocketAddr, waited: Duration },
    /// It leads back to this daemon.
    #[error("it leads back to this daemon")]
    Cycle(DaemonIds),
}

/// The failure of a server whose process could not be started.
pub(crate) fn not_launched(error: &StartError) -> Failure {
    if let Some(limit) = out_of_files(error) {
        let message = format!("{error}: {}", limit.message);
        return failure(FailureKind::SpawnFailed, message, limit.hint, None);
    }
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

/// The failure of a server whose runtime hangs.
pub(super) fn launched_too_slowly(limit: Duration) -> Failure {
    let message = format!("the server could not be launched within {limit:?}");
    let hint =
        "look at the machine's load, and for containers at `podman ps`; then enable it again";
    failure(FailureKind::StartTimeout, message, hint, None)
}

/// Ends a server that did not become ready, and tells why it did not. One that was too slow gets
/// `grace` to end by itself, unless it is `out_of_time`.
pub(super) async fn not_ready(
    run: Run,
    error: &NotReady,
    grace: Duration,
    out_of_time: impl Future<Output = ()>,
) -> Failure {
    // A server that went away by itself has an exit to tell of.
    let exit = match error {
        NotReady::Handshake(HandshakeError::Ended) => run.exit().await,
        NotReady::Handshake(_) | NotReady::DoorClosed { .. } | NotReady::Cycle(_) => None,
    };
    let explanation = match (exit, error) {
        (Some(_), _) => run.explanation().await,
        (None, NotReady::Handshake(error)) => run.explain_refusal(error),
        (None, NotReady::DoorClosed { .. } | NotReady::Cycle(_)) => None,
    };
    if error.is_timeout() {
        run.ask_to_end(grace, out_of_time).await;
    }
    let stderr = run.clear().await;
    let told = match exit {
        Some(exit) => exited(FailureKind::ExitedEarly, exit, "before it was ready", stderr),
        None => refused(error, stderr),
    };
    with_repair(explained(told, explanation))
}

/// A damaged package cache is not the server's fault, and its repair is known.
fn with_repair(failure: Failure) -> Failure {
    match failure.stderr.as_deref().and_then(repair_hint) {
        Some(hint) => Failure { hint, ..failure },
        None => failure,
    }
}

impl NotReady {
    fn is_timeout(&self) -> bool {
        match self {
            Self::Handshake(HandshakeError::Silent { .. }) | Self::DoorClosed { .. } => true,
            Self::Handshake(_) | Self::Cycle(_) => false,
        }
    }
}

/// The failure of a server that had been ready; without an exit, it closed its stdout and ran on.
pub(super) fn crashed(
    exit: Option<Exit>,
    stderr: Option<String>,
    explanation: Option<Explanation>,
) -> Failure {
    let told = match exit {
        Some(exit) => exited(FailureKind::Crashed, exit, "unexpectedly", stderr),
        None => {
            let message = "the server closed its stdout, ran on and was killed".to_owned();
            let hint = "an MCP server speaks on stdout; what it wrote to stderr may tell more";
            failure(FailureKind::Crashed, message, hint, stderr)
        }
    };
    explained(told, explanation)
}

/// What a runtime knows of an end says more than the exit; the evidence stays.
fn explained(failure: Failure, explanation: Option<Explanation>) -> Failure {
    match explanation {
        Some(Explanation { kind, message, hint }) => Failure { kind, message, hint, ..failure },
        None => failure,
    }
}

/// The failure of a server through which this daemon would host itself.
pub(super) fn cycle(daemons: &DaemonIds) -> Failure {
    let others = daemons.len().saturating_sub(1);
    let way = match others {
        0 => "it is this daemon's own gateway".to_owned(),
        1 => "it is the gateway of a Cofer daemon that hosts this one".to_owned(),
        _ => format!("it leads back to this daemon over {others} other Cofer daemons"),
    };
    let message = format!("cycle: {way}, and its tools would multiply without end");
    let hint = "remove this server, or, in the other daemon, the one that leads here; to use both \
                daemons' servers, let one of them host `/mcp/NAME` of single servers that are not behind \
                this daemon";
    failure(FailureKind::Cycle, message, hint, None)
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

fn refused(error: &NotReady, stderr: Option<String>) -> Failure {
    let (kind, hint) = match error {
        NotReady::Cycle(daemons) => return Failure { stderr, ..cycle(daemons) },
        NotReady::DoorClosed { .. } => (
            FailureKind::StartTimeout,
            "check that the server listens on the container's port in `ports`, on all addresses (0.0.0.0) \
             and not on 127.0.0.1 only; if it needs longer to start, raise `start_timeout_ms`",
        ),
        NotReady::Handshake(HandshakeError::Silent { .. }) => (
            FailureKind::StartTimeout,
            "if it needs longer to start, raise `start_timeout_ms` (time in which `npx`, `uvx` or `pip` fetch packages \
             is not counted while they make progress); if it is no MCP server on stdio, it will never answer",
        ),
        NotReady::Handshake(HandshakeError::Ended) => (
            FailureKind::HandshakeFailed,
            "it closed its stdout and ran on; an MCP server speaks on stdout",
        ),
        NotReady::Handshake(
            HandshakeError::Refused { .. }
            | HandshakeError::NotStateless(_)
            | HandshakeError::NoCommonRevision(_)
            | HandshakeError::Nonsense { .. },
        ) => (
            FailureKind::HandshakeFailed,
            "check that the command starts an MCP server in its stdio mode, or that `http_path` is where it speaks MCP",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_finds_no_free_descriptor_names_the_limit_and_how_to_raise_it() {
        let source = std::io::Error::from_raw_os_error(24);
        let error = StartError::Shim { shim: "/proc/self/exe".into(), source };
        let told = not_launched(&error);
        assert_eq!(told.kind, FailureKind::SpawnFailed);
        let limit = cofer_runtime::open_files().soft;
        let expected = format!(": too many open files (limit {limit})");
        assert!(told.message.ends_with(&expected), "{}", told.message);
        assert!(told.hint.contains("ulimit -n"), "{}", told.hint);
    }
}
