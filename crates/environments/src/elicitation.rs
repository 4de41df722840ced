//! Asks the user, through the MCP client, to approve secrets: one form with one box to tick. Clients up
//! to revision 2025-11-25 get a request during the call; later ones get a result that asks for input,
//! and call again with the answer.

use std::time::Duration;

use rmcp::model::{
    BooleanSchema, CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationSchema, InputRequest, InputRequests, InputRequiredResult,
    PrimitiveSchemaDefinition, ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use crate::approvals::Request;
use crate::repository::Repository;

/// The user has left the screen after this time.
const PATIENCE: Duration = Duration::from_secs(300);

/// The form's only field, and the key of the input that a result asks for.
const FIELD: &str = "allow";

/// The user's answer.
#[derive(Debug)]
pub(crate) enum Decision {
    Allowed,
    Declined,
    /// The client has to be told first; it calls again.
    Ask(Box<InputRequiredResult>),
}

/// Whether the client shows forms to its user.
pub(crate) fn is_supported(context: &RequestContext<RoleServer>) -> bool {
    let elicitation = context.client_capabilities().and_then(|known| known.elicitation);
    // Before there were modes, the capability meant forms.
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Whether the user approves all of `pending`.
pub(crate) async fn ask(
    context: &RequestContext<RoleServer>,
    call: &CallToolRequestParams,
    repository: &Repository,
    pending: &[Request],
) -> Decision {
    let form = form(repository, pending);
    if context.protocol_version() < Some(ProtocolVersion::V_2026_07_28) {
        return ask_during_the_call(context, form).await;
    }
    // The answer counts for what was shown. The state comes back from the client: changed, it is not
    // what is pending now.
    let shown = fingerprint(pending);
    let answer = call.input_responses.as_ref().and_then(|responses| responses.get(FIELD));
    match answer {
        Some(answer) if call.request_state.as_deref() == Some(&shown) => {
            let answer = serde_json::from_value(answer.clone()).ok();
            decision(answer.as_ref())
        }
        _ => {
            let request = InputRequest::Elicitation(ElicitRequest::new(form));
            let requests = InputRequests::from([(FIELD.to_owned(), request)]);
            Decision::Ask(Box::new(InputRequiredResult::new(Some(requests), Some(shown))))
        }
    }
}

async fn ask_during_the_call(
    context: &RequestContext<RoleServer>,
    form: ElicitRequestParams,
) -> Decision {
    let asking = context.peer.create_elicitation_with_timeout(form, Some(PATIENCE));
    let answer = tokio::select! {
        answer = asking => answer,
        () = context.ct.cancelled() => return Decision::Declined,
    };
    if let Err(error) = &answer {
        tracing::warn!(%error, "the client did not answer a request for approval");
    }
    decision(answer.as_ref().ok())
}

fn decision(answer: Option<&ElicitResult>) -> Decision {
    let is_ticked = |answer: &ElicitResult| {
        answer.content.as_ref().is_some_and(|content| content[FIELD] == Value::Bool(true))
    };
    match answer {
        Some(answer) if answer.action == ElicitationAction::Accept && is_ticked(answer) => {
            Decision::Allowed
        }
        _ => Decision::Declined,
    }
}

/// The references and files that are shown.
fn fingerprint(pending: &[Request]) -> String {
    let shown = pending.iter().map(|one| json!([one.name, one.reference, one.file]));
    Value::Array(shown.collect()).to_string()
}

fn form(repository: &Repository, pending: &[Request]) -> ElicitRequestParams {
    let field = BooleanSchema::new()
        .title("Allow")
        .description("Let commands in environments of this repository read them");
    let schema = ElicitationSchema::builder()
        .required_property(FIELD, PrimitiveSchemaDefinition::Boolean(field))
        .build_unchecked();
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message(repository, pending),
        requested_schema: schema,
    }
}

fn message(repository: &Repository, pending: &[Request]) -> String {
    let top = repository.top.display();
    let list: Vec<String> =
        pending.iter().map(|one| format!("- {}: {}", one.name, one.source())).collect();
    format!(
        "The repository {top} asks for secrets of this machine, which every command that an agent runs in its environments can read:\n{}\n\nThe answer is kept for this repository; `cofer env allow` lists and revokes it.",
        list.join("\n")
    )
}
