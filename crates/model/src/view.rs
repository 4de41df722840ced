//! What the HTTP API shows: the server object, its log, and the recent calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    Failure, Health, HeartbeatSpec, Kind, Limits, MaxInFlight, Network, Openings, PortMapping,
    ProcessStatus, Provider, RemoteAuth, Requirement, RestartPolicy, ServerId, Sharing, Status,
    Usage,
};

/// All servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerList {
    /// Sorted by name.
    pub servers: Vec<ServerView>,
}

/// The server object: what was asked for and what is true now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerView {
    /// The UUID made at registration.
    pub id: ServerId,
    /// What people call it.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Stands in place of its name in joined names, if one was given.
    #[serde(default)]
    pub prefix: Option<String>,
    /// `process`, `container` or `remote`.
    pub kind: Kind,
    /// The program.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its working directory, where one was given.
    pub cwd: Option<String>,
    /// The container image.
    pub image: Option<String>,
    /// The endpoint of a remote server.
    pub url: Option<String>,
    /// What goes with every request to it; values are masked unless `?reveal=true`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// How requests to it are signed beside that.
    #[serde(default)]
    pub auth: Option<RemoteAuth>,
    /// Whom such a signature is for, where that was given.
    #[serde(default)]
    pub audience: Option<String>,
    /// Whether it is bridged over stdio.
    pub stdio_bridge: bool,
    /// Published ports.
    pub ports: Vec<PortMapping>,
    /// Where on its port it speaks MCP, where that was given.
    pub http_path: Option<String>,
    /// Variables; values are masked unless `?reveal=true`.
    pub environment: BTreeMap<String, String>,
    /// Kept paths.
    pub volumes: Vec<String>,
    /// What it may use at most.
    pub resource_limits: Limits,
    /// What happens when it ends by itself.
    pub restart_policy: RestartPolicy,
    /// Who isolates it.
    pub provider: Option<Provider>,
    /// Whether it should run.
    pub enabled: bool,
    /// Whether its resources are offered as tools.
    pub include_resources: bool,
    /// The tools that agents may see and call; all where it is empty.
    #[serde(default)]
    pub tools_allow: Vec<String>,
    /// The tools that they may not.
    #[serde(default)]
    pub tools_deny: Vec<String>,
    /// How long the server may be silent about a call. None: 30 s for `POST …/call`, 60 s for the
    /// gateway, the chat and the console.
    #[serde(default)]
    pub call_timeout_ms: Option<u64>,
    /// How long it may take to become ready.
    pub start_timeout_ms: u64,
    /// How many requests it is given at once. None: the daemon's default.
    #[serde(default)]
    pub max_in_flight: Option<MaxInFlight>,
    /// How many requests it is given at once now.
    #[serde(default)]
    pub max_in_flight_effective: u32,
    /// The calls that wait for it, while it runs.
    #[serde(default)]
    pub queue: Option<QueueView>,
    /// How its liveness is watched.
    pub heartbeat: HeartbeatSpec,
    /// Whether clients share one process.
    pub sharing: Sharing,
    /// What a container may reach.
    pub network: Network,
    /// Isolation without which it must not start.
    pub require: Option<Requirement>,
    /// Who it is inside its container, where that was given.
    pub user: Option<String>,
    /// What of a container's isolation is given up.
    #[serde(default)]
    pub openings: Openings,

    /// Its state.
    pub status: Status,
    /// Whether something of it runs.
    pub process_status: ProcessStatus,
    /// Why it is in `error`.
    pub error: Option<Failure>,
    /// The server's own process, while it runs.
    pub pid: Option<u32>,
    /// Its container, while it runs in one.
    pub container_id: Option<String>,
    /// The digest of the image it runs, or last ran.
    pub image_digest: Option<String>,
    /// What is being fetched for it before it can start.
    pub preparing: Option<String>,
    /// Where its published ports are reached.
    pub endpoints: Vec<String>,
    /// Where it speaks MCP over Streamable HTTP, where it does.
    pub mcp_endpoint: Option<String>,
    /// When the present process started.
    #[serde(with = "time::serde::rfc3339::option")]
    pub started_at: Option<OffsetDateTime>,
    /// How long the present process has run.
    pub uptime_seconds: Option<f64>,
    /// How often it was started again after a crash, since it was last switched on or restarted by hand.
    pub restart_count: u32,
    /// When it last ended unexpectedly.
    #[serde(with = "time::serde::rfc3339::option")]
    pub last_crash_at: Option<OffsetDateTime>,
    /// When it is started next, while it waits for that.
    #[serde(with = "time::serde::rfc3339::option")]
    pub next_restart_at: Option<OffsetDateTime>,
    /// How well it does.
    pub health: Health,
    /// Why `health` is a warning, one sentence each.
    pub health_reasons: Vec<String>,
    /// What its process tree uses, while it runs.
    pub usage: Option<Usage>,
    /// What isolation is in force, read back from the system.
    pub isolation: Option<Value>,
    /// Its MCP capabilities.
    pub capabilities: Option<Value>,
    /// Its MCP name and version.
    pub server_info: Option<Value>,
    /// The MCP revision in use with it.
    pub protocol_version: Option<String>,
    /// What a person should know about this registration.
    pub warnings: Vec<String>,
    /// The id of the daemon that owns it.
    pub owner: Option<Uuid>,
    /// Grows with each acquisition of the server by a daemon.
    pub epoch: u64,
    /// When it was registered.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When its registration was last changed.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
}

/// The calls that wait for a server to be free.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueView {
    /// The calls that wait now.
    pub waiting: u64,
    /// The calls that have waited since the server was started.
    pub waited: u64,
    /// The longest wait since then, of a call that still waits too.
    pub longest_wait_ms: f64,
}

/// What servers in containers keep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VolumeList {
    /// Sorted by server and path.
    pub volumes: Vec<VolumeView>,
}

/// One kept path of a server, which outlives the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VolumeView {
    /// Its name, as the container engine knows it.
    pub name: String,
    /// The server it was made for.
    pub server_id: Option<ServerId>,
    /// That server's name; none once the server is removed.
    pub server: Option<String>,
    /// Where it stands in the container.
    pub path: Option<String>,
    /// What it holds, where that can be read.
    pub bytes: Option<u64>,
}

/// Where a log line comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    /// The server wrote it to stderr.
    Stderr,
    /// The server wrote it to stdout, where only MCP belongs.
    Stdout,
    /// The daemon tells what happened to the server.
    Lifecycle,
}

/// The part of the daemon that wrote a lifecycle line, as in the daemon's own log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum LogTag {
    /// The start of the server.
    Start,
    /// The protocol and the state of the server.
    Mcp,
    /// Tool calls; kept in memory only.
    Tools,
}

impl LogTag {
    /// The tag as a prefix of its line.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Start => "[START]",
            Self::Mcp => "[MCP]",
            Self::Tools => "[TOOLS]",
        }
    }

    /// The tag in front of a line, and the rest of the line.
    pub fn split(line: &str) -> (Option<Self>, &str) {
        let tags = [Self::Start, Self::Mcp, Self::Tools];
        let found = tags
            .into_iter()
            .find_map(|tag| Some((tag, line.strip_prefix(tag.prefix())?.strip_prefix(' ')?)));
        found.map_or((None, line), |(tag, rest)| (Some(tag), rest))
    }
}

/// One line of a server's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogEntry {
    /// Counts the lines of this server's log; for following it without gaps.
    pub seq: u64,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// Where from.
    pub stream: LogStream,
    /// The part of the daemon that wrote it, of lifecycle lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tag: Option<LogTag>,
    /// What, without the line's end.
    pub line: String,
}

/// The end of a server's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogPage {
    /// Oldest first.
    pub lines: Vec<LogEntry>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With a result.
    Ok,
    /// With a result that says `isError`.
    ToolError,
    /// With a JSON-RPC error.
    McpError,
    /// Not in time.
    Timeout,
    /// The caller went away.
    Cancelled,
    /// The queue was full.
    Overloaded,
    /// The server ended before it answered.
    Disconnected,
    /// The request or the answer was over the cap.
    TooLarge,
}

/// Where the time of a call went, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Stages {
    /// Waiting for the server to be free.
    pub queue_ms: f64,
    /// The calls before it, running or waiting, when it began to wait.
    #[serde(default)]
    pub queue_ahead: u64,
    /// Until the request was in the server's pipe.
    pub write_ms: f64,
    /// Until the answer began, without `input_ms`.
    pub server_ms: f64,
    /// While the server waited for input from the user; no part of `duration_ms`.
    #[serde(default)]
    pub input_ms: f64,
    /// Until the answer was whole.
    #[serde(default)]
    pub read_ms: f64,
}

/// By which way a call came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallSource {
    /// A program over the HTTP API.
    #[default]
    Api,
    /// A person in the console.
    Console,
    /// A model in a chat.
    Chat,
    /// An MCP client.
    Gateway,
}

/// One recent call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActivityEntry {
    /// The call.
    pub call_id: Uuid,
    /// The server.
    pub server_id: ServerId,
    /// Its name at that time.
    #[schema(value_type = String)]
    pub server: Arc<str>,
    /// The JSON-RPC method.
    #[schema(value_type = String)]
    pub method: Arc<str>,
    /// The tool, for `tools/call`.
    #[schema(value_type = Option<String>)]
    pub tool: Option<Arc<str>>,
    /// Who called, where it is known.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub client: Option<Arc<str>>,
    /// By which way it came.
    #[serde(default)]
    pub source: CallSource,
    /// Whether its request and its answer are still there to be looked at.
    #[serde(default)]
    pub recorded: bool,
    /// When it began.
    #[serde(with = "time::serde::rfc3339")]
    pub started_at: OffsetDateTime,
    /// How long it took.
    pub duration_ms: f64,
    /// Where the time went.
    pub stages: Stages,
    /// How it ended.
    pub outcome: Outcome,
    /// The failure's message, where it failed.
    pub error: Option<String>,
    /// Bytes of the request's params.
    pub request_bytes: u64,
    /// Bytes of the answer.
    pub response_bytes: u64,
}

/// A text that was sent or received, as far as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordedText {
    /// What is kept of it.
    pub text: String,
    /// How many bytes it had.
    pub bytes: u64,
    /// Whether its end is missing.
    pub truncated: bool,
    /// Whether a secret was taken out of it.
    pub redacted: bool,
}

/// One call down to the wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordedCall {
    /// What the activity says of it.
    #[serde(flatten)]
    pub call: ActivityEntry,
    /// The JSON-RPC request.
    pub request: RecordedText,
    /// The JSON-RPC result or error; none where no answer came.
    pub response: Option<RecordedText>,
    /// What stands in the server's log from the call's beginning to its end.
    pub stderr: Vec<LogEntry>,
    /// Whether the same request can be made again.
    pub replayable: bool,
}

/// Recent calls, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActivityPage {
    /// Newest first.
    pub calls: Vec<ActivityEntry>,
}
