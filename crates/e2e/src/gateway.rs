//! An MCP client of the gateway that shows every byte: the HTTP requests of both eras as a test
//! wants them, and the events of a stream one by one.

use std::pin::Pin;

use futures_util::{Stream, StreamExt as _};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::wait::within;

const NEWER: &str = "2026-07-28";

/// A session of the older era.
pub struct GatewayClient<'a> {
    daemon: &'a Daemon,
    path: String,
    version: String,
    /// What names the session.
    pub session: String,
    /// The answer to `initialize`.
    pub opened: Value,
    last_id: u64,
}

/// What came back for a message.
pub enum Exchange {
    /// At once, as JSON.
    Json(Value),
    /// On a stream.
    Stream(Messages),
}

impl<'a> GatewayClient<'a> {
    /// Opens a session at `path`, as a client that can do this.
    pub async fn open(daemon: &'a Daemon, path: &str, capabilities: Value) -> Self {
        Self::open_as(daemon, path, capabilities, "2025-11-25").await
    }

    /// The same in a certain revision.
    pub async fn open_as(
        daemon: &'a Daemon,
        path: &str,
        capabilities: Value,
        version: &str,
    ) -> Self {
        let params = json!({"protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "e2e-client", "version": "1"}});
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = send(post(daemon, path, message.to_string())).await;
        assert_eq!(response.status(), 200, "{:?}", response.text().await);
        let session = response.headers().get("mcp-session-id").expect("a session is named");
        let session = session.to_str().expect("its name is text").to_owned();
        let opened: Value = response.json().await.expect("the answer is JSON");
        let version = opened["result"]["protocolVersion"].as_str().expect("a revision").to_owned();
        let path = path.to_owned();
        let client = Self { daemon, path, version, session, opened, last_id: 0 };
        client.tell("notifications/initialized", json!({})).await;
        client
    }

    /// A request of this session.
    pub fn http(&self, method: Method) -> RequestBuilder {
        let request = self.daemon.raw(method, &self.path).bearer_auth(self.daemon.token());
        request
            .header("mcp-session-id", &self.session)
            .header("mcp-protocol-version", &self.version)
    }

    /// Sends a body as it is.
    pub fn post(&self, body: impl Into<reqwest::Body>) -> RequestBuilder {
        let request = self.http(Method::POST).header("content-type", "application/json");
        request.header("accept", "application/json, text/event-stream").body(body)
    }

    /// Sends a request and gives its id with what came back.
    pub async fn ask(&mut self, method: &str, params: Value) -> (u64, Exchange) {
        self.last_id += 1;
        let id = self.last_id;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let response = send(self.post(message.to_string())).await;
        assert_eq!(response.status(), 200, "{method}");
        (id, exchange(response).await)
    }

    /// Sends a request and gives its whole answer, in whichever form it comes.
    pub async fn answer(&mut self, method: &str, params: Value) -> Value {
        let (id, exchange) = self.ask(method, params).await;
        match exchange {
            Exchange::Json(answer) => answer,
            Exchange::Stream(mut messages) => messages.answer(id).await,
        }
    }

    /// Sends a request that succeeds, and gives the result.
    pub async fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params).await;
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool; the text of its first block.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.result("tools/call", json!({"name": tool, "arguments": arguments})).await;
        let text = result["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("no text in {result}")).to_owned()
    }

    /// The names in a list.
    pub async fn names(&mut self, list: &str, key: &str) -> Vec<String> {
        let result = self.result(&format!("{list}/list"), json!({})).await;
        let items = result[list].as_array().unwrap_or_else(|| panic!("no list in {result}"));
        let name = |item: &Value| item[key].as_str().expect("it has a name").to_owned();
        items.iter().map(name).collect()
    }

    /// Tells something.
    pub async fn tell(&self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        assert_eq!(send(self.post(message.to_string())).await.status(), 202);
    }

    /// Answers a request of the server's.
    pub async fn reply(&self, id: &Value, result: Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
        assert_eq!(send(self.post(message.to_string())).await.status(), 202);
    }

    /// Listens to what belongs to no request, or goes on behind an event.
    pub async fn listen(&self, last_event: Option<&str>) -> Messages {
        let mut request = self.http(Method::GET).header("accept", "text/event-stream");
        if let Some(id) = last_event {
            request = request.header("last-event-id", id);
        }
        let response = send(request).await;
        assert_eq!(response.status(), 200);
        Messages::new(response)
    }

    /// Ends the session.
    pub async fn end(self) {
        assert!(send(self.http(Method::DELETE)).await.status().is_success());
    }
}

/// A request of the newer era: the HTTP status and what came back.
pub async fn stateless(
    daemon: &Daemon,
    path: &str,
    method: &str,
    params: Value,
    capabilities: Value,
) -> (u16, Exchange) {
    let name =
        ["name", "uri", "taskId"].iter().find_map(|key| params[key].as_str()).map(str::to_owned);
    let mut params = params;
    for (key, value) in [
        ("protocolVersion", json!(NEWER)),
        ("clientInfo", json!({"name": "e2e-client", "version": "1"})),
        ("clientCapabilities", capabilities),
    ] {
        params["_meta"][format!("io.modelcontextprotocol/{key}")] = value;
    }
    let message = json!({"jsonrpc": "2.0", "id": "s-1", "method": method, "params": params});
    let mut request = post(daemon, path, message.to_string())
        .header("mcp-protocol-version", NEWER)
        .header("mcp-method", method);
    if let Some(name) = name {
        request = request.header("mcp-name", name);
    }
    let response = send(request).await;
    let status = response.status().as_u16();
    (status, exchange(response).await)
}

impl Exchange {
    /// What came at once.
    pub fn json(self) -> Value {
        match self {
            Self::Json(value) => value,
            Self::Stream(_) => panic!("a stream came"),
        }
    }

    /// The stream that came.
    pub fn stream(self) -> Messages {
        match self {
            Self::Stream(messages) => messages,
            Self::Json(value) => panic!("no stream came, but {value}"),
        }
    }

    /// The answer to the request `id`, in whichever form it came.
    pub async fn answer(self, id: &str) -> Value {
        match self {
            Self::Json(value) => value,
            Self::Stream(mut messages) => messages.until(id, |message| message["id"] == id).await,
        }
    }
}

async fn exchange(response: Response) -> Exchange {
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    if kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return Exchange::Stream(Messages::new(response));
    }
    let text = response.text().await.expect("the body is read");
    Exchange::Json(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

fn post(daemon: &Daemon, path: &str, body: String) -> RequestBuilder {
    daemon
        .raw(Method::POST, path)
        .bearer_auth(daemon.token())
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(body)
}

async fn send(request: RequestBuilder) -> Response {
    within("an HTTP answer comes", request.send()).await.expect("the daemon answers")
}

/// The messages of a stream.
pub struct Messages {
    chunks: Pin<Box<dyn Stream<Item = Vec<u8>> + Send>>,
    buffer: Vec<u8>,
    /// So much of the buffer has no end of an event in it.
    searched: usize,
    /// The id of the event that came last.
    pub last_event: Option<String>,
    /// Everything that came and was not what was waited for.
    pub passed: Vec<Value>,
}

impl Messages {
    fn new(response: Response) -> Self {
        let chunks = response.bytes_stream().map(|chunk| chunk.map(Vec::from).unwrap_or_default());
        Self {
            chunks: Box::pin(chunks),
            buffer: Vec::new(),
            searched: 0,
            last_event: None,
            passed: Vec::new(),
        }
    }

    /// The next message; none where the stream ended.
    pub async fn next(&mut self) -> Option<Value> {
        within("a message comes", self.read()).await
    }

    /// The first message that `wanted` takes; those before it are in `passed`.
    pub async fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let Some(message) = self.next().await else {
                panic!("the stream ended before {what}; {:#?} came", self.passed);
            };
            if wanted(&message) {
                return message;
            }
            self.passed.push(message);
        }
    }

    /// The next message of this method.
    pub async fn method(&mut self, method: &str) -> Value {
        self.until(method, |message| message["method"] == method).await
    }

    /// The answer to a request.
    pub async fn answer(&mut self, id: u64) -> Value {
        let what = format!("the answer to {id}");
        self.until(&what, |message| message["id"] == id && message.get("method").is_none()).await
    }

    /// Waits for the first event, which has an id and nothing else, so that all that comes
    /// later can be asked for again.
    pub async fn primed(&mut self) {
        while self.last_event.is_none() {
            if let Some(message) =
                within("an event comes", self.read_frame()).await.expect("the stream goes on")
            {
                self.passed.push(message);
            }
        }
    }

    async fn read(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = self.read_frame().await? {
                return Some(message);
            }
        }
    }

    /// The next frame: its message, where it has one. None at the end.
    async fn read_frame(&mut self) -> Option<Option<Value>> {
        loop {
            let unseen = &self.buffer[self.searched..];
            if let Some(end) = unseen.windows(2).position(|two| two == b"\n\n") {
                let frame: Vec<u8> = self.buffer.drain(..self.searched + end + 2).collect();
                self.searched = 0;
                return Some(self.take(&String::from_utf8(frame).expect("events are text")));
            }
            self.searched = self.buffer.len().saturating_sub(1);
            match self.chunks.next().await {
                Some(chunk) if !chunk.is_empty() => self.buffer.extend(chunk),
                _ => return None,
            }
        }
    }

    fn take(&mut self, frame: &str) -> Option<Value> {
        let field = |key: &str| {
            let line = frame.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
            Some(line.strip_prefix(' ').unwrap_or(line).to_owned())
        };
        self.last_event = field("id").or(self.last_event.take());
        let data = field("data").filter(|data| !data.is_empty())?;
        Some(serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error} in {data}")))
    }
}
