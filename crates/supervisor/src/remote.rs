//! Servers elsewhere: a conversation over Streamable HTTP in the place of a process. It begins
//! with a launch, and ends when it is closed, or when the server cannot be reached any more:
//! then the restart policy decides, as it does for a process that crashed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cofer_mcp::HandshakeError;
use cofer_mcp::http::{
    Attendant, Authorizer, FailureKind as Sort, Identity, Remote, SetupError, Transport,
    TransportOptions, Trouble, Unsigned, pump,
};
use cofer_model::{
    Exit, Failure, FailureKind, HOPS_HEADER, Redactor, RemoteAuth, ServerId, ServerSpec, Usage,
    parse_remote_header, parse_remote_url,
};
use cofer_runtime::Streams;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use serde_json::Value;
use tokio::io::{duplex, empty};
use tokio::sync::{OnceCell, mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::launch::{Explanation, Facts, Launched, Launcher, Running, Tell};
use crate::memory::Memory;
use crate::remote_failure::{explain, explain_refusal};
use crate::server::SOURCE;

/// What is on its way between the bridge and the pump.
const BUFFER: usize = 256 * 1024;
/// The bridge has its own time limits; the pump's only ends what the bridge gave up long ago.
const SILENCE: Duration = Duration::from_secs(24 * 60 * 60);
/// How long after a failure it is looked again before a server counts as gone.
const SECOND_LOOK: Duration = Duration::from_millis(500);
/// How long that look may take.
const LOOK: Duration = Duration::from_secs(10);
/// Failures that wait to be looked at; more say nothing new.
const MAX_TROUBLES: usize = 4;
/// What an idle server is asked for a sign of life by.
const HEARTBEATS: [&str; 2] = ["ping", "server/discover"];

/// See the module.
#[derive(Debug)]
pub struct RemoteLauncher {
    max_message: usize,
    memory: Arc<Memory>,
    /// Who signs for servers that want Google's ID tokens.
    identity: Option<Arc<dyn Identity>>,
    /// Sent with every request, so that another daemon recognises this one.
    daemon_id: Uuid,
    /// Made for the first server: where there is none, proxies and certificates are no matter.
    transport: OnceCell<Transport>,
    tasks: TaskTracker,
}

impl RemoteLauncher {
    /// `identity` signs requests where a registration asks for that.
    pub fn new(
        max_message: usize,
        memory: Arc<Memory>,
        identity: Option<Arc<dyn Identity>>,
        daemon_id: Uuid,
    ) -> Self {
        let (transport, tasks) = (OnceCell::new(), TaskTracker::new());
        Self { max_message, memory, identity, daemon_id, transport, tasks }
    }

    async fn transport(&self) -> Result<Transport, Failure> {
        let made = async { Transport::new(TransportOptions::default()) };
        self.transport.get_or_try_init(|| made).await.cloned().map_err(|error| no_transport(&error))
    }

    async fn authorizer(
        &self,
        spec: &ServerSpec,
        url: &Uri,
    ) -> Result<Arc<dyn Authorizer>, Failure> {
        let Some(RemoteAuth::GoogleIdToken) = spec.auth else {
            return Ok(Arc::new(Unsigned));
        };
        let missing = |message, hint| failure(FailureKind::CredentialsMissing, message, hint);
        let Some(identity) = &self.identity else {
            let hint = "take `auth` out of the registration".to_owned();
            return Err(missing("this daemon has no credentials to sign with".to_owned(), hint));
        };
        let audience = spec.audience.as_deref();
        let found = identity.authorizer(url, audience).await;
        found.map_err(|failure| missing(failure.message, failure.hint))
    }

    fn headers(&self, spec: &ServerSpec) -> Result<HeaderMap, Failure> {
        let read = |(name, value): (&String, &String)| {
            parse_remote_header(name, value)
                .map_err(|error| wrong(format!("the header `{name}` cannot be sent: {error}")))
        };
        let mut headers: HeaderMap = spec.headers.iter().map(read).collect::<Result<_, _>>()?;
        let id = HeaderValue::from_str(&self.daemon_id.to_string());
        // An id has only characters that a header may have.
        headers.extend(id.ok().map(|id| (HeaderName::from_static(HOPS_HEADER), id)));
        Ok(headers)
    }

    /// The server, and how it is spoken to.
    async fn remote(
        &self,
        id: ServerId,
        spec: &ServerSpec,
        url: Uri,
        transport: Transport,
        tell: mpsc::Sender<(String, Trouble)>,
    ) -> Result<Remote, Failure> {
        Ok(Remote {
            headers: self.headers(spec)?,
            silence: SILENCE,
            cap: self.max_message,
            memory: self.memory.server(id),
            source: SOURCE.to_owned(),
            transport,
            authorizer: self.authorizer(spec, &url).await?,
            attendant: Arc::new(Ear(tell)),
            redactor: Redactor::of_specs([spec]),
            url,
        })
    }
}

/// What a registration that was checked cannot have; one from a store that others write may.
fn wrong(message: String) -> Failure {
    failure(FailureKind::SpawnFailed, message, "change the registration".to_owned())
}

fn no_transport(error: &SetupError) -> Failure {
    let message = format!("could not prepare connections: {error}");
    let hint = "correct the proxy variables of the daemon's environment".to_owned();
    failure(FailureKind::SpawnFailed, message, hint)
}

fn failure(kind: FailureKind, message: String, hint: String) -> Failure {
    Failure { kind, message, hint, exit_code: None, signal: None, stderr: None }
}

#[async_trait]
impl Launcher for RemoteLauncher {
    async fn available(&self, _spec: &ServerSpec) -> Result<(), Failure> {
        Ok(())
    }

    async fn prepare(&self, _spec: &ServerSpec, _tell: Tell<'_>) -> Result<(), Failure> {
        Ok(())
    }

    async fn launch(&self, id: ServerId, spec: &ServerSpec) -> Result<Launched, Failure> {
        let url = spec.url.as_deref().unwrap_or_default();
        let url = parse_remote_url(url).map_err(|error| wrong(format!("`{url}` {error}")))?;
        let (tell, troubles) = mpsc::channel(MAX_TROUBLES);
        let transport = self.transport().await?;
        let remote = self.remote(id, spec, url.clone(), transport.clone(), tell).await?;
        // A pipe each way, so that the end of one is noticed while the other is still open.
        let (stdin, input) = duplex(BUFFER);
        let (output, stdout) = duplex(BUFFER);
        let stop = CancellationToken::new();
        let state = watch::Sender::new(State::default());
        let signed = spec.auth.is_some();
        let running = Conversation {
            state: state.subscribe(),
            endpoint: url.to_string(),
            signed,
            stop: stop.clone(),
            _hang_up: stop.clone().drop_guard(),
        };
        let lookout = Lookout { url, transport, troubles, signed };
        let pumping = pump(remote, input, output, stop);
        self.tasks.spawn(attend(pumping, lookout, state));
        let streams =
            Streams { stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(empty()) };
        Ok(Launched { running: Box::new(running), streams, door: None })
    }
}

/// How far a conversation is.
#[derive(Debug, Clone, Default)]
struct State {
    /// Why the server counts as gone, once it does.
    lost: Option<Explanation>,
    /// Nothing of the conversation is left.
    over: bool,
}

/// Carries the conversation to its end, and tells when the server is lost before that.
async fn attend(pumping: impl Future<Output = ()>, lookout: Lookout, state: watch::Sender<State>) {
    tokio::pin!(pumping);
    let lost = tokio::select! {
        () = &mut pumping => None,
        lost = lookout.lost() => Some(lost),
    };
    if lost.is_some() {
        state.send_modify(|state| state.lost = lost);
        pumping.await;
    }
    state.send_modify(|state| state.over = true);
}

/// Hears from the pump what fails. More failures than are looked at say nothing new.
#[derive(Debug)]
struct Ear(mpsc::Sender<(String, Trouble)>);

impl Attendant for Ear {
    fn failed(&self, method: &str, trouble: &Trouble) {
        self.0.try_send((method.to_owned(), trouble.clone())).ok();
    }
}

/// Decides when a server that failed is lost: one request that fails is its caller's matter.
struct Lookout {
    url: Uri,
    transport: Transport,
    troubles: mpsc::Receiver<(String, Trouble)>,
    signed: bool,
}

impl Lookout {
    /// Ends when the server cannot be reached any more, or refuses even to give a sign of life.
    async fn lost(mut self) -> Explanation {
        while let Some((method, trouble)) = self.troubles.recv().await {
            match trouble.kind {
                // Somebody else may be let in still, and a slow server is told by its silence.
                Sort::Timeout | Sort::TooLarge | Sort::Overloaded => {}
                Sort::Connect | Sort::Tls => {
                    sleep(SECOND_LOOK).await;
                    if self.is_away().await {
                        return explain(&trouble, self.signed);
                    }
                }
                Sort::Auth | Sort::Forbidden | Sort::Http | Sort::Session | Sort::Protocol => {
                    if HEARTBEATS.contains(&method.as_str()) {
                        // While it is being opened, its refusal is told by the handshake.
                        sleep(SECOND_LOOK).await;
                        return explain(&trouble, self.signed);
                    }
                }
            }
        }
        std::future::pending().await
    }

    /// Whether no connection to the server comes about. The question carries nothing secret.
    async fn is_away(&self) -> bool {
        let mut question = Request::new(Bytes::new());
        *question.method_mut() = Method::OPTIONS;
        question.uri_mut().clone_from(&self.url);
        match timeout(LOOK, self.transport.send(question)).await {
            Ok(Err(error)) => error.never_sent(),
            Ok(Ok(_)) | Err(_) => false,
        }
    }
}

/// A conversation that runs, or has run. Dropping it ends it.
struct Conversation {
    state: watch::Receiver<State>,
    endpoint: String,
    signed: bool,
    stop: CancellationToken,
    _hang_up: DropGuard,
}

impl Conversation {
    async fn until(&self, reached: impl FnMut(&State) -> bool) {
        // Whoever carries it is gone only together with everything.
        self.state.clone().wait_for(reached).await.ok();
    }
}

#[async_trait]
impl Running for Conversation {
    fn pid(&self) -> Option<u32> {
        None
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn facts(&self) -> Facts {
        Facts { endpoints: vec![self.endpoint.clone()], ..Facts::default() }
    }

    async fn exited(&self) -> Exit {
        self.until(|state| state.over || state.lost.is_some()).await;
        Exit { code: None, signal: None }
    }

    async fn gone(&self) {
        self.until(|state| state.over).await;
    }

    fn terminate(&self) {
        self.stop.cancel();
    }

    fn kill(&self) {
        self.stop.cancel();
    }

    async fn explain(&self) -> Option<Explanation> {
        self.state.borrow().lost.clone()
    }

    fn explain_refusal(&self, error: &HandshakeError) -> Option<Explanation> {
        Some(explain_refusal(error, self.signed))
    }

    async fn usage(&self) -> Option<Usage> {
        None
    }

    async fn isolation(&self) -> Value {
        Value::Null
    }
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
