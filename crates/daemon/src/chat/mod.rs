//! The chats of the daemon: it gives the loop of `cofer-chat` its model, its tools and its
//! journal, runs turns as tasks of its own, and shows them to whoever looks.

mod conversations;
mod export;
mod journal;
mod listing;
mod live;
mod naming;
mod person;
mod provider_change;
mod providers;
mod providers_view;
mod questions;
mod request;
mod toolbox;
mod tools_view;
mod turns;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use cofer_chat::{Environment, Providers};
use cofer_store::Store;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use conversations::{ConversationPage, ConversationSummary, ConversationView};
pub(crate) use export::{Export, ExportFormat};
pub(crate) use live::{ChatEvent, LiveFeed};
pub(crate) use providers_view::{ProviderTest, ProviderView, ProvidersView};
pub(crate) use request::TurnRequest;
pub(crate) use toolbox::{ToolSource, Toolbox};
pub(crate) use tools_view::ToolsView;

use live::LiveConversations;

/// How long turns may take to end when the daemon does.
const LAST_TURNS: Duration = Duration::from_secs(5);

/// Everything about chats that the daemon holds. One for the whole daemon.
pub(crate) struct Chat {
    store: Arc<dyn Store>,
    tools: ToolSource,
    providers: Providers,
    environment: Environment,
    live: LiveConversations,
    turns: TaskTracker,
    /// Counts those who are asked by servers.
    last_client: AtomicU64,
    closing: CancellationToken,
}

impl Chat {
    /// Knows the providers that the daemon's environment sets; those of the store are read when
    /// they are needed.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        tools: ToolSource,
        environment: Environment,
        closing: CancellationToken,
    ) -> Self {
        for problem in &environment.problems {
            tracing::warn!(target: "START", problem, "a provider of models was left out");
        }
        Self {
            store,
            tools,
            providers: Providers::default(),
            environment,
            live: LiveConversations::default(),
            turns: TaskTracker::new(),
            last_client: AtomicU64::new(0),
            closing,
        }
    }

    /// Waits until every turn has ended, which `closing` has asked them to.
    pub(crate) async fn shut_down(&self) {
        self.turns.close();
        if tokio::time::timeout(LAST_TURNS, self.turns.wait()).await.is_err() {
            tracing::warn!("some chats were cut off");
        }
    }
}
