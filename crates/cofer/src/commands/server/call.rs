//! `cofer server call`: one request to a server, or one of its tools.

use std::io::Read as _;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::ServerArg;
use crate::cli::seconds;
use crate::commands::Context;
use crate::failure::Failure;
use crate::output::{Output, text};

/// Send a request to a server, or call one of its tools
///
///   cofer server call fs --tool read_file '{"path": "/tmp/a.txt"}'
///   cofer server call fs resources/read '{"uri": "file:///tmp/a.txt"}'
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "cofer server call [OPTIONS] <NAME> <METHOD> [PARAMS]\n       cofer server call [OPTIONS] <NAME> --tool <TOOL> [ARGUMENTS]"
)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    pub(super) server: ServerArg,
    /// The method and its params, or the tool's arguments; JSON, or `-` for JSON from stdin
    #[arg(value_name = "METHOD|JSON", num_args = 0..=2)]
    request: Vec<String>,
    /// Call this tool
    #[arg(long)]
    tool: Option<String>,
    /// How long the answer may take [default: the server's call timeout]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
}

/// The body of a call; params go out as the bytes that came in.
#[derive(Serialize)]
struct Body<'a> {
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Params<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Params<'a> {
    Given(&'a RawValue),
    Tool { name: &'a str, arguments: &'a RawValue },
}

#[derive(Deserialize)]
struct Reply {
    result: Box<RawValue>,
}

pub(super) async fn run(args: CallArgs, context: &mut Context) -> Result<(), Failure> {
    let name = args.server.name.as_str();
    let body = body(&args, &read_stdin)?;
    let answer = context.client.call(name, body).await?;
    if context.out.wants_json() {
        context.out.print_json(answer.json())?;
    }
    let reply: Reply = answer.read()?;
    match &args.tool {
        Some(tool) => show_tool_result(tool, &reply.result, &mut context.out),
        None if context.out.wants_json() => Ok(()),
        None => Ok(context.out.print_json(reply.result.get())?),
    }
}

fn body(args: &CallArgs, stdin: &dyn Fn() -> Result<String, Failure>) -> Result<String, Failure> {
    let json = |text: &str| {
        let text = if text == "-" { stdin()? } else { text.to_owned() };
        RawValue::from_string(text)
            .map_err(|error| Failure::mistyped("the params are not JSON").caused_by(error))
    };
    let timeout_ms = args.timeout.and_then(|span| u64::try_from(span.as_millis()).ok());
    let (method, given) = match (&args.tool, args.request.as_slice()) {
        (Some(_), []) => ("tools/call", Some(json("{}")?)),
        (Some(_), [arguments]) => ("tools/call", Some(json(arguments)?)),
        (None, [method]) => (method.as_str(), None),
        (None, [method, params]) => (method.as_str(), Some(json(params)?)),
        (Some(_), _) => return Err(Failure::mistyped("a tool has one JSON object of arguments")),
        (None, _) => {
            return Err(Failure::mistyped("what to call is missing")
                .hint("name a method, such as tools/list, or a tool with `--tool`."));
        }
    };
    if given.as_ref().is_some_and(|json| !json.get().trim_start().starts_with('{')) {
        return Err(Failure::mistyped("the params are not a JSON object"));
    }
    let params = given.as_deref().map(|raw| match &args.tool {
        Some(name) => Params::Tool { name, arguments: raw },
        None => Params::Given(raw),
    });
    serde_json::to_string(&Body { method, params, timeout_ms })
        .map_err(|error| Failure::new("could not write the request").caused_by(error))
}

fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::new("could not read stdin").caused_by(error))?;
    Ok(text)
}

/// A tool's answer is its content; a tool that says it failed makes the command fail.
fn show_tool_result(tool: &str, result: &RawValue, out: &mut Output) -> Result<(), Failure> {
    let value: Value = serde_json::from_str(result.get()).unwrap_or_default();
    if !out.wants_json() {
        match content(&value) {
            Some(content) => out.print_foreign(&content)?,
            None => out.print_json(result.get())?,
        }
    }
    if value.get("isError") == Some(&Value::Bool(true)) {
        return Err(Failure::new(format!("the tool `{tool}` says that it failed")));
    }
    Ok(())
}

/// The content's blocks as text; none where there is nothing but structured content.
fn content(result: &Value) -> Option<String> {
    let blocks = result.get("content")?.as_array().filter(|blocks| !blocks.is_empty())?;
    let shown: Vec<String> = blocks.iter().map(block).collect();
    Some(shown.join("\n"))
}

fn block(block: &Value) -> String {
    let field = |key: &str| block.get(key).and_then(Value::as_str);
    match (field("type"), field("text")) {
        (Some("text"), Some(text)) => text.to_owned(),
        (Some(sort @ ("image" | "audio")), _) => {
            let bytes = field("data").unwrap_or_default().len() / 4 * 3;
            let mime = field("mimeType").unwrap_or("unknown type");
            format!("[{sort}: {mime}, about {}; `--json` has it]", text::size(bytes as u64))
        }
        _ => block.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn args(tool: Option<&str>, request: &[&str]) -> CallArgs {
        CallArgs {
            server: ServerArg { name: "fs".to_owned() },
            request: request.iter().map(|word| (*word).to_owned()).collect(),
            tool: tool.map(str::to_owned),
            timeout: None,
        }
    }

    fn check(tool: Option<&str>, request: &[&str]) -> Result<String, String> {
        let stdin = || Ok("{\"from\": \"stdin\"}\n".to_owned());
        body(&args(tool, request), &stdin).map_err(|failure| failure.render())
    }

    #[test]
    fn a_method_goes_out_with_the_params_as_typed() {
        assert_eq!(check(None, &["ping"]).unwrap(), r#"{"method":"ping"}"#);
        assert_eq!(
            check(None, &["x/y", r#"{"n": 1.50, "big": 12345678901234567890}"#]).unwrap(),
            r#"{"method":"x/y","params":{"n": 1.50, "big": 12345678901234567890}}"#
        );
    }

    #[test]
    fn a_tool_is_called_with_its_arguments_or_none() {
        assert_eq!(
            check(Some("read"), &[r#"{"path":"/a"}"#]).unwrap(),
            r#"{"method":"tools/call","params":{"name":"read","arguments":{"path":"/a"}}}"#
        );
        assert_eq!(
            check(Some("now"), &[]).unwrap(),
            r#"{"method":"tools/call","params":{"name":"now","arguments":{}}}"#
        );
    }

    #[test]
    fn params_can_come_from_stdin() {
        let body = check(None, &["x", "-"]).unwrap();
        assert!(body.contains(r#""params":{"from": "stdin"}"#), "{body}");
    }

    #[test]
    fn the_time_limit_is_sent_in_milliseconds() {
        let args = CallArgs { timeout: Some(Duration::from_millis(1500)), ..args(None, &["ping"]) };
        let body = body(&args, &|| Ok(String::new())).unwrap();
        assert_eq!(body, r#"{"method":"ping","timeout_ms":1500}"#);
    }

    #[test]
    fn what_cannot_be_meant_is_mistyped() {
        for (tool, request) in [
            (None, vec![]),
            (None, vec!["x", "{not json"]),
            (None, vec!["x", "[1]"]),
            (Some("t"), vec!["3"]),
            (Some("t"), vec!["{}", "{}"]),
        ] {
            assert!(check(tool, &request).is_err(), "{tool:?} {request:?}");
        }
    }

    #[test]
    fn content_is_shown_as_a_person_reads_it() {
        let result = json!({"content": [
            {"type": "text", "text": "two\nlines"},
            {"type": "image", "mimeType": "image/png", "data": "A".repeat(4096)},
            {"type": "resource_link", "uri": "file:///a"},
        ]});
        insta::assert_snapshot!(content(&result).unwrap(), @r#"
        two
        lines
        [image: image/png, about 3.0 KiB; `--json` has it]
        {"type":"resource_link","uri":"file:///a"}
        "#);
        assert_eq!(content(&json!({"structuredContent": {"a": 1}})), None);
    }
}
