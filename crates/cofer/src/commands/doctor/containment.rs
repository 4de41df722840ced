//! The containment of servers that run as processes: as a running server shows it, else as a
//! daemon that is started here will have it.

use cofer_model::{Kind, ServerList, ServerView, Status};

use super::{Check, Level};
use crate::client::Client;

const NAME: &str = "containment";

pub(super) async fn check(client: &Client) -> Check {
    let in_force = in_force(client).await;
    describe(in_force.as_deref(), cofer_runtime::containment().map_err(|error| error.to_string()))
}

/// The containment of a process that the daemon runs.
async fn in_force(client: &Client) -> Option<String> {
    let list: ServerList = client.servers().await.ok()?.read().ok()?;
    let is_process =
        |server: &&ServerView| server.kind == Kind::Process && server.status == Status::Ready;
    let name = &list.servers.iter().find(is_process)?.name;
    let server: ServerView = client.server(name, false).await.ok()?.read().ok()?;
    Some(server.isolation?.get("containment")?.as_str()?.to_owned())
}

fn describe(in_force: Option<&str>, here: Result<std::path::PathBuf, String>) -> Check {
    match (in_force, here) {
        (Some("cgroup"), _) => Check::new(NAME, Level::Ok, "cgroup: one per server"),
        (None, Ok(path)) => {
            Check::new(NAME, Level::Ok, format!("cgroup: one per server below {}", path.display()))
        }
        (Some(other), here) => {
            let reason = here.err().unwrap_or_else(|| {
                "the daemon cannot write to its cgroup; this terminal can".to_owned()
            });
            subreaper(&format!("{other}: {reason}"))
        }
        (None, Err(reason)) => subreaper(&format!("subreaper: {reason}")),
    }
}

fn subreaper(message: &str) -> Check {
    Check::new(NAME, Level::Missing, format!("{message}; processes are ended without a cgroup"))
        .hint("run the daemon as a systemd service with `Delegate=yes` for a cgroup per server.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_containment_in_force_is_named_with_the_reason() {
        let refused = || Err("Permission denied".to_owned());
        let check = |in_force, here| {
            let check = describe(in_force, here);
            (check.level, check.message)
        };
        let (level, message) = check(Some("cgroup"), refused());
        assert_eq!((level, message.as_str()), (Level::Ok, "cgroup: one per server"));
        let (level, message) = check(None, Ok("/sys/fs/cgroup/a".into()));
        assert_eq!(level, Level::Ok);
        assert!(message.ends_with("below /sys/fs/cgroup/a"), "{message}");
        let (level, message) = check(None, refused());
        assert_eq!(level, Level::Missing);
        assert!(message.starts_with("subreaper: Permission denied"), "{message}");
        let (level, message) = check(Some("subreaper"), Ok("/sys/fs/cgroup/a".into()));
        assert_eq!(level, Level::Missing);
        assert!(message.starts_with("subreaper: the daemon cannot"), "{message}");
    }
}
