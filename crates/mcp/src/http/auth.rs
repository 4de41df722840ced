//! How requests are signed, as far as the transport cares: who signs them knows how.

use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderValue, Uri};

/// Gives each request its `Authorization`.
#[async_trait]
pub trait Authorizer: std::fmt::Debug + Send + Sync {
    /// The header's value for a request that goes out now, none where requests go unsigned. It
    /// is asked for every request, so that it is cheap while what it has is fresh.
    async fn authorization(&self) -> Result<Option<HeaderValue>, AuthFailure>;

    /// The server refused `used` with 401: the next authorization must be a new one, unless it
    /// already differs from `used`.
    fn rejected(&self, used: &HeaderValue);

    /// In whose name requests go out, for messages to a person.
    fn principal(&self) -> Option<String>;

    /// What a person can do where the server answers `status`, 401 or 403, to what was signed.
    fn advice(&self, status: u16) -> Option<String> {
        let _ = status;
        None
    }
}

/// Whose name requests may go out in: gives each server an authorizer of its own.
#[async_trait]
pub trait Identity: std::fmt::Debug + Send + Sync {
    /// What signs requests to `url`, for `audience` where that is not the URL's origin.
    async fn authorizer(
        &self,
        url: &Uri,
        audience: Option<&str>,
    ) -> Result<Arc<dyn Authorizer>, AuthFailure>;
}

/// Why there is no authorization to be had now. The next request asks again.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct AuthFailure {
    /// What was attempted and why it failed. Never holds a secret.
    pub message: String,
    /// What a person can do about it.
    pub hint: String,
}

/// Signs nothing.
#[derive(Debug, Clone, Copy)]
pub struct Unsigned;

#[async_trait]
impl Authorizer for Unsigned {
    async fn authorization(&self) -> Result<Option<HeaderValue>, AuthFailure> {
        Ok(None)
    }

    fn rejected(&self, _used: &HeaderValue) {}

    fn principal(&self) -> Option<String> {
        None
    }
}
