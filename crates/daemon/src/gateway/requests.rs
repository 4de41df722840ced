//! The requests of a session, each from its first step to its answer: as JSON where it comes at
//! once and alone, and else on a stream that survives its connection.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use cofer_mcp::Message;
use cofer_model::Budget;
use futures_util::future::join_all;

use super::asker::Asker;
use super::charged::Charged;
use super::drive::{Drive, Step};
use super::http::{Manner, Refusal, accepted, check_id, json_response, respond};
use super::legacy::take;
use super::level::Level;
use super::rpc::{self, Fault};
use super::running::Related;
use super::serve::work;
use super::session::{RunGuard, Session};
use super::stream::EventStream;
use super::{Gateway, hears};

/// An answer that takes longer comes on a stream.
const AT_ONCE: Duration = Duration::from_secs(1);

/// A request that is being worked on, and its place in the session.
struct Job {
    id: Bytes,
    drive: Drive,
    _guard: RunGuard,
}

/// What a client asks.
pub(super) struct Asked {
    pub(super) id: Bytes,
    pub(super) method: String,
    pub(super) params: Option<Bytes>,
}

impl Job {
    fn begin(gateway: &Gateway, session: &Arc<Session>, asked: Asked, manner: Manner) -> Self {
        let Asked { id, method, params } = asked;
        let guard = session.begin(&id);
        let running = Arc::clone(&guard.running);
        let asker = Asker::of_session(session, running, manner.parent);
        let drive = Drive::new(work(gateway, asker, method, params), Arc::clone(&guard.running));
        Self { id, drive, _guard: guard }
    }

    /// The budget of the server that works on it, or of the clients before that is known.
    fn memory(&self, gateway: &Gateway) -> Arc<Budget> {
        let memory = self.drive.running().memory.get();
        Arc::clone(memory.unwrap_or_else(|| gateway.memory()))
    }
}

pub(super) async fn request(
    gateway: &Gateway,
    session: &Arc<Session>,
    asked: Asked,
    manner: Manner,
) -> Response {
    let accepts = manner.accepts;
    let mut job = Job::begin(gateway, session, asked, manner);
    if !accepts.json {
        return stream(gateway, session, vec![job], None);
    }
    loop {
        let step = tokio::select! {
            biased;
            step = job.drive.step() => step,
            () = gateway.0.ticker.after(AT_ONCE), if accepts.events => return stream(gateway, session, vec![job], None),
        };
        match step {
            Step::Done(answer) => return respond(&job.id, answer, accepts),
            Step::Cancelled => return accepted(),
            Step::Related(related) if !is_heard(session, &related) => {}
            Step::Related(related) if accepts.events => {
                return stream(gateway, session, vec![job], Some(related));
            }
            Step::Related(related) => {
                Box::pin(beside(session, related, &job.memory(gateway))).await;
            }
        }
    }
}

/// What is said about a request whose client reads no stream goes to the stream of its session.
async fn beside(session: &Session, related: Related, memory: &Arc<Budget>) {
    match related {
        Related::Asked(inquiry) if !session.listens() => {
            let fault =
                Fault::new(rpc::INTERNAL, "the client listens to no stream, and cannot be asked");
            inquiry.refuse(&fault).await;
        }
        related => {
            if session.listens()
                && let Some((message, _)) = message(session, related, memory).await
            {
                session.tell(&message);
            }
        }
    }
}

/// Goes on in a task, which a lost connection does not end, and answers with its stream.
fn stream(
    gateway: &Gateway,
    session: &Arc<Session>,
    jobs: Vec<Job>,
    first: Option<Related>,
) -> Response {
    let events = session.open_stream();
    let reader = events.read(None, session.is_primed());
    let (task_session, ended) = (Arc::clone(session), session.ended.clone());
    let task_gateway = gateway.clone();
    let pump = async move {
        let memory = jobs.first().map(|job| job.memory(&task_gateway));
        if let (Some(related), Some(memory)) = (first, memory) {
            pass(&task_session, related, &events, &memory).await;
        }
        let pumps = jobs.into_iter().map(|job| pump(&task_gateway, &task_session, job, &events));
        join_all(pumps).await;
        events.finish();
    };
    gateway.0.tasks.spawn(async move { ended.run_until_cancelled(pump).await });
    reader.into_response(gateway.0.closing.clone())
}

/// Drives a request to its end; everything about it goes to the stream.
async fn pump(gateway: &Gateway, session: &Session, mut job: Job, events: &EventStream) {
    loop {
        match job.drive.step().await {
            Step::Related(related) => {
                let memory = job.memory(gateway);
                pass(session, related, events, &memory).await;
            }
            Step::Done(answer) => {
                let response = Charged::response(&job.memory(gateway), &job.id, &answer);
                events.push(response, false);
                return;
            }
            Step::Cancelled => return,
        }
    }
}

async fn pass(session: &Session, related: Related, events: &EventStream, memory: &Arc<Budget>) {
    if let Some((message, droppable)) = message(session, related, memory).await {
        events.push(message, droppable);
    }
}

/// Whether the client wants to hear this: of log messages only those from its level on.
fn is_heard(session: &Session, related: &Related) -> bool {
    match related {
        Related::Told { method, params } if method == "notifications/message" => {
            hears(session, session.level(), Level::of_message(params.as_ref()))
        }
        _ => true,
    }
}

/// What a client hears of something that is said about its request, and whether it could do
/// without.
pub(super) async fn message(
    session: &Session,
    related: Related,
    memory: &Arc<Budget>,
) -> Option<(Charged, bool)> {
    let notification =
        |method: &str, params| Some((Charged::notification(memory, method, params)?, true));
    match related {
        Related::Progressed(params) => notification("notifications/progress", Some(&params)),
        related @ Related::Told { .. } if !is_heard(session, &related) => None,
        Related::Told { method, params } => notification(&method, params.as_deref()),
        Related::Asked(inquiry) => Some((session.ask(inquiry, memory).await?, false)),
        Related::Withdrawn(origin) => Some((session.withdraw(origin, memory)?, false)),
    }
}

pub(super) async fn take_batch(
    gateway: &Gateway,
    session: &Arc<Session>,
    messages: Vec<Message>,
    manner: Manner,
) -> Result<Response, Refusal> {
    if messages.is_empty() {
        return Err(Refusal::bad_request("a batch has at least one message"));
    }
    let mut jobs = Vec::new();
    for message in messages {
        check_id(&message)?;
        match message {
            Message::Request { id, method, params } => {
                jobs.push(Job::begin(gateway, session, Asked { id, method, params }, manner));
            }
            other => drop(take(gateway, session, other, manner).await),
        }
    }
    if jobs.is_empty() {
        return Ok(accepted());
    }
    if manner.accepts.events {
        return Ok(stream(gateway, session, jobs, None));
    }
    let answers = join_all(jobs.into_iter().map(|job| alone(gateway, session, job))).await;
    let answers: Vec<Charged> = answers.into_iter().flatten().collect();
    if answers.is_empty() {
        return Ok(accepted());
    }
    let answers: Vec<&[u8]> = answers.iter().map(|answer| &answer.bytes()[..]).collect();
    Ok(json_response(Body::from([b"[", &answers.join(&b","[..])[..], b"]"].concat())))
}

/// Drives a request whose client reads nothing but its answer.
async fn alone(gateway: &Gateway, session: &Session, mut job: Job) -> Option<Charged> {
    loop {
        match job.drive.step().await {
            Step::Related(related) => beside(session, related, &job.memory(gateway)).await,
            Step::Done(answer) => {
                return Some(Charged::response(&job.memory(gateway), &job.id, &answer));
            }
            Step::Cancelled => return None,
        }
    }
}
