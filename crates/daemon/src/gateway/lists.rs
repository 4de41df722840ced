//! What a server offers: the items of its lists as the bytes they came in, each with the name
//! or the URI by which it is asked for.

use std::collections::HashSet;
use std::sync::Arc;

use cofer_mcp::member;
use cofer_model::Charge;
use serde_json::value::RawValue;

/// The lists that a server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl ListKind {
    pub(super) const ALL: [Self; 4] =
        [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    pub(super) fn of_method(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// Where the items stand in the result.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// What an item is asked for by.
    fn item_key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    /// The capability that a server with such a list has.
    pub(super) fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
        }
    }

    /// What is told when the list changes.
    pub(super) fn changed(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources | Self::Templates => "notifications/resources/list_changed",
        }
    }

    pub(super) fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// One item of a list.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    /// Its name or URI.
    pub(super) key: String,
    pub(super) raw: Box<RawValue>,
}

impl Listed {
    /// The item under another name.
    pub(super) fn renamed(&self, name: &str) -> Vec<u8> {
        let raw = self.raw.get().as_bytes();
        let quoted = serde_json::Value::from(name).to_string();
        match member(raw, "name") {
            Some(part) => super::rpc::replace(raw, part, quoted.as_bytes()).to_vec(),
            None => raw.to_vec(),
        }
    }
}

/// The memory of an item besides its bytes, as in `cofer_mcp::Listing`.
const ITEM: usize = 64;

/// The memory of a list in the catalogue: its items, and their copy in the joined list.
pub(super) fn catalogue_bytes(items: &[Box<RawValue>]) -> usize {
    2 * items.iter().map(|item| item.get().len() + ITEM).sum::<usize>()
}

/// Everything that one server offers, as far as it is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Lists {
    lists: [Option<Arc<List>>; 4],
}

/// The items of one list, and their memory. Shared: what is joined anew copies none of it.
#[derive(Debug, Default)]
pub(crate) struct List {
    items: Vec<Listed>,
    /// Those that cannot be asked for, with the index that they had in the list.
    rest: Vec<(usize, Box<RawValue>)>,
    /// Released with the items.
    _charge: Option<Charge>,
}

impl List {
    /// Reads the items of a list, whose memory is charged by `charge`. Those can be asked for that
    /// are objects with a name or URI of their own; of two with the same the first counts.
    pub(super) fn read(kind: ListKind, items: Vec<Box<RawValue>>, charge: Option<Charge>) -> Self {
        let mut list = Self { items: Vec::new(), rest: Vec::new(), _charge: charge };
        let mut seen = HashSet::new();
        for (index, raw) in items.into_iter().enumerate() {
            let key = member(raw.get().as_bytes(), kind.item_key());
            let key = key.and_then(|key| serde_json::from_slice::<String>(key).ok());
            match key.filter(|key| seen.insert(key.clone())) {
                Some(key) => list.items.push(Listed { key, raw }),
                None => list.rest.push((index, raw)),
            }
        }
        list
    }

    /// All items in their order, as the bytes they came in.
    pub(crate) fn raw_items(&self) -> impl Iterator<Item = &str> {
        let (mut items, mut rest) = (self.items.iter(), self.rest.iter().peekable());
        (0..self.items.len() + self.rest.len()).filter_map(move |index| {
            match rest.next_if(|(at, _)| *at == index) {
                Some((_, raw)) => Some(raw.get()),
                None => items.next().map(|item| item.raw.get()),
            }
        })
    }
}

impl Lists {
    pub(super) fn get(&self, kind: ListKind) -> &[Listed] {
        self.lists[kind as usize].as_ref().map_or(&[], |list| &list.items)
    }

    /// The list; none if it is not known.
    pub(super) fn known(&self, kind: ListKind) -> Option<&Arc<List>> {
        self.lists[kind as usize].as_ref()
    }

    pub(super) fn set(&mut self, kind: ListKind, list: List) {
        self.lists[kind as usize] = Some(Arc::new(list));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_cannot_be_asked_for_are_left_out() {
        let items = [
            r#"{"name":"a","n":1.0}"#,
            "5",
            "{}",
            r#"{"name":7}"#,
            r#"{"name":"a"}"#,
            r#"{"name":"b"}"#,
        ];
        let raw = items.map(|item| RawValue::from_string(item.to_owned()).unwrap()).to_vec();
        let list = List::read(ListKind::Tools, raw, None);
        assert_eq!(list.raw_items().collect::<Vec<_>>(), items);
        let mut lists = Lists::default();
        lists.set(ListKind::Tools, list);
        let listed = lists.get(ListKind::Tools);
        assert_eq!(listed.iter().map(|item| &*item.key).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(listed[0].renamed("s__a"), br#"{"name":"s__a","n":1.0}"#);
    }
}
