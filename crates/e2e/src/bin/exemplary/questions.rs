//! How a tool asks its client something, in either era. In the newer one a tool that lacks an
//! answer stops with what it wants to know, and is run again when the answers are there.

use serde_json::{Map, Value, json};

use crate::server::{Era, Fault, Server};

const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// A request that is being worked on.
pub(crate) struct Context<'a> {
    pub(crate) server: &'a Server,
    pub(crate) params: &'a Value,
}

/// One question: the key under which its answer comes back, and what is asked.
pub(crate) type Question = (&'static str, &'static str, Value);

/// Answers in the order of the questions, or the result that asks for them.
pub(crate) enum Asked {
    Answers(Vec<Value>),
    Wants(Value),
}

impl Context<'_> {
    pub(crate) fn arguments(&self) -> &Value {
        &self.params["arguments"]
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.server.era == Era::Modern
    }

    /// What the client of the newer era can do.
    pub(crate) fn client_can(&self, what: &str) -> bool {
        self.params["_meta"][CAPABILITIES_KEY].get(what).is_some()
    }

    /// The state that came back with the answers.
    pub(crate) fn state(&self) -> Option<&str> {
        self.params["requestState"].as_str()
    }

    pub(crate) async fn ask(
        &self,
        questions: &[Question],
        state: Option<&str>,
    ) -> Result<Asked, Fault> {
        if self.is_modern() {
            return Ok(self.want(questions, state));
        }
        let asked = questions.iter().map(|(_, method, params)| self.server.ask(method, params));
        let answers = futures_util::future::try_join_all(asked).await;
        answers.map(Asked::Answers).map_err(Fault)
    }

    fn want(&self, questions: &[Question], state: Option<&str>) -> Asked {
        let given = &self.params["inputResponses"];
        let answers: Vec<Value> = questions.iter().map(|(key, ..)| given[key].clone()).collect();
        if answers.iter().all(Value::is_object) {
            return Asked::Answers(answers);
        }
        let requests: Map<String, Value> = questions
            .iter()
            .map(|(key, method, params)| {
                ((*key).to_owned(), json!({"method": method, "params": params}))
            })
            .collect();
        let mut result = json!({"resultType": "input_required", "inputRequests": requests});
        if let Some(state) = state {
            result["requestState"] = state.into();
        }
        Asked::Wants(result)
    }
}

/// A form with one field.
pub(crate) fn form(message: &str, field: &str, kind: &str) -> Value {
    json!({"message": message, "requestedSchema": {
        "type": "object", "properties": {field: {"type": kind}}, "required": [field]}})
}

/// A question to a model.
pub(crate) fn prompt(text: &str) -> Value {
    let content = json!({"type": "text", "text": text});
    json!({"messages": [{"role": "user", "content": content}], "maxTokens": 100})
}
