//! What is particular to PostgreSQL: who may use it, and what happens when it goes away.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::error::Error as _;
use std::path::Path;

use cofer_store::StoreError;
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection};
use support::{Home, admin, daemon, names, other_daemon, record, server};

/// All that is told about an error, in every form.
fn told(error: &StoreError) -> String {
    let mut text = format!("{error} {error:?} {:?}", error.hint());
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(" {error} {error:?}");
        cause = error.source();
    }
    text
}

async fn fails(url: &str) -> StoreError {
    let error =
        cofer_store::open(Some(url), Path::new("/"), daemon()).await.err().expect("it was opened");
    assert!(!told(&error).contains("hunter2"), "{}", told(&error));
    error
}

#[tokio::test]
async fn a_second_daemon_is_refused_until_the_first_is_gone() {
    let home = Home::postgres().await;
    let first = home.open().await.unwrap();
    let error = home.open_as(other_daemon()).await.err().expect("two daemons on one database");
    assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("other daemon"));
    first.insert(&record("still works")).await.unwrap();

    first.close().await;
    let begun = tokio::time::Instant::now();
    let second = home.open_as(other_daemon()).await.unwrap();
    assert_eq!(names(&second).await, ["still works"]);
    drop(second);
    home.open_as(other_daemon()).await.expect("a daemon that was killed can be started again");
    assert!(begun.elapsed().as_secs() < 15, "it waited for its own lease");
    home.remove().await;
}

#[tokio::test]
async fn a_database_that_cannot_be_reached_is_named_without_the_password() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = fails(&format!("postgres://me:hunter2@127.0.0.1:{port}/kb")).await;
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains(&format!("`kb` at 127.0.0.1:{port}")), "{error}");
    assert!(error.hint().unwrap().contains("running"));
}

#[tokio::test]
async fn a_door_that_stays_shut_is_explained_without_the_password() {
    let shut = server().username("nobody_here").password("hunter2").to_url_lossy();
    let error = fails(shut.as_str()).await;
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("password"));

    let missing = server().database("not_there").to_url_lossy();
    let error = fails(missing.as_str()).await;
    assert!(error.hint().unwrap().contains("createdb"), "{error:?}");
}

#[tokio::test]
async fn a_user_with_no_right_but_to_a_schema_made_for_them_is_enough() {
    let mut home = Home::postgres().await;
    let options = home.database.clone().unwrap();
    let role = format!("{}_user", options.get_database().unwrap());
    let password = "only-for-this-test";
    home.by_hand(&format!(
        "CREATE ROLE {role} LOGIN PASSWORD '{password}'; CREATE SCHEMA kb AUTHORIZATION {role}"
    ))
    .await;
    home.database = Some(options.clone().username(&role).password(password));
    for name in ["first", "again"] {
        let store = home.open().await.unwrap();
        store.insert(&record(name)).await.unwrap();
        store.close().await;
    }
    home.database = Some(options);
    home.by_hand(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    home.remove().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_not_waited_for_for_ever() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let started = tokio::time::Instant::now();
    let error = fails(&format!("postgres://me:hunter2@127.0.0.1:{port}/kb")).await;
    assert_eq!(started.elapsed().as_secs(), 10);
    assert!(told(&error).contains("no answer within 10s"), "{error:?}");
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
}

#[tokio::test]
async fn the_order_of_names_does_not_follow_the_language_of_the_database() {
    let home = Home::postgres().await;
    let store = home.open().await.unwrap();
    home.by_hand(r#"ALTER TABLE kb.agent_workspaces ALTER name TYPE text COLLATE "und-x-icu""#)
        .await;
    for name in ["b", "a", "B", "é"] {
        store.insert(&record(name)).await.unwrap();
    }
    assert_eq!(names(&store).await, ["B", "a", "b", "é"]);
    home.remove().await;
}

/// Ends every session on the database, and lets none in or some again.
async fn shut_out(home: &Home, shut: bool) {
    let name = home.database.as_ref().unwrap().get_database().unwrap();
    let mut admin = admin().await;
    let sql = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {}", !shut);
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut admin).await.unwrap();
    while shut && sessions(&mut admin, name).await > 0 {
        sqlx::query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1")
            .bind(name)
            .execute(&mut admin)
            .await
            .unwrap();
    }
}

async fn sessions(admin: &mut PgConnection, database: &str) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM pg_stat_activity WHERE datname = $1")
        .bind(database)
        .fetch_one(admin)
        .await
        .unwrap()
}

#[tokio::test]
async fn the_store_works_again_when_the_database_is_back() {
    let home = Home::postgres().await;
    let store = home.open().await.unwrap();
    store.insert(&record("before")).await.unwrap();

    shut_out(&home, true).await;
    for _ in 0..2 {
        let error = store.insert(&record("during")).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        assert!(matches!(store.health().await, Err(StoreError::Unavailable { .. })));
    }

    shut_out(&home, false).await;
    store.insert(&record("after")).await.unwrap();
    assert_eq!(names(&store).await, ["after", "before"]);
    store.renew().await.unwrap_or_default();
    store.renew().await.unwrap();
    let error = home.open_as(other_daemon()).await.err().expect("the lock was not taken again");
    assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
    home.remove().await;
}

/// How long the lease in the database lasts from now on.
async fn set_lease(home: &Home, seconds: u32) {
    home.by_hand(&format!(
        "UPDATE kb.daemon_lease SET expires_at = clock_timestamp() + interval '{seconds} seconds'"
    ))
    .await;
}

async fn expires_at(home: &Home) -> String {
    home.look("SELECT expires_at::text FROM kb.daemon_lease").await
}

#[tokio::test]
async fn another_daemon_waits_for_the_lease_of_one_that_lost_its_connection() {
    let home = Home::postgres().await;
    let first = home.open().await.unwrap();
    first.insert(&record("before")).await.unwrap();
    shut_out(&home, true).await;
    shut_out(&home, false).await;
    set_lease(&home, 4).await;
    let begun = tokio::time::Instant::now();
    let second = home.open_as(other_daemon()).await.unwrap();
    assert!(begun.elapsed().as_millis() > 3500, "it did not wait: {:?}", begun.elapsed());

    // The first daemon is connected again, and writes nothing any more.
    let error = first.insert(&record("stray")).await.unwrap_err();
    assert!(matches!(error, StoreError::NotOwner { .. }), "{error:?}");
    let renewals = [first.renew().await.unwrap_err(), first.renew().await.unwrap_err()];
    assert!(!matches!(renewals[1], StoreError::Unavailable { .. }), "{renewals:?}");
    assert_eq!(names(&second).await, ["before"]);
    second.renew().await.unwrap();

    // It regains the database once the second has released it.
    first.fence();
    assert!(matches!(first.acquire().await, Err(StoreError::InUse { .. })));
    second.close().await;
    first.acquire().await.unwrap();
    first.insert(&record("mine again")).await.unwrap();
    let epoch = home.look("SELECT epoch::text FROM kb.daemon_lease").await;
    assert_eq!(epoch, "3");
    home.remove().await;
}

#[tokio::test]
async fn the_owner_regains_its_lock_while_another_daemon_waits() {
    let home = Home::postgres().await;
    let first = home.open().await.unwrap();
    shut_out(&home, true).await;
    shut_out(&home, false).await;
    let waiting = home.open_as(other_daemon());
    let regain = async {
        // The broken session is noticed by the first renewal and replaced by the next.
        while first.renew().await.is_err() {}
        first.insert(&record("mine")).await.unwrap();
    };
    let (second, ()) = tokio::join!(waiting, regain);
    let error = second.err().expect("the lease was renewed");
    assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
    let kept = first.list().await.unwrap().remove(0).unwrap();
    assert_eq!(kept.epoch, 1, "servers that run on keep their epoch");
    home.remove().await;
}

#[tokio::test]
async fn a_session_that_postgresql_has_not_seen_end_does_not_keep_its_own_daemon_out() {
    let home = Home::postgres().await;
    let hung = home.open().await.unwrap();
    let restarted = home.open().await.expect("the same data directory was opened again");
    restarted.insert(&record("x")).await.unwrap();
    assert!(hung.insert(&record("stray")).await.is_err());
    home.remove().await;
}

#[tokio::test]
async fn a_renewal_extends_the_lease_and_closing_ends_it() {
    let home = Home::postgres().await;
    let store = home.open().await.unwrap();
    assert_eq!(store.lease().unwrap().as_secs(), 15);
    set_lease(&home, 1).await;
    let before = expires_at(&home).await;
    store.renew().await.unwrap();
    assert!(expires_at(&home).await > before);
    store.close().await;
    let ended = "SELECT (expires_at <= clock_timestamp())::text FROM kb.daemon_lease";
    assert_eq!(home.look(ended).await, "true");
    home.remove().await;
}

#[tokio::test]
async fn a_renewal_is_not_delayed_by_a_statement_that_waits() {
    let home = Home::postgres().await;
    let store = home.open().await.unwrap();
    let mut other: PgConnection = home.database.as_ref().unwrap().connect().await.unwrap();
    let lock = "BEGIN; LOCK TABLE kb.agent_workspaces";
    sqlx::raw_sql(lock).execute(&mut other).await.unwrap();
    let kept = record("patient");
    let mut insert = std::pin::pin!(store.insert(&kept));
    let renewals = async {
        for _ in 0..3 {
            store.renew().await.unwrap();
        }
    };
    tokio::select! {
        biased;
        early = &mut insert => panic!("the insert did not wait: {early:?}"),
        () = renewals => {}
    }
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    insert.await.unwrap();
    home.remove().await;
}

#[tokio::test]
async fn a_fenced_store_ends_calls_in_progress_and_refuses_all_others() {
    let home = Home::postgres().await;
    let store = home.open().await.unwrap();
    let mut other: PgConnection = home.database.as_ref().unwrap().connect().await.unwrap();
    let lock = "BEGIN; LOCK TABLE kb.agent_workspaces";
    sqlx::raw_sql(lock).execute(&mut other).await.unwrap();
    let kept = record("refused");
    let (inserted, ()) = tokio::join!(store.insert(&kept), async {
        // Behind the insert, which waits for the table by now.
        store.renew().await.unwrap();
        store.fence();
    });
    assert!(matches!(inserted, Err(StoreError::NotOwner { .. })), "{inserted:?}");
    assert!(matches!(store.list().await, Err(StoreError::NotOwner { .. })));
    assert!(matches!(store.health().await, Err(StoreError::NotOwner { .. })));
    assert!(matches!(store.renew().await, Err(StoreError::NotOwner { .. })));
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();

    store.acquire().await.unwrap();
    assert_eq!(names(&store).await, [""; 0]);
    store.insert(&record("again")).await.unwrap();
    home.remove().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_does_not_disturb_the_next() {
    let home = Home::postgres().await;
    let store = home.open().await.unwrap();
    let mut kept = record("large");
    kept.spec.environment = [("X".to_owned(), "x".repeat(4 << 20))].into();
    for patience in 0..20 {
        // Given up at each of its first steps in turn.
        let mut steps = patience;
        tokio::select! {
            biased;
            _ = store.insert(&kept) => {}
            () = std::future::poll_fn(|context| {
                context.waker().wake_by_ref();
                steps -= 1;
                if steps < 0 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            }) => {}
        }
        let listed = store.list().await.unwrap();
        assert!(listed.iter().all(|row| row.as_ref().unwrap() == &kept));
    }
    store.health().await.unwrap();
    home.remove().await;
}
