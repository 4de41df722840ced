//! Where things stand in a JSON text with comments: the members of an object as ranges of bytes.
//! Reads what editors write (comments, trailing commas), and nothing looser.

use std::ops::Range;

/// Deeper than any configuration is.
const MAX_DEPTH: usize = 128;

/// Why a text is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub(crate) struct ScanError {
    line: usize,
    column: usize,
    what: &'static str,
}

/// An object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    /// From its opening to behind its closing brace.
    pub(super) range: Range<usize>,
    pub(super) members: Vec<Member>,
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: String,
    /// Where its name begins.
    pub(super) start: usize,
    pub(super) value: Range<usize>,
    /// The comma behind it.
    pub(super) comma: Option<usize>,
}

impl Object {
    /// The member that counts where a name stands twice: the last.
    pub(super) fn member(&self, name: &str) -> Option<(usize, &Member)> {
        self.members.iter().enumerate().rev().find(|(_, member)| member.name == name)
    }
}

/// The object that a text is; none where the text holds nothing but comments.
pub(super) fn root(text: &str) -> Result<Option<Object>, ScanError> {
    let mut scan = Scan { text, at: if text.starts_with('\u{feff}') { 3 } else { 0 } };
    scan.trivia()?;
    if scan.at == text.len() {
        return Ok(None);
    }
    let object = scan.object(0)?;
    scan.trivia()?;
    match scan.at == text.len() {
        true => Ok(Some(object)),
        false => Err(scan.wrong("more stands behind the end of the object")),
    }
}

/// The object that begins at `at`, where one does.
pub(super) fn object_at(text: &str, at: usize) -> Result<Option<Object>, ScanError> {
    if text.as_bytes().get(at) != Some(&b'{') {
        return Ok(None);
    }
    Scan { text, at }.object(0).map(Some)
}

/// Behind the blanks and comments that follow `at` on its line.
pub(super) fn end_of_remarks(text: &str, at: usize) -> usize {
    let mut end = at;
    loop {
        let rest = &text[end..];
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let rest = &rest[blanks..];
        if rest.starts_with("//") {
            let line = rest.find(['\n', '\r']).unwrap_or(rest.len());
            return end + blanks + line;
        }
        let comment = rest.strip_prefix("/*").and_then(|inside| inside.find("*/"));
        match comment {
            Some(length) if !rest[..length + 4].contains('\n') => end += blanks + length + 4,
            // Blanks alone are no remark.
            _ => return end,
        }
    }
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn wrong(&self, what: &'static str) -> ScanError {
        let before = &self.text[..self.text.floor_char_boundary(self.at)];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        ScanError { line, column, what }
    }

    /// Passes over blanks and comments.
    fn trivia(&mut self) -> Result<(), ScanError> {
        loop {
            let rest = &self.text[self.at..];
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
            self.at += blanks;
            let rest = &rest[blanks..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(inside) = rest.strip_prefix("/*") {
                let end = inside.find("*/");
                let end = end.ok_or_else(|| self.wrong("a comment is not closed"))?;
                self.at += end + 4;
            } else {
                return Ok(());
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Object, ScanError> {
        let start = self.at;
        if self.peek() != Some(b'{') {
            return Err(self.wrong("an object was expected"));
        }
        self.at += 1;
        let mut members = Vec::new();
        loop {
            self.trivia()?;
            if self.peek() == Some(b'}') {
                self.at += 1;
                return Ok(Object { range: start..self.at, members });
            }
            if members.last().is_some_and(|member: &Member| member.comma.is_none()) {
                return Err(self.wrong("a comma or the end of the object was expected"));
            }
            members.push(self.member(depth)?);
        }
    }

    fn member(&mut self, depth: usize) -> Result<Member, ScanError> {
        let start = self.at;
        let name = self.string()?;
        let name = serde_json::from_str(&self.text[name])
            .map_err(|_| self.wrong("a name is not a JSON string"))?;
        self.trivia()?;
        if self.peek() != Some(b':') {
            return Err(self.wrong("a colon was expected"));
        }
        self.at += 1;
        self.trivia()?;
        let value = self.value(depth + 1)?;
        let comma = self.comma()?;
        Ok(Member { name, start, value, comma })
    }

    fn comma(&mut self) -> Result<Option<usize>, ScanError> {
        self.trivia()?;
        let comma = (self.peek() == Some(b',')).then_some(self.at);
        self.at += usize::from(comma.is_some());
        Ok(comma)
    }

    fn value(&mut self, depth: usize) -> Result<Range<usize>, ScanError> {
        if depth > MAX_DEPTH {
            return Err(self.wrong("it is nested too deeply"));
        }
        let start = self.at;
        match self.peek() {
            Some(b'{') => self.object(depth).map(drop)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => return self.string(),
            _ => self.scalar()?,
        }
        Ok(start..self.at)
    }

    fn array(&mut self, depth: usize) -> Result<(), ScanError> {
        self.at += 1;
        loop {
            self.trivia()?;
            if self.peek() == Some(b']') {
                self.at += 1;
                return Ok(());
            }
            self.value(depth + 1)?;
            if self.comma()?.is_none() && self.peek() != Some(b']') {
                return Err(self.wrong("a comma or the end of the list was expected"));
            }
        }
    }

    fn string(&mut self) -> Result<Range<usize>, ScanError> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.wrong("a name in double quotes was expected"));
        }
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(start..self.at);
                }
                Some(b'\\') => self.at += 2,
                Some(b'\n') | None => return Err(self.wrong("a text in quotes is not closed")),
                Some(_) => self.at += 1,
            }
        }
    }

    fn scalar(&mut self) -> Result<(), ScanError> {
        let rest = &self.text[self.at..];
        let end = rest.find([' ', '\t', '\n', '\r', ',', '}', ']', '/']).unwrap_or(rest.len());
        if serde_json::from_str::<serde_json::Value>(&rest[..end]).is_err() {
            return Err(self.wrong("this is no JSON value"));
        }
        self.at += end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_between_comments_and_trailing_commas() {
        let text = "// head\n{ \"a\": 1, /* } */ \"b\\u0063\": {\"x\": [1, 2,], },\n // end }\n}\n";
        let object = root(text).unwrap().unwrap();
        let names: Vec<_> = object.members.iter().map(|member| member.name.as_str()).collect();
        assert_eq!(names, ["a", "bc"]);
        assert_eq!(&text[object.members[1].value.clone()], "{\"x\": [1, 2,], }");
        assert!(object.members[1].comma.is_some());
        assert_eq!(root(" // nothing\n").unwrap(), None);
        assert_eq!(root("").unwrap(), None);
    }

    #[test]
    fn what_is_no_json_is_said_by_its_place() {
        for (text, told) in [
            ("[]", "line 1, column 1: an object was expected"),
            ("{\n  a: 1}", "line 2, column 3: a name in double quotes was expected"),
            ("{\"a\": nope}", "line 1, column 7: this is no JSON value"),
            (
                "{\"a\": 1 \"b\": 2}",
                "line 1, column 9: a comma or the end of the object was expected",
            ),
            ("{\"a\": [1 2]}", "line 1, column 10: a comma or the end of the list was expected"),
            ("{\"a\": \"x\n\"}", "line 1, column 9: a text in quotes is not closed"),
            ("{} {}", "line 1, column 4: more stands behind the end of the object"),
            ("{ /* ", "line 1, column 3: a comment is not closed"),
            ("{\"a\"", "line 1, column 5: a colon was expected"),
        ] {
            assert_eq!(root(text).unwrap_err().to_string(), told, "{text}");
        }
        let deep = format!("{}1{}", "{\"a\":".repeat(1000), "}".repeat(1000));
        assert!(root(&deep).is_err());
    }

    #[test]
    fn remarks_belong_to_the_line_they_stand_on() {
        let text = "1 // one\n2 /* two */ , 3";
        assert_eq!(&text[..end_of_remarks(text, 1)], "1 // one");
        assert_eq!(&text[9..end_of_remarks(text, 10)], "2 /* two */");
        assert_eq!(end_of_remarks(" 4 \n", 2), 2);
    }
}
