//! Package managers in a process tree (`npx`, `uvx`, `pip` …) and the bytes that they have moved: a
//! first start downloads packages, which may take longer than the start of any server.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::proc::Snapshot;
use crate::workload::Workload;

/// Programs that download packages before, or instead of, running a server.
const PACKAGE_MANAGERS: [&str; 11] =
    ["npx", "npm", "pnpm", "yarn", "bunx", "uv", "uvx", "pip", "pip3", "pipx", "poetry"];
/// Programs that run another one, which their first argument names.
const INTERPRETERS: [&str; 7] = ["node", "bun", "sh", "bash", "dash", "python", "python3"];
/// Enough of a command line to find a program's name.
const MAX_COMMAND_LINE: u64 = 4096;

/// A package manager that runs in a process tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetching {
    /// Its process.
    pub pid: u32,
    /// Its name.
    pub program: &'static str,
    /// The bytes that it and its ended children have read and written, files and sockets alike.
    pub bytes: u64,
}

impl Workload {
    /// The package managers in its tree. Reads `/proc`, which takes about a millisecond.
    pub fn fetching(&self) -> Vec<Fetching> {
        if !self.is_running() {
            return Vec::new();
        }
        let snapshot = Snapshot::take();
        let processes = snapshot.descendants(self.shim).into_iter().filter(|one| !one.is_dead);
        processes.filter_map(|process| fetching(process.pid)).collect()
    }
}

fn fetching(pid: u32) -> Option<Fetching> {
    let mut line = Vec::new();
    let file = File::open(format!("/proc/{pid}/cmdline")).ok()?;
    file.take(MAX_COMMAND_LINE).read_to_end(&mut line).ok()?;
    let program = package_manager(&line)?;
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    Some(Fetching { pid, program, bytes: moved_bytes(&io) })
}

/// The package manager that a command line (NUL between its words) runs.
fn package_manager(line: &[u8]) -> Option<&'static str> {
    let mut words = line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let first = words.next()?;
    // npm writes its whole command, with spaces, over the first word.
    let name = base_name(first.split(' ').next()?);
    if let Some(known) = known(&name) {
        return Some(known);
    }
    if !INTERPRETERS.contains(&name.as_str()) {
        return None;
    }
    let script = words.next()?;
    let script = if script == "-m" { words.next()? } else { script };
    known(&base_name(&script))
}

fn base_name(path: &str) -> String {
    let name = Path::new(path).file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let name = name.strip_suffix(".js").unwrap_or(&name);
    name.strip_suffix("-cli").unwrap_or(name).to_owned()
}

fn known(name: &str) -> Option<&'static str> {
    PACKAGE_MANAGERS.into_iter().find(|known| *known == name)
}

/// `rchar` and `wchar` of `/proc/PID/io`: bytes of read and write calls, also those of sockets, which
/// `read_bytes` and `write_bytes` leave out.
fn moved_bytes(io: &str) -> u64 {
    let value = |key: &str| {
        let line = io.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    value("rchar:") + value("wchar:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_manager_is_known_by_its_command_line() {
        for (line, expected) in [
            ("npm exec @modelcontextprotocol/server-x", Some("npm")),
            ("/usr/bin/node\0/usr/bin/npx\0-y\0x", Some("npx")),
            ("node\0/usr/lib/node_modules/npm/bin/npx-cli.js\0-y", Some("npx")),
            ("/bin/sh\0/tmp/bin/npx\0-y\0x", Some("npx")),
            ("/home/a/.local/bin/uv\0tool\0uvx\0mcp-server-time", Some("uv")),
            ("python3\0-m\0pip\0install\0x", Some("pip")),
            ("node\0/srv/npx-server/index.js", None),
            ("/usr/bin/wayward\0npx", None),
            ("python3\0-m\0http.server", None),
            ("", None),
        ] {
            assert_eq!(package_manager(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn reads_and_writes_are_added_up() {
        let io = "rchar: 100\nwchar: 23\nsyscr: 7\nread_bytes: 4096\nwrite_bytes: 8\n";
        assert_eq!(moved_bytes(io), 123);
        assert_eq!(moved_bytes(""), 0);
    }
}
