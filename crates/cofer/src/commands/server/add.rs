//! `cofer server add`: registers a server and waits for what becomes of it.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::outcome;
use super::spec::{SpecFlags, command_fields};
use crate::commands::Context;
use crate::failure::Failure;
use crate::output::{text, with_progress};

/// The daemon's limit for a start where none is given.
const DEFAULT_START: Duration = Duration::from_secs(60);
/// What stopping and reporting may add to it.
const MARGIN: Duration = Duration::from_secs(15);

/// Register a server and start it
///
/// Waits until the server is connected or has failed. A server that fails to start stays
/// registered, switched off.
///
///   cofer server add fs -- npx -y @modelcontextprotocol/server-filesystem /tmp
///   cofer server add github --env GITHUB_TOKEN -- npx -y @modelcontextprotocol/server-github
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
    /// The program and its arguments, which no shell reads
    #[arg(last = true, required = true, value_name = "COMMAND [ARGS]")]
    command: Vec<String>,
}

impl AddArgs {
    fn body(&self) -> Result<String, Failure> {
        let mut body = self.flags.fields()?;
        body.insert("name".to_owned(), Value::from(self.name.as_str()));
        body.extend(command_fields(&self.command)?);
        if self.disabled {
            body.insert("enabled".to_owned(), Value::from(false));
        }
        Ok(Value::Object(body).to_string())
    }

    fn wait(&self) -> Option<Duration> {
        let start = self.flags.start_timeout.unwrap_or(DEFAULT_START);
        (!self.no_wait && !self.disabled).then_some(start + MARGIN)
    }
}

pub(super) async fn run(args: AddArgs, context: &mut Context) -> Result<(), Failure> {
    let work = context.client.register(args.body()?, args.wait());
    let answer = match args.wait() {
        Some(_) => with_progress(&format!("Starting `{}`…", text::line(&args.name)), work).await?,
        None => work.await?,
    };
    outcome::show_warnings(&answer)?;
    outcome::show(&answer, context).await
}
