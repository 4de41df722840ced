//! What every store promises: one suite, run against SQLite and against PostgreSQL.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[macro_use]
mod support;

use cofer_model::Status;
use cofer_store::{ConversationRecord, ServerRecord, StoreError, StoredLists};
use serde_json::json;
use support::{Home, LATER, NOON, daemon, failure, id, names, other_daemon, record, spec};
use tokio::task::JoinSet;
use uuid::Uuid;

contract! {
    a_server_comes_back_whole_after_a_restart,
    servers_are_listed_by_the_bytes_of_their_names,
    a_name_is_given_once,
    of_many_who_want_one_name_one_gets_it,
    any_text_that_may_stand_in_a_registration_is_kept,
    a_large_registration_is_kept,
    what_is_not_there_is_said_to_be_not_there,
    a_change_replaces_what_is_asked_for,
    switching_is_seen_in_column_and_configuration,
    the_column_wins_over_the_configuration,
    a_failure_and_the_switching_off_are_one_change,
    a_failure_alone_leaves_the_registration_as_it_is,
    a_good_status_forgets_the_last_failure,
    a_row_that_cannot_be_read_does_not_take_the_others_down,
    rows_of_other_kinds_are_not_servers,
    a_database_of_a_newer_version_is_left_alone,
    a_closed_store_says_so,
    each_acquisition_claims_all_servers_under_the_next_epoch,
    a_daemon_whose_epoch_was_superseded_writes_nothing,
    a_database_without_epochs_is_upgraded_in_place,
    the_lists_of_a_server_are_kept_as_they_were_sent_until_it_is_removed,
}

async fn a_server_comes_back_whole_after_a_restart(home: &Home) {
    let whole = ServerRecord {
        spec: serde_json::from_value(json!({
            "name": "everything", "description": "d", "image": "docker.io/mcp/x:1",
            "args": ["-y", ""], "cwd": "/srv", "stdio_bridge": false,
            "ports": [{"container": 80, "host": 8080}, {"container": 81, "address": "0.0.0.0"}],
            "http_path": "/mcp", "user": "1000:1000", "openings": {
                "capabilities": ["NET_RAW"], "writable_root": true,
                "mounts": [{"host": "/srv", "container": "/srv", "writable": true}]},
            "environment": {"API_KEY": "sk-1", "A": ""},
            "volumes": ["/data"], "resource_limits": {"cpu": "2", "memory": "1G"},
            "restart_policy": "on-failure", "provider": "gvisor", "enabled": false,
            "include_resources": true, "call_timeout_ms": 1, "start_timeout_ms": 2,
            "max_in_flight": 3, "heartbeat": {"interval_ms": 0}, "sharing": "per_session",
            "network": "none", "require": "gvisor"
        }))
        .unwrap(),
        status: Status::Error,
        last_error: Some(failure("boom")),
        updated_at: LATER,
        ..record("everything")
    };
    let store = home.open().await.unwrap();
    store.insert(&whole).await.unwrap();
    store.close().await;

    let store = home.open().await.unwrap();
    let whole = ServerRecord { epoch: 2, ..whole };
    assert_eq!(store.get(whole.id).await.unwrap(), Some(whole.clone()));
    assert_eq!(store.find_by_name("everything").await.unwrap(), Some(whole.clone()));
    assert_eq!(store.list().await.unwrap(), [Ok(whole)]);
    let row = "SELECT container_type || ' ' || name || ' ' || image || ' ' || status
        FROM kb.agent_workspaces";
    assert_eq!(home.look(row).await, "mcp_server everything docker.io/mcp/x:1 error");
}

async fn servers_are_listed_by_the_bytes_of_their_names(home: &Home) {
    let store = home.open().await.unwrap();
    for name in ["é", "b", "日本", "B", "a b", "a", "_"] {
        store.insert(&record(name)).await.unwrap();
    }
    assert_eq!(names(&store).await, ["B", "_", "a", "a b", "b", "é", "日本"]);
}

async fn a_name_is_given_once(home: &Home) {
    // covers: MGR-6
    let store = home.open().await.unwrap();
    let (first, second) = (record("fs"), record("FS"));
    store.insert(&first).await.unwrap();
    store.insert(&second).await.unwrap();

    let error = store.insert(&record("fs")).await.unwrap_err();
    assert!(matches!(&error, StoreError::NameTaken { name } if name == "fs"), "{error:?}");
    let error = store.update_spec(second.id, &spec("fs"), LATER).await.unwrap_err();
    assert!(matches!(&error, StoreError::NameTaken { name } if name == "fs"), "{error:?}");
    assert_eq!(store.get(second.id).await.unwrap(), Some(second.clone()), "nothing was changed");

    assert!(store.delete(first.id).await.unwrap());
    store.update_spec(second.id, &spec("fs"), LATER).await.unwrap();
    assert_eq!(names(&store).await, ["fs"]);

    let twice = store.insert(&ServerRecord { spec: spec("other"), ..second }).await.unwrap_err();
    assert!(matches!(twice, StoreError::Query { .. }), "the same id is another matter: {twice:?}");
}

async fn of_many_who_want_one_name_one_gets_it(home: &Home) {
    let store = home.open().await.unwrap();
    let mut wishes = JoinSet::new();
    for _ in 0..20 {
        let store = store.clone();
        wishes.spawn(async move { store.insert(&record("wanted")).await });
    }
    let outcomes = wishes.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    let refused = |outcome: &&Result<(), _>| matches!(outcome, Err(StoreError::NameTaken { .. }));
    assert_eq!(outcomes.iter().filter(refused).count(), 19);
}

async fn any_text_that_may_stand_in_a_registration_is_kept(home: &Home) {
    let store = home.open().await.unwrap();
    let odd = "'; DROP TABLE kb.agent_workspaces; -- \" \\ $1 %s ?";
    for name in ["日本語 サーバー", "👩‍👩‍👧", "e\u{301}", "ש\u{5c1}", "'quo\"te $1"]
    {
        let mut kept = record(name);
        kept.spec.args = vec![odd.to_owned(), "\u{1}\u{7f}\n\t\u{feff}".to_owned()];
        kept.spec.environment = [("ключ".to_owned(), odd.to_owned())].into();
        kept.spec.description = Some(format!("{name} \u{10ffff}"));
        store.insert(&kept).await.unwrap();
        assert_eq!(store.find_by_name(name).await.unwrap(), Some(kept));
    }
    assert_eq!(store.find_by_name("é").await.unwrap(), None, "names are not normalised");

    let noisy = record("noisy");
    store.insert(&noisy).await.unwrap();
    store.record_failure(noisy.id, &failure("a\0b\u{1b}[31m"), false, LATER).await.unwrap();
    let kept = store.get(noisy.id).await.unwrap().unwrap();
    assert_eq!(kept.last_error, Some(failure("a\u{fffd}b\u{1b}[31m")), "only NUL is replaced");
}

async fn a_large_registration_is_kept(home: &Home) {
    let store = home.open().await.unwrap();
    let mut large = record("large");
    large.spec.environment = [("BLOB".to_owned(), "x\u{e9}".repeat(1 << 20))].into();
    store.insert(&large).await.unwrap();
    assert_eq!(store.get(large.id).await.unwrap(), Some(large));
}

async fn what_is_not_there_is_said_to_be_not_there(home: &Home) {
    let store = home.open().await.unwrap();
    store.insert(&record("there")).await.unwrap();
    let nobody = id();
    assert_eq!(store.get(nobody).await.unwrap(), None);
    for name in ["not there", "", "%", "the\0re", "there "] {
        assert_eq!(store.find_by_name(name).await.unwrap(), None, "{name:?}");
    }
    assert!(!store.delete(nobody).await.unwrap());
    for outcome in [
        store.update_spec(nobody, &spec("x"), LATER).await,
        store.set_enabled(nobody, true, LATER).await,
        store.record_failure(nobody, &failure(""), true, LATER).await,
        store.record_failure(nobody, &failure(""), false, LATER).await,
        store.record_status(nobody, Status::Ready).await,
        store.record_status(nobody, Status::Error).await,
    ] {
        assert!(matches!(outcome, Err(StoreError::NotFound { id }) if id == nobody), "{outcome:?}");
    }
    assert_eq!(names(&store).await, ["there"]);
}

async fn a_change_replaces_what_is_asked_for(home: &Home) {
    let store = home.open().await.unwrap();
    let (before, beside) = (record("before"), record("beside"));
    store.insert(&before).await.unwrap();
    store.insert(&beside).await.unwrap();
    let mut asked = spec("after");
    asked.image = Some("img".to_owned());
    asked.enabled = false;
    store.update_spec(before.id, &asked, LATER).await.unwrap();
    let after = ServerRecord { spec: asked, updated_at: LATER, ..before };
    assert_eq!(store.get(after.id).await.unwrap(), Some(after));
    assert_eq!(store.get(beside.id).await.unwrap(), Some(beside), "others are left alone");
    let image = "SELECT image FROM kb.agent_workspaces WHERE name = 'after'";
    assert_eq!(home.look(image).await, "img");
}

/// `enabled` in the column and in the configuration.
const BOTH: &str = "SELECT CASE WHEN enabled THEN 'on' ELSE 'off' END || ' ' ||
    CASE CAST(config ->> 'enabled' AS TEXT) WHEN 'true' THEN 'on' WHEN '1' THEN 'on' ELSE 'off' END
    FROM kb.agent_workspaces";

async fn switching_is_seen_in_column_and_configuration(home: &Home) {
    let store = home.open().await.unwrap();
    let kept = record("switched");
    store.insert(&kept).await.unwrap();
    assert_eq!(home.look(BOTH).await, "on on");
    for (enabled, both) in [(false, "off off"), (true, "on on")] {
        store.set_enabled(kept.id, enabled, LATER).await.unwrap();
        assert_eq!(home.look(BOTH).await, both);
        let read = store.get(kept.id).await.unwrap().unwrap();
        assert_eq!((read.spec.enabled, read.updated_at), (enabled, LATER));
    }
}

async fn the_column_wins_over_the_configuration(home: &Home) {
    let store = home.open().await.unwrap();
    let kept = record("old");
    store.insert(&kept).await.unwrap();
    home.by_hand("UPDATE kb.agent_workspaces SET enabled = false, name = 'new'").await;
    let read = store.find_by_name("new").await.unwrap().unwrap();
    assert_eq!((read.id, read.spec.name.as_str(), read.spec.enabled), (kept.id, "new", false));
}

async fn a_failure_and_the_switching_off_are_one_change(home: &Home) {
    let store = home.open().await.unwrap();
    let kept = record("broken");
    store.insert(&kept).await.unwrap();
    store.record_failure(kept.id, &failure("no such module"), true, LATER).await.unwrap();
    assert_eq!(home.look(BOTH).await, "off off");
    let mut expected = ServerRecord {
        status: Status::Error,
        last_error: Some(failure("no such module")),
        updated_at: LATER,
        ..kept
    };
    expected.spec.enabled = false;
    assert_eq!(store.get(expected.id).await.unwrap(), Some(expected));
}

async fn a_failure_alone_leaves_the_registration_as_it_is(home: &Home) {
    let store = home.open().await.unwrap();
    let kept = record("crashed");
    store.insert(&kept).await.unwrap();
    store.record_failure(kept.id, &failure(""), false, LATER).await.unwrap();
    let last_error = Some(failure(""));
    let expected = ServerRecord { status: Status::Error, last_error, ..kept };
    assert_eq!((expected.spec.enabled, expected.updated_at), (true, NOON));
    assert_eq!(store.get(expected.id).await.unwrap(), Some(expected));
}

async fn a_good_status_forgets_the_last_failure(home: &Home) {
    let store = home.open().await.unwrap();
    let kept = record("mended");
    store.insert(&kept).await.unwrap();
    for (status, remembered) in [
        (Status::Unresponsive, true),
        (Status::Error, true),
        (Status::Ready, false),
        (Status::Stopped, false),
    ] {
        store.record_failure(kept.id, &failure("x"), false, LATER).await.unwrap();
        store.record_status(kept.id, status).await.unwrap();
        let read = store.get(kept.id).await.unwrap().unwrap();
        assert_eq!((read.status, read.last_error.is_some()), (status, remembered));
        assert_eq!(read.updated_at, NOON);
    }
}

async fn a_row_that_cannot_be_read_does_not_take_the_others_down(home: &Home) {
    let store = home.open().await.unwrap();
    let edits = [
        ("config = '{\"name\": \"x\", \"args\": 5}'", "config"),
        ("config = '[]'", "config"),
        ("status = 'asleep'", "status"),
        ("last_error = '{\"kind\": \"bad luck\"}'", "last_error"),
        ("name = 'a/b'", "name"),
    ];
    for (place, (edit, _)) in edits.iter().enumerate() {
        let name = format!("bad{place}");
        store.insert(&record(&name)).await.unwrap();
        home.by_hand(&format!("UPDATE kb.agent_workspaces SET {edit} WHERE name = '{name}'")).await;
    }
    store.insert(&record("good")).await.unwrap();

    let (good, bad): (Vec<_>, Vec<_>) =
        store.list().await.unwrap().into_iter().partition(Result::is_ok);
    assert_eq!((good.len(), bad.len()), (1, edits.len()));
    assert_eq!(names(&store).await, ["good"]);
    for row in bad {
        let row = row.unwrap_err();
        let (_, column) = edits
            .iter()
            .enumerate()
            .find(|(place, _)| {
                row.name == format!("bad{place}") || row.name == "a/b" && *place == 4
            })
            .unwrap()
            .1;
        assert!(row.problem.starts_with(&format!("column {column}")), "{row}");
        let id = row.id.parse().unwrap();
        let asked = store.get(id).await.unwrap_err();
        assert!(matches!(&asked, StoreError::BadRow(found) if *found == row), "{asked:?}");
        assert!(store.delete(id).await.unwrap(), "it can be removed");
    }
    assert_eq!(store.list().await.unwrap().len(), 1);
}

async fn rows_of_other_kinds_are_not_servers(home: &Home) {
    let store = home.open().await.unwrap();
    let kept = record("shared name");
    store.insert(&kept).await.unwrap();
    home.by_hand("UPDATE kb.agent_workspaces SET container_type = 'environment'").await;
    assert_eq!(store.list().await.unwrap(), []);
    assert_eq!(store.get(kept.id).await.unwrap(), None);
    assert_eq!(store.find_by_name("shared name").await.unwrap(), None);
    assert!(!store.delete(kept.id).await.unwrap());
    assert!(store.set_enabled(kept.id, false, LATER).await.is_err());
    store.insert(&record("shared name")).await.unwrap();
    let count = "SELECT CAST(count(*) AS TEXT) FROM kb.agent_workspaces";
    assert_eq!(home.look(count).await, "2");
}

async fn a_database_of_a_newer_version_is_left_alone(home: &Home) {
    let store = home.open().await.unwrap();
    store.insert(&record("kept")).await.unwrap();
    store.close().await;
    home.by_hand(
        "INSERT INTO kb.schema_migrations (version, name) VALUES (9000, 'of the future');
         ALTER TABLE kb.agent_workspaces RENAME TO of_the_future",
    )
    .await;
    let count = "SELECT CAST(count(*) AS TEXT) FROM kb.schema_migrations";
    let before = home.look(count).await;
    let error = home.open().await.err().unwrap();
    assert!(matches!(error, StoreError::NewerSchema { found: 9000, .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("newer"));
    assert_eq!(home.look("SELECT name FROM kb.of_the_future").await, "kept");
    assert_eq!(home.look(count).await, before);
}

async fn a_closed_store_says_so(home: &Home) {
    let store = home.open().await.unwrap();
    store.health().await.unwrap();
    store.close().await;
    store.close().await;
    assert!(matches!(store.health().await, Err(StoreError::Closed)));
    assert!(matches!(store.insert(&record("late")).await, Err(StoreError::Closed)));
    assert!(matches!(store.list().await, Err(StoreError::Closed)));
}

async fn each_acquisition_claims_all_servers_under_the_next_epoch(home: &Home) {
    let kept = record("kept");
    for (epoch, daemon) in [(1, daemon()), (2, other_daemon()), (3, other_daemon())] {
        let store = home.open_as(daemon.clone()).await.unwrap();
        if epoch == 1 {
            store.insert(&kept).await.unwrap();
        }
        let found = store.get(kept.id).await.unwrap().unwrap();
        assert_eq!((found.owner, found.epoch), (Some(daemon.id), epoch));
        store.close().await;
    }
}

async fn a_daemon_whose_epoch_was_superseded_writes_nothing(home: &Home) {
    let store = home.open().await.unwrap();
    let kept = record("kept");
    store.insert(&kept).await.unwrap();
    home.by_hand("UPDATE kb.daemon_lease SET epoch = epoch + 1").await;
    let conversation = ConversationRecord {
        id: Uuid::new_v4(),
        title: String::new(),
        settings: json!({}),
        created_at: NOON,
        updated_at: NOON,
        message_count: 0,
    };
    for refused in [
        store.insert(&record("new")).await.unwrap_err(),
        store.update_spec(kept.id, &spec("renamed"), LATER).await.unwrap_err(),
        store.set_enabled(kept.id, false, LATER).await.unwrap_err(),
        store.record_failure(kept.id, &failure("late"), true, LATER).await.unwrap_err(),
        store.record_status(kept.id, Status::Ready).await.unwrap_err(),
        store.delete(kept.id).await.unwrap_err(),
        store.insert_conversation(&conversation).await.unwrap_err(),
        store.keep_server_lists(kept.id, lists("1")).await.unwrap_err(),
    ] {
        assert!(matches!(refused, StoreError::NotOwner { .. }), "{refused:?}");
        assert!(refused.hint().is_some());
    }
    assert_eq!(store.list().await.unwrap(), [Ok(kept)]);
    assert_eq!(store.count_conversations(None).await.unwrap(), 0);
}

async fn a_database_without_epochs_is_upgraded_in_place(home: &Home) {
    let kept = record("kept");
    let store = home.open().await.unwrap();
    store.insert(&kept).await.unwrap();
    store.close().await;
    for sql in [
        "DROP TABLE kb.daemon_lease",
        "ALTER TABLE kb.agent_workspaces DROP COLUMN owner",
        "ALTER TABLE kb.agent_workspaces DROP COLUMN epoch",
        "DROP TABLE kb.mcp_server_lists",
        "DELETE FROM kb.schema_migrations WHERE version >= 3",
    ] {
        home.by_hand(sql).await;
    }
    let store = home.open().await.unwrap();
    assert_eq!(store.list().await.unwrap(), [Ok(kept)]);
}

fn lists(version: &str) -> StoredLists {
    StoredLists {
        spec_digest: "d1".to_owned(),
        peer: format!(r#"{{"server_info":{{"version":"{version}"}}}}"#),
        lists: r#"{"tools":[{"z":1.0, "name":"\u0000é","a":[]}]}"#.to_owned(),
    }
}

async fn the_lists_of_a_server_are_kept_as_they_were_sent_until_it_is_removed(home: &Home) {
    let (kept, other) = (record("kept"), record("other"));
    let store = home.open().await.unwrap();
    store.insert(&kept).await.unwrap();
    store.insert(&other).await.unwrap();
    assert_eq!(store.server_lists(kept.id).await.unwrap(), None);
    store.keep_server_lists(kept.id, lists("1")).await.unwrap();
    store.keep_server_lists(kept.id, lists("2")).await.unwrap();
    store.keep_server_lists(other.id, lists("3")).await.unwrap();
    store.close().await;

    let store = home.open().await.unwrap();
    assert_eq!(store.server_lists(kept.id).await.unwrap(), Some(lists("2")));
    assert!(store.delete(kept.id).await.unwrap());
    assert_eq!(store.server_lists(kept.id).await.unwrap(), None);
    assert_eq!(store.server_lists(other.id).await.unwrap(), Some(lists("3")));
    let late = store.keep_server_lists(kept.id, lists("4")).await.unwrap_err();
    assert!(matches!(late, StoreError::NotFound { .. }), "{late:?}");
    let count = "SELECT CAST(count(*) AS TEXT) FROM kb.mcp_server_lists";
    assert_eq!(home.look(count).await, "1");
}
