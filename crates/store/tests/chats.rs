//! What every store promises of chats: one suite, run against SQLite and against PostgreSQL.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[macro_use]
mod support;

use cofer_store::{ConversationRecord, Cursor, ProviderRecord, StoreError};
use serde_json::{Value, json};
use support::{Home, LATER, NOON};
use time::OffsetDateTime;
use uuid::Uuid;

contract! {
    a_conversation_comes_back_whole_after_a_restart,
    messages_keep_their_order_and_are_replaced_in_place,
    messages_are_read_from_the_end_in_pages,
    conversations_are_listed_newest_first_in_pages,
    titles_are_found_whatever_their_case,
    a_conversation_takes_everything_with_it,
    large_results_are_kept_whole,
    any_text_is_kept,
    what_is_not_there_is_said_to_be_not_there,
    one_provider_is_the_default,
    a_key_is_in_no_debug_output,
    a_row_that_cannot_be_read_is_left_out,
    the_tables_of_an_earlier_version_are_brought_up_to_date,
    a_closed_store_says_so,
}

fn conversation(title: &str, at: OffsetDateTime) -> ConversationRecord {
    ConversationRecord {
        id: Uuid::now_v7(),
        title: title.to_owned(),
        settings: json!({"model": "m", "a": 1}),
        created_at: at,
        updated_at: at,
        message_count: 0,
    }
}

fn provider(id: &str, is_default: bool) -> ProviderRecord {
    ProviderRecord {
        id: id.to_owned(),
        kind: "openai".to_owned(),
        name: "Name".to_owned(),
        base_url: "http://h/v1/".to_owned(),
        api_key: Some("sk-canary".to_owned()),
        default_model: None,
        is_default,
    }
}

async fn a_conversation_comes_back_whole_after_a_restart(home: &Home) {
    let store = home.open().await.unwrap();
    let mut record = conversation("Hello", NOON);
    store.insert_conversation(&record).await.unwrap();
    let message = Uuid::now_v7();
    store.keep_message(record.id, message, &json!({"z": 1, "a": [2]})).await.unwrap();
    assert!(store.touch_conversation(record.id, &json!({"model": "n"}), LATER).await.unwrap());
    assert!(store.rename_conversation(record.id, "Other").await.unwrap());
    store.close().await;

    let store = home.open().await.unwrap();
    record = ConversationRecord {
        title: "Other".to_owned(),
        settings: json!({"model": "n"}),
        updated_at: LATER,
        message_count: 1,
        ..record
    };
    assert_eq!(store.conversation(record.id).await.unwrap(), Some(record.clone()));
    let messages = store.messages(record.id, None, 10).await.unwrap();
    assert_eq!(
        messages[0].to_string(),
        r#"{"z":1,"a":[2]}"#,
        "as it was written, order of keys included"
    );
}

async fn messages_keep_their_order_and_are_replaced_in_place(home: &Home) {
    let store = home.open().await.unwrap();
    let record = conversation("x", NOON);
    store.insert_conversation(&record).await.unwrap();
    // Ids that sort otherwise than the messages came: the clock may jump.
    let ids = [Uuid::max(), Uuid::nil(), Uuid::from_u128(7)];
    for (index, id) in ids.iter().enumerate() {
        store.keep_message(record.id, *id, &json!(index)).await.unwrap();
    }
    store.keep_message(record.id, ids[1], &json!("again")).await.unwrap();
    let messages = store.messages(record.id, None, 10).await.unwrap();
    assert_eq!(messages, [json!(0), json!("again"), json!(2)]);
}

async fn messages_are_read_from_the_end_in_pages(home: &Home) {
    let store = home.open().await.unwrap();
    let record = conversation("x", NOON);
    store.insert_conversation(&record).await.unwrap();
    let ids: Vec<Uuid> = (0..5).map(|_| Uuid::now_v7()).collect();
    for (index, id) in ids.iter().enumerate() {
        store.keep_message(record.id, *id, &json!(index)).await.unwrap();
    }
    assert_eq!(store.messages(record.id, None, 2).await.unwrap(), [json!(3), json!(4)]);
    assert_eq!(store.messages(record.id, Some(ids[3]), 2).await.unwrap(), [json!(1), json!(2)]);
    assert_eq!(store.messages(record.id, Some(ids[1]), 2).await.unwrap(), [json!(0)]);
    let unknown = store.messages(record.id, Some(Uuid::now_v7()), 2).await.unwrap();
    assert!(unknown.is_empty(), "{unknown:?}");
}

async fn conversations_are_listed_newest_first_in_pages(home: &Home) {
    let store = home.open().await.unwrap();
    // Two of the same time, so that the id decides.
    for (title, at) in [("old", NOON), ("same", LATER), ("same", LATER)] {
        store.insert_conversation(&conversation(title, at)).await.unwrap();
    }
    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let page = store.conversations(None, before.as_ref(), 1).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(Cursor { updated_at: last.updated_at, id: last.id });
        seen.extend(page.into_iter().map(|record| (record.title, record.id)));
    }
    let titles: Vec<_> = seen.iter().map(|(title, _)| title.as_str()).collect();
    assert_eq!(titles, ["same", "same", "old"]);
    assert_ne!(seen[0].1, seen[1].1);
    assert_eq!(store.count_conversations(None).await.unwrap(), 3);
}

async fn titles_are_found_whatever_their_case(home: &Home) {
    let store = home.open().await.unwrap();
    for title in ["Über Äpfel", "100% sure", "日本語", "plain"] {
        store.insert_conversation(&conversation(title, NOON)).await.unwrap();
    }
    for (search, found) in [("äPFEL", 1), ("%", 1), ("本", 1), ("_", 0), ("", 4), ("L", 2)] {
        let page = store.conversations(Some(search), None, 10).await.unwrap();
        assert_eq!(page.len(), found, "{search}");
        assert_eq!(
            store.count_conversations(Some(search)).await.unwrap(),
            found as u64,
            "{search}"
        );
    }
}

async fn a_conversation_takes_everything_with_it(home: &Home) {
    let store = home.open().await.unwrap();
    let (gone, stays) = (conversation("a", NOON), conversation("b", NOON));
    for record in [&gone, &stays] {
        store.insert_conversation(record).await.unwrap();
        store.keep_message(record.id, Uuid::now_v7(), &json!(1)).await.unwrap();
        store.keep_result(record.id, Uuid::now_v7(), &json!(2)).await.unwrap();
    }
    assert!(store.delete_conversation(gone.id).await.unwrap());
    assert_eq!(home.look("SELECT CAST(count(*) AS TEXT) FROM kb.chat_messages").await, "1");
    assert_eq!(home.look("SELECT CAST(count(*) AS TEXT) FROM kb.chat_results").await, "1");
    assert_eq!(store.results(stays.id, None).await.unwrap().len(), 1);
}

async fn large_results_are_kept_whole(home: &Home) {
    let store = home.open().await.unwrap();
    let record = conversation("a", NOON);
    store.insert_conversation(&record).await.unwrap();
    let (call, other) = (Uuid::now_v7(), Uuid::now_v7());
    let large = json!({"text": "é".repeat(1 << 20)});
    store.keep_result(record.id, call, &large).await.unwrap();
    store.keep_result(record.id, other, &json!(1)).await.unwrap();
    assert_eq!(store.results(record.id, Some(call)).await.unwrap(), [(call, large)]);
    assert_eq!(store.results(record.id, None).await.unwrap().len(), 2);
    assert!(store.results(Uuid::now_v7(), Some(call)).await.unwrap().is_empty(), "of another one");
}

async fn any_text_is_kept(home: &Home) {
    let store = home.open().await.unwrap();
    let hostile = "'; DROP TABLE kb.chat_messages; -- \u{1F600} \\u0000 \" \u{202E}";
    let record = conversation(hostile, NOON);
    store.insert_conversation(&record).await.unwrap();
    let body = json!({"text": format!("{hostile}\0end")});
    store.keep_message(record.id, Uuid::now_v7(), &body).await.unwrap();
    assert_eq!(store.conversation(record.id).await.unwrap().unwrap().title, hostile);
    assert_eq!(store.messages(record.id, None, 1).await.unwrap(), [body]);
    assert!(store.rename_conversation(record.id, "nul\0").await.unwrap());
    assert_eq!(store.conversation(record.id).await.unwrap().unwrap().title, "nul\u{FFFD}");
}

async fn what_is_not_there_is_said_to_be_not_there(home: &Home) {
    let store = home.open().await.unwrap();
    let id = Uuid::now_v7();
    assert_eq!(store.conversation(id).await.unwrap(), None);
    assert!(!store.rename_conversation(id, "x").await.unwrap());
    assert!(!store.touch_conversation(id, &json!({}), NOON).await.unwrap());
    assert!(!store.delete_conversation(id).await.unwrap());
    assert!(store.messages(id, None, 1).await.unwrap().is_empty());
    assert!(!store.delete_provider("x\0").await.unwrap());
    let orphan = store.keep_message(id, Uuid::now_v7(), &json!(1)).await;
    assert!(matches!(orphan, Err(StoreError::Query { .. })), "{orphan:?}");
}

async fn one_provider_is_the_default(home: &Home) {
    let store = home.open().await.unwrap();
    store.keep_provider(&provider("b", true), NOON).await.unwrap();
    store.keep_provider(&provider("a", true), NOON).await.unwrap();
    let changed = ProviderRecord {
        api_key: None,
        default_model: Some("m".to_owned()),
        ..provider("b", false)
    };
    store.keep_provider(&changed, LATER).await.unwrap();
    assert_eq!(store.providers().await.unwrap(), [provider("a", true), changed]);
    assert!(store.delete_provider("a").await.unwrap());
    assert_eq!(store.providers().await.unwrap().len(), 1);
}

async fn a_key_is_in_no_debug_output(home: &Home) {
    let store = home.open().await.unwrap();
    store.keep_provider(&provider("a", false), NOON).await.unwrap();
    let listed = store.providers().await.unwrap();
    assert_eq!(listed[0].api_key.as_deref(), Some("sk-canary"));
    assert!(!format!("{listed:?}").contains("canary"));
}

async fn a_row_that_cannot_be_read_is_left_out(home: &Home) {
    let store = home.open().await.unwrap();
    let (bad, good) = (conversation("bad", NOON), conversation("good", NOON));
    store.insert_conversation(&bad).await.unwrap();
    store.insert_conversation(&good).await.unwrap();
    let break_it = if home.database.is_some() {
        "UPDATE kb.chat_conversations SET settings = 'not json' WHERE title = 'bad'"
    } else {
        "UPDATE kb.chat_conversations SET created_at = 'never' WHERE title = 'bad'"
    };
    home.by_hand(break_it).await;
    let listed = store.conversations(None, None, 10).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].title, "good");
    assert!(matches!(store.conversation(bad.id).await, Err(StoreError::BadRow(_))));
}

async fn the_tables_of_an_earlier_version_are_brought_up_to_date(home: &Home) {
    let store = home.open().await.unwrap();
    store.insert(&support::record("kept")).await.unwrap();
    store.close().await;
    home.by_hand(
        "DROP TABLE kb.chat_results; DROP TABLE kb.chat_messages; DROP TABLE kb.chat_conversations;
         DROP TABLE kb.chat_providers; DROP TABLE kb.daemon_lease; DROP TABLE kb.mcp_server_lists;
         ALTER TABLE kb.agent_workspaces DROP COLUMN owner;
         ALTER TABLE kb.agent_workspaces DROP COLUMN epoch;
         DELETE FROM kb.schema_migrations WHERE version >= 2",
    )
    .await;
    let store = home.open().await.unwrap();
    assert_eq!(support::names(&store).await, ["kept"]);
    store.insert_conversation(&conversation("new", NOON)).await.unwrap();
}

async fn a_closed_store_says_so(home: &Home) {
    let store = home.open().await.unwrap();
    store.close().await;
    let listed = store.conversations(None, None, 1).await;
    assert!(matches!(listed, Err(StoreError::Closed)), "{listed:?}");
    let kept = store.keep_message(Uuid::nil(), Uuid::nil(), &Value::Null).await;
    assert!(matches!(kept, Err(StoreError::Closed)), "{kept:?}");
}
