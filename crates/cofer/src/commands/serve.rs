//! `cofer serve`: the daemon in the foreground, its ready line, and its signals.

use std::io::{self, IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use cofer_daemon::{Config, PublicUrl, Ready};
use cofer_model::MaxInFlight;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::cli::{Global, max_in_flight};
use crate::config;
use crate::failure::Failure;
use crate::machine::ThisMachine;
use crate::output::say;

/// Run the daemon
///
/// Prints one line on stdout when it is ready, logs on stderr and in DIR/logs, and runs until
/// SIGTERM or SIGINT, which stop everything it runs. Where OTEL_EXPORTER_OTLP_ENDPOINT names an
/// OpenTelemetry collector, every call is exported to it as a span.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen; port 0 picks a free one
    #[arg(long, env = "COFER_LISTEN", value_name = "ADDRESS:PORT", default_value = config::DEFAULT_LISTEN, hide_env_values = true)]
    listen: SocketAddr,
    /// The address by which clients reach the daemon behind a reverse proxy, such as
    /// https://cofer.example.com; accepted as `Host` and `Origin`, and used in links
    #[arg(long, env = "COFER_PUBLIC_URL", value_name = "URL", hide_env_values = true)]
    public_url: Option<String>,
    /// A PostgreSQL database instead of the embedded one
    #[arg(long, env = "COFER_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    database_url: Option<String>,
    /// The largest message between a client and a server, in bytes
    #[arg(
        long,
        env = "COFER_MAX_MESSAGE_BYTES",
        value_name = "BYTES",
        default_value_t = 64 << 20,
        value_parser = clap::value_parser!(u32).range(1024..),
        hide_env_values = true
    )]
    max_message_bytes: u32,
    /// The most memory that messages may use, such as 512M or 2G; a quarter of the machine's if
    /// not given. A server that reaches its share loses messages; others are not affected
    #[arg(
        long,
        env = "COFER_MAX_MEMORY",
        value_name = "SIZE",
        value_parser = memory_size,
        hide_env_values = true
    )]
    max_memory: Option<u64>,
    /// How many servers may be starting at once: at the start of the daemon, and by import, enable
    /// and restart
    #[arg(
        long,
        env = "COFER_START_PARALLELISM",
        value_name = "N",
        default_value_t = 8,
        value_parser = clap::value_parser!(u16).range(1..),
        hide_env_values = true
    )]
    start_parallelism: u16,
    /// How many requests a server is given at once whose registration does not say: a number, or
    /// `auto`: 1, and 8 once the server has answered a request while another was open
    #[arg(
        long,
        env = "COFER_DEFAULT_MAX_IN_FLIGHT",
        value_name = "N|auto",
        default_value = "1",
        value_parser = max_in_flight,
        hide_env_values = true
    )]
    default_max_in_flight: MaxInFlight,
}

pub(crate) fn run(args: ServeArgs, global: &Global) -> Result<(), Failure> {
    let config = Config {
        listen: args.listen,
        public_url: public_url(args.public_url.as_deref())?,
        data_dir: config::data_dir(global.data_dir.as_deref())?,
        database_url: args.database_url.filter(|url| !url.trim().is_empty()),
        max_message_bytes: args.max_message_bytes as usize,
        max_memory: args.max_memory,
        start_parallelism: usize::from(args.start_parallelism),
        max_in_flight: args.default_max_in_flight,
        // Not the path of the binary: an upgrade may have put another one there.
        shim: PathBuf::from("/proc/self/exe"),
        identity: Some(Arc::new(cofer_proxy::GoogleIdentity)),
        podman: config::podman(),
        machine: Arc::new(machine()?),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("could not start the runtime").caused_by(error))?;
    runtime.block_on(serve(config))
}

/// A variable that is set to nothing counts as not set.
fn public_url(given: Option<&str>) -> Result<Option<PublicUrl>, Failure> {
    let Some(text) = given.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|error| {
        Failure::mistyped(format!("`--public-url {text}` {error}")).hint(
            "give the address that clients use, such as `--public-url https://cofer.example.com`.",
        )
    })
}

/// The least memory for messages with which the daemon is of use.
const LEAST_MEMORY: u64 = 16 << 20;

fn memory_size(text: &str) -> Result<u64, String> {
    match cofer_model::parse_bytes(text) {
        Some(bytes) if bytes >= LEAST_MEMORY => Ok(bytes),
        Some(_) => Err("less than 16M; expected a size such as 512M or 2G".to_owned()),
        None => {
            Err("not a size; expected bytes with an optional unit, such as 512M or 2G".to_owned())
        }
    }
}

fn machine() -> Result<ThisMachine, Failure> {
    ThisMachine::new().map_err(|why| {
        Failure::mistyped("a setting in the environment cannot be meant").caused_by(why)
    })
}

async fn serve(config: Config) -> Result<(), Failure> {
    let mut signals = Signals::new()
        .map_err(|error| Failure::new("could not listen for signals").caused_by(error))?;
    let (stop, stopped) = oneshot::channel();
    // A dropped sender stops the daemon as a sent word does.
    let shutdown = async move { stopped.await.unwrap_or_default() };
    let mut daemon = Box::pin(cofer_daemon::run(config, announce, shutdown));
    let mut stop = Some(stop);
    loop {
        tokio::select! {
            ended = &mut daemon => return Ok(ended?),
            name = signals.next() => match stop.take() {
                Some(stop) => {
                    say(&format!("cofer: {name}, stopping all servers"));
                    stop.send(()).unwrap_or_default();
                }
                None => say(&format!("cofer: {name} again, still stopping all servers")),
            },
        }
    }
}

/// The ready line is the only thing on stdout: programs wait for it.
fn announce(ready: Ready) {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "cofer: listening on http://{}", ready.address)
        .and_then(|()| stdout.flush())
        .unwrap_or_default();
    say(&console_line(&ready, io::stderr().is_terminal()));
}

/// The link with the token is for a person only: stderr of a service ends in a journal.
fn console_line(ready: &Ready, is_terminal: bool) -> String {
    if is_terminal {
        return format!("Console: {}", ready.console_url);
    }
    format!("Console: {} (`cofer console` opens it with the token)", ready.url)
}

/// The signals that ask to stop.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_with_the_token_is_printed_to_a_terminal_only() {
        let ready = Ready {
            address: "127.0.0.1:8787".parse().unwrap(),
            url: "http://127.0.0.1:8787".to_owned(),
            console_url: "http://127.0.0.1:8787/#token=secret".to_owned(),
        };
        assert_eq!(console_line(&ready, true), "Console: http://127.0.0.1:8787/#token=secret");
        let elsewhere = console_line(&ready, false);
        assert!(!elsewhere.contains("secret") && elsewhere.contains("cofer console"));
    }

    #[test]
    fn a_public_url_is_an_origin_or_nothing() {
        assert_eq!(public_url(None).unwrap(), None);
        assert_eq!(public_url(Some(" ")).unwrap(), None);
        let url = public_url(Some("https://cofer.example.com/")).unwrap().unwrap();
        assert_eq!(url.origin(), "https://cofer.example.com");
        let failure = public_url(Some("https://example.com/cofer")).unwrap_err().render();
        assert!(
            failure.contains("`--public-url https://example.com/cofer` has a path"),
            "{failure}"
        );
    }

    #[test]
    fn memory_is_a_size_with_a_unit() {
        assert_eq!(memory_size("2G"), Ok(2 << 30));
        assert_eq!(memory_size("16777216"), Ok(16 << 20));
        for wrong in ["", "0", "1M", "much", "-1G", "20000000T"] {
            assert!(memory_size(wrong).unwrap_err().contains("512M or 2G"), "{wrong}");
        }
    }
}
