//! `exemplary`: a stdio MCP server that does everything the protocol knows, with the names that
//! the official conformance suite asks for. `--era legacy` (the default) or `--era modern`.
//!
//! In the older era it asks its client while it works; in the newer one it answers that it wants
//! input. Its tools do not know which: see `questions.rs`.

mod offer;
mod prompts;
mod questions;
mod server;
mod tools;

use std::io::{self, BufRead as _};

use tokio::sync::mpsc;

use server::{Era, Server};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let era = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["--era", "legacy"] => Era::Legacy,
        ["--era", "modern"] => Era::Modern,
        _ => leave("exemplary: the only flag is --era legacy|modern", 2),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime on the current thread needs nothing that can be missing");
    runtime.block_on(Server::new(era).serve(read_lines()));
    leave("exemplary: stdin ended", 0);
}

/// Reads lines on a thread of its own; the channel ends with stdin.
fn read_lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(64);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

#[expect(clippy::print_stderr, clippy::exit, reason = "the one way out, with a word to people")]
fn leave(why: &str, code: i32) -> ! {
    eprintln!("{why}");
    // The thread that reads stdin may still be in `read`: leave without waiting for it.
    std::process::exit(code)
}
