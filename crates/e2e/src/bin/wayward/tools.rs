//! The tools: each does one thing that a test needs a server to do.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::machine;
use crate::options::Options;
use crate::processes;
use crate::server::Server;
use crate::wire::Reply;

/// Name and description of each tool.
const TOOLS: [(&str, &str); 30] = [
    ("echo", "returns its arguments as text, byte for byte"),
    ("env", "returns the variable `name`, or all of them as JSON"),
    ("cwd", "returns the working directory"),
    ("pid", "returns its process id"),
    ("sleep", "answers after `ms`, unless it is cancelled"),
    ("progress", "answers after `ms`, with progress each `step` ms where a token was given"),
    ("late", "answers after `ms`, also when it is cancelled"),
    ("hang", "never answers"),
    ("crash", "exits with `code`"),
    ("kill_self", "sends itself the signal `signal`"),
    ("stop", "stops itself with SIGSTOP, after it answered"),
    ("big", "returns `n` bytes"),
    ("over", "returns one line of more than `n` bytes"),
    ("notify", "sends `times` notifications of `n` bytes, then answers"),
    ("elicit", "sends `times` elicitations of `n` bytes without waiting for answers, then answers"),
    ("fail", "returns a result that says isError, with a stack in its text"),
    ("rpc_error", "answers the JSON-RPC error `code`, `message`, `data`"),
    ("spawn", "starts a grandchild in its own session and returns its pid"),
    ("stderr", "writes `text` to stderr, `times` times"),
    ("noise", "writes lines to stdout that are no JSON-RPC"),
    ("count_in_flight", "returns the most requests it had at once"),
    ("structured", "returns structured content"),
    ("memory", "holds `n` bytes of memory for as long as it lives"),
    ("burn", "keeps a core busy for `ms`"),
    ("write", "writes `text` to the file `path`"),
    ("read", "returns the text of the file `path`"),
    ("fill", "writes `n` bytes to the file `path` and returns how many it got there"),
    ("forks", "starts up to `n` processes that live on and returns how many there are"),
    ("run", "runs `argv` to its end and returns its exit code and what it wrote"),
    ("connect", "connects to the TCP address `to`"),
];

/// One request and what it is to be served with.
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) params: Option<Box<RawValue>>,
    pub(crate) cancelled: Arc<Notify>,
}

impl Call {
    /// The params as a value; null where they hold what no value can (a lone surrogate).
    pub(crate) fn parsed(&self) -> Value {
        self.params
            .as_ref()
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default()
    }

    /// The `_meta` of the params, whatever else they hold.
    pub(crate) fn meta(&self) -> Value {
        #[derive(Deserialize)]
        struct Meta {
            #[serde(default, rename = "_meta")]
            meta: Value,
        }
        let raw = self.params.as_ref();
        let meta = raw.and_then(|raw| serde_json::from_str::<Meta>(raw.get()).ok());
        meta.map(|meta| meta.meta).unwrap_or_default()
    }
}

/// The params of `tools/call`; the arguments stay the bytes they are.
#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// What `tools/list` shows.
pub(crate) fn list(options: &Options) -> Vec<Value> {
    let schema = json!({"type": "object", "additionalProperties": true});
    let tool = |name: &str, description: &str| json!({"name": name, "description": description, "inputSchema": schema});
    match options.tools {
        None => TOOLS.iter().map(|(name, description)| tool(name, description)).collect(),
        Some(count) => {
            (0..count).map(|n| tool(&format!("tool-{n:04}"), "made up for a long list")).collect()
        }
    }
}

/// Serves `tools/call`.
pub(crate) async fn call(server: &Server, call: &Call) -> Reply {
    let raw = call.params.as_ref().map_or("{}", |raw| raw.get());
    let params: CallParams<'_> = match serde_json::from_str(raw) {
        Ok(params) => params,
        Err(error) => return Reply::error(-32602, format!("Invalid params: {error}")),
    };
    let raw = params.arguments.map_or("{}", RawValue::get);
    if params.name == "echo" {
        return text(raw);
    }
    let arguments = Arguments(serde_json::from_str(raw).unwrap_or_default());
    match params.name.as_ref() {
        "sleep" | "progress" | "late" | "hang" | "burn" => {
            waiting(server, call, &params.name, &arguments).await
        }
        "crash" | "kill_self" | "stop" | "spawn" | "memory" => {
            process(server, call, &params.name, &arguments).await
        }
        "write" | "read" | "fill" | "forks" | "run" | "connect" => {
            machine::call(&params.name, &arguments, &server.options)
        }
        other => plain(server, other, &arguments),
    }
}

/// Tools that only answer.
fn plain(server: &Server, name: &str, arguments: &Arguments) -> Reply {
    match name {
        "env" => environment(arguments),
        "cwd" => text(&std::env::current_dir().unwrap_or_default().to_string_lossy()),
        "pid" => text(&std::process::id().to_string()),
        "big" => text(&"b".repeat(arguments.size("n"))),
        "over" => text(&"o".repeat(arguments.size("n") + 1)),
        "notify" => {
            let data = "n".repeat(arguments.size("n"));
            for number in 0..arguments.number("times", 1) {
                let params = format!(r#"{{"number":{number},"data":"{data}"}}"#);
                server.output.notify("notifications/wayward", &params);
            }
            text("notified")
        }
        "elicit" => {
            let message = "e".repeat(arguments.size("n"));
            for number in 0..arguments.number("times", 1) {
                let params = format!(
                    r#"{{"message":"{message}","requestedSchema":{{"type":"object","properties":{{}}}}}}"#
                );
                server.output.ask(&format!("elicit-{number}"), "elicitation/create", &params);
            }
            text("elicited")
        }
        "fail" => Reply::result(&json!({
            "content": [{"type": "text", "text":
                "Error: it went wrong\n    at wayward (tools.rs:1:1)\n    at main (main.rs:1:1)"}],
            "isError": true,
        })),
        "rpc_error" => Reply::Error {
            code: arguments.0["code"].as_i64().unwrap_or(-32000),
            message: arguments.0["message"].as_str().unwrap_or("as ordered").to_owned(),
            data: arguments.0.get("data").cloned(),
        },
        "stderr" => {
            for _ in 0..arguments.number("times", 1) {
                crate::say(arguments.0["text"].as_str().unwrap_or_default());
            }
            text("written")
        }
        "noise" => {
            server.output.babble(arguments.number("times", 1));
            text("babbled")
        }
        "count_in_flight" => text(&server.most_in_work().to_string()),
        "structured" => Reply::result(&json!({
            "content": [{"type": "text", "text": "42"}], "structuredContent": {"answer": 42}
        })),
        unknown => Reply::error(-32602, format!("Unknown tool: {unknown}")),
    }
}

/// Tools that take their time.
async fn waiting(server: &Server, call: &Call, name: &str, arguments: &Arguments) -> Reply {
    let pause = Duration::from_millis(arguments.number("ms", 1000));
    match name {
        "sleep" => {
            tokio::select! {
                () = sleep(pause) => text("slept"),
                () = call.cancelled.notified() => Reply::Silence,
            }
        }
        "progress" => {
            tokio::select! {
                () = progress(server, call, pause, arguments.number("step", 100)) => text("done"),
                () = call.cancelled.notified() => Reply::Silence,
            }
        }
        "late" => {
            sleep(pause).await;
            text("late")
        }
        "burn" => {
            let end = tokio::time::Instant::now() + pause;
            while tokio::time::Instant::now() < end {
                std::hint::spin_loop();
            }
            text("burnt")
        }
        _ => std::future::pending().await,
    }
}

async fn progress(server: &Server, call: &Call, whole: Duration, step: u64) {
    let token = call.meta().get("progressToken").cloned();
    let steps = whole.as_millis() as u64 / step.max(1);
    for done in 1..=steps {
        sleep(Duration::from_millis(step)).await;
        if let Some(token) = &token {
            let params = json!({"progressToken": token, "progress": done, "total": steps});
            server.output.notify("notifications/progress", &params.to_string());
        }
    }
}

/// Tools that do something to the process.
async fn process(server: &Server, call: &Call, name: &str, arguments: &Arguments) -> Reply {
    match name {
        "crash" => {
            crate::say("wayward: crashing as ordered");
            crate::leave(arguments.number("code", 1) as i32)
        }
        "kill_self" => {
            processes::signal_self(arguments.number("signal", 9) as i32);
            call.cancelled.notified().await;
            Reply::Silence
        }
        // The signal goes out after the answer did (see `Server::end`): this call is not hung.
        "stop" => text(&std::process::id().to_string()),
        "spawn" => match processes::spawn_grandchild(&server.options) {
            Ok(pid) => text(&pid.to_string()),
            Err(error) => Reply::error(-32000, error.to_string()),
        },
        _ => {
            let held = vec![1_u8; arguments.size("n")];
            let address = Box::leak(held.into_boxed_slice()).len();
            text(&address.to_string())
        }
    }
}

fn environment(arguments: &Arguments) -> Reply {
    match arguments.0["name"].as_str() {
        Some(name) => text(&std::env::var(name).unwrap_or_else(|_| "(unset)".to_owned())),
        None => {
            let all: BTreeMap<String, String> = std::env::vars().collect();
            text(&json!(all).to_string())
        }
    }
}

pub(crate) fn text(text: &str) -> Reply {
    Reply::result(&json!({"content": [{"type": "text", "text": text}]}))
}

/// A tool's arguments; what is missing or of another type has the default.
pub(crate) struct Arguments(pub(crate) Value);

impl Arguments {
    pub(crate) fn number(&self, key: &str, default: u64) -> u64 {
        self.0[key].as_u64().unwrap_or(default)
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_default()
    }

    pub(crate) fn size(&self, key: &str) -> usize {
        self.number(key, 1) as usize
    }
}
