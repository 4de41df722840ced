//! The smallest stdio MCP server: one tool that answers its text. It reads and writes in batches
//! and copies the text as it came, so that it costs as little as it can beside what is measured.

use std::borrow::Cow;
use std::io::{self, Read as _, Write as _};

use memchr::{memchr_iter, memrchr};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: &'a str,
    #[serde(borrow)]
    params: CallParams<'a>,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    arguments: CallArguments<'a>,
}

#[derive(Deserialize)]
struct CallArguments<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

const WELCOME: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo-server","version":"0"}}"#;
const TOOLS: &str = r#"{"tools":[{"name":"echo","description":"Answers its text.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]}"#;

fn main() -> io::Result<()> {
    let mut stdin = io::stdin().lock();
    let mut stdout = io::stdout().lock();
    let mut input = vec![0; 1 << 16];
    let mut filled = 0;
    let mut output = Vec::new();
    loop {
        if filled == input.len() {
            input.resize(input.len() * 2, 0);
        }
        let read = stdin.read(&mut input[filled..])?;
        if read == 0 {
            return Ok(());
        }
        // Only what is new can hold a line's end that was not seen yet.
        let Some(end) = memrchr(b'\n', &input[filled..filled + read]).map(|at| filled + at + 1)
        else {
            filled += read;
            continue;
        };
        filled += read;
        let mut begin = 0;
        for newline in memchr_iter(b'\n', &input[..end]) {
            answer(&input[begin..newline], &mut output);
            begin = newline + 1;
        }
        stdout.write_all(&output)?;
        stdout.flush()?;
        output.clear();
        input.copy_within(end..filled, 0);
        filled -= end;
    }
}

fn answer(line: &[u8], output: &mut Vec<u8>) {
    if let Ok(call) = serde_json::from_slice::<Call<'_>>(line)
        && call.method == "tools/call"
    {
        let text =
            [r#"{"content":[{"type":"text","text":"#, call.params.arguments.text.get(), "}]}"];
        return result(call.id, &text, output);
    }
    let Ok(Request { id: Some(id), method: Some(method), params }) = serde_json::from_slice(line)
    else {
        return;
    };
    match method.as_ref() {
        "initialize" => result(id, &[WELCOME], output),
        "tools/list" => result(id, &[TOOLS], output),
        "ping" => result(id, &["{}"], output),
        "echo" => result(id, &[params.map_or("null", RawValue::get)], output),
        _ => {
            let error = r#","error":{"code":-32601,"message":"no such method"}}"#;
            put(&[r#"{"jsonrpc":"2.0","id":"#, id.get(), error, "\n"], output);
        }
    }
}

fn result(id: &RawValue, result: &[&str], output: &mut Vec<u8>) {
    put(&[r#"{"jsonrpc":"2.0","id":"#, id.get(), r#","result":"#], output);
    put(result, output);
    put(&["}\n"], output);
}

fn put(parts: &[&str], output: &mut Vec<u8>) {
    for part in parts {
        output.extend_from_slice(part.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let mut output = Vec::new();
        answer(line.as_bytes(), &mut output);
        assert_eq!(String::from_utf8(output).unwrap(), expected);
    }

    #[test]
    fn a_call_is_answered_with_its_text_as_it_came() {
        check(
            r#"{"jsonrpc":"2.0","id":"a\u0062","method":"tools/call","params":{"name":"echo","arguments":{"text":"x\n"}}}"#,
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\\u0062\",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"x\\n\"}]}}\n",
        );
    }

    #[test]
    fn requests_are_answered_and_notifications_are_not() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n",
        );
        check(
            r#"{"jsonrpc":"2.0","id":2,"method":"server/discover"}"#,
            "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32601,\"message\":\"no such method\"}}\n",
        );
        check(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "");
        check("", "");
    }
}
