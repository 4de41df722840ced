//! `wayward`: a small stdio MCP server that is good by default and misbehaves on order, by
//! its flags (see `options.rs`) and by its tools (see `tools.rs` and `machine.rs`).
//!
//! It is the other side of every end-to-end test: what a real server does once a month,
//! this one does when asked.

mod http;
mod machine;
mod options;
mod order;
mod processes;
mod server;
mod tools;
mod wire;

use std::time::Duration;

use options::Options;
use order::Order;

fn main() {
    let options = match Options::parse(flags()) {
        Ok(options) => options,
        Err(message) => {
            say(&message);
            leave(2);
        }
    };
    if let Some(role) = options.role {
        processes::play(role, &options);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime on the current thread needs nothing that can be missing");
    runtime.block_on(run(options));
    // The thread that reads stdin may still be in `read`: leave without waiting for it.
    leave(0);
}

/// The arguments, then those in `WAYWARD_FLAGS`: an image has its arguments built in.
fn flags() -> impl Iterator<Item = String> {
    let more = std::env::var("WAYWARD_FLAGS").unwrap_or_default();
    let more: Vec<String> = more.split_ascii_whitespace().map(str::to_owned).collect();
    std::env::args().skip(1).chain(more)
}

async fn run(options: Options) {
    let order = Order::open(options.order_log.as_deref());
    let options = std::sync::Arc::new(options);
    let work = async {
        begin(&options).await;
        match options.http {
            Some(port) => http::serve(port, options.clone(), order.clone()).await,
            None => server::serve(options.clone(), order.clone()).await,
        }
    };
    tokio::select! {
        biased;
        () = processes::answer_sigterm(&options, &order) => {}
        () = work => {}
    }
}

/// Everything that happens before the first message is read.
async fn begin(options: &Options) {
    if let Some(path) = &options.pid_file {
        processes::append(path, std::process::id());
    }
    for number in 0..options.stderr_flood {
        say(&format!("flood {number:08} {}", "x".repeat(80)));
    }
    if options.grandchildren {
        processes::spawn_grandchild(options).expect("a grandchild starts");
    }
    if options.slow_start > 0 {
        tokio::time::sleep(Duration::from_millis(options.slow_start)).await;
    }
    if let Some(code) = options.exit_code_at_start() {
        say(&format!("wayward: cannot start, exiting with {code}"));
        leave(code);
    }
    while options.wait_for_file.as_ref().is_some_and(|path| !path.exists()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    if options.hang_at_start {
        std::future::pending::<()>().await;
    }
}

/// One line to stderr, in one write.
#[expect(clippy::print_stderr, reason = "stderr is where a stdio server talks to people")]
fn say(line: &str) {
    eprintln!("{line}");
}

#[expect(clippy::exit, reason = "the one way out of this program, with the code it was told")]
fn leave(code: i32) -> ! {
    std::process::exit(code)
}
