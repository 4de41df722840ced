//! `cofer server enable`, `disable` and `restart` for several servers: all at once, one line for
//! each, and a summary. The daemon decides how many start at the same time.

use cofer_model::{ServerList, ServerView, Status, matches_pattern};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::outcome;
use super::switch::SwitchArgs;
use crate::client::{Client, Switch};
use crate::commands::Context;
use crate::failure::Failure;
use crate::output::{BAD, say, styled, table, text, with_progress};

/// Whether it means every server whose name fits.
pub(super) fn is_pattern(name: &str) -> bool {
    name.contains('*')
}

/// The end of one request.
struct Switched {
    name: String,
    outcome: Result<(ServerView, Value), Failure>,
}

pub(super) async fn run(
    args: SwitchArgs,
    switch: Switch,
    context: &mut Context,
) -> Result<(), Failure> {
    let list: ServerList = context.client.servers().await?.read()?;
    let chosen = choose(&args, switch, &list.servers)?;
    let total = chosen.len();
    let progress = format!("{} {}…", doing(switch), text::count(total, "server"));
    let switching = switch_all(&context.client, chosen, switch, !args.no_wait);
    let mut switched = with_progress(&progress, switching).await;
    switched.sort_by(|a, b| a.name.cmp(&b.name));
    let failed = switched.iter().filter(|one| one.outcome.is_err()).count();
    if context.out.wants_json() {
        context.out.print_json(&as_json(&switched).to_string())?;
    } else {
        for one in &switched {
            context.out.print(&describe(one))?;
        }
    }
    say(&summary(switch, total, failed));
    match failed {
        0 => Ok(()),
        _ => Err(Failure::new(format!("{failed} of {total} servers failed"))
            .hint("`cofer server show NAME` tells why, `cofer server logs NAME` shows its log")),
    }
}

/// The servers that are meant, each once.
fn choose<'a>(
    args: &SwitchArgs,
    switch: Switch,
    servers: &'a [ServerView],
) -> Result<Vec<&'a ServerView>, Failure> {
    // A server that is off cannot be restarted, and nobody named it.
    let fits_all = |server: &&ServerView| switch != Switch::Restart || server.enabled;
    if args.all {
        return Ok(servers.iter().filter(fits_all).collect());
    }
    let mut chosen: Vec<&ServerView> = Vec::new();
    for name in &args.names {
        let is_named =
            |server: &&ServerView| server.name == *name || server.id.to_string() == *name;
        let mut found: Vec<&ServerView> = servers.iter().filter(is_named).collect();
        if found.is_empty() && is_pattern(name) {
            let matches = |server: &&ServerView| matches_pattern(name, &server.name);
            found = servers.iter().filter(matches).filter(fits_all).collect();
        }
        if found.is_empty() {
            let message = match is_pattern(name) {
                true => format!("no server fits the pattern `{}`", text::line(name)),
                false => format!("there is no server `{}`", text::line(name)),
            };
            return Err(Failure::new(message).hint("`cofer server list` shows all servers."));
        }
        found.retain(|server| !chosen.iter().any(|known| known.id == server.id));
        chosen.extend(found);
    }
    Ok(chosen)
}

async fn switch_all(
    client: &Client,
    servers: Vec<&ServerView>,
    switch: Switch,
    wait: bool,
) -> Vec<Switched> {
    let mut requests = JoinSet::new();
    for server in servers {
        let (client, id, name) = (client.clone(), server.id.to_string(), server.name.clone());
        requests.spawn(async move {
            let outcome = switch_one(&client, &id, switch, wait).await;
            Switched { name, outcome }
        });
    }
    requests.join_all().await
}

async fn switch_one(
    client: &Client,
    id: &str,
    switch: Switch,
    wait: bool,
) -> Result<(ServerView, Value), Failure> {
    let answer = client.switch(id, switch, wait.then_some(outcome::PATIENT)).await?;
    let server: ServerView = answer.read()?;
    match server.status {
        Status::Error => Err(Failure::not_started(&server)),
        _ => Ok((server, answer.read()?)),
    }
}

fn describe(one: &Switched) -> String {
    let name = text::line(&one.name);
    match &one.outcome {
        Ok((server, _)) => {
            let (word, style) = table::status_word(server.status);
            format!("{}: `{name}`", styled(style, word))
        }
        Err(failure) => {
            format!("{}: `{name}`: {}", styled(BAD, "Failed"), text::line(failure.message()))
        }
    }
}

fn as_json(switched: &[Switched]) -> Value {
    let servers: Vec<&Value> =
        switched.iter().filter_map(|one| Some(&one.outcome.as_ref().ok()?.1)).collect();
    let failed = |one: &Switched| {
        let failure = one.outcome.as_ref().err()?;
        Some(json!({"name": one.name, "message": failure.message(), "hint": failure.advice()}))
    };
    let failed: Vec<Value> = switched.iter().filter_map(failed).collect();
    json!({"servers": servers, "failed": failed})
}

fn doing(switch: Switch) -> &'static str {
    match switch {
        Switch::Enable => "Starting",
        Switch::Disable => "Stopping",
        Switch::Restart => "Restarting",
    }
}

fn summary(switch: Switch, total: usize, failed: usize) -> String {
    let done = match switch {
        Switch::Enable => "enabled",
        Switch::Disable => "disabled",
        Switch::Restart => "restarted",
    };
    let all = format!("{} {done}", text::count(total - failed, "server"));
    if failed == 0 { format!("{all}.") } else { format!("{all}, {failed} failed.") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::tests::a_server;

    fn chosen(names: &[&str], all: bool, switch: Switch) -> Result<Vec<String>, String> {
        let named = |(name, number): (&str, u8)| ServerView {
            id: format!("00000000-0000-0000-0000-{number:012}").parse().unwrap(),
            enabled: name != "off-1",
            ..a_server(name)
        };
        let servers = [("git-a", 1), ("git-b", 2), ("time", 3), ("off-1", 4)].map(named);
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let args = SwitchArgs { names, all, no_wait: false };
        let chosen =
            choose(&args, switch, &servers).map_err(|failure| failure.message().to_owned());
        chosen.map(|servers| servers.iter().map(|server| server.name.clone()).collect())
    }

    #[test]
    fn servers_are_chosen_by_name_by_pattern_or_all() {
        let names = |names: &[&str]| Ok(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(chosen(&["git-*"], false, Switch::Enable), names(&["git-a", "git-b"]));
        assert_eq!(
            chosen(&["time", "git-a", "*"], false, Switch::Disable),
            names(&["time", "git-a", "git-b", "off-1"])
        );
        assert_eq!(chosen(&[], true, Switch::Restart), names(&["git-a", "git-b", "time"]));
        assert_eq!(chosen(&["*-1", "time"], false, Switch::Enable), names(&["off-1", "time"]));
        let none = chosen(&["x*"], false, Switch::Enable).unwrap_err();
        assert_eq!(none, "no server fits the pattern `x*`");
        assert_eq!(
            chosen(&["y", "time"], false, Switch::Enable).unwrap_err(),
            "there is no server `y`"
        );
    }

    #[test]
    fn the_summary_counts_those_that_failed() {
        assert_eq!(summary(Switch::Enable, 6, 0), "6 servers enabled.");
        assert_eq!(summary(Switch::Restart, 6, 5), "1 server restarted, 5 failed.");
    }
}
