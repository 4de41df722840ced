//! What became of a server after it was added, changed or switched: said in one line, or told
//! as the failure it is.

use std::time::Duration;

use cofer_model::{ServerView, Status};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::client::{Answer, Client, ClientError};
use crate::commands::Context;
use crate::failure::Failure;
use crate::output::{Progress, styled, table, text, warn};

/// How long to wait for a server whose start timeout is not known here. The daemon answers
/// earlier: when the server is ready or its own limit has passed.
pub(super) const PATIENT: Duration = Duration::from_secs(600);

/// How often a server is looked at while it is waited for.
const LOOK: Duration = Duration::from_millis(100);

/// Waits until a server has settled: `work` is the request that leads there and waits for it
/// as long as the daemon lets it. What is fetched for the server meanwhile is told, and costs
/// nothing of `limit`.
pub(super) async fn settled(
    what: &str,
    name: &str,
    client: &Client,
    limit: Duration,
    work: impl Future<Output = Result<Answer, ClientError>>,
) -> Result<Answer, ClientError> {
    let progress = Progress::new(what);
    let work = async {
        let answer = work.await?;
        let server: ServerView = answer.read()?;
        if server.preparing.is_none() {
            return Ok(answer);
        }
        until_settled(&server.id.to_string(), client, limit).await
    };
    tokio::select! {
        answer = progress.during(work) => answer,
        never = watch(name, client, &progress) => never,
    }
}

/// Looks at a server until nothing more is to come of it.
async fn until_settled(id: &str, client: &Client, limit: Duration) -> Result<Answer, ClientError> {
    let mut deadline = Instant::now() + limit;
    loop {
        let answer = client.server(id, false).await?;
        let server: ServerView = answer.read()?;
        if server.preparing.is_some() {
            deadline = Instant::now() + limit;
        }
        if server.status.is_settled() || Instant::now() >= deadline {
            return Ok(answer);
        }
        sleep(LOOK).await;
    }
}

/// Tells what is fetched for a server. One that cannot be looked at has nothing to tell.
async fn watch<T>(name: &str, client: &Client, progress: &Progress) -> T {
    loop {
        sleep(LOOK).await;
        let Ok(answer) = client.server(name, false).await else { continue };
        let Ok(server) = answer.read::<ServerView>() else { continue };
        if let Some(preparing) = &server.preparing {
            progress.tell(preparing);
        }
    }
}

/// Shows the server that the daemon answered with.
pub(super) async fn show(answer: &Answer, context: &mut Context) -> Result<(), Failure> {
    let server: ServerView = answer.read()?;
    if context.out.wants_json() {
        context.out.print_json(answer.json())?;
    } else if server.status != Status::Error {
        let tools = tool_count(&server, context).await;
        context.out.print(&describe(&server, tools))?;
    }
    match server.status {
        Status::Error => Err(Failure::not_started(&server)),
        _ => Ok(()),
    }
}

/// Says what the daemon thinks of the registration.
pub(super) fn show_warnings(answer: &Answer) -> Result<(), Failure> {
    let server: ServerView = answer.read()?;
    for warning in &server.warnings {
        warn(warning);
    }
    Ok(())
}

fn describe(server: &ServerView, tools: Option<usize>) -> String {
    let (word, style) = table::status_word(server.status);
    let name = text::line(&server.name);
    let rest = match (server.status, tools) {
        (Status::Ready, Some(tools)) => format!(" with {}", text::count(tools, "tool")),
        (Status::Stopped, _) if !server.enabled => ", switched off".to_owned(),
        (Status::Starting | Status::Restarting | Status::Stopping, _) => {
            "; `cofer server show` tells how it goes on".to_owned()
        }
        _ => String::new(),
    };
    format!("{}: `{name}`{rest}", styled(style, word))
}

/// How many tools a connected server offers; a server that cannot say so is still connected.
async fn tool_count(server: &ServerView, context: &Context) -> Option<usize> {
    let offers = server.capabilities.as_ref()?.get("tools").is_some();
    if server.status != Status::Ready || !offers {
        return None;
    }
    let answer = context.client.items(&server.id.to_string(), "tools").await.ok()?;
    let list: Value = answer.read().ok()?;
    list.get("tools")?.as_array().map(Vec::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::tests::a_server;

    #[test]
    fn what_became_of_a_server_is_one_line() {
        // covers: MGR-13
        let shown = [
            (Status::Ready, true, Some(14)),
            (Status::Ready, true, None),
            (Status::Stopped, false, None),
            (Status::Starting, true, None),
            (Status::Unresponsive, true, None),
        ]
        .map(|(status, enabled, tools)| {
            let server = ServerView { status, enabled, ..a_server("fs") };
            anstream::adapter::strip_str(&describe(&server, tools)).to_string()
        });
        insta::assert_snapshot!(shown.join("\n"), @"
        Connected: `fs` with 14 tools
        Connected: `fs`
        Stopped: `fs`, switched off
        Starting: `fs`; `cofer server show` tells how it goes on
        Unresponsive: `fs`
        ");
    }
}
