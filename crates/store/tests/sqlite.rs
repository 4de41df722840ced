//! What is particular to the embedded database: its file.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;
use std::path::Path;
use std::time::Duration;

use cofer_store::StoreError;
use sqlx::Connection as _;
use support::{Home, daemon, names, record};
use tokio::time::timeout;

async fn fails(url: Option<&str>, directory: &Path) -> StoreError {
    let error = cofer_store::open(url, directory, daemon()).await.err().expect("it was opened");
    assert!(error.hint().is_some(), "{error:?}");
    error
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_kept() {
    let home = Home::sqlite();
    let path = home.directory.path().join("kb.db");
    let text = "Dear diary, this is not a database. ".repeat(100);
    fs::write(&path, &text).unwrap();
    let error = fails(None, home.directory.path()).await;
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains("kb.db"), "{error}");
    assert_eq!(fs::read_to_string(path).unwrap(), text);
}

#[tokio::test]
async fn a_file_that_cannot_be_made_is_named() {
    let home = Home::sqlite();
    let missing = home.directory.path().join("missing");
    let error = fails(None, &missing).await;
    assert!(matches!(error, StoreError::File { .. }), "{error:?}");
    assert!(error.to_string().contains("missing/kb.db"), "{error}");

    fs::create_dir(home.directory.path().join("kb.db")).unwrap();
    let error = fails(None, home.directory.path()).await;
    assert!(matches!(error, StoreError::File { .. }), "a directory is in the way: {error:?}");
}

#[tokio::test]
async fn a_url_names_another_file() {
    let home = Home::sqlite();
    let path = home.directory.path().join("odd ? name".replace('?', "%")).with_extension("db");
    let url = format!("sqlite://{}", path.display());
    let store = cofer_store::open(Some(&url), Path::new("/nowhere"), daemon()).await.unwrap();
    store.insert(&record("x")).await.unwrap();
    assert!(path.exists());
}

#[tokio::test]
async fn a_change_waits_while_another_program_writes() {
    let home = Home::sqlite();
    let store = home.open().await.unwrap();
    let mut other = home.file().await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let kept = record("patient");
    let mut insert = std::pin::pin!(store.insert(&kept));
    assert!(timeout(Duration::from_millis(200), &mut insert).await.is_err(), "it did not wait");
    lock.rollback().await.unwrap();
    insert.await.unwrap();
    assert_eq!(names(&store).await, ["patient"]);
}

#[tokio::test]
async fn two_who_open_an_empty_directory_at_once_get_their_tables_and_one_the_ownership() {
    let home = Home::sqlite();
    let (one, other) = tokio::join!(home.open(), home.open());
    let mut stored = 0;
    for store in [one.unwrap(), other.unwrap()] {
        match store.insert(&record("one")).await {
            Ok(()) => stored += 1,
            Err(error) => assert!(matches!(error, StoreError::NotOwner { .. }), "{error:?}"),
        }
        assert!(names(&store).await.len() <= 1);
    }
    assert_eq!(stored, 1);
}

#[tokio::test]
async fn a_file_that_was_emptied_is_not_taken_for_a_new_one() {
    let home = Home::sqlite();
    let path = home.directory.path().join("kb.db");
    let store = home.open().await.unwrap();
    store.insert(&record("kept")).await.unwrap();
    store.close().await;
    let backup = fs::read(&path).unwrap();

    let other = Home::sqlite();
    fs::write(other.directory.path().join("kb.db"), "").unwrap();
    let mut without_tables = other.file().await;
    sqlx::raw_sql("CREATE TABLE kb.t (x); DROP TABLE kb.t")
        .execute(&mut without_tables)
        .await
        .unwrap();
    without_tables.close().await.unwrap();
    let without_tables = fs::read(other.directory.path().join("kb.db")).unwrap();
    assert!(!without_tables.is_empty());
    for emptied in [None, Some(Vec::new()), Some(without_tables)] {
        fs::remove_file(&path).unwrap_or_default();
        if let Some(bytes) = &emptied {
            fs::write(&path, bytes).unwrap();
        }
        for _ in 0..2 {
            let error = fails(None, home.directory.path()).await;
            assert!(matches!(error, StoreError::Emptied { .. }), "{emptied:?}: {error:?}");
            assert!(error.to_string().contains("kb.db"), "{error}");
        }
    }

    fs::write(&path, &backup).unwrap();
    let restored = home.open().await.unwrap();
    assert_eq!(names(&restored).await, ["kept"]);
    restored.close().await;
    fs::remove_file(&path).unwrap();
    fs::remove_file(home.directory.path().join("kb.db.initialized")).unwrap();
    let anew = home.open().await.unwrap();
    assert_eq!(names(&anew).await, [""; 0]);
}
