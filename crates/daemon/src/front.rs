//! What answers every request: behind the guard, the gateway or one of the routes.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::response::{IntoResponse as _, Response};
use tower::Service as _;

use crate::app::App;
use crate::connections::Connection;
use crate::guard::{Guard, guarded};
use crate::{api, gateway};

/// See the module. A cheap clone.
#[derive(Clone)]
pub(crate) struct Front(Arc<Parts>);

struct Parts {
    guard: Guard,
    app: App,
    routes: Router,
}

impl Front {
    pub(crate) fn new(guard: Guard, app: App) -> Self {
        // Made ready once: a plain router is copied whole for each request.
        let routes = api::routes(app.clone()).with_state(());
        Self(Arc::new(Parts { guard, app, routes }))
    }

    pub(crate) async fn answer(self, request: Request, connection: &Connection) -> Response {
        let Parts { guard, app, routes } = &*self.0;
        guarded(guard, request, connection, |request| async move {
            // Calls go past the router, which would cost them more than all else that is done here.
            if gateway::owns(request.uri().path()) {
                return gateway::answer(app, request).await;
            }
            if request.method() == Method::POST
                && let Some(name) = api::called_in(request.uri().path())
            {
                let name = name.into_owned();
                return api::run(app, &name, request).await.into_response();
            }
            let Ok(response) = routes.clone().call(request).await;
            response
        })
        .await
    }
}
