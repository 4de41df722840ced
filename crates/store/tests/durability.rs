//! A change that was answered is there after `kill -9`: a victim process stores servers and
//! tells each id when the store has answered, and is killed at some moment; round after round.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cofer_store::StoreError;
use support::{Home, other_daemon};
use uuid::Uuid;

const ROUNDS: usize = 12;

#[tokio::test]
async fn sqlite_keeps_what_it_answered() {
    check(&Home::sqlite()).await;
}

#[tokio::test]
async fn postgres_keeps_what_it_answered() {
    let home = Home::postgres().await;
    check(&home).await;
    home.remove().await;
}

#[tokio::test]
async fn a_sqlite_file_that_another_process_has_open_is_refused() {
    let home = Home::sqlite();
    let mut victim = start_victim(&home);
    let mut output = BufReader::new(victim.stdout.take().unwrap()).lines();
    output.next().unwrap().unwrap();
    let error = home.open_as(other_daemon()).await.err().expect("two daemons on one database");
    assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
    victim.kill().unwrap();
    victim.wait().unwrap();
    home.open_as(other_daemon()).await.unwrap();
}

async fn check(home: &Home) {
    let mut told = BTreeSet::new();
    for round in 0..ROUNDS {
        let mut victim = start_victim(home);
        let random = Uuid::new_v4().into_bytes();
        let answers = usize::from(random[0] % 24);
        let output = BufReader::new(victim.stdout.take().unwrap());
        let mut lines =
            output.lines().map(Result::unwrap).filter_map(|line| line.parse::<Uuid>().ok());
        told.extend(lines.by_ref().take(answers));
        // Not a wait for anything: the moment of the kill is to be any.
        tokio::time::sleep(Duration::from_micros(u64::from(random[1]) * 20)).await;
        victim.kill().unwrap();
        victim.wait().unwrap();
        // What it told before it died counts as well.
        told.extend(lines);

        let store = home.open().await.unwrap();
        let kept: BTreeSet<_> =
            store.list().await.unwrap().into_iter().map(|row| row.unwrap().id.0).collect();
        let lost: Vec<_> = told.difference(&kept).collect();
        assert!(lost.is_empty(), "round {round}: {lost:?} of {} are lost", told.len());
        store.close().await;
    }
    assert!(!told.is_empty(), "the victims told nothing");
}

#[expect(clippy::disallowed_methods, reason = "a test starts what it kills")]
fn start_victim(home: &Home) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_insert-until-killed"));
    command.arg(home.directory.path()).args(home.url()).stdout(Stdio::piped());
    command.spawn().unwrap()
}
