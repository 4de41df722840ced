//! Whether the limit of open files is enough for the registered servers.

use std::path::Path;

use cofer_daemon::find_daemon;
use cofer_runtime::{OpenFiles, open_files, open_files_of};

use super::{Check, Level};
use crate::output::text;

const NAME: &str = "open files";

/// Descriptors of the daemon for one server: three pipes, the control socket, a process handle and
/// its log.
const PER_SERVER: u64 = 8;

/// Descriptors for everything else: the store, the log, connections and their reserve.
const BASE: u64 = 256;

/// `servers` as the daemon lists them, none without a daemon. The limit is that of the daemon, or
/// of this shell if none runs here: a daemon started from it raises its own to the hard limit.
pub(super) fn check(data_dir: &Path, servers: Option<usize>) -> Check {
    let of_daemon = find_daemon(data_dir).ok().and_then(|daemon| open_files_of(daemon.pid));
    check_limits(of_daemon.unwrap_or_else(open_files), servers.unwrap_or_default())
}

fn check_limits(OpenFiles { hard, .. }: OpenFiles, servers: usize) -> Check {
    if hard == u64::MAX {
        return Check::new(NAME, Level::Ok, "no limit");
    }
    let room = hard.saturating_sub(BASE) / PER_SERVER;
    let message = format!("hard limit {hard}, enough for about {room} servers");
    if u64::try_from(servers).unwrap_or(u64::MAX) <= room {
        return Check::new(NAME, Level::Ok, message);
    }
    let registered = text::count(servers, "server");
    let message = format!("{message}, and {registered} are registered");
    Check::new(NAME, Level::Warning, message).hint(
        "servers beyond the limit fail with “too many open files” (EMFILE); raise the hard limit: \
         `ulimit -n` as root, `LimitNOFILE=` in the daemon's systemd unit, or \
         /etc/security/limits.conf.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_too_low_for_the_registered_servers_is_a_warning_that_says_how_to_raise_it() {
        let limits = |hard| OpenFiles { soft: 64, hard };
        let low = check_limits(limits(1024), 97);
        assert_eq!(low.level, Level::Warning);
        assert!(low.message.contains("hard limit 1024, enough for about 96 servers"), "{low:?}");
        assert!(low.message.contains("97 servers are registered"), "{low:?}");
        assert!(low.hint.is_some_and(|hint| hint.contains("LimitNOFILE")));
        assert_eq!(check_limits(limits(1024), 96).level, Level::Ok);
        assert_eq!(check_limits(limits(100), 0).level, Level::Ok);
        assert_eq!(check_limits(limits(u64::MAX), 10_000).level, Level::Ok);
    }
}
