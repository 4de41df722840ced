//! The tools that find out what the machine around the server allows: files, processes,
//! programs, the network. What a container must hold is held against these.

use std::fs::File;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::json;

use crate::options::Options;
use crate::processes;
use crate::tools::{Arguments, text};
use crate::wire::Reply;

/// Long enough for loopback and a bridge; what drops packets is found out after it.
const CONNECT: Duration = Duration::from_secs(3);

pub(crate) fn call(name: &str, arguments: &Arguments, options: &Options) -> Reply {
    let path = arguments.text("path");
    let done = match name {
        "write" => std::fs::write(path, arguments.text("text")).map(|()| "written".to_owned()),
        "read" => std::fs::read_to_string(path),
        "fill" => Ok(fill(path, arguments.size("n"))),
        "forks" => Ok(forks(arguments.number("n", 1), options)),
        "run" => run(arguments),
        _ => connect(arguments.text("to")),
    };
    match done {
        Ok(answer) => text(&answer),
        // A tool that failed is an answer, as the protocol wants it.
        Err(error) => Reply::result(&json!({
            "content": [{"type": "text", "text": error.to_string()}], "isError": true,
        })),
    }
}

/// How many bytes were written and are on the disk, and why no more.
fn fill(path: &str, wanted: usize) -> String {
    let chunk = vec![b'f'; 1 << 20];
    let mut written = 0;
    let mut filling = || -> io::Result<()> {
        let mut file = File::create(path)?;
        while written < wanted {
            let next = chunk.len().min(wanted - written);
            file.write_all(&chunk[..next])?;
            file.sync_data()?;
            written += next;
        }
        Ok(())
    };
    match filling() {
        Ok(()) => json!({"written": written}).to_string(),
        Err(error) => json!({"written": written, "error": error.to_string()}).to_string(),
    }
}

fn forks(wanted: u64, options: &Options) -> String {
    let (started, error) = processes::spawn_many(wanted, options);
    json!({"started": started, "error": error.map(|error| error.to_string())}).to_string()
}

fn run(arguments: &Arguments) -> io::Result<String> {
    let argv = arguments.0["argv"].as_array().cloned().unwrap_or_default();
    let argv: Vec<String> =
        argv.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect();
    let (code, output) = processes::run(&argv)?;
    Ok(json!({"code": code, "output": output}).to_string())
}

fn connect(to: &str) -> io::Result<String> {
    let address: SocketAddr = to.parse().map_err(io::Error::other)?;
    TcpStream::connect_timeout(&address, CONNECT).map(|_| "connected".to_owned())
}
