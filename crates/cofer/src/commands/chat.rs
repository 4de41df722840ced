//! `cofer chat`: a turn of a chat in the terminal. The daemon does the work; what it tells is
//! shown as text, and each tool call as a card of two lines.

use std::io::{self, Read as _};

use clap::Args;
use serde_json::{Map, Value, json};

use super::serve::Signals;
use crate::client::ChatFeed;
use crate::commands::Context;
use crate::failure::Failure;
use crate::output::{BAD, BUSY, DIM, GOOD, Output, say, styled, text};

/// Conversations that are listed.
const LISTED: u32 = 30;
/// What is shown of a card's arguments and result.
const EXCERPT: usize = 200;

/// Ask a language model, which may use the tools of your servers
///
/// Streams the answer to stdout, with a card for each tool call. The model's provider is set up
/// in the console's Settings, or by the daemon's environment. Ctrl+C stops the turn.
#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    /// What to say; `-` reads it from stdin
    #[arg(required_unless_present_any = ["list", "conversation"])]
    message: Option<String>,
    /// The model to ask
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The provider to ask
    #[arg(long, value_name = "ID")]
    provider: Option<String>,
    /// Offer only the tools of this server; may be given several times
    #[arg(long = "server", value_name = "NAME")]
    servers: Vec<String>,
    /// Go on with this conversation; without a message, the model goes on by itself
    #[arg(long = "continue", value_name = "CONVERSATION")]
    conversation: Option<String>,
    /// Have the model answer without tools, with what it knows
    #[arg(long, requires = "conversation", conflicts_with = "message")]
    answer_now: bool,
    /// List conversations, newest first
    #[arg(long, conflicts_with_all = ["message", "model", "provider", "servers", "conversation"])]
    list: bool,
}

pub(crate) async fn run(args: ChatArgs, context: &mut Context) -> Result<(), Failure> {
    if args.list {
        return list(context).await;
    }
    let body = body(args, || {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    })?;
    let mut signals = Signals::new()
        .map_err(|error| Failure::new("could not listen for signals").caused_by(error))?;
    let Context { client, out, .. } = context;
    let mut feed = client.chat(body).await?;
    let mut view = View::default();
    loop {
        tokio::select! {
            next = next(&mut feed) => match next? {
                Some((name, data)) => view.show(&name, &data, out)?,
                None => break,
            },
            _ = signals.next() => match &view.conversation {
                // The stream goes on to its end, which the stop brings.
                Some(id) => drop(client.stop_chat(id).await?),
                None => return Err(Failure::new("stopped before the turn began")),
            },
        }
    }
    view.end(out)
}

/// Boxed, because it is large and waited for in a loop.
async fn next(feed: &mut ChatFeed<'_>) -> Result<Option<(String, Value)>, Failure> {
    Ok(Box::pin(feed.next()).await?)
}

/// What is asked of the daemon.
fn body(args: ChatArgs, stdin: impl FnOnce() -> io::Result<String>) -> Result<String, Failure> {
    let mut body = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(key.to_owned(), value);
        }
    };
    let message = match args.message.as_deref() {
        Some("-") => Some(stdin()?),
        _ => args.message,
    };
    let action = match (&message, args.answer_now) {
        (Some(_), _) => None,
        (None, true) => Some("answer_now"),
        (None, false) => Some("continue"),
    };
    put("message", message.map(Value::from));
    put("action", action.map(Value::from));
    put("conversation_id", args.conversation.map(Value::from));
    put("model", args.model.map(Value::from));
    put("provider", args.provider.map(Value::from));
    put("servers", (!args.servers.is_empty()).then(|| json!(args.servers)));
    Ok(Value::Object(body).to_string())
}

/// What has been shown so far.
#[derive(Debug, Default)]
struct View {
    conversation: Option<String>,
    /// Whether the last thing written was a piece of a line.
    in_line: bool,
    failure: Option<Value>,
    reason: Option<String>,
}

impl View {
    fn show(&mut self, name: &str, data: &Value, out: &mut Output) -> Result<(), Failure> {
        if name == "turnStarted" {
            self.conversation = data["conversation_id"].as_str().map(str::to_owned);
        }
        match name {
            "turnError" => self.failure = Some(data.clone()),
            "turnFinished" => self.reason = data["reason"].as_str().map(str::to_owned),
            _ => {}
        }
        if out.wants_json() {
            return Ok(out.print_raw(&as_line(name, data))?);
        }
        match name {
            "textDelta" => {
                let delta = data["delta"].as_str().unwrap_or_default();
                self.in_line = !delta.ends_with('\n');
                out.write_foreign(delta)?;
            }
            "toolCallStarted" => self.line(&started(data), out)?,
            "toolCallFinished" => self.line(&finished(data), out)?,
            "messageFinished" => self.close_line(out)?,
            "retrying" => say(&retrying(data)),
            "toolsOffered" => {
                for away in data["unavailable"].as_array().into_iter().flatten() {
                    say(&unavailable(away));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn line(&mut self, line: &str, out: &mut Output) -> Result<(), Failure> {
        self.close_line(out)?;
        Ok(out.print(line)?)
    }

    fn close_line(&mut self, out: &mut Output) -> Result<(), Failure> {
        if std::mem::take(&mut self.in_line) {
            out.print("")?;
        }
        Ok(())
    }

    /// What the turn came to.
    fn end(mut self, out: &mut Output) -> Result<(), Failure> {
        if !out.wants_json() {
            self.close_line(out)?;
        }
        let id = self.conversation.unwrap_or_default();
        let go_on = format!("go on with `cofer chat --continue {id}`");
        match self.reason.as_deref() {
            Some("done") => {
                say(&styled(DIM, &format!("conversation {id}; {go_on} \"…\"")));
                Ok(())
            }
            Some("limit") => Err(Failure::new("Tool call limit reached (10 of 10 steps)")
                .hint(format!("{go_on}, or add --answer-now for an answer without tools."))),
            Some("stopped") => Err(Failure::new("the turn was stopped").hint(format!("{go_on}."))),
            Some(_) => Err(failed(self.failure.as_ref(), &go_on)),
            None => Err(Failure::new("the daemon ended before the turn did")
                .hint(format!("when it runs again, {go_on}."))),
        }
    }
}

fn failed(failure: Option<&Value>, go_on: &str) -> Failure {
    let told = |key: &str| failure.and_then(|failure| failure[key].as_str());
    let failure = Failure::new(text::line(told("message").unwrap_or("the turn failed")));
    failure.hint(told("hint").map_or_else(|| format!("{go_on}."), text::line))
}

/// An event as one line of JSON.
fn as_line(name: &str, data: &Value) -> String {
    let mut line = Map::new();
    line.insert("event".to_owned(), name.into());
    line.extend(data.as_object().cloned().unwrap_or_default());
    Value::Object(line).to_string()
}

fn card(data: &Value) -> String {
    let field = |key: &str| text::line(data[key].as_str().unwrap_or_default());
    format!("Tool call {}: {} · {}", data["n"], field("server"), field("tool"))
}

fn started(data: &Value) -> String {
    let arguments = excerpt(&data["arguments"].to_string());
    format!("{} {} {}", styled(BUSY, "●"), card(data), styled(DIM, &arguments))
}

fn finished(data: &Value) -> String {
    let took = data["duration_ms"].as_f64().map(|ms| format!(" ({ms:.0} ms)")).unwrap_or_default();
    let (mark, word) = match data["status"].as_str() {
        Some("done") => (styled(GOOD, "✓"), "Done"),
        Some("cancelled") => (styled(DIM, "■"), "Cancelled"),
        _ => (styled(BAD, "✗"), "Error"),
    };
    let said = match data["error"]["message"].as_str() {
        Some(message) => message.to_owned(),
        None => words(&data["result"]),
    };
    format!("{mark} {} {word}{took}: {}", card(data), styled(DIM, &excerpt(&said)))
}

/// The texts of a result, or its JSON.
fn words(result: &Value) -> String {
    let blocks = result["content"].as_array().or_else(|| result["contents"].as_array());
    let texts: Vec<&str> =
        blocks.into_iter().flatten().filter_map(|block| block["text"].as_str()).collect();
    if texts.is_empty() { result.to_string() } else { texts.join(" ") }
}

fn excerpt(said: &str) -> String {
    let line = text::line(said);
    match line.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn retrying(data: &Value) -> String {
    let seconds = data["after_ms"].as_f64().unwrap_or_default() / 1000.0;
    let message = text::line(data["message"].as_str().unwrap_or_default());
    let (attempt, of) = (&data["attempt"], &data["of"]);
    styled(BUSY, &format!("{message}; trying again in {seconds:.0} s ({attempt} of {of})"))
}

fn unavailable(away: &Value) -> String {
    let field = |key: &str| text::line(away[key].as_str().unwrap_or_default());
    styled(BUSY, &format!("no tools of {}: {}", field("server"), field("reason")))
}

async fn list(context: &mut Context) -> Result<(), Failure> {
    let answer = context.client.conversations(LISTED).await?;
    if context.out.wants_json() {
        return Ok(context.out.print_json(answer.json())?);
    }
    let page: Value = answer.read()?;
    let conversations = page["conversations"].as_array().cloned().unwrap_or_default();
    if conversations.is_empty() {
        say("no conversations yet; begin one with `cofer chat \"…\"`");
    }
    for conversation in &conversations {
        let field = |key: &str| text::line(conversation[key].as_str().unwrap_or_default());
        let at = field("updated_at");
        let at = at.get(..16).unwrap_or_default().replace('T', " ");
        let running = if conversation["running"] == true { "  (running)" } else { "" };
        let line = format!("{}  {}  {}{running}", field("id"), styled(DIM, &at), field("title"));
        context.out.print(&line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(message: Option<&str>) -> ChatArgs {
        ChatArgs {
            message: message.map(str::to_owned),
            model: None,
            provider: None,
            servers: Vec::new(),
            conversation: Some("c".to_owned()),
            answer_now: false,
            list: false,
        }
    }

    fn asked(args: ChatArgs) -> Value {
        serde_json::from_str(&body(args, || Ok("from stdin".to_owned())).unwrap()).unwrap()
    }

    #[test]
    fn what_is_typed_becomes_a_turn() {
        assert_eq!(asked(args(Some("hi"))), json!({"message": "hi", "conversation_id": "c"}));
        assert_eq!(asked(args(Some("-")))["message"], "from stdin");
        assert_eq!(asked(args(None)), json!({"action": "continue", "conversation_id": "c"}));
        let now = ChatArgs { answer_now: true, ..args(None) };
        assert_eq!(asked(now)["action"], "answer_now");
        let chosen = ChatArgs { servers: vec!["fs".to_owned()], ..args(Some("x")) };
        assert_eq!(asked(chosen)["servers"], json!(["fs"]));
    }

    #[test]
    fn a_card_is_two_lines_that_say_what_happened() {
        let plain = |line: &str| anstream::adapter::strip_str(line).to_string();
        let data = json!({"n": 3, "server": "fs", "tool": "read", "arguments": {"path": "/x"}});
        assert_eq!(plain(&started(&data)), r#"● Tool call 3: fs · read {"path":"/x"}"#);
        let done = json!({"n": 3, "server": "fs", "tool": "read", "status": "done",
            "duration_ms": 12.4, "result": {"content": [{"type": "text", "text": "a\nb"}]}});
        assert!(plain(&finished(&done)).starts_with("✓ Tool call 3: fs · read Done (12 ms): a"));
        let failed = json!({"n": 1, "server": "s", "tool": "t", "status": "error",
            "error": {"message": "boom\u{1b}[31m"}});
        let line = plain(&finished(&failed));
        assert!(line.starts_with("✗ Tool call 1: s · t Error: boom"), "{line}");
        assert!(!line.contains('\u{1b}'));
    }
}
