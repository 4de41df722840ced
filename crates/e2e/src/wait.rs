//! Waiting for what must come, with a deadline only a broken daemon meets.

use std::sync::LazyLock;
use std::time::Duration;

/// Longer than anything here takes on a loaded machine; a test that meets it has failed.
/// `COFER_TEST_DEADLINE` has the seconds for machines that are slower by far.
pub static DEADLINE: LazyLock<Duration> = LazyLock::new(|| {
    let told = std::env::var("COFER_TEST_DEADLINE").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(told.unwrap_or(45))
});

const INTERVAL: Duration = Duration::from_millis(15);

/// Asks until the answer is something; fails at the deadline, saying what was waited for.
/// For conditions nobody tells about, such as the process table and files.
pub async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    };
    within(what, asking).await
}

/// What the future gives, or a failure that says what was waited for.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(*DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {:?} in vain: {what}", *DEADLINE),
    }
}
