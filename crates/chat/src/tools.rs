//! The seam to the tools: what can be offered to a model, and how a call is made.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Unavailable;
use crate::message::{CallEnd, Problem};

/// A set of tools that may change between two steps.
#[async_trait]
pub trait Tools: Send + Sync {
    /// What there is now. Servers that are not there are left out or named, never waited for
    /// beyond a limit.
    async fn offer(&self) -> Offer;

    /// Makes a call; dropping the future cancels it.
    async fn call(&self, request: ToolRequest) -> CallOutcome;
}

/// What there is now.
#[derive(Debug, Clone, Default)]
pub struct Offer {
    /// The tools, under names that are all different.
    pub tools: Vec<OfferedTool>,
    /// Servers that were asked for and are not there.
    pub unavailable: Vec<Unavailable>,
}

impl Offer {
    /// What the definitions cost of a model's context, roughly.
    pub fn estimated_tokens(&self) -> u64 {
        self.tools.iter().map(OfferedTool::estimated_tokens).sum()
    }

    /// The servers that have a tool here, in order.
    pub fn servers(&self) -> Vec<String> {
        let mut servers: Vec<String> = self.tools.iter().map(|tool| tool.server.clone()).collect();
        servers.sort_unstable();
        servers.dedup();
        servers
    }
}

/// What a tool is behind its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// A tool of the server's.
    Tool,
    /// A way to the server's resources.
    Resource,
}

/// One tool, as a model is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// The server.
    pub server: String,
    /// The server's name for it.
    pub tool: String,
    /// The name for the model.
    pub name: String,
    /// Its title.
    pub title: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// What it takes.
    pub schema: Value,
    /// What it is.
    pub kind: ToolKind,
}

impl OfferedTool {
    /// What the definition costs of a model's context: four bytes are about a token, and each
    /// tool has a small frame of its own.
    pub fn estimated_tokens(&self) -> u64 {
        const FRAME: usize = 32;
        let schema = self.schema.to_string().len();
        let bytes = self.name.len() + self.description.as_ref().map_or(0, String::len) + schema;
        (bytes + FRAME).div_ceil(4) as u64
    }
}

/// A call to be made.
#[derive(Debug, Clone)]
pub struct ToolRequest {
    /// The id under which it is recorded.
    pub call_id: Uuid,
    /// The server.
    pub server: String,
    /// The server's name for the tool.
    pub tool: String,
    /// What it is.
    pub kind: ToolKind,
    /// A JSON object.
    pub arguments: Value,
}

/// What came of a call.
#[derive(Debug, Clone)]
pub struct CallOutcome {
    /// How it ended.
    pub end: CallEnd,
    /// What came back, whole.
    pub result: Option<Value>,
    /// How many bytes that had on the wire.
    pub result_bytes: u64,
    /// Why it failed.
    pub error: Option<Problem>,
    /// Whether it reached a server.
    pub recorded: bool,
}

impl CallOutcome {
    /// A call that was never made.
    pub fn not_made(end: CallEnd, message: impl Into<String>) -> Self {
        let error = Some(Problem { message: message.into(), stack: None, code: None });
        Self { end, result: None, result_bytes: 0, error, recorded: false }
    }
}
