//! The protocol: requests in and answers out, each served in a task of its own, and questions
//! the other way.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::Write as _;
use std::rc::Rc;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;

use crate::questions::Context;
use crate::{offer, prompts, tools};

const MODERN: &str = "2026-07-28";
const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// An error of JSON-RPC.
#[derive(Debug)]
pub(crate) struct Fault(pub(crate) Value);

impl Fault {
    pub(crate) fn new(code: i64, message: &str) -> Self {
        Self(json!({"code": code, "message": message}))
    }

    pub(crate) fn with(code: i64, message: &str, data: Value) -> Self {
        Self(json!({"code": code, "message": message, "data": data}))
    }
}

pub(crate) struct Server {
    pub(crate) era: Era,
    /// The questions that are open, by the ids under which they were asked.
    open: RefCell<HashMap<u64, oneshot::Sender<Result<Value, Value>>>>,
    last_question: Cell<u64>,
    /// What those who listen want to hear, by the ids of their requests.
    listening: RefCell<HashMap<String, Value>>,
    watched: RefCell<Vec<String>>,
    /// Whether the client of the older era has roots, and which, as it said when it was asked.
    has_roots: Cell<bool>,
    pub(crate) roots: RefCell<Value>,
    /// Whether the URL was opened that a tool wants to have opened first.
    pub(crate) url_opened: Cell<bool>,
}

impl Server {
    pub(crate) fn new(era: Era) -> Rc<Self> {
        Rc::new(Self {
            era,
            open: RefCell::default(),
            last_question: Cell::new(0),
            listening: RefCell::default(),
            watched: RefCell::default(),
            has_roots: Cell::new(false),
            roots: RefCell::default(),
            url_opened: Cell::new(false),
        })
    }

    pub(crate) async fn serve(self: Rc<Self>, mut lines: mpsc::Receiver<String>) {
        let tasks = LocalSet::new();
        tasks
            .run_until(async {
                while let Some(line) = lines.recv().await {
                    if let Ok(message) = serde_json::from_str(&line) {
                        Rc::clone(&self).take(message, &tasks);
                    }
                }
            })
            .await;
    }

    fn take(self: Rc<Self>, message: Value, tasks: &LocalSet) {
        let id = message.get("id").cloned();
        let method = message["method"].as_str().map(str::to_owned);
        match (method, id) {
            (Some(method), Some(id)) => {
                tasks
                    .spawn_local(async move { self.answer(id, &method, &message["params"]).await });
            }
            (Some(method), None) if method == "notifications/cancelled" => {
                let id = message["params"]["requestId"].to_string();
                self.listening.borrow_mut().remove(&id);
            }
            // Asked of its own accord: no call of the client's is under way.
            (Some(method), None)
                if method == "notifications/initialized" && self.has_roots.get() =>
            {
                tasks.spawn_local(async move {
                    let answer = self.ask("roots/list", &json!({})).await;
                    *self.roots.borrow_mut() = answer.unwrap_or_default();
                });
            }
            (None, Some(id)) => {
                let waiting = id.as_u64().and_then(|id| self.open.borrow_mut().remove(&id));
                if let Some(waiting) = waiting {
                    let answer = match message.get("error") {
                        Some(error) => Err(error.clone()),
                        None => Ok(message["result"].clone()),
                    };
                    drop(waiting.send(answer));
                }
            }
            _ => {}
        }
    }

    async fn answer(&self, id: Value, method: &str, params: &Value) {
        if method == "subscriptions/listen" && self.era == Era::Modern {
            return self.listen(&id, params);
        }
        let answer = match self.respond(method, params).await {
            Ok(result) => {
                json!({"jsonrpc": "2.0", "id": id, "result": self.complete(method, result)})
            }
            Err(Fault(error)) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
        };
        write(&answer);
    }

    async fn respond(&self, method: &str, params: &Value) -> Result<Value, Fault> {
        self.check(method, params)?;
        let context = Context { server: self, params };
        match method {
            "initialize" => {
                // The daemon itself has none: what is asked of it here would race with the calls of
                // its first client.
                let is_daemon = params["clientInfo"]["name"] == "cofer";
                let has_roots = params["capabilities"]["roots"].is_object();
                self.has_roots.set(has_roots && !is_daemon);
                Ok(initialized(params))
            }
            "server/discover" => Ok(json!({
                "supportedVersions": [MODERN], "capabilities": offer::capabilities(),
                "_meta": {"io.modelcontextprotocol/serverInfo": offer::server_info()},
            })),
            "ping" | "logging/setLevel" => Ok(json!({})),
            "tools/list" => Ok(json!({"tools": offer::tools()})),
            "tools/call" => tools::call(&context).await,
            "resources/list" => Ok(json!({"resources": offer::resources()})),
            "resources/templates/list" => Ok(json!({"resourceTemplates": offer::templates()})),
            "resources/read" => offer::read(params["uri"].as_str().unwrap_or_default(), self.era),
            "resources/subscribe" => {
                self.watched
                    .borrow_mut()
                    .push(params["uri"].as_str().unwrap_or_default().to_owned());
                Ok(json!({}))
            }
            "resources/unsubscribe" => {
                self.watched.borrow_mut().retain(|uri| params["uri"] != uri.as_str());
                Ok(json!({}))
            }
            "prompts/list" => Ok(json!({"prompts": offer::prompts()})),
            "prompts/get" => prompts::get(&context).await,
            "completion/complete" => {
                let values = ["paris", "park", "party"];
                Ok(json!({"completion": {"values": values, "total": 3, "hasMore": false}}))
            }
            _ => Err(Fault::new(-32601, &format!("Method not found: {method}"))),
        }
    }

    /// What the era says about a request before it is looked at.
    fn check(&self, method: &str, params: &Value) -> Result<(), Fault> {
        let old = [
            "initialize",
            "ping",
            "logging/setLevel",
            "resources/subscribe",
            "resources/unsubscribe",
        ];
        let is_old = old.contains(&method);
        let is_new = method == "server/discover";
        let meta = &params["_meta"];
        match self.era {
            Era::Legacy if is_new => Err(Fault::new(-32601, "Method not found")),
            Era::Modern if is_old => Err(Fault::new(-32601, "Method not found")),
            Era::Modern if meta[VERSION_KEY] != MODERN || !meta[CAPABILITIES_KEY].is_object() => {
                Err(Fault::new(-32602, "`_meta` does not say what this revision wants"))
            }
            Era::Legacy | Era::Modern => Ok(()),
        }
    }

    fn complete(&self, method: &str, mut result: Value) -> Value {
        if self.era == Era::Modern && result.get("resultType").is_none() {
            result["resultType"] = "complete".into();
            let cached = ["server/discover", "resources/read"];
            if method.ends_with("/list") || cached.contains(&method) {
                result["ttlMs"] = 60_000.into();
                result["cacheScope"] = "public".into();
            }
        }
        result
    }

    fn listen(&self, id: &Value, params: &Value) {
        let filter = params["notifications"].clone();
        self.listening.borrow_mut().insert(id.to_string(), filter.clone());
        let params = json!({"_meta": {SUBSCRIPTION_KEY: id}, "notifications": filter});
        self.notify("notifications/subscriptions/acknowledged", &params);
    }

    /// Tells that a list changed, to everybody or to those who want to hear it.
    pub(crate) fn list_changed(&self, list: &str) {
        let method = format!("notifications/{list}/list_changed");
        self.tell(&method, |filter| filter[format!("{list}ListChanged")] == true, json!({}));
    }

    /// Tells that a resource changed, to those who want to hear it.
    pub(crate) fn updated(&self, uri: &str) {
        let wanted = |filter: &Value| {
            let uris = filter["resourceSubscriptions"].as_array();
            uris.is_some_and(|uris| uris.iter().any(|watched| watched == uri))
        };
        if self.era == Era::Modern || self.watched.borrow().iter().any(|watched| watched == uri) {
            self.tell("notifications/resources/updated", wanted, json!({"uri": uri}));
        }
    }

    fn tell(&self, method: &str, wanted: impl Fn(&Value) -> bool, mut params: Value) {
        if self.era == Era::Legacy {
            return self.notify(method, &params);
        }
        let listening = self.listening.borrow();
        for (id, _) in listening.iter().filter(|(_, filter)| wanted(filter)) {
            let id: Value = serde_json::from_str(id).expect("it was written as JSON");
            params["_meta"] = json!({SUBSCRIPTION_KEY: id});
            self.notify(method, &params);
        }
    }

    pub(crate) fn notify(&self, method: &str, params: &Value) {
        write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Asks the client, as servers of the older era do.
    pub(crate) async fn ask(&self, method: &str, params: &Value) -> Result<Value, Value> {
        let id = self.last_question.get() + 1;
        self.last_question.set(id);
        let (sender, answer) = oneshot::channel();
        self.open.borrow_mut().insert(id, sender);
        write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        answer.await.unwrap_or_else(|_| Err(json!({"code": -32603, "message": "nobody answered"})))
    }
}

fn initialized(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let newest = LEGACY[LEGACY.len() - 1];
    let version = LEGACY.into_iter().find(|known| *known == asked).unwrap_or(newest);
    json!({"protocolVersion": version, "capabilities": offer::capabilities(),
        "serverInfo": offer::server_info(), "instructions": "Does everything the protocol knows."})
}

fn write(message: &Value) {
    let mut stdout = std::io::stdout().lock();
    let written = writeln!(stdout, "{message}").and_then(|()| stdout.flush());
    if written.is_err() {
        crate::leave("exemplary: stdout is closed", 0);
    }
}
