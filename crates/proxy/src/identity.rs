//! Google's credentials for whoever else speaks to servers behind Cloud Run's IAM.

use std::sync::Arc;

use async_trait::async_trait;
use cofer_mcp::http::{AuthFailure, Authorizer, Identity, Transport, TransportOptions};
use http::Uri;

use crate::auth::{self, Credentials, NotFound};

/// Signs with Google's ID tokens, from the credentials that `cofer proxy` would find. They are
/// looked for anew for each server, so that a login takes effect without a restart.
#[derive(Debug, Clone, Copy, Default)]
pub struct GoogleIdentity;

#[async_trait]
impl Identity for GoogleIdentity {
    async fn authorizer(
        &self,
        url: &Uri,
        audience: Option<&str>,
    ) -> Result<Arc<dyn Authorizer>, AuthFailure> {
        let transport =
            Transport::new(TransportOptions::default()).map_err(|error| AuthFailure {
                message: format!("could not prepare connections for an ID token: {error}"),
                hint: "correct the proxy variables of the environment.".to_owned(),
            })?;
        let audience = audience.map_or_else(|| auth::default_audience(url), str::to_owned);
        let found = Credentials::find(auth::Options::new(audience, transport)).await;
        found.map(|credentials| Arc::new(credentials) as _).map_err(|missing| not_found(&missing))
    }
}

fn not_found(missing: &NotFound) -> AuthFailure {
    let looked: Vec<String> = missing
        .looked
        .iter()
        .map(|looked| format!("{}: {}", looked.place, looked.outcome))
        .collect();
    AuthFailure {
        message: format!(
            "no Google credentials that can be used were found; looked for {}",
            looked.join("; ")
        ),
        hint: missing.hint.clone(),
    }
}
