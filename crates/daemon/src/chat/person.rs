//! The person who looks at a chat, as the servers see them whose tools it calls: what a server
//! asks while a call runs is shown on the call's card, and the answer goes back to it. A server of
//! the newer era asks by a result that wants input, and is called again with the answers.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofer_chat::{ProviderModel, Question, QuestionReply, ReplyAction, Wish, elicited, sample};
use cofer_mcp::{CallError, Caller, ClientId, Era, RpcError, member};
use cofer_supervisor::{Asking, CallFailure, ServerHandle};
use futures_util::future::try_join_all;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::live::Live;

/// How much a server may say before any of it is taken; questions beyond that are refused.
const ROOM: usize = 64;
/// How long an answer may take. Until then the call waits, or until the turn is stopped.
const PATIENCE: Duration = Duration::from_secs(30 * 60);
/// How often a server of the newer era may want input for one call.
const MAX_ROUNDS: u32 = 16;
/// The pause before it is called again where nobody was asked anything.
const PAUSE: Duration = Duration::from_millis(100);
/// The result that says so.
const WANTS_INPUT: &[u8] = br#""input_required""#;
/// What servers of the newer era are told of the person.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const INTERNAL: i64 = -32603;
/// The code that MCP has for a person who says no.
const REJECTED: i64 = -1;

/// See the module.
pub(super) struct Person {
    /// Whether there is one. Else servers are told that there is not.
    pub(super) is_there: bool,
    pub(super) live: Arc<Live>,
    pub(super) turn_id: Uuid,
    /// Whom a server may ask something, if the person allows it.
    pub(super) model: ProviderModel,
    pub(super) client: ClientId,
}

/// Who asks, and during which call.
#[derive(Clone, Copy)]
struct During<'a> {
    call_id: Uuid,
    server: &'a str,
}

/// What a server says to who called it.
enum Heard {
    Asked(cofer_mcp::Question),
    Withdrawn(u64),
}

/// The side of a call that its server reaches.
struct Ear {
    client: ClientId,
    heard: mpsc::Sender<Heard>,
}

impl Caller for Ear {
    fn client(&self) -> ClientId {
        self.client
    }

    fn progressed(&self, _params: Bytes) {}

    fn notified(&self, _method: &str, _params: Option<&Bytes>) {}

    fn asked(&self, question: cofer_mcp::Question) {
        // One that finds no room is dropped, and so refused.
        self.heard.try_send(Heard::Asked(question)).ok();
    }

    fn withdrawn(&self, question: u64) {
        self.heard.try_send(Heard::Withdrawn(question)).ok();
    }
}

impl Person {
    /// Makes a call, and has the person answer what its server asks meanwhile.
    pub(super) async fn call(
        &self,
        handle: &ServerHandle,
        call_id: Uuid,
        mut params: Value,
        asking: Asking<'_>,
    ) -> Result<Bytes, CallFailure> {
        let spec = handle.spec();
        let during = During { call_id, server: spec.name.as_str() };
        if self.is_there && handle.era() == Some(Era::Discover) {
            params["_meta"] =
                json!({CAPABILITIES: {"elicitation": {"form": {}, "url": {}}, "sampling": {}}});
        }
        let (heard, mut inbox) = mpsc::channel(ROOM);
        let caller = Arc::new(Ear { client: self.client, heard });
        let mut asking = Asking { caller: Some(caller), ..asking };
        for _ in 0..MAX_ROUNDS {
            asking.params = Some(written(&params));
            let call = handle.call_by(asking.clone());
            let result = self.attended(during, call, &mut inbox).await?;
            if member(&result, "resultType") != Some(WANTS_INPUT) {
                return Ok(result);
            }
            let mut wanted: Value = serde_json::from_slice(&result).unwrap_or_default();
            let responses = self.gather(during, &wanted).await;
            params["inputResponses"] = responses.map_err(CallError::Rpc)?.into();
            params["requestState"] = wanted["requestState"].take();
            // The card leads to the first of the calls.
            asking.call_id = None;
        }
        let message = format!("the server wanted more input {MAX_ROUNDS} times");
        Err(CallError::Rpc(RpcError::new(INTERNAL, message)).into())
    }

    /// Waits for a call, and answers what its server asks meanwhile.
    async fn attended<T>(
        &self,
        during: During<'_>,
        call: impl Future<Output = T>,
        inbox: &mut mpsc::Receiver<Heard>,
    ) -> T {
        let mut call = pin!(call);
        let mut open = FuturesUnordered::new();
        let mut asked: HashMap<u64, CancellationToken> = HashMap::new();
        loop {
            tokio::select! {
                biased;
                result = &mut call => return result,
                Some(heard) = inbox.recv() => match heard {
                    Heard::Asked(question) => {
                        let taken_back = CancellationToken::new();
                        asked.insert(question.id, taken_back.clone());
                        open.push(async move {
                            taken_back.run_until_cancelled(self.settle(during, question)).await
                        });
                    }
                    Heard::Withdrawn(id) => {
                        if let Some(taken_back) = asked.remove(&id) {
                            taken_back.cancel();
                        }
                    }
                },
                Some(_) = open.next(), if !open.is_empty() => {}
            }
        }
    }

    /// Brings one question of a server's to the person, and the answer back.
    async fn settle(&self, during: During<'_>, mut question: cofer_mcp::Question) {
        let method = std::mem::take(&mut question.method);
        let params = question.params.take().unwrap_or_default();
        let params = serde_json::from_slice(&params).unwrap_or_default();
        let outcome = self.answer(during, &method, &params).await;
        question.answer(outcome.map(|result| Bytes::from(result.to_string()))).await;
    }

    /// The answers to all that a result wants to know.
    async fn gather(
        &self,
        during: During<'_>,
        wanted: &Value,
    ) -> Result<Map<String, Value>, RpcError> {
        let requests = wanted.get("inputRequests").and_then(Value::as_object);
        let answers = requests.into_iter().flatten().map(|(key, request)| async move {
            let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
            let params = request.get("params").unwrap_or(&Value::Null);
            Ok::<_, RpcError>((key.clone(), self.answer(during, method, params).await?))
        });
        let answers = try_join_all(answers).await?;
        if answers.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
        Ok(answers.into_iter().collect())
    }

    async fn answer(
        &self,
        during: During<'_>,
        method: &str,
        params: &Value,
    ) -> Result<Value, RpcError> {
        if method == "roots/list" {
            return Ok(json!({"roots": []}));
        }
        if !self.is_there {
            let message = format!("`{method}`: nobody looks at this chat who could be asked");
            return Err(RpcError::new(INTERNAL, message));
        }
        let wish = Wish::read(method, params);
        let wish = wish.map_err(|refused| RpcError::new(refused.code, refused.message))?;
        let During { call_id, server } = during;
        tracing::info!(target: "TOOLS", server, %call_id, method, "a server asks the person");
        let question =
            Question { id: Uuid::now_v7(), call_id, server: server.to_owned(), wish: wish.clone() };
        let Some(mut open) = self.live.ask(self.turn_id, question) else {
            return Err(RpcError::new(INTERNAL, "too many questions are open in this chat"));
        };
        let reply = tokio::time::timeout(PATIENCE, open.reply()).await.ok().flatten();
        drop(open);
        let cancelled = QuestionReply { action: ReplyAction::Cancel, content: None };
        self.fulfil(&wish, &reply.unwrap_or(cancelled)).await
    }

    /// What the server is told.
    async fn fulfil(&self, wish: &Wish, reply: &QuestionReply) -> Result<Value, RpcError> {
        let Wish::Sampling { system, messages, max_tokens } = wish else {
            return Ok(elicited(reply));
        };
        if reply.action != ReplyAction::Accept {
            return Err(RpcError::new(REJECTED, "the person did not allow it"));
        }
        let sampled = sample(&self.model, system.as_deref(), messages, *max_tokens).await;
        sampled.map_err(|failure| RpcError::new(INTERNAL, failure.message))
    }
}

/// A state that the server did not give is not sent.
fn written(params: &Value) -> Bytes {
    let mut params = params.clone();
    if let Some(members) = params.as_object_mut() {
        members.retain(|key, value| key != "requestState" || !value.is_null());
    }
    Bytes::from(params.to_string())
}
