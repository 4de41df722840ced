//! `cofer env`: a person's side of environments. What they hold is looked at, taken over and
//! thrown away with plain git in the repository they were made from.

mod allow;
mod history;
mod list;
mod shell;
mod show;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cofer_environments::{Environments, Repository, Settings};

use super::block_on;
use crate::failure::Failure;
use crate::output::{Output, text, warn};

#[derive(Debug, Subcommand)]
pub(crate) enum EnvCommand {
    /// List the environments of a repository
    List(Place),
    /// Show one environment and the isolation in force in its container
    Show(show::ShowArgs),
    /// Show what was done in an environment
    Log(history::LogArgs),
    /// Show what an environment changed
    Diff(history::OneArgs),
    /// Check an environment's work out as a branch
    Checkout(history::CheckoutArgs),
    /// Merge an environment's work into the current branch
    Merge(history::TakeArgs),
    /// Stage an environment's work as one change, without committing it
    Apply(history::TakeArgs),
    /// Open a shell in an environment
    Shell(shell::ShellArgs),
    Allow(allow::AllowArgs),
    /// Remove environments; their branches stay
    Destroy(DestroyArgs),
    /// Remove what is left of environments that nobody has
    Prune(Place),
}

/// Where a command looks.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The repository [default: the one this directory is in]
    #[arg(long, short = 'C', value_name = "DIR")]
    repository: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DestroyArgs {
    #[command(flatten)]
    place: Place,
    /// The environments
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<String>,
    /// All of them
    #[arg(long)]
    all: bool,
    /// Remove the branches with their work too
    #[arg(long)]
    force: bool,
}

/// What every command has in hand.
struct Context {
    environments: Environments,
    repository: Repository,
    out: Output,
}

impl Context {
    async fn new(place: &Place, json: bool) -> Result<Self, Failure> {
        let directory = place.repository.clone().unwrap_or_else(|| PathBuf::from("."));
        let directory = std::path::absolute(&directory)
            .map_err(|error| Failure::new("could not find the repository").caused_by(error))?;
        let environments = Environments::new(settings()?);
        let repository = environments.repository(&directory).await?;
        environments.note(&repository).await;
        Ok(Self { environments, repository, out: Output::new(json) })
    }

    /// The environment that is meant: the one named, or the only one there is.
    async fn pick(&self, id: Option<String>) -> Result<String, Failure> {
        if let Some(id) = id {
            return Ok(id);
        }
        let listed = self.environments.list(&self.repository).await?;
        match listed.as_slice() {
            [only] => Ok(only.id.clone()),
            [] => Err(Failure::new("this repository has no environments")
                .hint("an agent makes them; a branch of one that is gone can be named.")),
            many => {
                let ids: Vec<&str> = many.iter().map(|listed| listed.id.as_str()).collect();
                Err(Failure::mistyped("there are several environments")
                    .caused_by(ids.join(", "))
                    .hint("name one of them."))
            }
        }
    }
}

/// What the environment says of environments.
pub(super) fn settings() -> Result<Settings, Failure> {
    Settings::from_variables(|name| std::env::var(name).ok()).map_err(|why| {
        Failure::mistyped("a setting in the environment cannot be meant").caused_by(why)
    })
}

pub(crate) fn run(command: EnvCommand, json: bool) -> Result<(), Failure> {
    block_on(async {
        match command {
            EnvCommand::List(place) => list::run(Context::new(&place, json).await?).await,
            EnvCommand::Show(args) => show::run(args, json).await,
            EnvCommand::Log(args) => history::log(args).await,
            EnvCommand::Diff(args) => history::diff(args).await,
            EnvCommand::Checkout(args) => history::checkout(args).await,
            EnvCommand::Merge(args) => history::merge(args).await,
            EnvCommand::Apply(args) => history::apply(args).await,
            EnvCommand::Shell(args) => shell::run(args).await,
            EnvCommand::Allow(args) => allow::run(args, json).await,
            EnvCommand::Destroy(args) => destroy(args, json).await,
            EnvCommand::Prune(place) => prune(Context::new(&place, json).await?).await,
        }
    })
}

async fn destroy(args: DestroyArgs, json: bool) -> Result<(), Failure> {
    let mut context = Context::new(&args.place, json).await?;
    let ids = if args.all {
        let listed = context.environments.list(&context.repository).await?;
        listed.into_iter().map(|listed| listed.id).collect()
    } else {
        args.ids
    };
    for id in ids {
        destroy_one(&mut context, &id, args.force).await?;
    }
    context.environments.settled().await;
    Ok(())
}

async fn destroy_one(context: &mut Context, id: &str, force: bool) -> Result<(), Failure> {
    let destroyed = context.environments.destroy(&context.repository, id, force).await?;
    let branch = if destroyed.branch_kept {
        format!(" Its work stays on cofer/{id}.")
    } else {
        String::new()
    };
    context.out.print(&format!("Environment {} is gone.{branch}", text::line(id)))?;
    for warning in &destroyed.warnings {
        warn(warning);
    }
    Ok(())
}

async fn prune(mut context: Context) -> Result<(), Failure> {
    let pruned = context.environments.prune(&context.repository).await?;
    context.environments.settled().await;
    if context.out.wants_json() {
        context.out.print_json(&serde_json::to_string(&pruned).unwrap_or_default())?;
        return Ok(());
    }
    let words = [
        text::count(pruned.environments.len(), "unfinished environment"),
        text::count(pruned.containers.len(), "container"),
        text::count(pruned.bases.len(), "base checkout"),
    ];
    context.out.print(&format!("Removed {}.", words.join(", ")))?;
    Ok(())
}
