//! The hosted servers as the tools of a chat: what they offer now, and how a call reaches them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cofer_chat::{
    CallEnd, CallOutcome, Offer, OfferedTool, Problem, ToolKind, ToolRequest, Tools, Unavailable,
    problem_of_result, problem_of_rpc, safe_name,
};
use cofer_mcp::CallError;
use cofer_model::{CallSource, ServerId, Status};
use cofer_supervisor::{Asking, CallFailure, Notice, ServerHandle, Supervisor};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{Mutex, broadcast};
use utoipa::ToSchema;

/// How long a server may take to say what it has.
const LIST: Duration = Duration::from_secs(10);
/// So many resources are named in the description of the tool that reads them.
const NAMED_RESOURCES: usize = 50;
/// The ways to a server's resources, named as MCP names them.
const READ: &str = "resources/read";
const ALL: &str = "resources/list";

/// The tools of one turn.
pub(crate) struct Toolbox {
    supervisor: Supervisor,
    /// None for all.
    servers: Option<Vec<String>>,
    off: HashSet<String>,
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

/// One tool as a server lists it; what else it says is of no use to a model.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedTool {
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Option<Value>,
}

#[derive(Deserialize)]
struct ListedResource {
    uri: String,
    name: Option<String>,
}

impl Toolbox {
    /// The tools of `servers`, or of all; without those in `off`, written `server/tool`.
    pub(crate) fn new(
        supervisor: Supervisor,
        servers: Option<Vec<String>>,
        off: Vec<String>,
    ) -> Self {
        let off = off.into_iter().collect();
        Self { supervisor, servers, off, lists: Mutex::default() }
    }

    fn wanted(&self) -> Vec<ServerHandle> {
        let mut handles = self.supervisor.list();
        handles.retain(|handle| {
            let name = handle.spec().name.to_string();
            self.servers.as_ref().is_none_or(|servers| servers.contains(&name))
        });
        handles.sort_by_cached_key(|handle| handle.spec().name.to_string());
        handles
    }

    /// What one server has, with a word where that cannot be told.
    async fn listed(&self, handle: &ServerHandle) -> Result<Vec<OfferedTool>, String> {
        let status = handle.snapshot().status;
        if status != Status::Ready {
            return Err(format!("it is {status}"));
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

    fn is_off(&self, tool: &OfferedTool) -> bool {
        self.off.contains(&format!("{}/{}", tool.server, tool.tool))
    }

    /// Everything there is, for a person who chooses.
    pub(crate) async fn view(&self) -> ToolsView {
        let all = self.supervisor.list();
        let mut handles = all.clone();
        handles.sort_by_cached_key(|handle| handle.spec().name.to_string());
        let wanted: HashSet<ServerId> = self.wanted().iter().map(ServerHandle::id).collect();
        let lists = join_all(handles.iter().map(|handle| self.listed(handle))).await;
        let mut view = ToolsView { tools: Vec::new(), servers: Vec::new(), estimated_tokens: 0 };
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
        outcome(&request.server, handle.call_by(asking).await)
    }
}

async fn list(handle: &ServerHandle) -> Result<Vec<OfferedTool>, String> {
    let spec = handle.spec();
    let server = spec.name.as_str();
    let capability =
        |key: &str| handle.peer().is_some_and(|peer| peer.capabilities.get(key).is_some());
    let mut tools = match handle.list("tools/list", "tools").await {
        Ok(listing) => {
            listing.items.iter().filter_map(|item| offered(server, item.get())).collect()
        }
        Err(_) if !capability("tools") => Vec::new(),
        Err(failure) => return Err(format!("its tools cannot be listed: {failure}")),
    };
    if spec.include_resources && capability("resources") {
        tools.extend(resource_tools(handle, server).await);
    }
    Ok(tools)
}

fn offered(server: &str, item: &str) -> Option<OfferedTool> {
    let listed: ListedTool = serde_json::from_str(item).ok()?;
    let schema = listed.input_schema.filter(Value::is_object);
    Some(OfferedTool {
        server: server.to_owned(),
        name: safe_name(server, &listed.name),
        tool: listed.name,
        title: listed.title,
        description: listed.description,
        schema: schema.unwrap_or_else(|| json!({"type": "object", "properties": {}})),
        kind: ToolKind::Tool,
    })
}

/// A server's resources as two tools: one reads, one lists.
async fn resource_tools(handle: &ServerHandle, server: &str) -> [OfferedTool; 2] {
    let listing = handle.list(ALL, "resources").await.map(|listing| listing.items);
    let named: Vec<String> = listing
        .iter()
        .flatten()
        .filter_map(|item| serde_json::from_str::<ListedResource>(item.get()).ok())
        .take(NAMED_RESOURCES)
        .map(|resource| match resource.name {
            Some(name) => format!("{} ({name})", resource.uri),
            None => resource.uri,
        })
        .collect();
    let total = listing.as_ref().map_or(0, Vec::len);
    let some = match (total, named.len()) {
        (0, _) => String::new(),
        (total, shown) if total > shown => {
            format!(" {shown} of its {total} resources: {}", named.join(", "))
        }
        _ => format!(" Its resources: {}", named.join(", ")),
    };
    let tool = |tool: &str, description: String, schema: Value| OfferedTool {
        server: server.to_owned(),
        name: safe_name(server, tool),
        tool: tool.to_owned(),
        title: None,
        description: Some(description),
        schema,
        kind: ToolKind::Resource,
    };
    let uri = json!({"type": "object", "properties": {"uri": {"type": "string", "description": "the resource's URI"}}, "required": ["uri"]});
    [
        tool(READ, format!("Reads a resource of the server {server} by its URI.{some}"), uri),
        tool(
            ALL,
            format!("Lists the resources of the server {server}."),
            json!({"type": "object", "properties": {}}),
        ),
    ]
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
            CallError::Overloaded { .. } => (CallEnd::Overloaded, problem(error.to_string())),
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

/// The tools that a chat would offer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolsView {
    /// By server, in the server's order.
    tools: Vec<ToolView>,
    /// All servers by name, also those that are not there now.
    servers: Vec<ToolServerView>,
    /// What the definitions of those that are on cost of a model's context, roughly.
    estimated_tokens: u64,
}

/// One tool.
#[derive(Debug, Serialize, ToSchema)]
struct ToolView {
    /// The server.
    server: String,
    /// The server's name for it.
    tool: String,
    /// The model's name for it.
    name: String,
    /// Its title.
    title: Option<String>,
    /// What it does.
    description: Option<String>,
    /// What it is.
    kind: ToolKind,
    /// Whether it is left out.
    off: bool,
    /// What its definition costs of a model's context, roughly.
    estimated_tokens: u64,
}

/// One server.
#[derive(Debug, Serialize, ToSchema)]
struct ToolServerView {
    /// Its name.
    server: String,
    /// Its state.
    status: Status,
    /// How many of its tools are on.
    tools: usize,
    /// What their definitions cost of a model's context, roughly.
    estimated_tokens: u64,
    /// Whether its resources are offered too.
    include_resources: bool,
    /// Why its tools could not be listed, though it is connected.
    error: Option<String>,
}

impl ToolsView {
    fn add(
        &mut self,
        handle: &ServerHandle,
        listed: Result<Vec<OfferedTool>, String>,
        is_off: impl Fn(&OfferedTool) -> bool,
    ) {
        let (spec, status) = (handle.spec(), handle.snapshot().status);
        let error = listed.as_ref().err().filter(|_| status == Status::Ready).cloned();
        let mut server = ToolServerView {
            server: spec.name.to_string(),
            status,
            tools: 0,
            estimated_tokens: 0,
            include_resources: spec.include_resources,
            error,
        };
        for tool in listed.unwrap_or_default() {
            let (off, estimated_tokens) = (is_off(&tool), tool.estimated_tokens());
            if !off {
                server.tools += 1;
                server.estimated_tokens += estimated_tokens;
            }
            let OfferedTool { server, tool, name, title, description, kind, .. } = tool;
            self.tools.push(ToolView {
                server,
                tool,
                name,
                title,
                description,
                kind,
                off,
                estimated_tokens,
            });
        }
        self.estimated_tokens += server.estimated_tokens;
        self.servers.push(server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_without_a_schema_takes_an_object() {
        let tool = offered("s", r#"{"name":"a.b","title":"T"}"#).unwrap();
        assert_eq!(tool.schema["type"], "object");
        assert_eq!((tool.tool.as_str(), tool.title.as_deref()), ("a.b", Some("T")));
        assert!(tool.name.starts_with("s__a_b_"));
        assert!(offered("s", "{}").is_none(), "a tool without a name is none");
    }

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
