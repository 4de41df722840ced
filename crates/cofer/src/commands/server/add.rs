//! `cofer server add`: registers a server and waits for what becomes of it.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::outcome;
use super::spec::SpecFlags;
use crate::commands::Context;
use crate::failure::Failure;
use crate::output::text;

/// The daemon's limit for a start where none is given.
const DEFAULT_START: Duration = Duration::from_secs(60);
/// What launching, stopping and reporting may add to it.
const MARGIN: Duration = Duration::from_secs(15);
/// What they may add for a container, where many may start at once.
const CONTAINER_MARGIN: Duration = Duration::from_secs(300);

/// Register a server and start it
///
/// Waits until the server is connected or has failed. A server that fails to start stays
/// registered, switched off.
///
///   cofer server add fs -- npx -y @modelcontextprotocol/server-filesystem /tmp
///   cofer server add github --env GITHUB_TOKEN -- npx -y @modelcontextprotocol/server-github
///   cofer server add db --image ghcr.io/me/db-server:1.2 --volume /data --memory 256M
///   cofer server add web --image ghcr.io/me/web-server --http --port 8080
///   cofer server add docs --url https://docs.example.com/mcp --header Authorization
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct AddArgs {
    /// What to call the server
    name: String,
    #[command(flatten)]
    flags: SpecFlags,
    /// Register the server without starting it
    #[arg(long)]
    disabled: bool,
    /// Do not wait for the server to become ready
    #[arg(long)]
    no_wait: bool,
    /// The program and its arguments, which no shell reads; with --image, arguments alone
    #[arg(last = true, required_unless_present_any = ["image", "remote_url"], conflicts_with = "remote_url", value_name = "COMMAND [ARGS]")]
    command: Vec<String>,
}

impl AddArgs {
    fn body(&self) -> Result<String, Failure> {
        let mut body = self.flags.fields()?;
        body.insert("name".to_owned(), Value::from(self.name.as_str()));
        body.extend(self.flags.words(&self.command)?);
        if self.disabled {
            body.insert("enabled".to_owned(), Value::from(false));
        }
        Ok(Value::Object(body).to_string())
    }

    fn wait(&self) -> Option<Duration> {
        let start = self.flags.start_timeout.unwrap_or(DEFAULT_START);
        let is_container = self.flags.container.image.is_some();
        let margin = if is_container { CONTAINER_MARGIN } else { MARGIN };
        (!self.no_wait && !self.disabled).then_some(start + margin)
    }
}

pub(super) async fn run(args: AddArgs, context: &mut Context) -> Result<(), Failure> {
    let work = context.client.register(args.body()?, args.wait());
    let answer = match args.wait() {
        Some(limit) => {
            let what = format!("Starting `{}`…", text::line(&args.name));
            outcome::settled(&what, &args.name, &context.client, limit, work).await?
        }
        None => work.await?,
    };
    outcome::show_warnings(&answer)?;
    outcome::show(&answer, context).await
}
