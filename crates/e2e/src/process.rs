//! The process table as the system shows it, and signals.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::wait::eventually;

/// Whether a process runs. A zombie has ended and only waits to be counted.
pub fn alive(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

/// The parent of a process.
pub fn parent(pid: u32) -> Option<u32> {
    stat(pid).map(|(_, parent)| parent)
}

/// State and parent, from behind the last parenthesis: a program's name may hold anything.
fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Whether a process leads a session of its own.
pub fn is_session_leader(pid: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = text.rfind(')').map_or("", |at| &text[at + 1..]);
    after_name.split_ascii_whitespace().nth(3) == Some(pid.to_string().as_str())
}

/// The arguments of a process, joined by spaces.
pub fn command_line(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// The running processes whose arguments hold `text`: tests put a path of their own there.
pub fn processes_with(text: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc is there");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| alive(*pid) && command_line(*pid).contains(text)).collect()
}

/// Sends SIGKILL.
pub fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

/// Sends a signal; a process that is gone already needs none.
pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.try_into().expect("a pid is small")).expect("a pid is not 0");
    match kill_process(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => panic!("could not send {signal:?} to {pid:?}: {error}"),
    }
}

/// Waits until none of these processes runs.
pub async fn wait_gone(pids: &[u32]) {
    let what = format!("processes {pids:?} end");
    eventually(&what, async || pids.iter().all(|pid| !alive(*pid)).then_some(())).await;
}

/// The pids in a file that `wayward` wrote, one a line; none while the file is not there.
pub fn pids_in(path: &Path) -> Vec<u32> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The files below `folder` that hold `needle`, for finding secrets where they must not be.
pub fn mentions(folder: &Path, needle: &str) -> Vec<String> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).expect("the folder can be read");
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            found.extend(mentions(&path, needle));
        } else if let Ok(bytes) = fs::read(&path)
            && bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}
