//! An environment's work, by plain git in the person's own repository and at their terminal.

use std::ffi::OsStr;
use std::path::Path;

use clap::Args;
use cofer_runtime::{interactive, tool};

use super::{Context, Place, destroy_one};
use crate::failure::Failure;
use crate::output::text;

#[derive(Debug, Args)]
pub(crate) struct OneArgs {
    #[command(flatten)]
    place: Place,
    /// The environment [default: the only one there is]
    #[arg(value_name = "ID")]
    id: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    #[command(flatten)]
    one: OneArgs,
    /// Show what each step changed
    #[arg(long, short)]
    patch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckoutArgs {
    #[command(flatten)]
    one: OneArgs,
    /// The branch's name [default: cofer-ID]
    #[arg(long, short, value_name = "NAME")]
    branch: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TakeArgs {
    #[command(flatten)]
    one: OneArgs,
    /// Destroy the environment afterwards
    #[arg(long, short)]
    delete: bool,
}

/// A repository, and an environment's branch in it.
struct Work {
    context: Context,
    id: String,
    /// The branch's whole name, which nothing else can be meant by.
    branch: String,
}

impl Work {
    async fn of(args: OneArgs) -> Result<Self, Failure> {
        let context = Context::new(&args.place, false).await?;
        let id = context.pick(args.id).await?;
        let id = id.strip_prefix("cofer/").unwrap_or(&id).to_owned();
        let branch = format!("refs/remotes/cofer/{id}");
        let work = Self { context, id, branch };
        if work
            .ask(&["rev-parse", "--verify", "--quiet", "--end-of-options", &work.branch])
            .await
            .is_none()
        {
            let failure =
                Failure::new(format!("there is no branch cofer/{}", text::line(&work.id)));
            return Err(failure.hint("`cofer env list` shows the environments, `git branch --remotes --list 'cofer/*'` all their branches."));
        }
        Ok(work)
    }

    fn top(&self) -> &Path {
        self.context.repository.top()
    }

    async fn ask(&self, args: &[&str]) -> Option<String> {
        let output = tool("git").arg("-C").arg(self.top()).args(args).output().await.ok()?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(said)
    }

    /// Where the work begins: what it has in common with what is checked out.
    async fn beginning(&self) -> Option<String> {
        self.ask(&["merge-base", "HEAD", &self.branch]).await
    }

    /// Runs git at the person's terminal.
    fn git<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Result<(), Failure> {
        let args: Vec<I> = args.into_iter().collect();
        let status = interactive("git").arg("-C").arg(self.top()).args(&args).status();
        let action = args
            .first()
            .map(|word| word.as_ref().to_string_lossy().into_owned())
            .unwrap_or_default();
        match status {
            Ok(status) if status.success() => Ok(()),
            // A pager that was left early.
            Ok(status) if status.code() == Some(141) => Ok(()),
            Ok(_) => Err(Failure::new(format!("git {action} did not succeed"))
                .hint("git has said why, above.")),
            Err(error) => Err(Failure::new("could not run git").caused_by(error)),
        }
    }
}

pub(super) async fn log(args: LogArgs) -> Result<(), Failure> {
    let work = Work::of(args.one).await?;
    let range = match work.beginning().await {
        Some(beginning) => format!("{beginning}..{}", work.branch),
        None => work.branch.clone(),
    };
    let mut words = vec!["log"];
    if args.patch {
        words.push("--patch");
    }
    words.extend(["--end-of-options", &range, "--"]);
    work.git(words)
}

pub(super) async fn diff(args: OneArgs) -> Result<(), Failure> {
    let work = Work::of(args).await?;
    let Some(beginning) = work.beginning().await else {
        return Err(Failure::new(format!(
            "cofer/{} has nothing in common with what is checked out",
            work.id
        )));
    };
    work.git(["diff", "--end-of-options", &beginning, &work.branch, "--"])
}

pub(super) async fn checkout(args: CheckoutArgs) -> Result<(), Failure> {
    let work = Work::of(args.one).await?;
    let name = args.branch.unwrap_or_else(|| format!("cofer-{}", work.id));
    if name.starts_with('-') {
        return Err(Failure::mistyped(format!(
            "`{}` cannot be a branch's name",
            text::line(&name)
        )));
    }
    let local = format!("refs/heads/{name}");
    if work.ask(&["rev-parse", "--verify", "--quiet", &local]).await.is_none() {
        return work.git(["checkout", "--no-track", "-b", &name, &work.branch, "--"]);
    }
    work.git(["checkout", &name, "--"])?;
    work.git(["merge", "--ff-only", &work.branch])
}

pub(super) async fn merge(args: TakeArgs) -> Result<(), Failure> {
    let message = |id: &str| format!("Merge environment {id}");
    take(args, |work| {
        vec![
            "merge".to_owned(),
            "--no-ff".to_owned(),
            "--autostash".to_owned(),
            "-m".to_owned(),
            message(&work.id),
        ]
    })
    .await
}

pub(super) async fn apply(args: TakeArgs) -> Result<(), Failure> {
    take(args, |_| ["merge", "--squash", "--autostash"].map(str::to_owned).into()).await
}

async fn take(args: TakeArgs, words: impl Fn(&Work) -> Vec<String>) -> Result<(), Failure> {
    let mut work = Work::of(args.one).await?;
    let mut words = words(&work);
    words.push(work.branch.clone());
    work.git(words)?;
    if args.delete {
        let id = work.id.clone();
        destroy_one(&mut work.context, &id, false).await?;
        work.context.environments.settled().await;
    }
    Ok(())
}
