//! What process trees use, from one look at `/proc`.

use std::sync::PoisonError;
use std::time::Duration;

use cofer_model::Usage;
use tokio::time::Instant;

use crate::proc::Snapshot;
use crate::workload::Workload;

/// Processor time is counted in ticks of 10 ms, so that a share over less than this is noise.
const SHORTEST_SPAN: Duration = Duration::from_millis(200);

/// Remembers the last look at one tree, because a share needs two.
#[derive(Debug)]
pub(crate) struct Meter {
    at: Instant,
    ticks: u64,
    cpu_percent: Option<f64>,
}

impl Meter {
    /// For a tree that starts now: its first look tells the share since the start.
    pub(crate) fn new() -> Self {
        Self { at: Instant::now(), ticks: 0, cpu_percent: None }
    }

    /// For something that has used `ticks` before it is looked at for the first time.
    pub(crate) fn since(ticks: u64) -> Self {
        Self { ticks, ..Self::new() }
    }

    /// The share of one core since the last look, for a tree that has used `ticks` in all.
    pub(crate) fn share(&mut self, ticks: u64, now: Instant, ticks_per_second: u64) -> f64 {
        let span = now.saturating_duration_since(self.at);
        if let Some(share) = self.cpu_percent
            && span < SHORTEST_SPAN
        {
            return share;
        }
        let used = ticks.saturating_sub(self.ticks) as f64 / ticks_per_second as f64;
        let share = if span.is_zero() { 0.0 } else { 100.0 * used / span.as_secs_f64() };
        *self = Self { at: now, ticks, cpu_percent: Some(share) };
        share
    }
}

/// What each tree uses now, in the given order, with one look at the machine; nothing for a
/// server that has ended. Reads `/proc`: some milliseconds on a busy machine.
pub fn usage_of_all<'a>(workloads: impl IntoIterator<Item = &'a Workload>) -> Vec<Option<Usage>> {
    let snapshot = Snapshot::take();
    let now = Instant::now();
    workloads.into_iter().map(|workload| usage(&snapshot, workload, now)).collect()
}

fn usage(snapshot: &Snapshot, workload: &Workload, now: Instant) -> Option<Usage> {
    if !workload.is_running() {
        return None;
    }
    // What ended children used is in the books of whoever collected them, of the shim for
    // orphans, so that the sum only grows.
    let mut ticks = snapshot.get(workload.shim)?.waited_ticks;
    let mut usage = Usage::default();
    let mut pages = 0;
    for process in snapshot.descendants(workload.shim) {
        ticks += process.ticks + process.waited_ticks;
        pages += process.resident_pages;
        usage.pids += u32::from(!process.is_dead);
    }
    usage.memory_bytes = pages * rustix::param::page_size() as u64;
    let mut meter = workload.meter.lock().unwrap_or_else(PoisonError::into_inner);
    usage.cpu_percent = meter.share(ticks, now, rustix::param::clock_ticks_per_second());
    Some(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_of_the_time_since_the_last_look() {
        let mut meter = Meter::new();
        let start = meter.at;
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(meter.share(100, at(2000), 100), 50.0);
        assert_eq!(meter.share(300, at(3000), 100), 200.0);
        assert_eq!(meter.share(300, at(4000), 100), 0.0);
    }

    #[test]
    fn looks_in_quick_succession_tell_the_same_share() {
        let mut meter = Meter::new();
        let start = meter.at;
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(meter.share(100, at(1000), 100), 100.0);
        assert_eq!(meter.share(101, at(1001), 100), 100.0);
        assert_eq!(meter.share(140, at(2000), 100), 40.0);
    }

    #[test]
    fn what_was_used_before_the_first_look_does_not_count() {
        let mut meter = Meter::since(1000);
        let start = meter.at;
        assert_eq!(meter.share(1050, start + Duration::from_secs(1), 100), 50.0);
    }

    #[test]
    fn lost_time_is_not_a_negative_share() {
        let mut meter = Meter::new();
        let start = meter.at;
        assert_eq!(meter.share(100, start, 100), 0.0);
        assert_eq!(meter.share(50, start + Duration::from_secs(1), 100), 0.0);
    }
}
