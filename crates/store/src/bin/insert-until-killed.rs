//! For the durability test, never shipped: stores one server after the other and tells each id
//! once the store has answered, until it is killed. `insert-until-killed DIRECTORY [URL]`.

use std::io::{self, Write as _};
use std::path::Path;

use cofer_model::{ServerId, Status, parse_registration};
use cofer_store::{DaemonIdentity, ServerRecord};
use time::OffsetDateTime;
use uuid::Uuid;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let directory = args.next().ok_or("usage: insert-until-killed DIRECTORY [URL]")?;
    // The same as the test's own: the daemon that is killed is the one that is started again.
    let daemon = DaemonIdentity { id: Uuid::nil(), host: "test".to_owned() };
    let store = cofer_store::open(args.next().as_deref(), Path::new(&directory), daemon).await?;
    loop {
        let kept = record();
        store.insert(&kept).await?;
        writeln!(io::stdout(), "{}", kept.id)?;
    }
}

fn record() -> ServerRecord {
    let id = Uuid::new_v4();
    let body = serde_json::json!({"name": format!("server {}", id.simple()), "command": "true"});
    let now = OffsetDateTime::now_utc();
    ServerRecord {
        id: ServerId(id),
        spec: parse_registration(body).unwrap_or_else(|errors| unreachable!("{errors:?}")),
        status: Status::Starting,
        last_error: None,
        created_at: now,
        updated_at: now,
        owner: None,
        epoch: 0,
    }
}
