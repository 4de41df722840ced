//! What is particular to PostgreSQL: who may use it, and what happens when it goes away.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::error::Error as _;
use std::path::Path;

use cofer_store::StoreError;
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection};
use support::{Home, admin, names, record, server};

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
    let error = cofer_store::open(Some(url), Path::new("/")).await.err().expect("it was opened");
    assert!(!told(&error).contains("hunter2"), "{}", told(&error));
    error
}

#[tokio::test]
async fn a_second_daemon_is_refused_until_the_first_is_gone() {
    let home = Home::postgres().await;
    let first = home.open().await.unwrap();
    let error = home.open().await.err().expect("two daemons on one database");
    assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("other daemon"));
    first.insert(&record("still works")).await.unwrap();

    first.close().await;
    let second = home.open().await.unwrap();
    assert_eq!(names(&second).await, ["still works"]);
    drop(second);
    home.open().await.expect("a daemon that just vanished does not block the next");
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
    let error = home.open().await.err().expect("the lock was not taken again");
    assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
    home.remove().await;
}

#[tokio::test]
async fn a_daemon_that_lost_its_lock_to_another_writes_no_more() {
    let home = Home::postgres().await;
    let first = home.open().await.unwrap();
    shut_out(&home, true).await;
    shut_out(&home, false).await;
    let second = home.open().await.unwrap();
    let error = first.insert(&record("stray")).await.unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
    assert_eq!(names(&second).await, [""; 0]);

    second.close().await;
    first.insert(&record("mine again")).await.unwrap();
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
