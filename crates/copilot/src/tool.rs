//! The MCP side: one tool, its schemas, and its results.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult,
    Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
    ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use crate::capture;
use crate::chat::{Chat, ChatError};
use crate::config::Config;
use crate::failure::Failure;
use crate::launcher::Output;
use crate::limit::Limit;
use crate::models::Models;
use crate::progress;

/// The tool's name, and its name for clients that refuse a dot. A call may use either.
const NAMES: [&str; 2] = ["copilot.chat", "copilot_chat"];

const DESCRIPTION: &str = "Ask GitHub Copilot one question: runs the user's own GitHub Copilot CLI once, without tools and in an empty directory, and gives back its raw stdout, stderr and exit code. Every question stands for itself; it takes at most 30 seconds.";

/// The server of the tool.
#[derive(Debug, Clone)]
pub(crate) struct CopilotServer(Arc<Chat>);

impl CopilotServer {
    pub(crate) fn new(config: Config) -> Self {
        Self(Arc::new(Chat::new(config)))
    }

    pub(crate) fn chat(&self) -> Arc<Chat> {
        Arc::clone(&self.0)
    }

    fn tool(&self) -> Tool {
        let config = self.0.config();
        // A file that is wrong is told to whoever calls the tool.
        let models = Models::load(config.models.as_deref()).ok();
        let name = NAMES[usize::from(config.safe_names)];
        let annotations = ToolAnnotations::new().read_only(true).open_world(true);
        Tool::new(name, DESCRIPTION, input_schema(models.as_ref()))
            .with_title("GitHub Copilot")
            .with_raw_output_schema(output_schema().into())
            .with_annotations(annotations)
    }

    async fn answer(
        &self,
        arguments: &JsonObject,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let output = Output::new(capture::MOST);
        let limit = Limit::new(self.0.config().limit, context.ct.clone());
        let work = AssertUnwindSafe(self.0.answer(arguments, &output, &limit)).catch_unwind();
        let told = async {
            if let Some(token) = context.meta.get_progress_token() {
                progress::report(&output, &context.peer, token).await;
            }
            std::future::pending().await
        };
        let answered = tokio::select! {
            answered = work => answered,
            never = told => never,
        };
        match answered {
            Ok(Ok(answer)) => Ok(CallToolResult::structured(answer.json())),
            Ok(Err(ChatError::Failed(failure))) => Ok(failed(&failure)),
            // The client hears nothing of a request that it cancelled.
            Ok(Err(ChatError::Cancelled)) => {
                Err(ErrorData::internal_error("the request was cancelled", None))
            }
            // The panic hook has said more, on stderr.
            Err(_) => Err(ErrorData::internal_error("a bug in cofer; its stderr says more", None)),
        }
    }
}

impl ServerHandler for CopilotServer {
    fn get_info(&self) -> ServerConfig {
        let implementation = Implementation::new("cofer-copilot", env!("CARGO_PKG_VERSION"))
            .with_title("GitHub Copilot by Cofer");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(implementation)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![self.tool()]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !NAMES.contains(&request.name.as_ref()) {
            let message = format!("there is no tool {:?}; there is {:?}", request.name, NAMES[0]);
            return Err(ErrorData::invalid_params(message, None));
        }
        let arguments = request.arguments.unwrap_or_default();
        Ok(self.answer(&arguments, context).await?.into())
    }

    /// A call whose arguments are no object comes as something unknown.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let name = request.params.as_ref().and_then(|params| params["name"].as_str());
        if request.method == "tools/call" && name.is_some_and(|name| NAMES.contains(&name)) {
            let wrong = cofer_model::FieldError::new("arguments", "must be an object");
            let result = json!(failed(&Failure::invalid_request(&[wrong])));
            return Ok(CustomResult::new(result));
        }
        let code = rmcp::model::ErrorCode::METHOD_NOT_FOUND;
        Err(ErrorData::new(code, request.method, None))
    }
}

fn failed(failure: &Failure) -> CallToolResult {
    tracing::info!(kind = ?failure.kind, message = failure.message, "a request failed");
    CallToolResult::structured_error(failure.structured())
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

fn input_schema(models: Option<&Models>) -> JsonObject {
    let mut model = json!({"type": "string", "description": "One of the allowed models."});
    if let Some(models) = models {
        model["enum"] = json!(models.names());
        if let Some(default) = models.default() {
            model["default"] = json!(default);
        }
    }
    object(json!({
        "type": "object",
        "properties": {
            "input": {"type": "string", "minLength": 1, "description": "The question, as it is to reach Copilot."},
            "options": {
                "type": "object",
                "properties": {"model": model},
                "additionalProperties": false,
            },
        },
        "required": ["input"],
        "additionalProperties": false,
    }))
}

/// Answers and failures: some clients hold both against the schema.
fn output_schema() -> JsonObject {
    let kinds = [
        "not_installed",
        "not_logged_in",
        "timeout",
        "tty_unavailable",
        "invalid_request",
        "invalid_config",
        "spawn_failed",
    ];
    object(json!({
        "type": "object",
        "properties": {
            "stdout": {"type": "string", "description": "As the CLI wrote it; on a terminal, all that came over it."},
            "stderr": {"type": "string"},
            "exit_code": {"type": ["integer", "null"], "description": "Null where the CLI was ended."},
            "mode": {"type": "string", "enum": ["pipe", "tty"]},
            "signal": {"type": "integer"},
            "stdout_base64": {"type": "string", "description": "Where stdout is not UTF-8."},
            "stderr_base64": {"type": "string"},
            "truncated": {"type": "object", "description": "How many bytes were dropped of a stream."},
            "error": {
                "type": "object",
                "properties": {
                    "kind": {"type": "string", "enum": kinds},
                    "message": {"type": "string"},
                    "hint": {"type": "string", "description": "What to do next."},
                    "details": {},
                },
                "required": ["kind", "message", "hint"],
            },
        },
        "anyOf": [
            {"required": ["stdout", "stderr", "exit_code", "mode"]},
            {"required": ["error"]},
        ],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Kind;

    #[test]
    fn a_failure_is_told_with_its_kind_and_what_to_do() {
        let failure = Failure::new(Kind::TtyUnavailable, "no terminal", "get one");
        let result = json!(failed(&failure));
        assert_eq!(result["isError"], true);
        let expected = json!({"error": {"kind": "tty_unavailable", "message": "no terminal", "hint": "get one"}});
        assert_eq!(result["structuredContent"], expected);
    }

    #[test]
    fn every_kind_is_in_the_schema() {
        let schema = Value::Object(output_schema());
        let kinds = schema["properties"]["error"]["properties"]["kind"]["enum"].clone();
        for kind in [
            Kind::NotInstalled,
            Kind::NotLoggedIn,
            Kind::Timeout,
            Kind::TtyUnavailable,
            Kind::InvalidRequest,
            Kind::InvalidConfig,
            Kind::SpawnFailed,
        ] {
            assert!(kinds.as_array().unwrap().contains(&json!(kind)), "{kind:?}");
        }
    }
}
