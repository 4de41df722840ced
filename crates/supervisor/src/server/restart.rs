//! Decides how long to wait after a crash, and for an engine that is away. Pure: it is told when
//! a server crashed and how long it had been well, and gives a verdict. The driver does the
//! waiting.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// More crashes than `MANY` within `WINDOW` make a crash loop.
const WINDOW: Duration = Duration::from_secs(60);
const MANY: usize = 3;
/// The pause before an ordinary restart: enough not to spin, far below the 5 s that are allowed.
const SOON: Duration = Duration::from_millis(200);
/// The pauses of a crash loop; the last one repeats.
const BACKOFF: [Duration; 5] = [
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(45),
    Duration::from_secs(120),
    Duration::from_secs(300),
];
/// Who ran well for this long is out of the loop.
pub(crate) const STABLE: Duration = Duration::from_secs(60);

/// The pauses between two looks for what a server runs on; the last one repeats. Short, because
/// a look costs little and people who repair something want to see that it worked.
const PATIENCE: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// The pause before look number `attempt`.
pub(crate) fn patience(attempt: usize) -> Duration {
    PATIENCE[attempt.min(PATIENCE.len() - 1)]
}

/// What is to be done about a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// How long to wait.
    pub(crate) pause: Duration,
    /// Whether this is a crash loop, which somebody should look at.
    pub(crate) looping: bool,
}

/// The crashes of one server since somebody last switched it on or restarted it.
#[derive(Debug, Default)]
pub(crate) struct CrashHistory {
    recent: VecDeque<Instant>,
    /// How many pauses of `BACKOFF` were used in the present loop.
    level: Option<usize>,
}

impl CrashHistory {
    /// Takes note of a crash at `now` of a server that had been well for `well`.
    pub(crate) fn crashed(&mut self, now: Instant, well: Duration) -> Verdict {
        if well >= STABLE {
            self.reset();
        }
        self.recent.push_back(now);
        while self.recent.front().is_some_and(|oldest| now.duration_since(*oldest) > WINDOW) {
            self.recent.pop_front();
        }
        match self.level {
            None if self.recent.len() <= MANY => return Verdict { pause: SOON, looping: false },
            None => self.level = Some(0),
            Some(level) => self.level = Some((level + 1).min(BACKOFF.len() - 1)),
        }
        Verdict { pause: BACKOFF[self.level.unwrap_or(0)], looping: true }
    }

    /// Whether the last verdict spoke of a loop.
    pub(crate) fn is_loop(&self) -> bool {
        self.level.is_some()
    }

    /// Forgets everything.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CRASH: Duration = Duration::ZERO;

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn three_crashes_in_a_minute_are_restarted_at_once_and_the_fourth_backs_off() {
        // covers: HST-3.2, HST-3.3
        let start = Instant::now();
        let mut history = CrashHistory::default();
        for second in [0, 10, 20] {
            let verdict = history.crashed(after(start, second), CRASH);
            assert_eq!(verdict, Verdict { pause: SOON, looping: false });
        }
        let mut now = 30;
        let mut pauses = Vec::new();
        for _ in 0..7 {
            let verdict = history.crashed(after(start, now), CRASH);
            assert!(verdict.looping);
            pauses.push(verdict.pause.as_secs());
            now += verdict.pause.as_secs();
        }
        assert_eq!(pauses, [5, 15, 45, 120, 300, 300, 300]);
    }

    #[tokio::test(start_paused = true)]
    async fn crashes_that_are_far_apart_are_no_loop() {
        let start = Instant::now();
        let mut history = CrashHistory::default();
        for number in 0..20 {
            assert!(!history.crashed(after(start, number * 21), CRASH).looping);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_minute_of_health_ends_a_loop() {
        let start = Instant::now();
        let mut history = CrashHistory::default();
        for _ in 0..5 {
            history.crashed(start, CRASH);
        }
        assert!(!history.crashed(after(start, 70), STABLE).looping);
    }

    proptest! {
        #[test]
        fn a_pause_is_never_shorter_than_the_one_before_within_a_loop(gaps in prop::collection::vec(0u64..400, 1..40)) {
            let start = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async { Instant::now() });
            let mut history = CrashHistory::default();
            let mut now = start;
            let mut before = Duration::ZERO;
            for gap in gaps {
                now += Duration::from_secs(gap);
                let verdict = history.crashed(now, CRASH);
                prop_assert!(verdict.pause >= before);
                prop_assert_eq!(verdict.looping, verdict.pause > SOON);
                before = verdict.pause;
            }
        }
    }
}
