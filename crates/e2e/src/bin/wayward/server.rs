//! The MCP server proper: reads requests, answers the protocol's own methods, and hands tool
//! calls on. Requests are served at the same time, each in its own task.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::options::{Era, Options};
use crate::order::Order;
use crate::processes;
use crate::tools::{self, Call};
use crate::wire::{self, Incoming, Output, Reply};

const MODERN: &str = "2026-07-28";
const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

const SIGSTOP: i32 = 19;

/// A PNG of one point.
const POINT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// What all requests share.
pub(crate) struct Server {
    pub(crate) options: Arc<Options>,
    pub(crate) output: Output,
    order: Order,
    /// The requests in work, by the bytes of their id.
    in_work: Mutex<HashMap<String, Work>>,
    most_in_work: AtomicU64,
    calls_answered: AtomicU64,
}

/// One request in work.
struct Work {
    label: String,
    cancelled: Arc<Notify>,
}

/// Serves until stdin ends, and then no longer than it was told to.
pub(crate) async fn serve(options: Arc<Options>, order: Order) {
    let server = Arc::new(Server::new(options, order));
    let mut lines = wire::read_lines();
    let mut tasks = JoinSet::new();
    while let Some(line) = lines.recv().await {
        server.receive(&line, &mut tasks);
        while tasks.try_join_next().is_some() {}
    }
    server.order.note("eof");
    if server.options.ignore_stdin_eof {
        std::future::pending::<()>().await;
    }
}

impl Server {
    pub(crate) fn new(options: Arc<Options>, order: Order) -> Self {
        Self {
            output: Output { noise: options.noise },
            options,
            order,
            in_work: Mutex::default(),
            most_in_work: AtomicU64::new(0),
            calls_answered: AtomicU64::new(0),
        }
    }

    /// How many requests were in work at the same time, at most.
    pub(crate) fn most_in_work(&self) -> u64 {
        self.most_in_work.load(Ordering::Relaxed)
    }

    fn receive(self: &Arc<Self>, line: &[u8], tasks: &mut JoinSet<()>) {
        let Ok(message) = serde_json::from_slice::<Incoming>(line) else {
            let nobody = RawValue::from_string("null".to_owned()).expect("null is JSON");
            return self.output.answer(&nobody, &Reply::error(-32700, "Parse error"));
        };
        let Some(method) = message.method else {
            return self.order.note("receive answer");
        };
        let Some(id) = message.id else {
            return self.notification(&method, message.params.as_deref(), tasks);
        };
        let (label, call) = self.begin(&id, method, message.params);
        let server = self.clone();
        tasks.spawn(async move {
            let reply = server.finish(&id, &label, &call).await;
            server.output.answer(&id, &reply);
            server.after(&label);
        });
    }

    /// A request and its answer where the wire has no order of its own, as over HTTP.
    pub(crate) async fn request(
        self: &Arc<Self>,
        id: &RawValue,
        method: String,
        params: Option<Box<RawValue>>,
    ) -> Reply {
        let (label, call) = self.begin(id, method, params);
        self.finish(id, &label, &call).await
    }

    /// Writes a request down as one in work.
    fn begin(
        &self,
        id: &RawValue,
        method: String,
        params: Option<Box<RawValue>>,
    ) -> (String, Call) {
        let label = label(&method, params.as_deref());
        self.order.note(&format!("receive {label}"));
        let cancelled = Arc::new(Notify::new());
        let mut in_work = self.in_work.lock().expect("no task panics with it");
        let work = Work { label: label.clone(), cancelled: cancelled.clone() };
        in_work.insert(id.get().to_owned(), work);
        self.most_in_work.fetch_max(in_work.len() as u64, Ordering::Relaxed);
        (label, Call { method, params, cancelled })
    }

    /// Does what a request asks for.
    async fn finish(self: &Arc<Self>, id: &RawValue, label: &str, call: &Call) -> Reply {
        let reply = self.respond(call).await;
        self.in_work.lock().expect("no task panics with it").remove(id.get());
        let how = if matches!(reply, Reply::Silence) { "drop" } else { "answer" };
        self.order.note(&format!("{how} {label}"));
        reply
    }

    /// What is to happen once the answer is out.
    fn after(&self, label: &str) {
        if label.starts_with("tools/call stop") {
            processes::signal_self(SIGSTOP);
        }
        if label.starts_with("tools/call") {
            let answered = self.calls_answered.fetch_add(1, Ordering::Relaxed) + 1;
            if self.options.crash_after.is_some_and(|limit| answered >= limit) {
                crate::say("wayward: crashing after the last call it was to answer");
                crate::leave(1);
            }
        }
    }

    pub(crate) fn notification(
        self: &Arc<Self>,
        method: &str,
        params: Option<&RawValue>,
        tasks: &mut JoinSet<()>,
    ) {
        let params: Value =
            params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        match method {
            "notifications/cancelled" => {
                let id = params["requestId"].to_string();
                let in_work = self.in_work.lock().expect("no task panics with it");
                let known = in_work.get(&id);
                let label = known.map_or("nothing in work", |work| work.label.as_str());
                self.order.note(&format!("cancelled {label}"));
                if let Some(work) = known {
                    work.cancelled.notify_one();
                }
            }
            "notifications/initialized" => {
                self.order.note("receive notifications/initialized");
                self.crash_soon(tasks);
            }
            other => self.order.note(&format!("receive {other}")),
        }
    }

    /// The handshake is over: the time to crash, where that was ordered.
    fn crash_soon(&self, tasks: &mut JoinSet<()>) {
        if let Some(pause) = self.options.crash_when_ready {
            tasks.spawn(async move {
                tokio::time::sleep(Duration::from_millis(pause)).await;
                crate::say("wayward: crashing soon after it was ready");
                crate::leave(1);
            });
        }
    }

    async fn respond(self: &Arc<Self>, call: &Call) -> Reply {
        let meta = call.meta();
        let modern = meta.get(VERSION_KEY).is_some() || call.method == "server/discover";
        if let Some(refusal) = self.refuse(call, &meta) {
            return refusal;
        }
        let reply = match call.method.as_str() {
            "initialize" => initialize(call),
            "server/discover" => discover(),
            "ping" => Reply::result(&json!({})),
            "tools/list" => self.page("tools", &tools::list(&self.options), call),
            "resources/list" => self.page("resources", &resources(&self.options), call),
            "resources/read" => read_resource(&self.options, call),
            "prompts/list" => self.page("prompts", &prompts(), call),
            "tools/call" => tools::call(self, call).await,
            // What came goes back: every byte of the params, whatever they hold.
            "echo/raw" => {
                return Reply::Result(call.params.clone().unwrap_or_else(|| {
                    RawValue::from_string("{}".to_owned()).expect("it is JSON")
                }));
            }
            other => Reply::error(-32601, format!("Method not found: {other}")),
        };
        if modern { complete(reply) } else { reply }
    }

    /// What the era says about a request before it is looked at.
    fn refuse(&self, call: &Call, meta: &Value) -> Option<Reply> {
        let lacks_version = meta.get(VERSION_KEY).and_then(Value::as_str) != Some(MODERN);
        match (self.options.era, call.method.as_str()) {
            (Era::Modern, "initialize" | "ping") | (Era::Legacy, "server/discover") => {
                Some(Reply::error(-32601, format!("Method not found: {}", call.method)))
            }
            (Era::Legacy | Era::Both, _) => None,
            (Era::Modern, _) if lacks_version => {
                Some(Reply::error(-32602, format!("Missing `_meta` {VERSION_KEY} of {MODERN}")))
            }
            (Era::Modern, _) if meta.get(CAPABILITIES_KEY).is_none() => {
                Some(Reply::error(-32602, format!("Missing `_meta` {CAPABILITIES_KEY}")))
            }
            (Era::Modern, _) => None,
        }
    }

    /// One page of `all`, from the cursor the request names.
    fn page(&self, key: &str, all: &[Value], call: &Call) -> Reply {
        let params = call.parsed();
        let cursor = params["cursor"].as_str().unwrap_or("0");
        let Ok(start) = cursor.parse::<usize>() else {
            return Reply::error(-32602, "Invalid cursor");
        };
        if let Some(size) = self.options.fat_pages {
            let item = json!({"name": format!("fat-{start}"), "description": "f".repeat(size)});
            return Reply::result(&json!({ key: [item], "nextCursor": (start + 1).to_string() }));
        }
        let end = all.len().min(start + self.options.page);
        let mut result = json!({ key: all.get(start..end).unwrap_or_default() });
        if self.options.endless_pages {
            result["nextCursor"] = cursor.into();
        } else if end < all.len() {
            result["nextCursor"] = end.to_string().into();
        }
        Reply::result(&result)
    }
}

fn capabilities() -> Value {
    json!({"tools": {"listChanged": true}, "resources": {}, "prompts": {}})
}

fn server_info() -> Value {
    json!({"name": "wayward", "version": env!("CARGO_PKG_VERSION")})
}

fn initialize(call: &Call) -> Reply {
    let asked = call.parsed()["protocolVersion"].as_str().unwrap_or_default().to_owned();
    let newest = LEGACY[LEGACY.len() - 1];
    let version = LEGACY.iter().find(|known| **known == asked).unwrap_or(&newest);
    Reply::result(&json!({
        "protocolVersion": version,
        "capabilities": capabilities(),
        "serverInfo": server_info(),
        "instructions": "Ask it to misbehave.",
    }))
}

fn discover() -> Reply {
    Reply::result(&json!({
        "supportedVersions": [MODERN],
        "capabilities": capabilities(),
        "serverInfo": server_info(),
    }))
}

/// Results of the modern era say that they are whole.
fn complete(reply: Reply) -> Reply {
    let Reply::Result(raw) = &reply else {
        return reply;
    };
    match serde_json::from_str(raw.get()) {
        Ok(Value::Object(mut result)) => {
            result.insert("resultType".to_owned(), "complete".into());
            Reply::result(&Value::Object(result))
        }
        _ => reply,
    }
}

fn resources(options: &Options) -> Vec<Value> {
    let kinds = ["text/markdown", "image/png", "application/octet-stream"];
    let one = |n: usize| {
        json!({"uri": format!("wayward:///resource/{n}"), "name": format!("resource-{n:04}"),
            "description": format!("made-up resource {n}"), "mimeType": kinds[n % kinds.len()]})
    };
    (0..options.resources).map(one).collect()
}

/// The content of a resource: by its type a text, a picture of one point, or bytes.
fn read_resource(options: &Options, call: &Call) -> Reply {
    let params = call.parsed();
    let known = resources(options).into_iter().find(|resource| resource["uri"] == params["uri"]);
    let Some(resource) = known else {
        return Reply::error(-32002, "Resource not found");
    };
    let mut content = json!({"uri": resource["uri"], "mimeType": resource["mimeType"]});
    match resource["mimeType"].as_str() {
        Some("text/markdown") => {
            content["text"] = format!("# {}\n\nmade up", resource["name"]).into();
        }
        Some("image/png") => content["blob"] = POINT.into(),
        _ => content["blob"] = "AAECAw==".into(),
    }
    Reply::result(&json!({"contents": [content]}))
}

fn prompts() -> Vec<Value> {
    vec![json!({"name": "greeting", "description": "says hello", "arguments": []})]
}

/// What the order log calls a request: its method, the tool, and the test's own tag for it.
fn label(method: &str, params: Option<&RawValue>) -> String {
    #[derive(Deserialize)]
    struct Named {
        name: Option<String>,
        arguments: Option<Tagged>,
    }
    #[derive(Deserialize)]
    struct Tagged {
        tag: Option<String>,
    }
    let named: Option<Named> = params.and_then(|params| serde_json::from_str(params.get()).ok());
    let name = named.as_ref().and_then(|named| named.name.as_deref());
    let tag = named.as_ref().and_then(|named| named.arguments.as_ref()?.tag.as_deref());
    [Some(method), name, tag].into_iter().flatten().collect::<Vec<_>>().join(" ")
}
