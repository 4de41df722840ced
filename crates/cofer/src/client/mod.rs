//! The daemon's HTTP API as functions, with its failures typed.

mod error;
mod follow;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cofer_model::{ErrorBody, ErrorKind};
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub(crate) use self::error::ClientError;
use self::error::RootCause;
pub(crate) use self::follow::{ChatFeed, Follower};
use crate::config::Target;

/// How long an answer may take that does not wait for a server's work.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long it may take to find out that nobody listens.
const CONNECT: Duration = Duration::from_secs(5);
/// More than this is no answer a terminal can use.
const MAX_ANSWER: usize = 1 << 30;
/// The longest wait that the daemon accepts.
const MAX_WAIT: Duration = Duration::from_secs(600);

/// What the daemon says of itself when it is not well.
#[derive(Deserialize)]
struct Illness {
    reason: String,
}

/// What the daemon answered, as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    body: String,
}

impl Answer {
    /// The JSON text.
    pub(crate) fn json(&self) -> &str {
        &self.body
    }

    /// The JSON as a value of the model.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_str(&self.body).map_err(ClientError::Unreadable)
    }
}

/// What can be done to a server's switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Switch {
    Enable,
    Disable,
    Restart,
}

/// One request, before it has an address.
struct Ask<'a> {
    method: Method,
    path: &'a [&'a str],
    query: Vec<(&'static str, String)>,
    body: Option<String>,
    patience: Option<Duration>,
}

impl<'a> Ask<'a> {
    fn new(method: Method, path: &'a [&'a str]) -> Self {
        Self { method, path, query: Vec::new(), body: None, patience: Some(PATIENCE) }
    }

    fn get(path: &'a [&'a str]) -> Self {
        Self::new(Method::GET, path)
    }

    fn body(self, body: String) -> Self {
        Self { body: Some(body), ..self }
    }

    fn query(mut self, key: &'static str, value: impl ToString) -> Self {
        self.query.push((key, value.to_string()));
        self
    }

    /// Has the daemon answer when the server is ready or has failed.
    fn wait(self, wait: Option<Duration>) -> Self {
        match wait {
            Some(wait) => {
                let wait = wait.min(MAX_WAIT);
                let patience = Some(PATIENCE + wait);
                Self { patience, ..self.query("wait", wait.as_secs().max(1)) }
            }
            None => self,
        }
    }

    /// The daemon has a limit for this one and says so itself.
    fn patiently(self) -> Self {
        Self { patience: None, ..self }
    }
}

/// The daemon is asked over plain HTTP on this machine: nobody's certificate is trusted, and the
/// system's are not even read, which would take longer than most commands.
fn no_tls() -> Result<rustls::ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

/// A connection to one daemon. A cheap clone.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: Url,
    target: Target,
}

impl Client {
    /// Does not connect yet.
    pub(crate) fn new(target: Target) -> Result<Self, ClientError> {
        let bad = || ClientError::BadUrl { url: target.url.clone() };
        let base = Url::parse(&target.url).map_err(|_| bad())?;
        if base.scheme() != "http" || base.cannot_be_a_base() {
            return Err(bad());
        }
        // The token must not travel through a proxy that the environment names for the web.
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(no_tls().map_err(ClientError::Tls)?)
            .no_proxy()
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(ClientError::Setup)?;
        Ok(Self { http, base, target })
    }

    /// Where the daemon is and how it knows us.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Whether the daemon lives; asked without the token, since it is not needed for that.
    pub(crate) async fn health(&self) -> Result<Answer, ClientError> {
        let ask = Ask { patience: Some(CONNECT), ..Ask::get(&["healthz"]) };
        self.send(self.url(&[], &ask), None, ask).await
    }

    /// All servers.
    pub(crate) async fn servers(&self) -> Result<Answer, ClientError> {
        self.api(Ask::get(&["mcp", "servers"])).await
    }

    /// One server; `reveal` shows the values of its environment.
    pub(crate) async fn server(&self, name: &str, reveal: bool) -> Result<Answer, ClientError> {
        let path = ["mcp", "servers", name];
        let ask = Ask::get(&path);
        self.api(if reveal { ask.query("reveal", true) } else { ask }).await
    }

    /// Registers a server.
    pub(crate) async fn register(
        &self,
        body: String,
        wait: Option<Duration>,
    ) -> Result<Answer, ClientError> {
        self.api(Ask::new(Method::POST, &["mcp", "servers"]).body(body).wait(wait)).await
    }

    /// Registers the servers of a client's `mcpServers`.
    pub(crate) async fn import(
        &self,
        body: String,
        overwrite: bool,
    ) -> Result<Answer, ClientError> {
        let ask = Ask::new(Method::POST, &["mcp", "import"]).body(body);
        self.api(if overwrite { ask.query("overwrite", "true") } else { ask }).await
    }

    /// Changes a registration.
    pub(crate) async fn change(
        &self,
        name: &str,
        body: String,
        wait: Option<Duration>,
    ) -> Result<Answer, ClientError> {
        let path = ["mcp", "servers", name];
        self.api(Ask::new(Method::PATCH, &path).body(body).wait(wait)).await
    }

    /// Stops a server and forgets it.
    pub(crate) async fn remove(&self, name: &str, purge: bool) -> Result<Answer, ClientError> {
        let path = ["mcp", "servers", name];
        let ask = Ask::new(Method::DELETE, &path);
        self.api(if purge { ask.query("purge", true) } else { ask }).await
    }

    /// What servers in containers keep.
    pub(crate) async fn volumes(&self) -> Result<Answer, ClientError> {
        self.api(Ask::get(&["mcp", "volumes"])).await
    }

    /// Removes what a server keeps.
    pub(crate) async fn remove_volumes(&self, server: &str) -> Result<Answer, ClientError> {
        self.api(Ask::new(Method::DELETE, &["mcp", "volumes", server])).await
    }

    /// Switches a server.
    pub(crate) async fn switch(
        &self,
        name: &str,
        switch: Switch,
        wait: Option<Duration>,
    ) -> Result<Answer, ClientError> {
        let verb = match switch {
            Switch::Enable => "enable",
            Switch::Disable => "disable",
            Switch::Restart => "restart",
        };
        let path = ["mcp", "servers", name, verb];
        self.api(Ask::new(Method::POST, &path).wait(wait)).await
    }

    /// One JSON-RPC request to a server.
    pub(crate) async fn call(&self, name: &str, body: String) -> Result<Answer, ClientError> {
        let path = ["mcp", "servers", name, "call"];
        self.api(Ask::new(Method::POST, &path).body(body).patiently()).await
    }

    /// The server's `tools`, `resources` or `prompts`.
    pub(crate) async fn items(&self, name: &str, what: &str) -> Result<Answer, ClientError> {
        self.api(Ask::get(&["mcp", "servers", name, what]).patiently()).await
    }

    /// The end of a server's log.
    pub(crate) async fn logs(&self, name: &str, tail: usize) -> Result<Answer, ClientError> {
        self.api(Ask::get(&["mcp", "servers", name, "logs"]).query("tail", tail)).await
    }

    /// The end of a server's log, and what comes after it.
    pub(crate) async fn follow(
        &self,
        name: &str,
        tail: usize,
    ) -> Result<Follower<'_>, ClientError> {
        let path = ["mcp", "servers", name, "logs"];
        let ask = Ask::get(&path).query("tail", tail).query("follow", true).patiently();
        Ok(Follower::new(self, self.stream(ask).await?))
    }

    /// An answer that goes on, or the failure that it tells.
    async fn stream(&self, ask: Ask<'_>) -> Result<reqwest::Response, ClientError> {
        let url = self.url(&["api", "v1"], &ask);
        let response = self.open(url, self.target.token.as_deref(), ask).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let answer = self.read(response, None).await;
        Err(answer.err().unwrap_or_else(|| self.foreign(StatusCode::OK)))
    }

    /// Begins a turn of a chat, and gives what is told of it.
    pub(crate) async fn chat(&self, body: String) -> Result<ChatFeed<'_>, ClientError> {
        let ask = Ask::new(Method::POST, &["chat"]).body(body).patiently();
        Ok(ChatFeed::new(self, self.stream(ask).await?))
    }

    /// Stops the running turn of a conversation.
    pub(crate) async fn stop_chat(&self, id: &str) -> Result<Answer, ClientError> {
        self.api(Ask::new(Method::POST, &["chat", "conversations", id, "stop"])).await
    }

    /// The newest conversations.
    pub(crate) async fn conversations(&self, limit: u32) -> Result<Answer, ClientError> {
        self.api(Ask::get(&["chat", "conversations"]).query("limit", limit)).await
    }

    async fn api(&self, ask: Ask<'_>) -> Result<Answer, ClientError> {
        let url = self.url(&["api", "v1"], &ask);
        self.send(url, self.target.token.as_deref(), ask).await
    }

    fn url(&self, prefix: &[&str], ask: &Ask<'_>) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(prefix).extend(ask.path);
        }
        if !ask.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&ask.query);
        }
        url
    }

    async fn send(
        &self,
        url: Url,
        token: Option<&str>,
        ask: Ask<'_>,
    ) -> Result<Answer, ClientError> {
        let patience = ask.patience;
        let response = self.open(url, token, ask).await?;
        self.read(response, patience).await
    }

    /// The whole answer, or the failure that it tells.
    async fn read(
        &self,
        mut response: reqwest::Response,
        patience: Option<Duration>,
    ) -> Result<Answer, ClientError> {
        let status = response.status();
        let mut body = Vec::new();
        let failed = |error| self.failed(error, patience);
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > MAX_ANSWER {
                return Err(ClientError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        let body = String::from_utf8(body).map_err(|_| self.foreign(status))?;
        if status.is_success() { Ok(Answer { body }) } else { Err(self.refused(status, &body)) }
    }

    async fn open(
        &self,
        url: Url,
        token: Option<&str>,
        ask: Ask<'_>,
    ) -> Result<reqwest::Response, ClientError> {
        if let Some(cause) = &self.target.absent {
            let data_dir = self.target.token_file.parent().map(Path::to_owned).unwrap_or_default();
            return Err(ClientError::NotRunning { data_dir, source: RootCause(cause.clone()) });
        }
        let mut request = self.http.request(ask.method, url);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(patience) = ask.patience {
            request = request.timeout(patience);
        }
        if let Some(body) = ask.body {
            request = request.header("content-type", "application/json").body(body);
        }
        request.send().await.map_err(|error| self.failed(error, ask.patience))
    }

    fn failed(&self, error: reqwest::Error, patience: Option<Duration>) -> ClientError {
        let url = self.target.url.clone();
        match patience {
            _ if error.is_connect() => {
                ClientError::Unreachable { url, source: RootCause::of(&error) }
            }
            Some(after) if error.is_timeout() => ClientError::Silent { url, after },
            _ => ClientError::Broken { url, source: RootCause::of(&error) },
        }
    }

    fn foreign(&self, status: StatusCode) -> ClientError {
        ClientError::Foreign { url: self.target.url.clone(), status }
    }

    fn refused(&self, status: StatusCode, body: &str) -> ClientError {
        let url = self.target.url.clone();
        match serde_json::from_str::<ErrorBody>(body) {
            Ok(ErrorBody { error }) if error.kind == ErrorKind::Unauthorized => {
                match self.target.token {
                    Some(_) => ClientError::Api(Box::new(error)),
                    None => {
                        ClientError::NoToken { url, token_file: self.target.token_file.clone() }
                    }
                }
            }
            Ok(ErrorBody { error }) => ClientError::Api(Box::new(error)),
            Err(_) => match serde_json::from_str(body) {
                Ok(Illness { reason }) => ClientError::Degraded { url, source: RootCause(reason) },
                Err(_) => self.foreign(status),
            },
        }
    }
}

#[cfg(test)]
mod tests;
