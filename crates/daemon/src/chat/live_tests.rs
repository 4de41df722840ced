//! What listeners see of conversations.

use super::*;
use cofer_chat::UserMessage;

fn text(delta: &str) -> EventBody {
    EventBody::TextDelta { message_id: Uuid::nil(), delta: delta.to_owned() }
}

fn said(words: &str) -> Message {
    let (id, turn_id, at) = (Uuid::now_v7(), Uuid::nil(), OffsetDateTime::UNIX_EPOCH);
    Message::User(UserMessage { id, turn_id, at, text: words.to_owned() })
}

fn running(all: &LiveConversations) -> Arc<Live> {
    let begun = all.begin(Uuid::now_v7(), Uuid::now_v7(), CancellationToken::new());
    begun.map(|(live, _)| live).unwrap_or_else(|_| panic!("it may begin"))
}

async fn data(feed: &mut LiveFeed, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    for _ in 0..count {
        let event = feed.next().await.unwrap().unwrap();
        let value: serde_json::Value = serde_json::from_str(&event.data).unwrap();
        seen.push(value["delta"].as_str().unwrap().to_owned());
    }
    seen
}

#[tokio::test]
async fn a_listener_gets_the_running_turn_from_its_beginning_and_then_what_comes() {
    let all = LiveConversations::default();
    let live = running(&all);
    live.tell(None, &text("a"), None);
    let mut feed = live.listen(None);
    live.tell(None, &text("b"), None);
    assert_eq!(data(&mut feed, 2).await, ["a", "b"]);
    let after = live.glance().last_id;
    let mut back = live.listen(Some(after));
    live.tell(None, &text("c"), None);
    assert_eq!(data(&mut back, 1).await, ["c"], "no gap, and nothing twice");
}

#[tokio::test]
async fn what_is_forgotten_or_never_was_is_said() {
    let all = LiveConversations::default();
    let live = running(&all);
    let first = live.glance().last_id;
    for _ in 0..=EVENTS {
        live.tell(None, &text("x"), None);
    }
    for after in [first, 0, u64::MAX] {
        let mut feed = live.listen(Some(after));
        assert!(matches!(feed.next().await, Some(Err(Missed))), "{after}");
        live.tell(None, &text("new"), None);
        assert_eq!(data(&mut feed, 1).await, ["new"], "and then it goes on");
    }
}

#[tokio::test]
async fn events_have_a_bound_in_bytes_too() {
    let all = LiveConversations::default();
    let live = running(&all);
    for _ in 0..10 {
        live.tell(None, &text(&"x".repeat(1 << 20)), None);
    }
    assert!(live.lock().bytes <= EVENT_BYTES);
}

#[tokio::test]
async fn a_conversation_has_one_turn_at_a_time_and_the_daemon_a_bounded_number() {
    let all = LiveConversations::default();
    let live = running(&all);
    let again = all.begin(live.conversation, Uuid::now_v7(), CancellationToken::new());
    assert!(matches!(again, Err(Busy::Here)));
    let others: Vec<_> = (1..MAX_TURNS).map(|_| running(&all)).collect();
    let more = all.begin(Uuid::now_v7(), Uuid::now_v7(), CancellationToken::new());
    assert!(matches!(more, Err(Busy::Everywhere)));
    others[0].end();
    running(&all);
}

#[tokio::test]
async fn idle_conversations_are_forgotten_and_watched_ones_are_not() {
    let all = LiveConversations::default();
    let watched = all.of(Uuid::now_v7());
    let _feed = watched.listen(None);
    for _ in 0..IDLE * 3 {
        all.of(Uuid::now_v7());
    }
    assert!(all.lock().len() <= IDLE + 1);
    assert!(all.lock().contains_key(&watched.conversation));
}

#[test]
fn a_glance_shows_messages_as_they_stand() {
    let all = LiveConversations::default();
    let live = running(&all);
    let message = said("hello");
    live.show(&message);
    live.show(&message);
    assert_eq!(live.glance().messages, [message]);
}
