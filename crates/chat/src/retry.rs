//! Whether a model is asked again, and when. Pure: the turn does the waiting.

use std::time::Duration;

use crate::{ModelFailure, ModelFailureKind};

/// How often a model is asked again.
pub(crate) const RETRIES: u32 = 3;
/// Nobody sits longer than this before a chat that waits; a person is told instead.
const LONGEST: Duration = Duration::from_secs(60);

/// How long to wait before the next try; none where there is none. `tried` counts the tries
/// that were made again so far.
pub(crate) fn pause(failure: &ModelFailure, tried: u32) -> Option<Duration> {
    if failure.kind != ModelFailureKind::RateLimited || tried >= RETRIES {
        return None;
    }
    let asked = failure.retry_after.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let pause = asked.unwrap_or(Duration::from_secs(1 << tried));
    (pause <= LONGEST).then_some(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(retry_after: Option<f64>) -> ModelFailure {
        ModelFailure::new(ModelFailureKind::RateLimited, "slow down").retry_after(retry_after)
    }

    #[test]
    fn the_provider_says_when() {
        assert_eq!(pause(&limited(Some(2.5)), 0), Some(Duration::from_millis(2500)));
        assert_eq!(pause(&limited(Some(61.0)), 0), None, "too long to sit and wait");
        assert_eq!(pause(&limited(Some(f64::NAN)), 0), Some(Duration::from_secs(1)));
    }

    #[test]
    fn without_a_word_the_pauses_double_and_end() {
        let pauses: Vec<_> =
            (0..5).map(|tried| pause(&limited(None), tried).map(|pause| pause.as_secs())).collect();
        assert_eq!(pauses, [Some(1), Some(2), Some(4), None, None]);
    }

    #[test]
    fn other_failures_are_told_at_once() {
        let wrong_key = ModelFailure::new(ModelFailureKind::WrongKey, "no").retry_after(Some(1.0));
        assert_eq!(pause(&wrong_key, 0), None);
    }
}
