//! The hosted servers as the tools of a chat: what they offer now, and how a call reaches them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::listing::{ALL, READ, list, list_known};
use super::person::Person;
use super::tools_view::ToolsView;
use crate::gateway::{Gateway, ListKind};
use async_trait::async_trait;
use bytes::Bytes;
use cofer_chat::{
    CallEnd, CallOutcome, Offer, OfferedTool, Problem, ToolKind, ToolRequest, Tools, Unavailable,
    problem_of_result, problem_of_rpc,
};
use cofer_mcp::CallError;
use cofer_model::{CallSource, ServerId, Status};
use cofer_supervisor::{Asking, CallFailure, Notice, ServerHandle, Supervisor};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::{Mutex, broadcast};

/// How long a server may take to say what it has.
const LIST: Duration = Duration::from_secs(10);

/// The servers, and the lists of those that are not ready yet. A cheap clone.
#[derive(Clone)]
pub(crate) struct ToolSource {
    supervisor: Supervisor,
    gateway: Gateway,
}

impl ToolSource {
    pub(crate) fn new(supervisor: Supervisor, gateway: Gateway) -> Self {
        Self { supervisor, gateway }
    }
}

/// The tools of one turn.
pub(crate) struct Toolbox {
    source: ToolSource,
    /// None for all.
    servers: Option<Vec<String>>,
    off: HashSet<String>,
    /// Who answers what servers ask.
    person: Option<Person>,
    lists: Mutex<HashMap<ServerId, Listed>>,
}

/// What a server said it has, until it says that this changed.
struct Listed {
    tools: Result<Vec<OfferedTool>, String>,
    changes: broadcast::Receiver<Arc<Notice>>,
}

impl Listed {
    fn is_current(&mut self) -> bool {
        loop {
            match self.changes.try_recv() {
                Ok(notice) => match &*notice {
                    Notice::Said { method, .. } if !method.ends_with("/list_changed") => {}
                    Notice::Said { .. } | Notice::Up | Notice::Down => return false,
                },
                Err(broadcast::error::TryRecvError::Empty) => return true,
                Err(_) => return false,
            }
        }
    }
}

impl Toolbox {
    /// The tools of `servers`, or of all; without those in `off`, written `server/tool`.
    pub(crate) fn new(source: ToolSource, servers: Option<Vec<String>>, off: Vec<String>) -> Self {
        let off = off.into_iter().collect();
        Self { source, servers, off, person: None, lists: Mutex::default() }
    }

    /// The same, with somebody who answers what servers ask.
    pub(super) fn attended_by(self, person: Person) -> Self {
        Self { person: Some(person), ..self }
    }

    fn wanted(&self) -> Vec<ServerHandle> {
        let mut handles = self.source.supervisor.list();
        handles.retain(|handle| {
            let name = handle.spec().name.to_string();
            self.servers.as_ref().is_none_or(|servers| servers.contains(&name))
        });
        handles.sort_by_cached_key(|handle| handle.spec().name.to_string());
        handles
    }

    /// What one server offers to agents, with a word where that cannot be told.
    async fn listed(&self, handle: &ServerHandle) -> Result<Vec<OfferedTool>, String> {
        let spec = handle.spec();
        let mut tools = self.everything(handle).await?;
        tools.retain(|tool| tool.kind != ToolKind::Tool || spec.offers_tool(&tool.tool));
        Ok(tools)
    }

    /// What one server has.
    async fn everything(&self, handle: &ServerHandle) -> Result<Vec<OfferedTool>, String> {
        let status = handle.snapshot().status;
        if status != Status::Ready {
            let known = self.last_known(handle).filter(|_| !status.is_settled());
            return known.ok_or_else(|| format!("it is {status}"));
        }
        if let Some(listed) = self.lists.lock().await.get_mut(&handle.id())
            && listed.is_current()
        {
            return listed.tools.clone();
        }
        // Listened to before it is asked, so that no change falls between.
        let changes = handle.notices();
        let tools = tokio::time::timeout(LIST, list(handle)).await;
        let tools =
            tools.unwrap_or_else(|_| Err(format!("it did not list its tools within {LIST:?}")));
        let listed = Listed { tools: tools.clone(), changes };
        self.lists.lock().await.insert(handle.id(), listed);
        tools
    }

    /// The tools that a starting server had in its last run. A call waits until it is ready.
    fn last_known(&self, handle: &ServerHandle) -> Option<Vec<OfferedTool>> {
        let list = |kind| self.source.gateway.known_list(handle, kind);
        let tools = list(ListKind::Tools)?;
        Some(list_known(&handle.spec(), &tools, list(ListKind::Resources).as_deref()))
    }

    fn is_off(&self, tool: &OfferedTool) -> bool {
        self.off.contains(&format!("{}/{}", tool.server, tool.tool))
    }

    /// Everything there is, for a person who chooses.
    pub(crate) async fn view(&self) -> ToolsView {
        let all = self.source.supervisor.list();
        let mut handles = all.clone();
        handles.sort_by_cached_key(|handle| handle.spec().name.to_string());
        let wanted: HashSet<ServerId> = self.wanted().iter().map(ServerHandle::id).collect();
        let lists = join_all(handles.iter().map(|handle| self.listed(handle))).await;
        let mut view = ToolsView::default();
        for (handle, listed) in handles.iter().zip(lists) {
            let is_on = wanted.contains(&handle.id());
            view.add(handle, listed, |tool| !is_on || self.is_off(tool));
        }
        view
    }
}

#[async_trait]
impl Tools for Toolbox {
    async fn offer(&self) -> Offer {
        let handles = self.wanted();
        let lists = join_all(handles.iter().map(|handle| self.listed(handle))).await;
        let mut offer = Offer::default();
        let mut names = HashSet::new();
        for (handle, listed) in handles.iter().zip(lists) {
            match listed {
                Ok(tools) => {
                    let tools = tools.into_iter().filter(|tool| !self.is_off(tool));
                    offer.tools.extend(tools.filter(|tool| names.insert(tool.name.clone())));
                }
                // Who asked for all asked for those that are there.
                Err(reason)
                    if self.servers.is_some() || handle.snapshot().status == Status::Ready =>
                {
                    offer
                        .unavailable
                        .push(Unavailable { server: handle.spec().name.to_string(), reason });
                }
                Err(_) => {}
            }
        }
        for name in self.servers.iter().flatten() {
            if !handles.iter().any(|handle| handle.spec().name.as_str() == name) {
                let reason = "it is not registered".to_owned();
                offer.unavailable.push(Unavailable { server: name.clone(), reason });
            }
        }
        offer
    }

    async fn call(&self, request: ToolRequest) -> CallOutcome {
        let found =
            self.wanted().into_iter().find(|handle| handle.spec().name.as_str() == request.server);
        let Some(handle) = found else {
            let message = format!("server “{}” is not registered any more", request.server);
            return CallOutcome::not_made(CallEnd::NotConnected, message);
        };
        if request.kind == ToolKind::Resource && request.tool == ALL {
            return resources(&handle).await;
        }
        let (method, params) = match request.kind {
            ToolKind::Tool => {
                ("tools/call", json!({"name": request.tool, "arguments": request.arguments}))
            }
            ToolKind::Resource => (READ, json!({"uri": request.arguments.get("uri")})),
        };
        let asking = Asking {
            source: CallSource::Chat,
            client: Some("chat".into()),
            call_id: Some(request.call_id),
            ..Asking::new(method, Some(Bytes::from(params.to_string())))
        };
        let result = match &self.person {
            Some(person) => person.call(&handle, request.call_id, params, asking).await,
            None => handle.call_by(asking).await,
        };
        outcome(&request.server, result)
    }
}

async fn resources(handle: &ServerHandle) -> CallOutcome {
    let listing = handle.list(ALL, "resources").await;
    let server = handle.spec().name.to_string();
    let result = listing.map(|listing| {
        let items = serde_json::to_string(&listing.items).unwrap_or_else(|_| "[]".to_owned());
        Bytes::from(format!(r#"{{"resources":{items}}}"#))
    });
    CallOutcome { recorded: false, ..outcome(&server, result) }
}

/// What came of a call, for the card and for the model.
fn outcome(server: &str, result: Result<Bytes, CallFailure>) -> CallOutcome {
    let failure = match result {
        Ok(bytes) => return answered(&bytes),
        Err(failure) => failure,
    };
    let problem = |message: String| Problem { message, stack: None, code: None };
    let (end, problem) = match failure {
        CallFailure::NotConnected { status } => {
            (CallEnd::NotConnected, problem(format!("server “{server}” is not running ({status})")))
        }
        CallFailure::NoMcp => (CallEnd::NotConnected, problem(format!("“{server}” speaks no MCP"))),
        CallFailure::Call(error) => match &error {
            CallError::Rpc(rpc) => {
                (CallEnd::McpError, problem_of_rpc(rpc.code, &rpc.message, rpc.data.as_ref()))
            }
            CallError::Timeout(_) | CallError::QueueTimeout(_) => {
                (CallEnd::Timeout, problem(error.to_string()))
            }
            CallError::Overloaded { .. } | CallError::OutOfMemory { .. } => {
                (CallEnd::Overloaded, problem(error.to_string()))
            }
            CallError::RequestTooLarge { .. } | CallError::AnswerTooLarge { .. } => {
                (CallEnd::TooLarge, problem(error.to_string()))
            }
            CallError::BadParams => (CallEnd::BadArguments, problem(error.to_string())),
            CallError::Disconnected => (
                CallEnd::Disconnected,
                problem(format!("server “{server}” ended before it answered; its log tells why")),
            ),
        },
    };
    let recorded = end != CallEnd::NotConnected;
    CallOutcome { end, result: None, result_bytes: 0, error: Some(problem), recorded }
}

fn answered(bytes: &Bytes) -> CallOutcome {
    // Numbers beyond what JSON readers take are the only valid JSON that is not read.
    let result = serde_json::from_slice(bytes).unwrap_or_else(
        |_| json!({"content": [{"type": "text", "text": String::from_utf8_lossy(bytes)}]}),
    );
    let is_error = result.get("isError") == Some(&Value::Bool(true));
    let error = is_error.then(|| problem_of_result(&result));
    let end = if is_error { CallEnd::ToolError } else { CallEnd::Ok };
    CallOutcome {
        end,
        result: Some(result),
        result_bytes: bytes.len() as u64,
        error,
        recorded: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_its_end() {
        let failed = |error| outcome("s", Err(CallFailure::Call(error)));
        assert_eq!(failed(CallError::Disconnected).end, CallEnd::Disconnected);
        assert_eq!(failed(CallError::Timeout(LIST)).end, CallEnd::Timeout);
        assert_eq!(failed(CallError::Overloaded { waiting: 1 }).end, CallEnd::Overloaded);
        let away = outcome("s", Err(CallFailure::NotConnected { status: Status::Stopped }));
        assert_eq!((away.end, away.recorded), (CallEnd::NotConnected, false));
    }

    #[test]
    fn a_result_that_says_is_error_is_one() {
        let failed = answered(&Bytes::from_static(
            br#"{"content":[{"type":"text","text":"no"}],"isError":true}"#,
        ));
        assert_eq!(
            (failed.end, failed.error.unwrap().message.as_str()),
            (CallEnd::ToolError, "no")
        );
        let odd = answered(&Bytes::from_static(br#"{"n":1e999}"#));
        assert_eq!(odd.end, CallEnd::Ok);
        assert!(odd.result.unwrap()["content"][0]["text"].as_str().unwrap().contains("1e999"));
    }
}
