//! Something that is wanted, and must not be what everybody waits for.

use std::time::Duration;

use tokio::time::Instant;

/// The least time that looking has after the work is done.
const LOOKING: Duration = Duration::from_millis(150);

/// Waits for `work`, and for `look` beside it, which must not make a large repository slow: it has
/// a part of the time longer that the work took.
pub(crate) async fn beside<T, U>(
    work: impl Future<Output = T>,
    look: impl Future<Output = U>,
) -> (T, Option<U>) {
    tokio::pin!(work, look);
    let started = Instant::now();
    let mut seen = None;
    let done = loop {
        tokio::select! {
            done = &mut work => break done,
            found = &mut look, if seen.is_none() => seen = Some(found),
        }
    };
    if seen.is_none() {
        let longest = LOOKING.max(started.elapsed() / 4);
        seen = tokio::time::timeout(longest, look).await.ok();
    }
    (done, seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn looking_is_waited_for_and_not_for_ever() {
        let slow = |ms| tokio::time::sleep(Duration::from_millis(ms));
        assert_eq!(beside(slow(5), async { 1 }).await, ((), Some(1)));
        let (_, found) = beside(async {}, async {
            slow(1).await;
            2
        })
        .await;
        assert_eq!(found, Some(2));
        assert_eq!(beside(async { 3 }, std::future::pending::<()>()).await, (3, None));
    }
}
