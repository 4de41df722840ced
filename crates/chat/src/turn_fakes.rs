//! A scripted model, scripted tools, and a journal in memory, for the tests of the loop.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::stream::{self, StreamExt as _};
use serde_json::json;
use tokio::sync::{Barrier, Notify};

use super::*;
use crate::model::{ModelEvent, ModelStream};
use crate::tools::{CallOutcome, OfferedTool, ToolKind, ToolRequest};
use crate::{CallEnd, ModelFailureKind};

type Script = Vec<Result<ModelEvent, ModelFailure>>;

/// Answers with one script after the other, the last again and again.
pub(super) struct Scripted {
    pub(super) scripts: Mutex<VecDeque<Script>>,
    pub(super) requests: Mutex<Vec<ModelRequest>>,
    /// Where it is set, the stream stays open behind the script.
    pub(super) hangs: bool,
}

impl Scripted {
    pub(super) fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        Self {
            scripts: Mutex::new(scripts.into_iter().collect()),
            requests: Mutex::default(),
            hangs: false,
        }
    }

    pub(super) fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap().clone()
    }
}

impl ChatModel for Scripted {
    fn provider(&self) -> &str {
        "scripted"
    }

    fn name(&self) -> &str {
        "m"
    }

    fn ask(&self, request: ModelRequest) -> ModelStream {
        self.requests.lock().unwrap().push(request);
        let mut scripts = self.scripts.lock().unwrap();
        let script =
            if scripts.len() > 1 { scripts.pop_front().unwrap() } else { scripts[0].clone() };
        let events = stream::iter(script);
        if self.hangs { events.chain(stream::pending()).boxed() } else { events.boxed() }
    }
}

pub(super) fn text(words: &[&str]) -> Script {
    let mut script: Script =
        words.iter().map(|word| Ok(ModelEvent::Text((*word).to_owned()))).collect();
    script.push(Ok(ModelEvent::End(Answer {
        usage: TokenUsage { input_tokens: Some(10), output_tokens: Some(1) },
        ..Answer::default()
    })));
    script
}

pub(super) fn calls(names: &[&str]) -> Script {
    let calls = names.iter().enumerate().map(|(index, name)| ModelCall {
        id: format!("id-{index}"),
        name: (*name).to_owned(),
        arguments: json!({"index": index}),
    });
    vec![Ok(ModelEvent::End(Answer { calls: calls.collect(), ..Answer::default() }))]
}

pub(super) fn limited(retry_after: f64) -> Script {
    let failure = ModelFailure::new(ModelFailureKind::RateLimited, "slow down");
    vec![Err(failure.retry_after(Some(retry_after)))]
}

/// Tools `s__echo`, `s__fail`, `s__meet` (waits for a second caller), `s__hang` and `s__large`.
pub(super) struct Toolbox {
    pub(super) meeting: Barrier,
    pub(super) entered: Notify,
    pub(super) cancelled: Arc<AtomicUsize>,
    pub(super) gone: Mutex<Vec<String>>,
}

impl Default for Toolbox {
    fn default() -> Self {
        Self {
            meeting: Barrier::new(2),
            entered: Notify::new(),
            cancelled: Arc::default(),
            gone: Mutex::default(),
        }
    }
}

struct CountsDrop(Arc<AtomicUsize>);

impl Drop for CountsDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn offered(tool: &str) -> OfferedTool {
    OfferedTool {
        server: "s".to_owned(),
        tool: tool.to_owned(),
        name: format!("s__{tool}"),
        title: None,
        description: None,
        schema: json!({"type": "object"}),
        kind: ToolKind::Tool,
    }
}

fn result(text: &str) -> CallOutcome {
    let result = json!({"content": [{"type": "text", "text": text}]});
    let result_bytes = result.to_string().len() as u64;
    CallOutcome {
        end: CallEnd::Ok,
        result: Some(result),
        result_bytes,
        error: None,
        recorded: true,
    }
}

#[async_trait]
impl Tools for Toolbox {
    async fn offer(&self) -> Offer {
        let gone = self.gone.lock().unwrap().clone();
        let names = ["echo", "fail", "meet", "hang", "large"];
        let tools = names.iter().filter(|name| !gone.contains(&(**name).to_owned()));
        Offer { tools: tools.map(|name| offered(name)).collect(), unavailable: Vec::new() }
    }

    async fn call(&self, request: ToolRequest) -> CallOutcome {
        match request.tool.as_str() {
            "echo" => {
                self.gone.lock().unwrap().push("fail".to_owned());
                result(&request.arguments.to_string())
            }
            "meet" => {
                self.meeting.wait().await;
                result("met")
            }
            "hang" => {
                let _counted = CountsDrop(Arc::clone(&self.cancelled));
                self.entered.notify_one();
                std::future::pending().await
            }
            "large" => result(&"x".repeat(1 << 20)),
            _ => CallOutcome {
                end: CallEnd::ToolError,
                result: Some(
                    json!({"content": [{"type": "text", "text": "boom"}], "isError": true}),
                ),
                result_bytes: 10,
                error: Some(crate::Problem { message: "boom".to_owned(), stack: None, code: None }),
                recorded: true,
            },
        }
    }
}

#[derive(Default)]
pub(super) struct Notebook {
    pub(super) events: Mutex<Vec<EventBody>>,
    pub(super) messages: Mutex<Vec<Message>>,
    pub(super) wholes: Mutex<Vec<Value>>,
    pub(super) broken: bool,
}

impl Notebook {
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.events.lock().unwrap().iter().map(EventBody::name).collect()
    }

    pub(super) fn count(&self, name: &str) -> usize {
        self.names().iter().filter(|told| **told == name).count()
    }

    pub(super) fn cards(&self) -> Vec<ToolCard> {
        self.messages.lock().unwrap().iter().flat_map(|message| message.cards().to_vec()).collect()
    }

    pub(super) fn last(&self) -> Message {
        self.messages.lock().unwrap().last().unwrap().clone()
    }
}

#[async_trait]
impl Journal for Notebook {
    fn tell(&self, event: EventBody, _: Option<&Message>) {
        self.events.lock().unwrap().push(event);
    }

    async fn keep(&self, message: &Message) -> Result<(), ModelFailure> {
        if self.broken {
            return Err(ModelFailure::new(ModelFailureKind::Internal, "the disk is full"));
        }
        let mut messages = self.messages.lock().unwrap();
        match messages.iter_mut().find(|kept| kept.id() == message.id()) {
            Some(kept) => *kept = message.clone(),
            None => messages.push(message.clone()),
        }
        Ok(())
    }

    async fn keep_result(&self, _: Uuid, result: &Value) -> Result<(), ModelFailure> {
        self.wholes.lock().unwrap().push(result.clone());
        Ok(())
    }
}

#[derive(Default)]
pub(super) struct World {
    pub(super) tools: Toolbox,
    pub(super) notebook: Notebook,
    pub(super) stop: CancellationToken,
}

impl World {
    pub(super) async fn run(&self, model: &Scripted, action: Action) -> Finished {
        let turn = Turn {
            id: Uuid::now_v7(),
            action,
            model,
            tools: &self.tools,
            journal: &self.notebook,
            stop: &self.stop,
            history: vec![Entry::User("hello".to_owned())],
            calls_before: 0,
        };
        turn.run().await
    }
}
