//! What a server tells and asks while it works on somebody's call, and whom it reaches.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::{BridgeConfig, CallError, Caller, ClientId, Question, Request, RpcError};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::peer::{LIMIT, Peer, bridge, bridge_with, call};

/// What reached a caller.
#[derive(Debug)]
enum Told {
    Progress(String),
    Log,
    Question(Question),
    Withdrawn(u64),
}

/// A caller of client `client`.
struct Client {
    client: u64,
    told: Mutex<mpsc::UnboundedSender<Told>>,
}

impl Client {
    fn of(client: u64) -> (Arc<dyn Caller>, mpsc::UnboundedReceiver<Told>) {
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

    fn notified(&self, method: &str, _params: Option<&Bytes>) {
        assert_eq!(method, "notifications/message");
        self.tell(Told::Log);
    }

    fn asked(&self, question: Question) {
        self.tell(Told::Question(question));
    }

    fn withdrawn(&self, question: u64) {
        self.tell(Told::Withdrawn(question));
    }
}

fn request_by(caller: &Arc<dyn Caller>, params: &'static str) -> Request {
    Request::new("tools/call", Some(Bytes::from_static(params.as_bytes())), LIMIT)
        .by(Some(Arc::clone(caller)))
}

async fn question(told: &mut mpsc::UnboundedReceiver<Told>) -> Question {
    match told.recv().await.unwrap() {
        Told::Question(question) => question,
        other => panic!("{other:?}"),
    }
}

async fn asks(peer: &mut Peer, id: Value, method: &str) {
    let ask = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"x": 1}});
    peer.says(&ask.to_string()).await;
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
    let Told::Progress(params) = told.recv().await.unwrap() else { panic!("no progress") };
    assert_eq!(params, r#"{"progressToken":"mine","progress":1.0}"#);
    assert!(heard.notified.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_question_goes_to_the_one_client_whose_calls_run() {
    // covers: GTW-2
    let (bridge, mut peer, _) = bridge();
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
    peer.answers(&request, json!(0)).await;
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_question_that_could_be_meant_for_two_clients_is_refused() {
    let config = BridgeConfig { max_in_flight: 2, ..BridgeConfig::default() };
    let (bridge, mut peer, heard) = bridge_with(config);
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
    peer.says(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#).await;
    assert!(matches!(told.recv().await.unwrap(), Told::Log));
    asked.answer(Ok(Bytes::from_static(b"{}"))).await;
    assert_eq!(peer.hears().await["id"], 2);
    peer.answers(&request, json!(0)).await;
    first.await.unwrap().unwrap();
    assert!(told_other.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_call_of_nobody_known_keeps_questions_from_everybody() {
    let config = BridgeConfig { max_in_flight: 2, ..BridgeConfig::default() };
    let (bridge, mut peer, _) = bridge_with(config);
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
async fn a_question_without_an_answer_is_refused_and_one_taken_back_is_not_answered() {
    let (bridge, mut peer, _) = bridge();
    let (caller, mut told) = Client::of(1);
    let running = call(&bridge, request_by(&caller, "{}"));
    let request = peer.hears().await;
    asks(&mut peer, json!(1), "elicitation/create").await;
    drop(question(&mut told).await);
    let refusal = peer.hears().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(1), &json!(-32603)));
    asks(&mut peer, json!("b"), "elicitation/create").await;
    let asked = question(&mut told).await;
    peer.says(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b"}}"#)
        .await;
    assert!(matches!(told.recv().await.unwrap(), Told::Withdrawn(id) if id == asked.id));
    drop(asked);
    assert!(peer.hears_nothing().await);
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
    tokio::time::sleep(LIMIT * 3).await;
    assert!(!running.is_finished());
    asked.answer(Ok(Bytes::from_static(b"{}"))).await;
    assert_eq!(peer.hears().await["id"], 1);
    // From here on the silence is the server's own.
    tokio::time::sleep(LIMIT - Duration::from_secs(1)).await;
    assert!(!running.is_finished());
    tokio::time::sleep(LIMIT).await;
    assert!(matches!(running.await.unwrap(), Err(CallError::Timeout(_))));
}
