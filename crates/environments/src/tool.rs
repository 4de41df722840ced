//! The MCP side: three tools, their results as text and as structured content.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, Implementation, InputRequiredResult, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use crate::answer;
use crate::arguments;
use crate::elicitation::{self, Decision};
use crate::environments::Environments;
use crate::failure::Failure;
use crate::progress;
use crate::run::Output;
use crate::schema::{CREATE, DESTROY, INSTRUCTIONS, RUN, tools};

/// The server of the tools.
#[derive(Debug, Clone)]
pub(crate) struct Server(Arc<Environments>);

/// What a tool gives: text for whoever reads, facts for whoever computes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    pub(crate) text: String,
    pub(crate) facts: Value,
}

/// What came of a call.
enum Outcome {
    Told(Told),
    Asked(InputRequiredResult),
}

impl Server {
    pub(crate) fn new(environments: Arc<Environments>) -> Self {
        Self(environments)
    }

    async fn answer(
        &self,
        tool: &'static str,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<Told, Failure> {
        let output = Output::default();
        let work = self.work(tool, arguments, context, &output);
        let told = async {
            if let Some(token) = context.meta.get_progress_token() {
                progress::report(&output, &context.peer, token).await;
            }
            std::future::pending().await
        };
        tokio::select! {
            answered = work => answered,
            never = told => never,
        }
    }

    async fn work(
        &self,
        tool: &'static str,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
        output: &Output,
    ) -> Result<Told, Failure> {
        match tool {
            CREATE => {
                let wish = arguments::wish(arguments)?;
                tracing::info!(tool, mode = "foreground", source = %wish.source.display(), title = wish.title, "a tool is called");
                Ok(answer::created(&Box::pin(self.0.create(wish, &context.ct)).await?))
            }
            RUN => {
                let order = arguments::order(arguments)?;
                let mode = if order.background { "background" } else { "foreground" };
                tracing::info!(tool, mode, source = %order.source.display(), environment = order.id, "a tool is called");
                Box::pin(self.0.run(&order, output, &context.ct)).await
            }
            _ => {
                let farewell = arguments::farewell(arguments)?;
                tracing::info!(tool, mode = "foreground", source = %farewell.source.display(), environment = farewell.id, "a tool is called");
                let repository = self.0.repository(&farewell.source).await?;
                // Not given up half-way, whatever the client thinks of it meanwhile.
                let destroyed = self.0.destroy(&repository, &farewell.id, farewell.force).await?;
                Ok(answer::destroyed(&destroyed))
            }
        }
    }
}

impl Server {
    /// Asks the user to approve the secrets that a call needs and that are not approved yet, if the
    /// client can. Unless it has to be asked by a result, the call goes on, and is refused where an
    /// approval is missing.
    async fn ask_for_secrets(
        &self,
        tool: &'static str,
        call: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<InputRequiredResult>, Failure> {
        let arguments = call.arguments.clone().unwrap_or_default();
        let (source, id) = match tool {
            CREATE => (arguments::wish(&arguments)?.source, None),
            RUN => {
                let order = arguments::order(&arguments)?;
                (order.source, Some(order.id))
            }
            _ => return Ok(None),
        };
        if !elicitation::is_supported(context) {
            return Ok(None);
        }
        let (repository, pending) = self.0.pending_secrets(&source, id.as_deref()).await?;
        if pending.is_empty() {
            return Ok(None);
        }
        match elicitation::ask(context, call, &repository, &pending).await {
            Decision::Ask(result) => return Ok(Some(*result)),
            Decision::Allowed => self.0.approve(&repository, &pending)?,
            Decision::Declined => {}
        }
        Ok(None)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let implementation = Implementation::new("cofer-environments", env!("CARGO_PKG_VERSION"))
            .with_title("Environments by Cofer");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(implementation)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = [CREATE, RUN, DESTROY].into_iter().find(|tool| *tool == request.name)
        else {
            let message = format!(
                "there is no tool {:?}; there are {CREATE}, {RUN} and {DESTROY}",
                request.name
            );
            return Err(ErrorData::invalid_params(message, None));
        };
        let started = tokio::time::Instant::now();
        let answering = async {
            if let Some(asked) = Box::pin(self.ask_for_secrets(tool, &request, &context)).await? {
                return Ok(Outcome::Asked(asked));
            }
            let arguments = request.arguments.clone().unwrap_or_default();
            self.answer(tool, &arguments, &context).await.map(Outcome::Told)
        };
        let answered = AssertUnwindSafe(answering).catch_unwind().await;
        let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let result = match answered {
            Ok(Ok(Outcome::Asked(asked))) => {
                tracing::info!(tool, took_ms, "the user is asked to approve secrets");
                return Ok(asked.into());
            }
            Ok(Ok(Outcome::Told(told))) => {
                tracing::info!(tool, took_ms, "a tool has answered");
                success(told)
            }
            Ok(Err(failure)) => {
                tracing::warn!(tool, took_ms, kind = ?failure.kind, step = failure.step, message = failure.message, trace_id = %failure.trace_id, "a tool has failed");
                failed(&failure)
            }
            // The panic hook has said more, on stderr.
            Err(_) => {
                return Err(ErrorData::internal_error(
                    "a bug in cofer; its stderr says more",
                    None,
                ));
            }
        };
        Ok(result.into())
    }

    /// A call whose arguments are no object comes as something unknown.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let name = request.params.as_ref().and_then(|params| params["name"].as_str());
        if request.method == "tools/call"
            && name.is_some_and(|name| [CREATE, RUN, DESTROY].contains(&name))
        {
            return Ok(CustomResult::new(json!(failed(&Failure::invalid(
                "arguments must be an object"
            )))));
        }
        Err(ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }
}

fn success(told: Told) -> CallToolResult {
    let mut result = CallToolResult::structured(told.facts);
    result.content = vec![ContentBlock::text(told.text)];
    result
}

fn failed(failure: &Failure) -> CallToolResult {
    let mut result = CallToolResult::structured_error(failure.structured());
    let mut text = failure.text();
    if let Some(beside) = &failure.beside {
        text.push_str(&answer::streams(beside));
    }
    result.content = vec![ContentBlock::text(text)];
    result
}
