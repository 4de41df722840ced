//! The same for TOML: one table is set or taken out, everything else stays as it was written.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, TomlError, value};

/// Why a text cannot be changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TomlFault {
    /// It is no TOML.
    #[error(transparent)]
    Syntax(#[from] TomlError),
    /// Something else stands where servers are expected.
    #[error("`{0}` is not a table")]
    NotATable(String),
}

/// The names of the tables in the table `key`.
pub(super) fn names(text: &str, key: &str) -> Result<Vec<String>, TomlFault> {
    let document: DocumentMut = text.parse()?;
    let servers = document.get(key).and_then(Item::as_table_like);
    Ok(servers
        .map_or_else(Vec::new, |servers| servers.iter().map(|(name, _)| name.to_owned()).collect()))
}

/// The value of `name` in the table `key`, where it is there.
pub(super) fn get(text: &str, key: &str, name: &str) -> Result<Option<Value>, TomlFault> {
    let document: DocumentMut = text.parse()?;
    let servers = document.get(key).and_then(Item::as_table_like);
    Ok(servers.and_then(|servers| servers.get(name)).map(to_json))
}

/// The text with `name` in the table `key` set to `entry`.
pub(super) fn set(text: &str, key: &str, name: &str, entry: &Value) -> Result<String, TomlFault> {
    let mut document: DocumentMut = text.parse()?;
    let servers = document.entry(key).or_insert_with(|| {
        let mut table = Table::new();
        // `[mcp_servers.cofer]` alone says that there is a `[mcp_servers]`.
        table.set_implicit(true);
        Item::Table(table)
    });
    let is_inline = servers.is_inline_table();
    let not_a_table = || TomlFault::NotATable(key.to_owned());
    let servers = servers.as_table_like_mut().ok_or_else(not_a_table)?;
    let item =
        if is_inline { Item::Value(inline(entry).into()) } else { Item::Table(table(entry)) };
    match servers.get_mut(name) {
        Some(old) => replace(old, item),
        None => drop(servers.insert(name, item)),
    }
    Ok(document.to_string())
}

/// Keeps what stands around an older entry.
fn replace(old: &mut Item, mut new: Item) {
    if let (Item::Table(old), Item::Table(new)) = (&*old, &mut new) {
        *new.decor_mut() = old.decor().clone();
        new.set_position(old.position());
    }
    *old = new;
}

/// The text without `name` in the table `key`; none where it is not there.
pub(super) fn remove(text: &str, key: &str, name: &str) -> Result<Option<String>, TomlFault> {
    let mut document: DocumentMut = text.parse()?;
    let servers = document.get_mut(key).and_then(Item::as_table_like_mut);
    let removed = servers.and_then(|servers| servers.remove(name));
    Ok(removed.map(|_| document.to_string()))
}

fn table(entry: &Value) -> Table {
    let mut table = Table::new();
    table.decor_mut().set_prefix("\n");
    fill(&mut table, entry);
    table
}

fn inline(entry: &Value) -> InlineTable {
    let mut table = InlineTable::new();
    fill(&mut table, entry);
    table
}

fn fill(table: &mut dyn TableLike, entry: &Value) {
    for (name, part) in entry.as_object().into_iter().flatten() {
        table.insert(name, to_toml(part));
    }
}

/// Entries have texts, lists of texts, and objects of texts.
fn to_toml(part: &Value) -> Item {
    match part {
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| part.as_str().unwrap_or_default());
            value(texts.collect::<Array>())
        }
        Value::Object(_) => Item::Value(inline(part).into()),
        Value::String(text) => value(text.as_str()),
        other => value(other.to_string()),
    }
}

fn to_json(item: &Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return table.iter().map(|(name, item)| (name.to_owned(), to_json(item))).collect();
    }
    if let Some(array) = item.as_array() {
        return array.iter().map(|part| Value::from(part.as_str().unwrap_or_default())).collect();
    }
    item.as_str().map_or(Value::Null, Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry() -> Value {
        json!({"command": "cofer", "args": ["connect", "a"]})
    }

    fn with_entry(text: &str) -> String {
        let changed = set(text, "mcp_servers", "cofer", &entry()).unwrap();
        assert_eq!(get(&changed, "mcp_servers", "cofer").unwrap(), Some(entry()));
        let twice = set(&changed, "mcp_servers", "cofer", &entry()).unwrap();
        assert_eq!(twice, changed, "twice is as good as once");
        changed
    }

    #[test]
    fn a_table_is_added_and_nothing_else_is_touched() {
        let ours = "[mcp_servers.cofer]\ncommand = \"cofer\"\nargs = [\"connect\", \"a\"]\n";
        assert_eq!(with_entry("").trim_start(), ours);
        let text = "# mine\nmodel   =  'x' # best\n\n[mcp_servers.fs] # files\ncommand = \"npx\"\n";
        assert_eq!(with_entry(text), format!("{text}\n{ours}"));
        let removed = remove(&with_entry(text), "mcp_servers", "cofer").unwrap().unwrap();
        assert_eq!(removed, text);
        assert_eq!(remove(text, "mcp_servers", "cofer").unwrap(), None);
    }

    #[test]
    fn inline_tables_and_older_entries_are_changed_in_place() {
        let inline = with_entry("mcp_servers = { fs = { command = \"npx\" } }\n");
        assert!(inline.starts_with("mcp_servers = { fs = { command = \"npx\" }"), "{inline}");
        assert_eq!(inline.lines().count(), 1, "{inline}");
        let older = "# before\n[mcp_servers.cofer]\nurl = \"x\"\n\n[other]\na = 1\n";
        let changed = with_entry(older);
        assert!(
            changed.starts_with("# before\n[mcp_servers.cofer]\ncommand = \"cofer\"\n"),
            "{changed}"
        );
        assert!(changed.ends_with("\n[other]\na = 1\n"), "{changed}");
    }

    #[test]
    fn headers_are_written_beside_their_address() {
        let http = json!({"url": "http://x", "http_headers": {"Authorization": "Bearer t"}});
        let changed = set("", "mcp_servers", "cofer", &http).unwrap();
        assert!(changed.contains("http_headers = { Authorization = \"Bearer t\" }"), "{changed}");
        assert_eq!(get(&changed, "mcp_servers", "cofer").unwrap(), Some(http));
    }

    #[test]
    fn what_is_no_table_is_not_touched() {
        assert!(matches!(set("a = ", "mcp_servers", "x", &entry()), Err(TomlFault::Syntax(_))));
        let wrong = set("mcp_servers = 1", "mcp_servers", "x", &entry());
        assert!(matches!(wrong, Err(TomlFault::NotATable(_))));
    }
}
