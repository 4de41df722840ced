//! `cofer proxy`: a remote MCP server as a local one. stdout is the protocol and nothing else;
//! what is to be said goes to stderr.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use cofer_proxy::{CheckFailed, Checked, Options, ProxyError, Step};
use http::header::{HeaderName, HeaderValue};
use tracing_subscriber::EnvFilter;

use super::serve::Signals;
use crate::cli::{Global, seconds};
use crate::failure::Failure;
use crate::output::{GOOD, Output, styled, text};

/// What is logged without being asked, by a check, which says it itself, and with `--verbose`.
const USUAL: &str = "warn";
const CHECKING: &str = "error";
const VERBOSE: &str = "warn,cofer_proxy=debug,cofer_mcp=debug";

/// Offer a remote MCP server behind Cloud Run's IAM as a local one
///
/// Speaks MCP on stdin and stdout and forwards every message to a Streamable HTTP server, signed
/// with an ID token from Application Default Credentials: the file that
/// GOOGLE_APPLICATION_CREDENTIALS names, else that of `gcloud auth application-default login`, else
/// the metadata server. For a client's configuration:
/// {"command": "cofer", "args": ["proxy", "--url", "https://my-server.run.app/mcp"]}
#[derive(Debug, Args)]
pub(crate) struct ProxyArgs {
    /// The MCP server; https, or http on this machine
    #[arg(long, value_name = "URL", required = true)]
    url: String,
    /// The longest silence allowed of a server that owes an answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    timeout: Duration,
    /// Say on stderr what is done; never a token
    #[arg(long, short)]
    verbose: bool,
    /// Whom the ID token is for [default: the URL's origin]
    #[arg(long, value_name = "AUD")]
    audience: Option<String>,
    /// Sign in the name of this service account
    #[arg(long, value_name = "EMAIL")]
    impersonate_service_account: Option<String>,
    /// Send this header too; may be given more than once
    #[arg(long, value_name = "'K: V'", value_parser = header)]
    header: Vec<(HeaderName, HeaderValue)>,
    /// Send no token; only for a server on this machine
    #[arg(long, conflicts_with_all = ["audience", "impersonate_service_account"])]
    no_auth: bool,
    /// Trust the certificates in this PEM file too
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Fetch a token, ask the server, say what works, and end: 0 all well, 1 no credentials,
    /// 3 no token, 4 no server, 5 no tools
    #[arg(long)]
    check: bool,
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    cofer_proxy::parse_header(text).map_err(|error| error.to_string())
}

impl ProxyArgs {
    fn options(self) -> Result<Options, Failure> {
        let given = |text: &String| !text.trim().is_empty();
        let url = cofer_proxy::parse_url(&self.url, self.no_auth).map_err(|error| {
            Failure::mistyped(format!("`{}` cannot be the server's URL", self.url)).caused_by(error)
        })?;
        Ok(Options {
            url,
            timeout: self.timeout,
            audience: self.audience.filter(given),
            impersonate: self.impersonate_service_account.filter(given),
            headers: self.header.into_iter().collect(),
            no_auth: self.no_auth,
            cacert: self.cacert,
        })
    }
}

pub(crate) fn run(args: ProxyArgs, global: &Global) -> Result<(), Failure> {
    let check = args.check;
    log_to_stderr(args.verbose, if check { CHECKING } else { USUAL })?;
    let options = args.options()?;
    // One thread carries it all: another would cost each message a change of threads.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("could not start the runtime").caused_by(error))?;
    let outcome = if check {
        runtime.block_on(report(options, &mut Output::new(global.json)))
    } else {
        runtime.block_on(serve(options))
    };
    // A thread may be reading stdin, which has no end while the client holds it.
    runtime.shutdown_background();
    outcome
}

async fn serve(options: Options) -> Result<(), Failure> {
    let mut signals = Signals::new()
        .map_err(|error| Failure::new("could not listen for signals").caused_by(error))?;
    let shutdown = async {
        let name = signals.next().await;
        tracing::debug!("{name}: ending");
    };
    Ok(cofer_proxy::serve(options, shutdown).await?)
}

/// Says each step as it is made.
async fn report(options: Options, out: &mut Output) -> Result<(), Failure> {
    let url = options.url.to_string();
    let mut steps = Vec::new();
    let mut printed = Ok(());
    let json = out.wants_json();
    let checked = cofer_proxy::check(options, |checked| {
        if !json && printed.is_ok() {
            printed = out.print(&line(&checked));
        }
        steps.push(checked);
    });
    let checked = checked.await;
    printed?;
    if json {
        out.print_json(&as_json(&url, &steps, checked.as_ref().err()))?;
    }
    checked.map_err(|failed| not_passed(failed, &url))
}

fn line(checked: &Checked) -> String {
    format!("{}  {:<11}  {}", styled(GOOD, "ok"), name(checked.step), text::line(&checked.found))
}

fn name(step: Step) -> &'static str {
    match step {
        Step::Credentials => "credentials",
        Step::Token => "token",
        Step::Server => "server",
        Step::Tools => "tools",
    }
}

fn as_json(url: &str, steps: &[Checked], failed: Option<&CheckFailed>) -> String {
    let steps: serde_json::Map<String, serde_json::Value> = steps
        .iter()
        .map(|checked| (name(checked.step).to_owned(), checked.found.as_str().into()))
        .collect();
    let failed = failed.map(|failed| {
        serde_json::json!({"step": name(failed.step), "causes": failed.causes, "hint": failed.hint})
    });
    serde_json::json!({"ok": failed.is_none(), "url": url, "steps": steps, "failed": failed})
        .to_string()
}

fn not_passed(failed: CheckFailed, url: &str) -> Failure {
    let (code, what) = match failed.step {
        Step::Credentials => (1, "no Google credentials that can be used were found".to_owned()),
        Step::Token => (3, "could not get an ID token".to_owned()),
        Step::Server => (4, format!("could not open an MCP conversation with {url}")),
        Step::Tools => (5, format!("could not list the tools of {url}")),
    };
    let failure = Failure::new(what).hint(failed.hint).code(code);
    failed.causes.into_iter().fold(failure, Failure::caused_by)
}

impl From<ProxyError> for Failure {
    fn from(error: ProxyError) -> Self {
        match error {
            ProxyError::Setup(_) => Self::from_chain(&error)
                .hint("correct the file of --cacert, or the variable of the proxy."),
            ProxyError::NoCredentials(ref missing) => {
                let failure = Self::new(error.to_string()).hint(&missing.hint);
                let looked = missing.looked.iter();
                looked.fold(failure.showing("Looked for:"), |failure, looked| {
                    failure.showing(format!("  {}: {}", looked.place, looked.outcome))
                })
            }
        }
    }
}

pub(super) fn log_to_stderr(verbose: bool, usual: &str) -> Result<(), Failure> {
    let asked = std::env::var("COFER_LOG").ok().filter(|filter| !filter.trim().is_empty());
    let usual = if verbose { VERBOSE } else { usual };
    let filter = asked.as_deref().filter(|_| !verbose).unwrap_or(usual);
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Failure::new(format!("could not read the log filter `{filter}` in COFER_LOG"))
            .caused_by(error)
            .hint("write it like `info` or `warn,cofer_proxy=debug`.")
    })?;
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false);
    log.with_env_filter(filter)
        .try_init()
        .map_err(|error| Failure::new("could not set up the log").caused_by(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    fn parse(args: &[&str]) -> Result<ProxyArgs, clap::Error> {
        let all = ["cofer", "proxy"].iter().chain(args);
        Cli::try_parse_from(all).map(|cli| match cli.command {
            Command::Proxy(args) => args,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn the_url_is_the_servers_and_must_be_there() {
        // covers: PRX-1.2, PRX-1.3, PRX-6.1
        let args = parse(&["--url", "https://a.run.app/mcp"]).unwrap();
        let options = args.options().unwrap();
        assert_eq!(options.url, "https://a.run.app/mcp");
        assert_eq!(options.timeout, Duration::from_secs(300));
        assert_eq!(parse(&[]).unwrap_err().exit_code(), 2);
        assert_eq!(parse(&["--url", "https://a", "--timeout", "soon"]).unwrap_err().exit_code(), 2);
        assert_eq!(parse(&["--url", "https://a", "--header", "x"]).unwrap_err().exit_code(), 2);
    }

    #[test]
    fn its_help_tells_of_every_flag() {
        // covers: PRX-6.5
        let help = parse(&["--help"]).unwrap_err();
        assert_eq!((help.kind(), help.exit_code()), (clap::error::ErrorKind::DisplayHelp, 0));
        let help = help.to_string();
        for flag in ["--url", "--timeout", "--verbose", "--audience", "--check", "--no-auth"] {
            assert!(help.contains(flag), "{flag}: {help}");
        }
        assert!(help.contains("GOOGLE_APPLICATION_CREDENTIALS"), "{help}");
    }

    #[test]
    fn every_flag_arrives() {
        // covers: PRX-6.1, PRX-6.2, PRX-6.3
        let args = parse(&[
            "--url",
            "https://a.run.app/mcp",
            "--timeout",
            "1.5",
            "--verbose",
            "--audience",
            "aud",
            "--impersonate-service-account",
            "x@y",
            "--header",
            "A: 1",
            "--header",
            "B: 2",
            "--cacert",
            "/ca.pem",
            "--check",
        ])
        .unwrap();
        assert!(args.verbose && args.check);
        let options = args.options().unwrap();
        assert_eq!(options.timeout, Duration::from_millis(1500));
        assert_eq!(options.audience.as_deref(), Some("aud"));
        assert_eq!(options.impersonate.as_deref(), Some("x@y"));
        assert_eq!(
            (&options.headers["a"], &options.headers["b"]),
            (&"1".parse().unwrap(), &"2".parse().unwrap())
        );
        assert_eq!(options.cacert, Some("/ca.pem".into()));
    }

    #[test]
    fn a_url_that_must_not_be_asked_is_mistyped() {
        for args in
            [&["--url", "http://a.run.app"][..], &["--url", "https://a.run.app", "--no-auth"]]
        {
            let failure = parse(args).unwrap().options().unwrap_err();
            assert!(failure.render().contains("on this machine only"), "{}", failure.render());
        }
        assert!(
            parse(&["--url", "http://localhost:1/mcp", "--no-auth"]).unwrap().options().is_ok()
        );
    }

    #[test]
    fn the_steps_that_were_made_are_told_also_as_json() {
        let steps = [Checked { step: Step::Credentials, found: "a file".to_owned() }];
        let failed =
            CheckFailed { step: Step::Token, causes: vec!["no".to_owned()], hint: "h".to_owned() };
        let value: serde_json::Value =
            serde_json::from_str(&as_json("https://a/", &steps, Some(&failed))).unwrap();
        assert_eq!(
            value,
            serde_json::json!({
                "ok": false, "url": "https://a/", "steps": {"credentials": "a file"},
                "failed": {"step": "token", "causes": ["no"], "hint": "h"},
            })
        );
    }
}
