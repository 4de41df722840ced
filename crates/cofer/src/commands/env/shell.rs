//! `cofer env shell`: a shell in an environment's container, at the person's terminal.

use std::io::IsTerminal as _;

use clap::Args;
use cofer_runtime::interactive;

use super::{Context, Place};
use crate::failure::Failure;
use crate::output::warn;

#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    place: Place,
    /// The environment [default: the only one there is]
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// The shell
    #[arg(long, default_value = "sh", value_name = "PROGRAM")]
    shell: String,
}

pub(super) async fn run(args: ShellArgs) -> Result<(), Failure> {
    let context = Context::new(&args.place, false).await?;
    let id = context.pick(args.id).await?;
    let (container, workdir) = context.environments.container(&context.repository, &id).await?;
    let mut command = interactive(context.environments.podman());
    command.args(["exec", "--interactive"]);
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        command.arg("--tty");
    }
    command.args(["--workdir", &workdir, &container, &args.shell]);
    let status =
        command.status().map_err(|error| Failure::new("could not run Podman").caused_by(error))?;
    for warning in
        context.environments.record(&context.repository, &id, "Work done in a shell").await?
    {
        warn(&warning);
    }
    match status.code() {
        Some(0) => Ok(()),
        code => Err(Failure::new(format!("the shell ended with code {}", code.unwrap_or(255)))),
    }
}
