//! Turns a remote MCP server into two byte streams: what the client writes is sent line by
//! line, and what the server says is written back line by line.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cofer_model::{Budget, Redactor};
use futures_util::future::join_all;
use http::header::HeaderValue;
use http::{HeaderMap, Uri};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::attendant::Attendant;
use super::auth::Authorizer;
use super::failure::Failure;
use super::in_flight::{Entry, Refused};
use super::output::Output;
use super::raw::{Kind, Raw, Unreadable, canonical, messages, own_version};
use super::renew::{cancelled, opened};
use super::request::{Barrier, Job};
use super::transport::Transport;
use super::wire::Wire;
use crate::framing::{Frame, LineReader};
use crate::members::member;

/// How many requests may be without an answer.
const MAX_IN_FLIGHT: usize = 4096;
/// How many notifications may wait to be sent.
const MAX_NOTIFICATIONS: usize = 1024;
/// How the two seconds are spent that the end may take: on answers that are nearly there, on
/// telling the server, and on what the client has not read yet.
const LAST_ANSWERS: Duration = Duration::from_millis(900);
const LAST_WORDS: Duration = Duration::from_millis(300);
const LAST_WRITE: Duration = Duration::from_millis(200);
/// How many requests the server is told of at the end.
const MAX_LAST_WORDS: usize = 64;

/// The server, and how it is spoken to.
#[derive(Debug, Clone)]
pub struct Remote {
    /// Where it is.
    pub url: Uri,
    /// What goes with every request.
    pub headers: HeaderMap,
    /// The longest silence allowed of a server that owes an answer.
    pub silence: Duration,
    /// The longest message, in either direction.
    pub cap: usize,
    /// The memory that messages of the server, and to it, may use.
    pub memory: Arc<Budget>,
    /// What errors of our own name as their source.
    pub source: String,
    /// The connections.
    pub transport: Transport,
    /// Who signs.
    pub authorizer: Arc<dyn Authorizer>,
    /// Who looks after the conversation.
    pub attendant: Arc<dyn Attendant>,
    /// Takes what is secret out of the server's words where an error of ours repeats them.
    pub redactor: Redactor,
}

/// Carries messages both ways until `input` ends, nobody reads `output`, or `stop` is set off.
/// It returns within two seconds of that, and nothing of it goes on.
pub async fn pump<R, W>(remote: Remote, input: R, output: W, stop: CancellationToken)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (out, queue) = Output::new();
    let gone = out.gone.clone();
    let wire = Arc::new(Wire::new(remote, out));
    let all_said = CancellationToken::new();
    // A task beside this one: each wakes for its own work.
    let mut writer = JoinSet::new();
    let (shared, done) = (Arc::clone(&wire), all_said.clone());
    writer.spawn(async move {
        queue.write(output, done, || shared.in_flight.any()).await;
        // Without a reader there is nobody to wait for.
        gone.cancel();
    });
    wire.spawn(Arc::clone(&wire).beat());
    Reader::new(&wire).read(input, &stop).await;
    close(&wire).await;
    all_said.cancel();
    if timeout(LAST_WRITE, writer.join_next()).await.is_err() {
        tracing::debug!("the client does not read its last messages");
    }
}

/// Tells the server that nobody waits any more, and ends everything.
async fn close(wire: &Arc<Wire>) {
    wire.end();
    let left = wire.in_flight.take_all();
    let session = wire.sessions.current();
    let told = left
        .iter()
        .filter(|entry| !entry.modern && !entry.is_initialize)
        .take(MAX_LAST_WORDS)
        .map(|entry| cancelled(&entry.id, "the client left"));
    let told = join_all(told.map(|text| {
        let session = Arc::clone(&session);
        async move { wire.accept(&text, "notifications/cancelled", &session).await }
    }));
    drop(timeout(LAST_WORDS, told).await);
    wire.close_session(LAST_WORDS).await;
}

/// Takes the client's lines, in their order.
struct Reader<'a> {
    wire: &'a Arc<Wire>,
    /// What must be sent before the next message is.
    barrier: Barrier,
    notifications: mpsc::Sender<(Raw, Barrier)>,
}

impl<'a> Reader<'a> {
    fn new(wire: &'a Arc<Wire>) -> Self {
        let (notifications, mut queue) = mpsc::channel::<(Raw, Barrier)>(MAX_NOTIFICATIONS);
        let sender = Arc::clone(wire);
        // One after the other: what they say may depend on their order.
        wire.spawn(async move {
            while let Some((raw, barrier)) = queue.recv().await {
                barrier.passed().await;
                sender.tell(raw).await;
            }
        });
        Self { wire, barrier: Barrier::default(), notifications }
    }

    async fn read<R: AsyncRead + Unpin>(mut self, input: R, stop: &CancellationToken) {
        let mut lines = LineReader::within(input, self.wire.cap, &self.wire.memory);
        loop {
            let frame = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.wire.output.gone.cancelled() => return,
                frame = lines.next() => frame,
            };
            match frame {
                Ok(Some(Frame::Line(line))) => self.take(&line),
                Ok(Some(Frame::TooLong { bytes, request, .. })) => self.refuse(bytes, request),
                Ok(Some(Frame::Unaffordable { bytes, request, .. })) => {
                    self.overloaded(bytes, request);
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(%error, "the client's messages cannot be read");
                    break;
                }
            }
        }
        // The client has said all it had to say, and may still want to hear the answers.
        let answers = timeout(LAST_ANSWERS, self.wire.in_flight.drained());
        tokio::select! {
            _ = answers => {}
            () = stop.cancelled() => {}
            () = self.wire.output.gone.cancelled() => {}
        }
    }

    fn take(&mut self, line: &Bytes) {
        match messages(line) {
            Err(malformed) => self.complain(None, -32700, malformed.to_string()),
            Ok(none) if none.is_empty() => {
                self.complain(None, -32600, "the batch is empty".to_owned());
            }
            Ok(all) => {
                for read in all {
                    match read {
                        Ok(raw) => self.dispatch(raw),
                        Err(Unreadable::NotJson(malformed)) => {
                            self.complain(None, -32700, malformed.to_string());
                        }
                        Err(Unreadable::NotRpc { id, reason }) => {
                            self.complain(id, -32600, format!("not a JSON-RPC message: {reason}"));
                        }
                    }
                }
            }
        }
    }

    /// Answers in a task: the reader never waits for the client to read.
    fn complain(&self, id: Option<Bytes>, code: i64, message: String) {
        tracing::warn!(code, "the client sent something that is no message: {message}");
        let wire = Arc::clone(self.wire);
        self.wire.spawn(async move { wire.complain(id.as_ref(), code, &message).await });
    }

    fn refuse(&self, bytes: u64, request: Option<Bytes>) {
        tracing::warn!(bytes, cap = self.wire.cap, "the client sent a message over the cap");
        if let Some(id) = request {
            let failure =
                Failure::too_large(&format!("the message of {bytes} bytes"), self.wire.cap);
            self.answer(failure.response(&id, &self.wire.source));
        }
    }

    fn overloaded(&self, bytes: u64, request: Option<Bytes>) {
        let memory = &self.wire.memory;
        memory.count_loss();
        tracing::warn!(bytes, "a message of the client was discarded: no memory left");
        if let Some(id) = request {
            let what = format!("the request of {bytes} bytes");
            let failure = Failure::out_of_memory(&what, memory.limit());
            self.answer(failure.response(&id, &self.wire.source));
        }
    }

    fn answer(&self, line: Bytes) {
        let wire = Arc::clone(self.wire);
        self.wire.spawn(async move { wire.output.send(line).await });
    }

    fn dispatch(&mut self, raw: Raw) {
        let Raw { text, kind } = raw;
        match kind {
            Kind::Request { id, method, params } => self.request(text, id, method, params),
            Kind::Notification { ref method, ref params }
                if method == "notifications/cancelled" =>
            {
                let id = params.as_ref().and_then(|params| member(params, "requestId"));
                let key = id.map(|id| canonical(&Bytes::copy_from_slice(id)));
                self.cancel(key.as_ref(), Raw { text, kind });
            }
            Kind::Notification { ref method, .. } if method == "notifications/initialized" => {
                self.initialized(Raw { text, kind });
            }
            Kind::Notification { .. } => {
                let queued =
                    self.notifications.try_send((Raw { text, kind }, self.barrier.clone()));
                if queued.is_err() {
                    tracing::warn!("a notification was dropped: too many wait to be sent");
                }
            }
            // An answer to the server's question does not wait for anything.
            Kind::Response { .. } => {
                let wire = Arc::clone(self.wire);
                self.wire.spawn(async move { wire.tell(Raw { text, kind }).await });
            }
        }
    }

    fn request(&mut self, text: Bytes, id: Bytes, method: String, params: Option<Bytes>) {
        let version = own_version(params.as_ref()).and_then(|v| HeaderValue::from_str(&v).ok());
        let barrier = if version.is_some() { Barrier::default() } else { self.barrier.clone() };
        let key = canonical(&id);
        let job = Job { text, id, key: key.clone(), method, params, version, barrier };
        let entry = Entry {
            id: job.id.clone(),
            modern: job.is_modern(),
            is_initialize: job.is_initialize(),
            endless: job.is_endless(),
            task: None,
        };
        if let Err(refused) = self.wire.in_flight.insert(key.clone(), entry, MAX_IN_FLIGHT) {
            return self.turn_away(&job, &refused);
        }
        if job.version.is_some() {
            self.wire
                .modern
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone_from(&job.version);
        }
        self.wire.pulse.quicken();
        let opens = job.is_initialize().then(|| self.raise());
        let wire = Arc::clone(self.wire);
        // Boxed here, where it is made: it is large, and would be moved several times on its way.
        let task = self.wire.spawn(Box::pin(async move {
            wire.carry(job).await;
            drop(opens);
        }));
        self.wire.in_flight.carried_by(&key, task);
    }

    fn turn_away(&self, job: &Job, refused: &Refused) {
        match refused {
            Refused::SameId => {
                let message = "a request with this id is still without an answer".to_owned();
                self.complain(Some(job.id.clone()), -32600, message);
            }
            Refused::TooMany => {
                let failure = Failure::new(
                    super::FailureKind::TooLarge,
                    format!("{MAX_IN_FLIGHT} requests are without an answer already"),
                    "wait for answers before asking more.",
                );
                self.answer(failure.response(&job.id, &self.wire.source));
            }
        }
    }

    /// What comes next waits until what is returned is dropped, and what it waited for too.
    fn raise(&mut self) -> watch::Sender<()> {
        let (sender, receiver) = watch::channel(());
        self.barrier = Barrier(Some(receiver));
        sender
    }

    /// The client is ready: nothing overtakes that, and then the server may speak unasked, which
    /// is heard before anything else is asked.
    fn initialized(&mut self, raw: Raw) {
        self.wire.sessions.initialized(raw.text.clone());
        let before = self.barrier.clone();
        let opens = self.raise();
        let wire = Arc::clone(self.wire);
        self.wire.spawn(async move {
            before.passed().await;
            wire.sessions.initialized(raw.text.clone());
            wire.tell(raw).await;
            if wire.sessions.opening().is_some() {
                opened(wire.listen(wire.sessions.current())).await;
            }
            drop(opens);
        });
    }

    /// In the newer era closing the stream says it; in the older one only saying so does.
    fn cancel(&self, key: Option<&Bytes>, raw: Raw) {
        let wanted = |entry: &Entry| !entry.is_initialize;
        let Some(entry) = key.and_then(|key| self.wire.in_flight.take_if(key, wanted)) else {
            tracing::debug!("the client cancels what is not under way");
            return;
        };
        if entry.modern {
            return entry.task.iter().for_each(tokio::task::AbortHandle::abort);
        }
        let wire = Arc::clone(self.wire);
        self.wire.spawn(async move {
            wire.tell(raw).await;
            if let Some(task) = entry.task {
                task.abort();
            }
        });
    }
}
