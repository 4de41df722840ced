//! What a server tells and asks while it works on somebody's call, and whom it reaches.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::{Bridge, BridgeConfig, CallError, Caller, ClientId, Question, Request, RpcError};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::peer::{Heard, LIMIT, Peer, bridge, bridge_with, call, within_reason};

/// What reached a caller.
#[derive(Debug)]
pub(crate) enum Told {
    Progress(String),
    /// With the params of the message.
    Log(String),
    Question(Question),
    Withdrawn(u64),
}

/// A caller of client `client`.
pub(crate) struct Client {
    client: u64,
    told: Mutex<mpsc::UnboundedSender<Told>>,
}

impl Client {
    pub(crate) fn of(client: u64) -> (Arc<dyn Caller>, mpsc::UnboundedReceiver<Told>) {
        let (sender, told) = mpsc::unbounded_channel();
        (Arc::new(Self { client, told: Mutex::new(sender) }), told)
    }

    fn tell(&self, told: Told) {
        self.told.lock().unwrap().send(told).ok();
    }
}

impl Caller for Client {
    fn client(&self) -> ClientId {
        ClientId(self.client)
    }

    fn progressed(&self, params: Bytes) {
        self.tell(Told::Progress(String::from_utf8(params.to_vec()).unwrap()));
    }

    fn notified(&self, method: &str, params: Option<&Bytes>) {
        assert_eq!(method, "notifications/message");
        self.tell(Told::Log(String::from_utf8(params.unwrap().to_vec()).unwrap()));
    }

    fn asked(&self, question: Question) {
        self.tell(Told::Question(question));
    }

    fn withdrawn(&self, question: u64) {
        self.tell(Told::Withdrawn(question));
    }
}

pub(crate) fn request_by(caller: &Arc<dyn Caller>, params: &'static str) -> Request<'static> {
    Request::new("tools/call", Some(Bytes::from_static(params.as_bytes())), LIMIT)
        .by(Some(Arc::clone(caller)))
}

pub(crate) async fn next(told: &mut mpsc::UnboundedReceiver<Told>) -> Told {
    within_reason(told.recv()).await.unwrap()
}

pub(crate) async fn question(told: &mut mpsc::UnboundedReceiver<Told>) -> Question {
    match next(told).await {
        Told::Question(question) => question,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn asks(peer: &mut Peer, id: Value, method: &str) {
    let ask = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"x": 1}});
    peer.says(&ask.to_string()).await;
}

/// A bridge to a server that is given two requests at once.
pub(crate) fn two_at_once() -> (Bridge, Peer, Arc<Heard>) {
    bridge_with(BridgeConfig { max_in_flight: 2, ..BridgeConfig::default() })
}

#[tokio::test(start_paused = true)]
async fn progress_reaches_the_caller_with_its_own_token() {
    // covers: GTW-2
    let (bridge, mut peer, heard) = bridge();
    let (caller, mut told) = Client::of(1);
    let running = call(&bridge, request_by(&caller, r#"{"_meta":{"progressToken":"mine"}}"#));
    let request = peer.hears().await;
    let token = &request["params"]["_meta"]["progressToken"];
    assert!(token.is_u64(), "{token}");
    peer.says(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1.0}}}}"#
    ))
    .await;
    peer.answers(&request, json!(0)).await;
    running.await.unwrap().unwrap();
    let Told::Progress(params) = next(&mut told).await else { panic!("no progress") };
    assert_eq!(params, r#"{"progressToken":"mine","progress":1.0}"#);
    assert!(heard.notified.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn progress_of_one_clients_call_reaches_no_other_client() {
    // covers: GTW-2
    let (bridge, mut peer, _) = two_at_once();
    let (one, mut told) = Client::of(1);
    let (other, mut told_other) = Client::of(2);
    // Both use the same token, as clients do that count from one.
    let params = r#"{"_meta":{"progressToken":1}}"#;
    let first = call(&bridge, request_by(&one, params));
    let request = peer.hears().await;
    let second = call(&bridge, request_by(&other, params));
    let request_of_other = peer.hears().await;
    let progress = json!({"progressToken": request["params"]["_meta"]["progressToken"]});
    let notification = json!({"method": "notifications/progress", "params": progress});
    peer.says(&notification.to_string()).await;
    peer.answers(&request_of_other, json!(0)).await;
    second.await.unwrap().unwrap();
    assert!(
        matches!(told.try_recv(), Ok(Told::Progress(params)) if params == r#"{"progressToken":1}"#)
    );
    assert!(told_other.try_recv().is_err());
    first.abort();
}

#[tokio::test(start_paused = true)]
async fn a_question_goes_to_the_one_client_whose_calls_run() {
    // covers: GTW-2
    let (bridge, mut peer, heard) = bridge();
    let (caller, mut told) = Client::of(1);
    let running = call(&bridge, request_by(&caller, "{}"));
    let request = peer.hears().await;
    asks(&mut peer, json!("q"), "elicitation/create").await;
    let asked = question(&mut told).await;
    assert_eq!(asked.method, "elicitation/create");
    assert_eq!(asked.params.as_deref(), Some(&br#"{"x":1}"#[..]));
    asked.answer(Ok(Bytes::from_static(br#"{"action":"accept"}"#))).await;
    let answer = peer.hears().await;
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": "q", "result": {"action": "accept"}}));
    asks(&mut peer, json!(7), "sampling/createMessage").await;
    question(&mut told).await.answer(Err(RpcError::new(-1, "no"))).await;
    assert_eq!(peer.hears().await["error"], json!({"code": -1, "message": "no"}));
    // What is not the client's business does not reach it.
    peer.says(r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#).await;
    assert_eq!(peer.hears().await, json!({"jsonrpc": "2.0", "id": 8, "result": {}}));
    peer.says(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
    peer.answers(&request, json!(0)).await;
    running.await.unwrap().unwrap();
    assert_eq!(*heard.notified.lock().unwrap(), ["notifications/tools/list_changed"]);
    assert!(told.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_question_that_could_be_meant_for_two_clients_is_refused() {
    let (bridge, mut peer, heard) = two_at_once();
    let (one, mut told) = Client::of(1);
    let (other, mut told_other) = Client::of(2);
    let first = call(&bridge, request_by(&one, "{}"));
    let request = peer.hears().await;
    let second = call(&bridge, request_by(&other, "{}"));
    let request_of_other = peer.hears().await;
    asks(&mut peer, json!(1), "sampling/createMessage").await;
    assert_eq!(peer.hears().await["error"]["code"], -32603);
    peer.says(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#).await;
    peer.answers(&request_of_other, json!(0)).await;
    second.await.unwrap().unwrap();
    assert_eq!(*heard.notified.lock().unwrap(), ["notifications/message"]);
    // Now only one client's calls run.
    asks(&mut peer, json!(2), "sampling/createMessage").await;
    let asked = question(&mut told).await;
    peer.says(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}"#).await;
    assert!(matches!(next(&mut told).await, Told::Log(params) if params == r#"{"data":1}"#));
    asked.answer(Ok(Bytes::from_static(b"{}"))).await;
    assert_eq!(peer.hears().await["id"], 2);
    peer.answers(&request, json!(0)).await;
    first.await.unwrap().unwrap();
    assert!(told_other.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_call_of_nobody_known_keeps_questions_from_everybody() {
    let (bridge, mut peer, _) = two_at_once();
    let (caller, mut told) = Client::of(1);
    let first = call(&bridge, request_by(&caller, "{}"));
    peer.hears().await;
    let second = call(&bridge, Request::new("tools/call", None, LIMIT));
    peer.hears().await;
    asks(&mut peer, json!(1), "elicitation/create").await;
    assert_eq!(peer.hears().await["error"]["code"], -32603);
    assert!(told.try_recv().is_err());
    first.abort();
    second.abort();
}

#[tokio::test(start_paused = true)]
async fn of_a_clients_calls_the_newest_hears_what_is_asked_and_told() {
    let (bridge, mut peer, _) = two_at_once();
    let (older, mut told) = Client::of(1);
    let (newer, mut told_newer) = Client::of(1);
    let first = call(&bridge, request_by(&older, "{}"));
    peer.hears().await;
    let second = call(&bridge, request_by(&newer, "{}"));
    peer.hears().await;
    asks(&mut peer, json!(1), "elicitation/create").await;
    let asked = question(&mut told_newer).await;
    peer.says(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#).await;
    assert!(matches!(next(&mut told_newer).await, Told::Log(_)));
    assert!(told.try_recv().is_err());
    drop(asked);
    first.abort();
    second.abort();
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_keeps_no_question_from_its_client() {
    let (bridge, mut peer, _) = bridge();
    let (caller, mut told) = Client::of(1);
    let running = call(&bridge, request_by(&caller, "{}"));
    peer.hears().await;
    let heartbeat = call(&bridge, Request::new("ping", None, LIMIT).urgent());
    assert_eq!(peer.hears().await["method"], "ping");
    asks(&mut peer, json!(1), "elicitation/create").await;
    question(&mut told).await.answer(Ok(Bytes::from_static(b"{}"))).await;
    assert_eq!(peer.hears().await["id"], 1);
    running.abort();
    heartbeat.abort();
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_read_meanwhile_keeps_no_question_from_its_client() {
    // covers: GTW-2
    let (bridge, mut peer, _) = two_at_once();
    let (caller, mut told) = Client::of(1);
    for method in ["tools/list", "resources/templates/list", "resources/subscribe"] {
        let list = call(&bridge, Request::new(method, None, LIMIT));
        let list_request = peer.hears().await;
        let running = call(&bridge, request_by(&caller, "{}"));
        let request = peer.hears().await;
        asks(&mut peer, json!("q"), "elicitation/create").await;
        question(&mut told).await.answer(Ok(Bytes::from_static(b"{}"))).await;
        assert_eq!(peer.hears().await["result"], json!({}), "{method}");
        peer.answers(&list_request, json!({})).await;
        peer.answers(&request, json!({})).await;
        list.await.unwrap().unwrap();
        running.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn who_attends_is_asked_while_nothing_runs_and_no_more_than_that() {
    // covers: HST-2.4
    let (bridge, mut peer, _) = bridge();
    let (attending, mut told) = Client::of(1);
    let (caller, mut told_caller) = Client::of(2);
    bridge.attend(attending);
    asks(&mut peer, json!(1), "roots/list").await;
    question(&mut told).await.answer(Ok(Bytes::from_static(br#"{"roots":[1]}"#))).await;
    assert_eq!(peer.hears().await["result"], json!({"roots": [1]}));
    let running = call(&bridge, request_by(&caller, "{}"));
    let request = peer.hears().await;
    asks(&mut peer, json!(2), "roots/list").await;
    drop(question(&mut told_caller).await);
    assert_eq!(peer.hears().await["id"], 2);
    peer.answers(&request, json!(0)).await;
    running.await.unwrap().unwrap();
    let stranger = call(&bridge, Request::new("tools/call", None, LIMIT));
    peer.hears().await;
    asks(&mut peer, json!(3), "sampling/createMessage").await;
    assert_eq!(peer.hears().await["error"]["code"], -32603);
    assert!(told.try_recv().is_err());
    stranger.abort();
}

#[tokio::test(start_paused = true)]
async fn a_server_can_only_ask_so_much_at_once() {
    let (bridge, mut peer, _) = bridge();
    let (caller, mut told) = Client::of(1);
    let running = call(&bridge, request_by(&caller, "{}"));
    peer.hears().await;
    let mut open = Vec::new();
    for number in 0..256 {
        asks(&mut peer, json!(number), "sampling/createMessage").await;
        open.push(question(&mut told).await);
    }
    asks(&mut peer, json!("more"), "sampling/createMessage").await;
    let refusal = peer.hears().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!("more"), &json!(-32603)));
    open.pop().unwrap().answer(Ok(Bytes::from_static(b"{}"))).await;
    assert_eq!(peer.hears().await["id"], 255);
    asks(&mut peer, json!("again"), "sampling/createMessage").await;
    open.push(question(&mut told).await);
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_is_refused_and_one_taken_back_is_not_answered() {
    let (bridge, mut peer, _) = bridge();
    let (caller, mut told) = Client::of(1);
    let running = call(&bridge, request_by(&caller, "{}"));
    let request = peer.hears().await;
    asks(&mut peer, json!(1), "elicitation/create").await;
    drop(question(&mut told).await);
    let refusal = peer.hears().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(1), &json!(-32603)));
    asks(&mut peer, json!("a"), "elicitation/create").await;
    let kept = question(&mut told).await;
    peer.says(r#"{"method":"notifications/cancelled","params":{"requestId":"c"}}"#).await;
    for how in ["it is dropped", "it is answered all the same"] {
        asks(&mut peer, json!("b"), "elicitation/create").await;
        let asked = question(&mut told).await;
        peer.says(r#"{"method":"notifications/cancelled","params":{"requestId":"b"}}"#).await;
        assert!(matches!(next(&mut told).await, Told::Withdrawn(id) if id == asked.id));
        match how {
            "it is dropped" => drop(asked),
            _ => asked.answer(Ok(Bytes::from_static(b"{}"))).await,
        }
        assert!(peer.hears_nothing().await, "{how}");
    }
    kept.answer(Ok(Bytes::from_static(b"{}"))).await;
    assert_eq!(peer.hears().await["id"], "a");
    peer.answers(&request, json!(0)).await;
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_is_not_given_up_while_its_own_client_is_asked() {
    let (bridge, mut peer, _) = bridge();
    let (caller, mut told) = Client::of(1);
    let running = call(&bridge, request_by(&caller, "{}"));
    peer.hears().await;
    asks(&mut peer, json!(1), "elicitation/create").await;
    let asked = question(&mut told).await;
    // A person takes much longer than the server may be silent.
    tokio::time::sleep(LIMIT * 5 / 2).await;
    assert!(!running.is_finished());
    asked.answer(Ok(Bytes::from_static(b"{}"))).await;
    assert_eq!(peer.hears().await["id"], 1);
    // From here on the silence is the server's own.
    tokio::time::sleep(LIMIT - Duration::from_secs(1)).await;
    assert!(!running.is_finished());
    tokio::time::sleep(LIMIT).await;
    assert!(matches!(within_reason(running).await.unwrap(), Err(CallError::Timeout(_))));
}

#[tokio::test(start_paused = true)]
async fn a_question_to_one_client_gives_another_no_more_time() {
    let (bridge, mut peer, _) = two_at_once();
    let (one, mut told) = Client::of(1);
    let (other, _told_other) = Client::of(2);
    let first = call(&bridge, request_by(&one, "{}"));
    peer.hears().await;
    for number in 0..2 {
        asks(&mut peer, json!(number), "elicitation/create").await;
    }
    let asked = [question(&mut told).await, question(&mut told).await];
    let second = call(&bridge, request_by(&other, "{}"));
    peer.hears().await;
    tokio::time::sleep(LIMIT / 2).await;
    let [answered, _open] = asked;
    answered.answer(Ok(Bytes::from_static(b"{}"))).await;
    tokio::time::sleep(LIMIT / 2 + Duration::from_secs(1)).await;
    assert!(second.is_finished() && !first.is_finished());
    assert!(matches!(second.await.unwrap(), Err(CallError::Timeout(_))));
    first.abort();
}
