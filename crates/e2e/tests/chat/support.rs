//! A daemon with a scripted model and a server, and what is seen of a turn.

use cofer_e2e::{Daemon, DaemonBuilder, Event, Events, FakeModel, Reply, wayward};
use serde_json::{Value, json};

/// A key that must be seen nowhere but by the model server.
pub(crate) const KEY: &str = "sk-canary-0123456789abcdef";

/// A daemon whose environment names the model.
pub(crate) fn builder(model: &FakeModel) -> DaemonBuilder {
    Daemon::builder()
        .env("OPENAI_API_KEY", KEY)
        .env("OPENAI_BASE_URL", model.base())
        .env("COFER_CHAT_MODEL", "scripted")
}

/// A daemon with a model that answers so, and with the server `way`.
pub(crate) async fn world(replies: impl IntoIterator<Item = Reply>) -> (Daemon, FakeModel) {
    let model = FakeModel::start(replies).await;
    let daemon = builder(&model).start().await;
    daemon.register(&wayward("way", &[])).await;
    (daemon, model)
}

/// All events of a turn.
pub(crate) struct Seen(pub(crate) Vec<Event>);

impl Seen {
    pub(crate) async fn whole(mut events: Events) -> Self {
        let seen = events.until("the turn ends", |event| event.name == "turnFinished").await;
        assert_eq!(events.next().await, None, "the stream ends with the turn");
        Self(seen)
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|event| event.name.as_str()).collect()
    }

    pub(crate) fn all(&self, name: &str) -> Vec<&Value> {
        self.0.iter().filter(|event| event.name == name).map(|event| &event.data).collect()
    }

    pub(crate) fn one(&self, name: &str) -> &Value {
        let all = self.all(name);
        assert_eq!(all.len(), 1, "{name} in {:#?}", self.0);
        all[0]
    }

    pub(crate) fn text(&self) -> String {
        let deltas = self.all("textDelta");
        deltas.iter().map(|data| data["delta"].as_str().unwrap()).collect()
    }

    pub(crate) fn reason(&self) -> &str {
        self.one("turnFinished")["reason"].as_str().unwrap()
    }

    pub(crate) fn conversation(&self) -> String {
        self.one("turnStarted")["conversation_id"].as_str().unwrap().to_owned()
    }
}

/// Says something in a new conversation.
pub(crate) async fn say(daemon: &Daemon, words: &str) -> Seen {
    Seen::whole(daemon.chat(&json!({"message": words})).await).await
}

/// Goes on in a conversation.
pub(crate) async fn go_on(daemon: &Daemon, id: &str, body: Value) -> Seen {
    let mut body = body;
    body["conversation_id"] = json!(id);
    Seen::whole(daemon.chat(&body).await).await
}

/// The conversation as it is shown now.
pub(crate) async fn show(daemon: &Daemon, id: &str) -> Value {
    daemon.get(&format!("/chat/conversations/{id}")).await.expect(200)
}

/// The words of the daemon's whole log.
pub(crate) fn log(daemon: &Daemon) -> String {
    std::fs::read_to_string(daemon.data_dir().join("logs/cofer.log")).unwrap()
}
