//! The event stream: what is told, in which order, and how a reader goes on where it stopped.

use cofer_e2e::{Daemon, Event, wayward};
use serde_json::json;

fn generation(event: &Event) -> u64 {
    event.id.parse().expect("an id is the generation")
}

/// The status changes of one server, as (from, to).
fn changes(events: &[Event], name: &str) -> Vec<(String, String)> {
    let mine = events
        .iter()
        .filter(|event| event.name == "mcpServerStatusChanged" && event.data["name"] == name);
    mine.map(|event| {
        let word = |key: &str| event.data[key].as_str().expect("a status").to_owned();
        (word("previous_status"), word("status"))
    })
    .collect()
}

#[tokio::test]
async fn every_change_of_status_is_told_in_order() {
    // covers: MGR-27, MGR-29
    let daemon = Daemon::start().await;
    let mut events = daemon.events().await;
    let server = daemon.register(&wayward("w", &[])).await;
    daemon.act("w", "disable").await;
    daemon.act("w", "enable").await;
    daemon.register(&wayward("last", &[])).await;
    let seen =
        events.until("the last server is ready", |event| event.is_status("last", "ready")).await;
    let told = changes(&seen, "w");
    let expected = [
        ("stopped", "starting"),
        ("starting", "ready"),
        ("ready", "stopping"),
        ("stopping", "stopped"),
        ("stopped", "starting"),
        ("starting", "ready"),
    ];
    assert_eq!(told, expected.map(|(from, to)| (from.to_owned(), to.to_owned())));
    for event in &seen {
        assert_eq!(event.data["generation"], generation(event), "{event:?}");
        assert!(event.data["at"].as_str().unwrap().ends_with('Z'), "{event:?}");
        assert!(event.data.get("error").is_none(), "{event:?}");
    }
    assert_eq!(seen[0].data["id"], server["id"]);
    assert!(seen.windows(2).all(|two| generation(&two[0]) < generation(&two[1])), "{seen:?}");
}

#[tokio::test]
async fn a_crash_is_told_as_restarting_and_then_ready() {
    // covers: HST-3.2, MGR-29
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let mut events = daemon.events().await;
    cofer_e2e::kill(daemon.server_pid("w").await);
    let seen = events.until("it is ready again", |event| event.is_status("w", "ready")).await;
    let told = changes(&seen, "w");
    assert_eq!(told[0], ("ready".to_owned(), "restarting".to_owned()), "{told:?}");
    assert!(
        told.windows(2).all(|two| two[0].1 == two[1].0),
        "each begins where one ended: {told:?}"
    );
}

#[tokio::test]
async fn tool_calls_are_told_when_they_begin_and_end() {
    // covers: MGR-75, MGR-76
    let daemon = Daemon::start().await;
    let server = daemon.register(&wayward("w", &[])).await;
    let mut events = daemon.events().await;
    daemon.tool("w", "echo", &json!({})).await.expect(200);
    daemon.tool("w", "fail", &json!({})).await.expect(200);
    daemon.tool("w", "rpc_error", &json!({})).await.failure(502, "mcp_error");
    daemon.call("w", "ping", &json!({})).await.expect(200);
    daemon.register(&wayward("last", &[])).await;
    let seen =
        events.until("the last server is ready", |event| event.is_status("last", "ready")).await;
    let calls: Vec<&Event> =
        seen.iter().filter(|event| event.name.starts_with("toolCall")).collect();
    assert_eq!(calls.len(), 6, "{calls:#?}");
    let expected = [("echo", "ok"), ("fail", "tool_error"), ("rpc_error", "mcp_error")];
    for (pair, (tool, outcome)) in calls.chunks(2).zip(expected) {
        assert_eq!(
            (pair[0].name.as_str(), pair[1].name.as_str()),
            ("toolCallStarted", "toolCallFinished")
        );
        for event in pair {
            assert_eq!((&event.data["tool"], &event.data["name"]), (&json!(tool), &json!("w")));
            assert_eq!(event.data["id"], server["id"]);
            assert!(event.data["at"].is_string());
        }
        assert_eq!(pair[0].data["call_id"], pair[1].data["call_id"]);
        assert_eq!(pair[1].data["outcome"], outcome);
        assert!(pair[1].data["duration_ms"].as_f64().unwrap() >= 0.0);
    }
}

#[tokio::test]
async fn a_reader_goes_on_where_it_stopped_without_a_gap() {
    // covers: MGR-29
    let daemon = Daemon::start().await;
    let mut whole = daemon.events().await;
    let mut first = daemon.events().await;
    daemon.register(&wayward("w", &[])).await;
    let seen = first.until("it is ready", |event| event.is_status("w", "ready")).await;
    drop(first);
    // What happens while nobody of the two listens.
    daemon.act("w", "disable").await;
    daemon.act("w", "enable").await;
    daemon.tool("w", "echo", &json!({})).await.expect(200);
    let last = seen.last().unwrap().id.clone();
    let mut again = daemon.events_after(Some(&last)).await;
    daemon.register(&wayward("last", &[])).await;
    let rest =
        again.until("the last server is ready", |event| event.is_status("last", "ready")).await;
    let all =
        whole.until("the last server is ready", |event| event.is_status("last", "ready")).await;
    let joined: Vec<Event> = seen.into_iter().chain(rest).collect();
    assert_eq!(joined, all);
}

#[tokio::test]
async fn generations_grow_over_a_restart_of_the_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut daemon = Daemon::builder().data_dir(&data).start().await;
    let mut events = daemon.events().await;
    daemon.register(&wayward("w", &[])).await;
    let seen = events.until("it is ready", |event| event.is_status("w", "ready")).await;
    let last = generation(seen.last().unwrap());
    daemon.kill9().await;
    let daemon = Daemon::builder().data_dir(&data).start().await;
    let mut events = daemon.events_after(Some(&last.to_string())).await;
    daemon.wait_status("w", "ready").await;
    let seen = events.until("it is ready again", |event| event.is_status("w", "ready")).await;
    let told = seen.iter().filter(|event| event.name != "reset");
    assert!(
        told.clone().count() > 0 && told.clone().all(|event| generation(event) > last),
        "{seen:?}"
    );
}

#[tokio::test]
async fn a_nonsense_last_event_id_harms_nobody() {
    let daemon = Daemon::start().await;
    for id in ["nonsense", "-1", "18446744073709551615", "99999999999999999999999"] {
        let mut events = daemon.events_after(Some(id)).await;
        let name = format!("w{}", id.len());
        daemon.register(&wayward(&name, &[])).await;
        events.until("new events come", |event| event.is_status(&name, "ready")).await;
        daemon.delete(&format!("/mcp/servers/{name}")).await;
    }
}

#[tokio::test]
async fn a_reader_who_does_not_read_holds_up_nobody() {
    let daemon = Daemon::start().await;
    let _deaf = daemon.events().await;
    daemon.register(&wayward("w", &[])).await;
    for _ in 0..300 {
        daemon.tool("w", "pid", &json!({})).await.expect(200);
    }
}

#[tokio::test]
async fn servers_that_somebody_adds_changes_or_removes_are_told_once_it_is_so() {
    let daemon = Daemon::start().await;
    let mut events = daemon.events().await;
    let server = daemon.register(&wayward("w", &[])).await;
    daemon.patch("/mcp/servers/w", &json!({"name": "renamed"})).await.expect(200);
    daemon.act("renamed", "disable").await;
    daemon.delete("/mcp/servers/renamed").await.expect(204);
    let seen = events.until("it is removed", |event| event.name == "mcpServerRemoved").await;
    let told: Vec<(&str, &str)> = seen
        .iter()
        .filter(|event| event.name != "mcpServerStatusChanged")
        .map(|event| (event.name.as_str(), event.data["name"].as_str().unwrap()))
        .collect();
    let expected = [
        ("mcpServerAdded", "w"),
        ("mcpServerChanged", "renamed"),
        ("mcpServerChanged", "renamed"),
        ("mcpServerRemoved", "renamed"),
    ];
    assert_eq!(told, expected);
    for event in seen.iter().filter(|event| event.name != "mcpServerStatusChanged") {
        assert_eq!(event.data["id"], server["id"], "{event:?}");
        assert_eq!(event.data["generation"], generation(event), "{event:?}");
    }
    // One who comes back is told what happened meanwhile, in the same order.
    let mut again = daemon.events_after(Some(&seen[0].id)).await;
    let missed = again.until("it is removed", |event| event.name == "mcpServerRemoved").await;
    assert_eq!(missed, seen[1..]);
}
