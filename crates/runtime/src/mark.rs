//! A mark that a process tree cannot lose by accident: a soft `RLIMIT_RTTIME` that names owner
//! and run. Resource limits are inherited over `fork`, `execve`, `setsid` and a cleared
//! environment, and `/proc/PID/limits` shows them. The value is beyond 140,000 years of
//! real-time processor time, so that it limits nothing.

use std::fs;

use rustix::process::{Resource, getrlimit, setrlimit};

/// Set in every mark. No program asks for a timeout of this order.
const MARKED: u64 = 1 << 62;

/// Below that bit: 24 bits of the owner's hash, 20 of the daemon's pid, 18 of the run's number.
const RUN_BITS: u32 = 18;
const DAEMON_BITS: u32 = 20;
const OWNER_BITS: u32 = 24;

/// The line of `/proc/PID/limits`.
const LINE: &str = "Max realtime timeout";

/// The mark of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Mark {
    /// The mark of run number `run` of a daemon process.
    pub(crate) fn new(owner: &str, daemon: u32, run: u64) -> Self {
        let low = |value: u64, bits: u32| value & ((1 << bits) - 1);
        let owner = low(hash(owner), OWNER_BITS) << (DAEMON_BITS + RUN_BITS);
        let daemon = low(daemon.into(), DAEMON_BITS) << RUN_BITS;
        Self(MARKED | owner | daemon | low(run, RUN_BITS))
    }

    /// The mark of a run, from its marker `<owner>/<server>/<daemon>-<run>`.
    pub(crate) fn of(marker: &str) -> Option<Self> {
        let (owner, rest) = marker.split_once('/')?;
        let (daemon, run) = rest.rsplit('/').next()?.split_once('-')?;
        Some(Self::new(owner, daemon.parse().ok()?, run.parse().ok()?))
    }

    /// The mark that a process carries.
    pub(crate) fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/limits")).ok()?)
    }

    fn parse(limits: &str) -> Option<Self> {
        let line = limits.lines().find_map(|line| line.strip_prefix(LINE))?;
        let soft: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
        (soft & MARKED != 0).then_some(Self(soft))
    }

    /// Whether both marks are of one owner.
    pub(crate) fn has_owner_of(self, other: Self) -> bool {
        let owner = |mark: Self| mark.0 >> (DAEMON_BITS + RUN_BITS);
        owner(self) == owner(other)
    }

    /// Whether both marks are of one daemon process.
    pub(crate) fn has_daemon_of(self, other: Self) -> bool {
        self.0 >> RUN_BITS == other.0 >> RUN_BITS
    }

    /// Puts the mark on this process and on everything it starts. Fails where a hard limit is
    /// set already, which only somebody who restricts real-time scheduling does.
    pub(crate) fn apply(self) -> rustix::io::Result<()> {
        let limit = getrlimit(Resource::Rttime);
        setrlimit(Resource::Rttime, rustix::process::Rlimit { current: Some(self.0), ..limit })
    }
}

/// FNV-1a with a final mix: the same in every build, as marks outlive the daemon that set them.
fn hash(text: &str) -> u64 {
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, fnv);
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(value: &str) -> String {
        format!(
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max realtime priority     0                    0                    \n\
             Max realtime timeout      {value}  unlimited            us        \n"
        )
    }

    #[test]
    fn a_mark_is_read_as_it_was_set() {
        let mark = Mark::of("owner/server/1-2").unwrap();
        assert_eq!(mark, Mark::new("owner", 1, 2));
        assert_eq!(Mark::parse(&limits(&mark.0.to_string())), Some(mark));
        for other in ["unlimited", "200000", "0", ""] {
            assert_eq!(Mark::parse(&limits(other)), None, "{other}");
        }
        for marker in ["", "owner", "owner/server/x", "owner/1-x"] {
            assert_eq!(Mark::of(marker), None, "{marker}");
        }
    }

    #[test]
    fn runs_are_told_apart_by_owner_daemon_and_number() {
        let mark = Mark::new("owner", 1, 2);
        let same =
            |other: Mark| (mark == other, mark.has_daemon_of(other), mark.has_owner_of(other));
        assert_eq!(same(Mark::new("owner", 1, 2)), (true, true, true));
        assert_eq!(same(Mark::new("owner", 1, 3)), (false, true, true));
        assert_eq!(same(Mark::new("owner", 2, 2)), (false, false, true));
        assert_eq!(same(Mark::new("other", 1, 2)), (false, false, false));
    }

    #[test]
    fn values_that_are_too_large_stay_in_their_place() {
        let mark = Mark::new("owner", u32::MAX, u64::MAX);
        assert!(mark.has_owner_of(Mark::new("owner", 0, 0)));
        assert_eq!(mark.0 >> 62, 1);
    }
}
