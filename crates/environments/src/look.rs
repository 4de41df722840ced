//! What of a source is not committed, and so in no environment. It is looked for while an
//! environment is made: every file of the source has to be looked at, which must not be what
//! everybody waits for. A large source is looked at beside all else where the machine has
//! processors enough, and else behind it; what shows too late is told with the next command.

use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::repository::{Repository, Settings};

/// How many uncommitted files are named.
const MOST_NAMED: usize = 20;
/// How long is waited for it once the environment is made.
const PATIENCE: Duration = Duration::from_secs(1);
/// The index of some 20,000 files. Looking at more than that takes a good part of the time that
/// all the rest takes.
const LARGE: u64 = 2 * 1024 * 1024;

/// What is asked for right after the answer goes before a look that is last.
const PAUSE: Duration = Duration::from_millis(300);
/// With so many processors at least one of them has nothing to do while a container starts.
const MANY_PROCESSORS: usize = 4;

/// See the module. Dropped, it ends.
#[derive(Debug)]
pub(crate) struct Look {
    task: JoinSet<Option<Vec<String>>>,
    patience: Duration,
    /// Dropped, it lets the look begin that waits for its turn.
    turn: Option<oneshot::Sender<()>>,
}

/// What a look has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// These, a line each as `git status --porcelain` writes it; most often none.
    Uncommitted(Vec<String>),
    /// Nothing yet.
    NotYet,
    /// Git could not say.
    Unknown,
}

impl Look {
    /// Begins as soon as it is in nobody's way.
    pub(crate) fn at(repository: &Repository, settings: &Settings) -> Self {
        let index = repository.git_dir.join("index").metadata();
        let is_large = index.is_ok_and(|index| index.len() > LARGE);
        let has_many = available_parallelism().is_ok_and(|count| count.get() >= MANY_PROCESSORS);
        let (repository, settings) = (repository.clone(), settings.clone());
        let looking =
            async move { repository.uncommitted(MOST_NAMED + 1, is_large, &settings).await.ok() };
        Self::new(looking, is_large, is_large && !has_many)
    }

    fn new(
        looking: impl Future<Output = Option<Vec<String>>> + Send + 'static,
        is_large: bool,
        is_last: bool,
    ) -> Self {
        let (turn, its_turn) = oneshot::channel();
        let mut task = JoinSet::new();
        task.spawn(async move {
            if is_last {
                its_turn.await.unwrap_or_default();
                sleep(PAUSE).await;
            }
            looking.await
        });
        let patience = if is_large { Duration::ZERO } else { PATIENCE };
        Self { task, patience, turn: is_last.then_some(turn) }
    }

    /// What is known now that everything else is done, or soon after.
    pub(crate) async fn seen_in_time(&mut self) -> Seen {
        self.turn = None;
        if self.patience.is_zero() {
            return self.seen();
        }
        match timeout(self.patience, self.task.join_next()).await {
            Ok(ended) => verdict(ended),
            Err(_) => Seen::NotYet,
        }
    }

    /// What is known now. Asked again after it was known, it is unknown.
    pub(crate) fn seen(&mut self) -> Seen {
        match self.task.try_join_next() {
            None if !self.task.is_empty() => Seen::NotYet,
            ended => verdict(ended),
        }
    }
}

fn verdict(ended: Option<Result<Option<Vec<String>>, tokio::task::JoinError>>) -> Seen {
    ended.and_then(Result::ok).flatten().map_or(Seen::Unknown, Seen::Uncommitted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(looking: impl Future<Output = Option<Vec<String>>> + Send + 'static) -> Look {
        Look::new(looking, false, false)
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_waited_for_and_not_for_ever() {
        let found = Seen::Uncommitted(vec!["?? a".to_owned()]);
        let mut slow = look(async {
            sleep(PATIENCE * 2).await;
            Some(vec!["?? a".to_owned()])
        });
        assert_eq!(slow.seen_in_time().await, Seen::NotYet);
        assert_eq!(slow.seen(), Seen::NotYet);
        sleep(PATIENCE * 2).await;
        assert_eq!(slow.seen(), found);
        let mut soon = look(async {
            sleep(PATIENCE / 2).await;
            Some(vec!["?? a".to_owned()])
        });
        assert_eq!(soon.seen_in_time().await, found);
        assert_eq!(look(async { None }).seen_in_time().await, Seen::Unknown);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_large_source() {
        let mut large = Look::new(std::future::pending(), true, false);
        let began = tokio::time::Instant::now();
        assert_eq!(large.seen_in_time().await, Seen::NotYet);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn where_it_would_be_in_the_way_it_begins_last() {
        let (begun, mut begins) = oneshot::channel();
        let looking = async move {
            begun.send(()).unwrap();
            Some(Vec::new())
        };
        let mut last = Look::new(looking, true, true);
        sleep(PATIENCE).await;
        assert!(begins.try_recv().is_err(), "the environment is still being made");
        assert_eq!(last.seen_in_time().await, Seen::NotYet);
        begins.await.unwrap();
        tokio::task::yield_now().await;
        assert_eq!(last.seen(), Seen::Uncommitted(Vec::new()));
    }
}
