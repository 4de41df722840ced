//! `cofer server list`: all servers in a table.

use cofer_model::ServerList;

use crate::commands::Context;
use crate::failure::Failure;
use crate::output::{say, table};

pub(super) async fn run(context: &mut Context) -> Result<(), Failure> {
    let answer = context.client.servers().await?;
    if context.out.wants_json() {
        return Ok(context.out.print_json(answer.json())?);
    }
    let list: ServerList = answer.read()?;
    if list.servers.is_empty() {
        say("No server is registered; `cofer server add` registers one.");
        return Ok(());
    }
    let width = context.out.width();
    Ok(context.out.print(&table::servers(&list.servers, width))?)
}
