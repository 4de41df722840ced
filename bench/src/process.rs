//! Programs that are started for a measurement, and what the system says about them.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

/// A command in its own process group, quiet, without this program's stdin.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "a measurement, not the product: it starts the peers too"
    )]
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).kill_on_drop(true);
    command
}

/// A started program; its whole group ends when this is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
}

impl Running {
    /// Starts it.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Self { child: command.spawn()? })
    }

    /// Of the program itself.
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or(0)
    }

    /// Its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Asks it to end, and waits until it has.
    pub async fn stop(mut self) -> io::Result<()> {
        self.signal(Signal::TERM);
        tokio::time::timeout(Duration::from_secs(40), self.child.wait()).await??;
        Ok(())
    }

    /// Ends its whole group at once.
    pub async fn kill(mut self) -> io::Result<()> {
        self.signal(Signal::KILL);
        self.child.wait().await?;
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        // It may have ended by itself.
        pid.and_then(|pid| kill_process_group(pid, signal).ok());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// A port of loopback that was free a moment ago.
pub async fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port())
}

/// The processor time a process has used, in user and kernel mode.
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the program's name in parentheses, which may hold spaces.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: u64 =
        fields.split_whitespace().skip(11).take(2).filter_map(|f| f.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second()))
}

/// A value of /proc/PID/status or /proc/PID/smaps_rollup that is given in kB, in bytes.
pub fn memory(pid: u32, file: &str, key: &str) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes
        .map(|kilobytes| kilobytes * 1024)
        .ok_or_else(|| io::Error::other(format!("no {key} in {file}")))
}

/// Sets the peak of the resident memory (VmHWM) back to what is resident now.
pub fn reset_peak(pid: u32) -> io::Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5")
}

/// The processes below one whose program is the same as its own: Cofer's shims.
pub fn shims(pid: u32) -> Vec<u32> {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let children = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    children
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
        })
        .filter(|child| fs::read_link(format!("/proc/{child}/exe")).ok() == program)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_about_this_process() {
        let pid = std::process::id();
        assert!(memory(pid, "status", "VmRSS").unwrap() > 1 << 16);
        assert!(memory(pid, "smaps_rollup", "Pss").unwrap() > 0);
        assert!(memory(pid, "status", "NoSuch").is_err());
        assert!(cpu_time(pid).unwrap() < Duration::from_secs(3600));
        assert!(shims(pid).is_empty());
    }
}
