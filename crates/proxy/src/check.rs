//! `--check`: goes the way of a request once, step by step, and says how far it comes.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use cofer_mcp::http::{Authorizer, Transport, Unsigned, pump};
use cofer_mcp::{
    Bridge, BridgeConfig, CallError, HandshakeError, Listener, RpcError, collect_pages, handshake,
};
use serde_json::Value;
use tokio::io::split;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::Credentials;
use crate::options::Options;
use crate::serve::{ProxyError, credentials, remote, transport};

/// How much of a message may be under way between the two halves of the check.
const BUFFER: usize = 64 * 1024;

/// One step of the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Credentials are there.
    Credentials,
    /// A token comes of them.
    Token,
    /// The server is there, takes the token and speaks MCP.
    Server,
    /// It lists its tools.
    Tools,
}

/// A step that was made, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Which.
    pub step: Step,
    /// What was found, in words.
    pub found: String,
}

/// A step that could not be made.
#[derive(Debug)]
pub struct CheckFailed {
    /// Which.
    pub step: Step,
    /// Why, the nearest reason first.
    pub causes: Vec<String>,
    /// What to do next.
    pub hint: String,
}

/// Goes the whole way and tells each step as it is made.
pub async fn check(options: Options, mut tell: impl FnMut(Checked)) -> Result<(), CheckFailed> {
    let (transport, found) = first_step(&options).await?;
    let said = match &found {
        Some(credentials) => credentials.origin(),
        None => "none, by --no-auth".to_owned(),
    };
    tell(Checked { step: Step::Credentials, found: said });
    let authorizer: Arc<dyn Authorizer> = match found {
        None => Arc::new(Unsigned),
        Some(credentials) => {
            tell(Checked { step: Step::Token, found: second_step(&credentials).await? });
            Arc::new(credentials)
        }
    };
    ask_server(options, transport, authorizer, tell).await
}

async fn first_step(options: &Options) -> Result<(Transport, Option<Credentials>), CheckFailed> {
    let failed = |error: ProxyError| {
        let (causes, hint) = match &error {
            ProxyError::Setup(error) => {
                (chain(error), "correct the file or the variable.".to_owned())
            }
            ProxyError::NoCredentials(missing) => {
                let looked = missing.looked.iter();
                (
                    looked.map(|looked| format!("{}: {}", looked.place, looked.outcome)).collect(),
                    missing.hint.clone(),
                )
            }
        };
        CheckFailed { step: Step::Credentials, causes, hint }
    };
    let transport = transport(options).map_err(|error| failed(error.into()))?;
    let found = credentials(options, &transport).await.map_err(failed)?;
    Ok((transport, found))
}

async fn second_step(credentials: &Credentials) -> Result<String, CheckFailed> {
    let token = credentials.token().await.map_err(|error| CheckFailed {
        step: Step::Token,
        causes: chain(&*error),
        hint: error.hint(),
    })?;
    let claims = token.claims();
    let principal = credentials.principal().unwrap_or_else(|| "nobody by name".to_owned());
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let left = claims.exp.saturating_sub(now.as_secs()) / 60;
    let mut found = format!("for {principal}, audience {}, good for {left} min", claims.aud);
    if claims.aud != credentials.audience() {
        found.push_str(&format!(" (asked for {})", credentials.audience()));
    }
    Ok(found)
}

/// Speaks to the server over the pump, as a client would over stdin and stdout.
async fn ask_server(
    options: Options,
    transport: Transport,
    authorizer: Arc<dyn Authorizer>,
    mut tell: impl FnMut(Checked),
) -> Result<(), CheckFailed> {
    let timeout = options.timeout;
    let (ours, theirs) = tokio::io::duplex(BUFFER);
    let (input, output) = split(theirs);
    let stop = CancellationToken::new();
    let remote = remote(options, transport, authorizer);
    let pumping = pump(remote, input, output, stop.clone());
    let asking = async {
        let (reader, writer) = split(ours);
        let tasks = TaskTracker::new();
        let bridge = Bridge::start(reader, writer, BridgeConfig::default(), Arc::new(Deaf), &tasks);
        let began = Instant::now();
        let peer = handshake(&bridge, patience(timeout)).await.map_err(server_failed)?;
        let ms = began.elapsed().as_millis();
        let name = server_name(&peer.server_info);
        let found = format!("{name}, protocol {}, in {ms} ms", peer.protocol_version);
        tell(Checked { step: Step::Server, found });
        let found = match peer.capabilities.get("tools") {
            None => "the server offers none".to_owned(),
            Some(_) => {
                let listed = collect_pages(&bridge, "tools/list", "tools", patience(timeout)).await;
                let count = listed.map_err(tools_failed)?.items.len();
                if count == 1 { "1 tool".to_owned() } else { format!("{count} tools") }
            }
        };
        tell(Checked { step: Step::Tools, found });
        Ok(())
    };
    tokio::pin!(pumping);
    let outcome = tokio::select! {
        outcome = asking => outcome,
        () = &mut pumping => return Err(server_failed(HandshakeError::Ended)),
    };
    stop.cancel();
    pumping.await;
    outcome
}

/// The pump's own time limit is the one that is told, so that this one is longer.
fn patience(timeout: Duration) -> Duration {
    timeout * 2 + Duration::from_secs(30)
}

fn server_name(info: &Value) -> String {
    let text = |key: &str| info.get(key).and_then(Value::as_str).unwrap_or_default();
    match (text("name"), text("version")) {
        ("", _) => "an MCP server without a name".to_owned(),
        (name, "") => name.to_owned(),
        (name, version) => format!("{name} {version}"),
    }
}

fn server_failed(error: HandshakeError) -> CheckFailed {
    match error {
        HandshakeError::Refused { initialize, .. } => rpc_failed(Step::Server, &initialize),
        other => CheckFailed {
            step: Step::Server,
            causes: chain(&other),
            hint: "check that the URL is that of an MCP server, with its path.".to_owned(),
        },
    }
}

fn tools_failed(error: CallError) -> CheckFailed {
    match error {
        CallError::Rpc(error) => rpc_failed(Step::Tools, &error),
        other => CheckFailed {
            step: Step::Tools,
            causes: chain(&other),
            hint: "look at the server's log.".to_owned(),
        },
    }
}

/// Our own errors bring their hint and the server's words along.
fn rpc_failed(step: Step, error: &RpcError) -> CheckFailed {
    let text =
        |key: &str| error.data.as_ref().and_then(|data| data.get(key)).and_then(Value::as_str);
    let mut causes = vec![error.message.clone()];
    causes.extend(text("body").map(|body| format!("the server says: {body}")));
    let hint = text("hint").unwrap_or("the server itself answered this; look at its log.");
    CheckFailed { step, causes, hint: hint.to_owned() }
}

fn chain(error: &dyn std::error::Error) -> Vec<String> {
    let mut causes = vec![error.to_string()];
    let mut source = error.source();
    while let Some(cause) = source {
        causes.push(cause.to_string());
        source = cause.source();
    }
    causes
}

/// Hears nothing: the check only asks.
struct Deaf;

impl Listener for Deaf {
    fn notified(&self, _method: &str, _params: Option<&Bytes>) {}
    fn noise(&self, _line: &[u8]) {}
    fn oversized(&self, _bytes: u64) {}
    fn unaffordable(&self, _bytes: u64) {}
}
