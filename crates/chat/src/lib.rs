//! A chat in which a language model uses tools: the loop of model and tools (`turn`), what a
//! conversation is made of (`message`, `event`), and the way to the providers (`provider`).
//!
//! It is given a model (`ChatModel`), a set of tools (`Tools`) and somebody who keeps what
//! happens (`Journal`). It knows nothing of servers, routes or databases.
#![warn(missing_docs)]

mod answer;
mod calls;
mod event;
mod failure;
mod history;
mod message;
mod model;
mod name;
mod notice;
mod problem;
mod provider;
mod question;
mod result;
mod retry;
mod tools;
mod turn;

pub use event::{EventBody, Unavailable};
pub use failure::{ModelFailure, ModelFailureKind};
pub use history::{Wholes, history};
pub use message::{
    AssistantMessage, AssistantState, CallEnd, CallStatus, Message, NoticeKind, NoticeMessage,
    Problem, ToolCard, UserMessage,
};
pub use model::{
    Answer, ChatModel, Entry, ModelCall, ModelEvent, ModelRequest, ModelStream, TokenUsage,
    ToolAnswer,
};
pub use name::safe_name;
pub use problem::{problem_of_result, problem_of_rpc};
pub use provider::{
    Environment, ProviderKind, ProviderModel, ProviderSettings, Providers, check_base_url,
    check_provider_id,
};
pub use question::{
    Question, QuestionRefused, QuestionReply, ReplyAction, Speaker, Spoken, Wish, elicited, sample,
};
pub use result::{LISTED_BYTES, cut_result, result_text};
pub use tools::{CallOutcome, Offer, OfferedTool, ToolKind, ToolRequest, Tools};
pub use turn::{Action, Finished, Journal, Reason, STEP_LIMIT, Turn};
