//! `cofer server logs`: a server's stderr and what the daemon did with it.

use clap::Args;
use cofer_model::{LogEntry, LogPage};

use super::ServerArg;
use crate::commands::Context;
use crate::failure::Failure;
use crate::output::{Output, say, table, text};

/// Show a server's stderr and what happened to it
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    #[command(flatten)]
    pub(super) server: ServerArg,
    /// How many of the last lines to show
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
    lines: usize,
    /// Go on with new lines as they come
    #[arg(short, long)]
    follow: bool,
}

pub(super) async fn run(args: LogsArgs, context: &mut Context) -> Result<(), Failure> {
    if args.follow {
        return follow(args, context).await;
    }
    let answer = context.client.logs(&args.server.name, args.lines).await?;
    if context.out.wants_json() {
        return Ok(context.out.print_json(answer.json())?);
    }
    let page: LogPage = answer.read()?;
    for entry in &page.lines {
        context.out.print(&table::log_line(entry))?;
    }
    Ok(())
}

async fn follow(args: LogsArgs, context: &mut Context) -> Result<(), Failure> {
    let mut follower = context.client.follow(&args.server.name, args.lines).await?;
    let mut last = None;
    while let Some(entry) = follower.next().await? {
        if let Some(missed) = missed(last, entry.seq) {
            say(&format!("-- {} came too fast and cannot be shown", text::count(missed, "line")));
        }
        last = Some(entry.seq);
        print(&entry, &mut context.out)?;
    }
    say("-- the log has ended");
    Ok(())
}

/// How many lines lie between the last one that was shown and this one.
fn missed(last: Option<u64>, seq: u64) -> Option<usize> {
    let between = seq.checked_sub(last?)?.checked_sub(1)?;
    usize::try_from(between).ok().filter(|missed| *missed > 0)
}

/// A followed log as JSON is one object a line.
fn print(entry: &LogEntry, out: &mut Output) -> Result<(), Failure> {
    if out.wants_json() {
        return Ok(out.print_raw(&serde_json::to_string(entry).unwrap_or_default())?);
    }
    Ok(out.print(&table::log_line(entry))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_came_too_fast_are_counted() {
        for (last, seq, expected) in
            [(None, 7, None), (Some(7), 8, None), (Some(7), 10, Some(2)), (Some(7), 1, None)]
        {
            assert_eq!(missed(last, seq), expected, "{last:?} {seq}");
        }
    }
}
