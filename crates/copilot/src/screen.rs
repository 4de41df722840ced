//! The terminal as a person would see it, and what can be told from it. Pure: takes bytes,
//! answers questions.

use std::num::NonZeroU16;

use cofer_model::FieldError;
use cofer_runtime::TerminalSize;

/// Wide enough that a prompt's line is not broken, high enough that a box is whole.
pub(crate) const SIZE: TerminalSize = TerminalSize { rows: 60, columns: 160 };

/// Characters that make a line something else than words to a model: `!` runs a command of the
/// shell, `/` one of the CLI, the others name files, issues and helps.
const SIGILS: &str = "!/@#&?";

/// What is on the terminal now.
pub(crate) struct Screen(vt100::Parser);

/// How the screen's end looks while the CLI waits for input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    last_line: String,
    before_cursor: String,
    column: u16,
}

impl Screen {
    pub(crate) fn new() -> Self {
        let positive = |number| NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN);
        Self(vt100::Parser::new(positive(SIZE.rows), positive(SIZE.columns), 0))
    }

    pub(crate) fn show(&mut self, bytes: &[u8]) {
        self.0.process(bytes);
    }

    pub(crate) fn text(&self) -> String {
        self.0.screen().contents()
    }

    /// Whether text between paste marks is taken as one, with its line ends.
    pub(crate) fn takes_paste(&self) -> bool {
        self.0.screen().bracketed_paste()
    }

    pub(crate) fn prompt(&self) -> Prompt {
        let text = self.text();
        let last_line = text.lines().rev().find(|line| !line.trim().is_empty());
        let (row, column) = self.0.screen().cursor_position();
        // A blank that was written and one that was not look the same.
        let before_cursor = self.0.screen().contents_between(row, 0, row, column);
        let before_cursor = before_cursor.trim_end().to_owned();
        Prompt { last_line: without_numbers(last_line.unwrap_or_default()), before_cursor, column }
    }

    /// Whether the cursor stands behind something, as it does where a line is asked for.
    pub(crate) fn asks(&self) -> bool {
        !self.prompt().before_cursor.is_empty()
    }

    /// A new CLI asks this before anything else, with "Yes" chosen.
    pub(crate) fn asks_for_trust(&self) -> bool {
        self.text().contains("Do you trust the files in this folder?")
    }
}

/// Counters at the bottom of the screen may change from one prompt to the next.
fn without_numbers(line: &str) -> String {
    let is_counted = |c: char| c.is_ascii_digit() || ".,%".contains(c);
    let words = line.split_whitespace();
    words.map(|word| word.trim_matches(is_counted)).collect::<Vec<_>>().join(" ")
}

/// Why an input cannot be typed, where it cannot.
pub(crate) fn refusal(input: &str) -> Option<FieldError> {
    let wrong = |message: &str| Some(FieldError::new("input", message));
    if input.trim_start().starts_with(|c| SIGILS.contains(c)) {
        return wrong(
            "must not begin with ! / @ # & or ?: the installed CLI is used on a terminal, where these are commands",
        );
    }
    if input.chars().any(|c| c.is_control() && c != '\n') {
        return wrong(
            "must not hold control characters: the installed CLI is used on a terminal, where these are keys",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(text: &str) -> Screen {
        let mut screen = Screen::new();
        screen.show(text.as_bytes());
        screen
    }

    #[test]
    fn the_prompt_is_known_again_when_it_comes_back() {
        let mut screen = screen("Welcome\r\n> ");
        let prompt = screen.prompt();
        assert!(screen.asks());
        screen.show(b"hi\r\nthe answer");
        assert_ne!(screen.prompt(), prompt);
        screen.show(b"\r\n> ");
        assert_eq!(screen.prompt(), prompt);
    }

    #[test]
    fn a_line_at_the_bottom_that_changes_while_the_cli_works_is_part_of_the_prompt() {
        let mut screen = screen("> \r\n Ctrl+c Exit   Remaining: 96.1%\r\n");
        let prompt = screen.prompt();
        screen.show(b"\x1b[2J\x1b[H> \r\n Working, esc interrupts\r\n");
        assert_ne!(screen.prompt(), prompt);
        screen.show(b"\x1b[2J\x1b[Hanswer\r\n> \r\n Ctrl+c Exit   Remaining: 95%\r\n");
        assert_eq!(screen.prompt(), prompt);
    }

    #[test]
    fn a_prompt_that_is_drawn_with_other_blanks_is_the_same() {
        let mut screen = screen("\u{276f}\x1b[K\x1b[1;3H");
        let prompt = screen.prompt();
        screen.show("\r\u{276f} hi".as_bytes());
        assert_ne!(screen.prompt(), prompt);
        screen.show("\r\u{276f} \x1b[K\x1b[1;3H".as_bytes());
        assert_eq!(screen.prompt(), prompt);
    }

    #[test]
    fn what_would_be_a_command_or_a_key_on_a_terminal_is_refused() {
        // covers: COP-E2
        for input in
            ["!id", "  !id", "/allow-all", "@file", "#1", "&x", "?", "a\u{1b}[A", "a\rb", "\u{9b}x"]
        {
            assert!(refusal(input).is_some(), "{input:?}");
        }
        for input in ["hi! /etc", "-x --yolo", "two\nlines", "$(id)"] {
            assert!(refusal(input).is_none(), "{input:?}");
        }
    }
}
