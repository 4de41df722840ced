//! The tools that a chat would offer, as a person who chooses among them sees them.

use cofer_chat::{OfferedTool, ToolKind};
use cofer_model::Status;
use cofer_supervisor::ServerHandle;
use serde::Serialize;
use utoipa::ToSchema;

/// The tools that a chat would offer.
#[derive(Debug, Default, Serialize, ToSchema)]
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
    pub(super) fn add(
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
