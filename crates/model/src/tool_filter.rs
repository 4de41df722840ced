//! Which of a server's tools are offered: lists of names, in which `*` stands for anything.

use crate::ServerSpec;

impl ServerSpec {
    /// Whether agents may see and call the tool: it is in `tools_allow`, where that has
    /// anything in it, and not in `tools_deny`.
    pub fn offers_tool(&self, name: &str) -> bool {
        let is_in = |list: &[String]| list.iter().any(|pattern| matches_pattern(pattern, name));
        (self.tools_allow.is_empty() || is_in(&self.tools_allow)) && !is_in(&self.tools_deny)
    }

    /// Whether some tools may be hidden.
    pub fn filters_tools(&self) -> bool {
        !self.tools_allow.is_empty() || !self.tools_deny.is_empty()
    }
}

/// Whether `name` is what `pattern` says. Each `*` takes the first place where what follows it
/// fits, and only the last one is moved: time grows with the product of the lengths at most.
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < name.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, seen));
            at += 1;
        } else if pattern.get(at) == Some(&name[seen]) {
            at += 1;
            seen += 1;
        } else if let Some((back, from)) = star {
            star = Some((back, from + 1));
            at = back + 1;
            seen = from + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_registration;
    use serde_json::json;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name, expected) in [
            ("read", "read", true),
            ("read", "reads", false),
            ("read*", "read_file", true),
            ("*file", "read_file", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "xxbxxa", false),
            ("*", "", true),
            ("", "", true),
            ("", "x", false),
            ("a*a", "a", false),
            ("読*", "読む", true),
        ] {
            assert_eq!(matches_pattern(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn what_is_denied_is_hidden_even_where_it_is_allowed() {
        let spec = |allow, deny| {
            let body =
                json!({"name": "x", "command": "y", "tools_allow": allow, "tools_deny": deny});
            parse_registration(body).unwrap()
        };
        let none: [&str; 0] = [];
        let open = spec(json!(none), json!(none));
        assert!(open.offers_tool("anything") && !open.filters_tools());
        let some = spec(json!(["read_*", "list"]), json!(["read_secret"]));
        assert!(some.offers_tool("read_file") && some.offers_tool("list"));
        assert!(!some.offers_tool("read_secret") && !some.offers_tool("write"));
    }
}
