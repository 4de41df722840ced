//! Changes one member of an object in a JSON text, and not a byte beside it: comments, order
//! and layout are the person's.

use serde_json::Value;

use super::json_scan::{Member, Object, ScanError, end_of_remarks, object_at, root};

/// Why a text cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsonError {
    /// It is no JSON.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// Something else stands where servers are expected.
    #[error("`{0}` is not an object")]
    NotAnObject(String),
}

/// How a text is laid out.
struct Layout<'a> {
    line_end: &'a str,
    /// One step of indentation.
    step: String,
}

/// The names of the members of the object `key`.
pub(super) fn names(text: &str, key: &str) -> Result<Vec<String>, JsonError> {
    let members = servers(text, key)?.map(|servers| servers.members).unwrap_or_default();
    Ok(members.into_iter().map(|member| member.name).collect())
}

/// The value of `name` in the object `key`, where it is there.
pub(super) fn get(text: &str, key: &str, name: &str) -> Result<Option<Value>, JsonError> {
    let Some(servers) = servers(text, key)? else {
        return Ok(None);
    };
    let Some((_, member)) = servers.member(name) else {
        return Ok(None);
    };
    // It is only compared with what we write, which has no comments in it.
    let value = serde_json::from_str(&text[member.value.clone()]);
    Ok(Some(value.unwrap_or(Value::Null)))
}

/// The text with `name` in the object `key` set to `value`.
pub(super) fn set(text: &str, key: &str, name: &str, value: &Value) -> Result<String, JsonError> {
    let Some(root) = root(text)? else {
        return Ok(fresh(text, key, name, value));
    };
    let layout = Layout::of(text, &root);
    let Some(servers) = servers(text, key)? else {
        let whole = serde_json::json!({ name: value });
        return Ok(insert(text, &root, key, &whole, &layout));
    };
    match servers.member(name) {
        Some((_, member)) => {
            let one_line = !text[servers.range.clone()].contains('\n');
            let indent = indent_of(text, member.start)
                .unwrap_or_else(|| outer_indent(text, &servers) + &layout.step);
            let value = if one_line { value.to_string() } else { layout.render(value, &indent) };
            Ok(replaced(text, member.value.clone(), &value))
        }
        None => Ok(insert(text, &servers, name, value, &layout)),
    }
}

/// The text without `name` in the object `key`; none where it is not there.
pub(super) fn remove(text: &str, key: &str, name: &str) -> Result<Option<String>, JsonError> {
    let Some(servers) = servers(text, key)? else {
        return Ok(None);
    };
    Ok(servers.member(name).map(|(at, member)| without(text, &servers, at, member)))
}

/// The object that has the servers, where it is there.
fn servers(text: &str, key: &str) -> Result<Option<Object>, JsonError> {
    let Some(root) = root(text)? else {
        return Ok(None);
    };
    let Some((_, member)) = root.member(key) else {
        return Ok(None);
    };
    let object = object_at(text, member.value.start)?;
    object.map(Some).ok_or_else(|| JsonError::NotAnObject(key.to_owned()))
}

/// The whole text of a file that had none; comments that stand in it stay.
fn fresh(text: &str, key: &str, name: &str, value: &Value) -> String {
    let layout = Layout { line_end: line_end(text), step: "  ".to_owned() };
    let object = layout.render(&serde_json::json!({ key: { name: value } }), "");
    let between = if text.is_empty() || text.ends_with('\n') { "" } else { layout.line_end };
    format!("{text}{between}{object}{}", layout.line_end)
}

fn insert(text: &str, object: &Object, name: &str, value: &Value, layout: &Layout<'_>) -> String {
    let quoted = Value::from(name).to_string();
    let one_line = !text[object.range.clone()].contains('\n');
    let Some(last) = object.members.last() else {
        return insert_first(text, object, &quoted, value, layout);
    };
    if one_line {
        let member = format!("{quoted}: {value}");
        return match last.comma {
            Some(comma) => replaced(text, comma + 1..comma + 1, &format!(" {member}")),
            None => replaced(text, last.value.end..last.value.end, &format!(", {member}")),
        };
    }
    let indent = indent_of(text, last.start);
    let indent = indent.unwrap_or_else(|| outer_indent(text, object) + &layout.step);
    // Who ends the last member with a comma wants every member to end so.
    let comma = if last.comma.is_some() { "," } else { "" };
    let rendered = layout.render(value, &indent);
    let member = format!("{}{indent}{quoted}: {rendered}{comma}", layout.line_end);
    let end = end_of_remarks(text, last.comma.map_or(last.value.end, |comma| comma + 1));
    let with_member = replaced(text, end..end, &member);
    match last.comma {
        Some(_) => with_member,
        None => replaced(&with_member, last.value.end..last.value.end, ","),
    }
}

/// Into an object that has no member: before its closing brace, behind whatever is said there.
fn insert_first(
    text: &str,
    object: &Object,
    quoted: &str,
    value: &Value,
    layout: &Layout<'_>,
) -> String {
    let outer = outer_indent(text, object);
    let indent = outer.clone() + &layout.step;
    let line_end = layout.line_end;
    let member = format!("{indent}{quoted}: {}", layout.render(value, &indent));
    let close = object.range.end - 1;
    let inside = &text[object.range.start + 1..close];
    let kept = inside.trim_end_matches([' ', '\t', '\n', '\r']);
    let from = object.range.start + 1 + kept.len();
    replaced(text, from..close, &format!("{line_end}{member}{line_end}{outer}"))
}

/// Takes a member out with the line that it stands on.
fn without(text: &str, object: &Object, at: usize, member: &Member) -> String {
    let is_last = at + 1 == object.members.len();
    let end = member.comma.map_or(member.value.end, |comma| comma + 1);
    let before = match at.checked_sub(1).map(|before| &object.members[before]) {
        Some(before) => before.comma.map_or(before.value.end, |comma| comma + 1),
        None => object.range.start + 1,
    };
    // Remarks behind the member before it are that one's.
    let before = end_of_remarks(text, before);
    let lead = &text[before..member.start];
    let from = match lead.rfind('\n') {
        Some(line) => before + line - usize::from(lead[..line].ends_with('\r')),
        None => before,
    };
    let taken = replaced(text, from..end, "");
    match at.checked_sub(1).and_then(|before| object.members[before].comma) {
        // A comma that now stands before the end is one too many, unless the person had one there.
        Some(comma) if is_last && member.comma.is_none() => replaced(&taken, comma..comma + 1, ""),
        _ => taken,
    }
}

impl<'a> Layout<'a> {
    fn of(text: &'a str, root: &Object) -> Self {
        let step = root.members.first().and_then(|member| indent_of(text, member.start));
        let step = step.filter(|step| !step.is_empty()).unwrap_or_else(|| "  ".to_owned());
        Self { line_end: line_end(text), step }
    }

    /// Objects on lines of their own, lists of words on one.
    fn render(&self, value: &Value, indent: &str) -> String {
        let Value::Object(members) = value else {
            return inline(value);
        };
        if members.is_empty() {
            return "{}".to_owned();
        }
        let inner = format!("{indent}{}", self.step);
        let members: Vec<String> = members
            .iter()
            .map(|(name, value)| {
                format!("{inner}{}: {}", Value::from(name.as_str()), self.render(value, &inner))
            })
            .collect();
        let line_end = self.line_end;
        format!("{{{line_end}{}{line_end}{indent}}}", members.join(&format!(",{line_end}")))
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::Array(parts) => {
            let parts: Vec<String> = parts.iter().map(inline).collect();
            format!("[{}]", parts.join(", "))
        }
        other => other.to_string(),
    }
}

/// What stands before `at` on its line, where that is blank.
fn indent_of(text: &str, at: usize) -> Option<String> {
    let line = text[..at].rfind('\n').map_or(0, |line| line + 1);
    let before = text[line..at].trim_start_matches('\u{feff}');
    before.chars().all(|c| matches!(c, ' ' | '\t')).then(|| before.to_owned())
}

/// How far the line is indented on which an object begins.
fn outer_indent(text: &str, object: &Object) -> String {
    let line = text[..object.range.start].rfind('\n').map_or(0, |line| line + 1);
    let line = text[line..object.range.start].trim_start_matches('\u{feff}');
    let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
    line[..blanks].to_owned()
}

fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn replaced(text: &str, range: std::ops::Range<usize>, with: &str) -> String {
    [&text[..range.start], with, &text[range.end..]].concat()
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
