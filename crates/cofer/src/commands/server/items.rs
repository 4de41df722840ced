//! `cofer server tools`, `resources` and `prompts`: what a server offers.

use serde_json::Value;

use super::ServerArg;
use crate::commands::Context;
use crate::failure::Failure;
use crate::output::{say, table, text};

/// One sort of thing that a server offers.
#[derive(Clone, Copy)]
pub(super) struct Items {
    /// In the route and in the answer.
    key: &'static str,
    noun: &'static str,
    table: fn(&[Value], Option<u16>) -> String,
}

pub(super) const TOOLS: Items = Items { key: "tools", noun: "tool", table: table::tools };
pub(super) const RESOURCES: Items =
    Items { key: "resources", noun: "resource", table: table::resources };
pub(super) const PROMPTS: Items = Items { key: "prompts", noun: "prompt", table: table::prompts };

pub(super) async fn run(
    server: ServerArg,
    items: Items,
    context: &mut Context,
) -> Result<(), Failure> {
    let answer = context.client.items(&server.name, items.key).await?;
    if context.out.wants_json() {
        return Ok(context.out.print_json(answer.json())?);
    }
    let value: Value = answer.read()?;
    let list = value.get(items.key).and_then(Value::as_array).map(Vec::as_slice);
    let list = list.unwrap_or_default();
    if !list.is_empty() {
        let width = context.out.width();
        context.out.print(&(items.table)(list, width))?;
    }
    say(&text::count(list.len(), items.noun));
    Ok(())
}
