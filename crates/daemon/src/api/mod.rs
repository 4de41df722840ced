//! The HTTP API: what every route shares is here and in the modules below.

mod calls;
mod chat;
mod chat_conversations;
mod chat_providers;
mod document;
mod environments;
pub(crate) mod error;
pub(crate) mod extract;
mod flights;
mod servers;
mod streams;
mod tools;
mod volumes;

use std::future::{Ready, ready};
use std::sync::Arc;

use axum::http::{Method, Uri};
use axum::routing::get;
use axum::{Json, Router};
use utoipa::OpenApi as _;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::console;
pub(crate) use calls::{called_in, run};
use document::complete_document;
use error::ApiError;

/// What stands above the routes in the OpenAPI document.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(title = "Cofer", description = "Runs, guards, joins and shows MCP servers."),
    servers((url = "/api/v1")),
    modifiers(&BearerToken),
    security(("token" = [])),
    components(schemas(cofer_model::StatusChange, cofer_model::ServerNotice, cofer_model::Preparing, cofer_model::ToolCallStarted, cofer_model::ToolCallFinished, crate::chat::ExportFormat))
)]
struct Document;

/// Every route wants the token.
struct BearerToken;

impl utoipa::Modify for BearerToken {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        document.components.get_or_insert_default().add_security_scheme("token", scheme);
    }
}

/// Every route of the daemon but the gateway's doors.
pub(crate) fn routes(app: App) -> Router {
    let (api, document) = documented().split_for_parts();
    // Shared, as a router is cloned with everything in it.
    let document = Arc::new(complete_document(&document));
    let api = api.route("/openapi.json", get(move || ready(Json(Arc::clone(&document)))));
    let routes = Router::new()
        .route("/healthz", get(tools::healthz))
        .route("/metrics", get(tools::metrics))
        .nest("/api/v1", api)
        .merge(console::routes())
        .with_state(app);
    complete(routes)
}

/// The API as an OpenAPI 3.1 document, for the committed copy and the console's types.
pub fn openapi() -> serde_json::Value {
    complete_document(&documented().split_for_parts().1)
}

fn documented() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(servers::register, servers::list))
        .routes(routes!(servers::show, servers::change, servers::remove))
        .routes(routes!(servers::enable))
        .routes(routes!(servers::disable))
        .routes(routes!(servers::restart))
        .routes(routes!(calls::call))
        .routes(routes!(calls::tools))
        .routes(routes!(calls::resources))
        .routes(routes!(calls::prompts))
        .routes(routes!(volumes::list))
        .routes(routes!(volumes::remove))
        .routes(routes!(environments::list))
        .routes(routes!(environments::log))
        .routes(routes!(environments::diff))
        .routes(routes!(environments::destroy))
        .routes(routes!(environments::decide_secret))
        .routes(routes!(environments::host))
        .routes(routes!(streams::logs))
        .routes(routes!(streams::events))
        .routes(routes!(tools::check))
        .routes(routes!(tools::import))
        .routes(routes!(flights::activity))
        .routes(routes!(flights::show))
        .routes(routes!(flights::replay))
        .routes(routes!(chat::turn))
        .routes(routes!(chat::tools))
        .routes(routes!(chat::events))
        .routes(routes!(chat::stop))
        .routes(routes!(chat::answer))
        .routes(routes!(chat_conversations::list))
        .routes(routes!(
            chat_conversations::show,
            chat_conversations::rename,
            chat_conversations::remove
        ))
        .routes(routes!(chat_conversations::card))
        .routes(routes!(chat_conversations::export))
        .routes(routes!(chat_providers::list))
        .routes(routes!(chat_providers::keep, chat_providers::remove))
        .routes(routes!(chat_providers::test))
        .routes(routes!(chat_providers::models))
}

/// Answers unknown routes and wrong methods too. To be called once, when all routes are there.
pub(crate) fn complete(routes: Router) -> Router {
    routes.fallback(unknown_route).method_not_allowed_fallback(wrong_method)
}

fn unknown_route(method: Method, uri: Uri) -> Ready<ApiError> {
    let message = format!("there is no route {method} {}", uri.path());
    ready(ApiError::not_found(message).hint("GET /api/v1/openapi.json lists the routes"))
}

fn wrong_method(method: Method, uri: Uri) -> Ready<ApiError> {
    ready(ApiError::method_not_allowed(&method, uri.path()))
}

#[cfg(test)]
mod tests;
