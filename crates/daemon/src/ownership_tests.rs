//! The loss of the ownership on paused time, with a database that lives in the test.

use std::sync::Mutex;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::*;

/// How the database behaves.
#[derive(Clone, Copy, PartialEq)]
enum Database {
    Up,
    /// It refuses connections.
    Down,
    /// It accepts connections and never answers.
    Silent,
    /// Another daemon is the owner.
    Taken,
}

struct FakeStore(watch::Receiver<Database>);

#[async_trait]
impl Ownership for FakeStore {
    fn lease(&self) -> Option<Duration> {
        Some(Duration::from_secs(15))
    }

    async fn renew(&self) -> Result<(), StoreError> {
        let database = *self.0.borrow();
        match database {
            Database::Up => Ok(()),
            Database::Down => Err(StoreError::InUse { place: "db".to_owned() }),
            Database::Silent => std::future::pending().await,
            Database::Taken => {
                let (place, reason) = ("db".to_owned(), "another daemon".to_owned());
                Err(StoreError::NotOwner { place, reason })
            }
        }
    }

    fn fence(&self) {}

    async fn acquire(&self) -> Result<(), StoreError> {
        let database = *self.0.borrow();
        match database {
            Database::Up => Ok(()),
            _ => Err(StoreError::InUse { place: "db".to_owned() }),
        }
    }
}

/// Notes when the servers were suspended and resumed.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<(&'static str, u64)>>>);

struct FakeServers {
    notes: Notes,
    begun: Instant,
}

impl FakeServers {
    fn note(&self, what: &'static str) {
        let seconds = self.begun.elapsed().as_secs();
        self.notes.0.lock().unwrap().push((what, seconds));
    }
}

#[async_trait]
impl Fenced for FakeServers {
    async fn suspend(&self, reason: Failure) {
        assert_eq!(reason.kind, FailureKind::StoreUnavailable);
        self.note("suspend");
    }

    async fn resume(&self) -> Result<(), StoreError> {
        self.note("resume");
        Ok(())
    }
}

/// What becomes of the servers while the database does these things, each for so many seconds.
async fn check(course: &[(Database, u64)], expected: &[(&'static str, u64)]) {
    let database = watch::Sender::new(Database::Up);
    let (notes, begun) = (Notes::default(), Instant::now());
    let servers = FakeServers { notes: notes.clone(), begun };
    let mut tasks = JoinSet::new();
    tasks.spawn(keep(Arc::new(FakeStore(database.subscribe())), servers, begun));
    for (state, seconds) in course {
        database.send_replace(*state);
        // Off the whole seconds at which renewals are sent.
        sleep(Duration::from_secs(*seconds) - Duration::from_millis(10)).await;
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(*notes.0.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_database_that_answers_keeps_the_servers_running() {
    check(&[(Database::Up, 3600)], &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_leaves_the_servers_alone() {
    let course = [(Database::Up, 9), (Database::Down, 6), (Database::Up, 60)];
    check(&course, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn servers_are_stopped_seven_seconds_before_the_lease_expires() {
    // The last renewal was sent in second 8.
    for outage in [Database::Down, Database::Silent] {
        let course = [(Database::Up, 9), (outage, 60)];
        check(&course, &[("suspend", 16)]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn servers_are_stopped_at_once_where_another_daemon_is_the_owner() {
    let course = [(Database::Up, 9), (Database::Taken, 60)];
    check(&course, &[("suspend", 10)]).await;
}

#[tokio::test(start_paused = true)]
async fn servers_start_again_when_the_database_is_acquired_again_and_not_before() {
    let course = [
        (Database::Up, 9),
        (Database::Down, 100),
        (Database::Taken, 100),
        (Database::Up, 100),
        (Database::Down, 100),
    ];
    let expected = [("suspend", 16), ("resume", 209), ("suspend", 315)];
    check(&course, &expected).await;
}
