//! How an event looks in the log: one line, whatever is in it.
//!
//! `2026-11-15T22:00:00.123456Z  INFO [MCP] server is ready server=fs`
//!
//! The hot path logs two lines for each tool call: nothing here allocates but the line itself,
//! whose buffer tracing-subscriber keeps per thread.

use std::error::Error;
use std::fmt::{self, Debug, Write};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// The targets that stand in front of a line as `[START]`, `[MCP]`, `[TOOLS]`.
pub(crate) const PREFIXES: [&str; 3] = ["START", "MCP", "TOOLS"];

/// The longest text of an event in the log.
const MAX_BYTES: usize = 4096;

/// Formats events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogLine;

/// Formats the fields of spans, so that they can be put in a line as they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EscapedFields;

impl<S> FormatEvent<S, EscapedFields> for LogLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, EscapedFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        SystemTime.format_time(&mut writer)?;
        write!(writer, " {:>5} ", event.metadata().level())?;
        if let Some(prefix) = PREFIXES.iter().find(|prefix| **prefix == event.metadata().target()) {
            write!(writer, "[{prefix}] ")?;
        }
        let mut fields = Fields::new(&mut writer);
        event.record(&mut fields);
        let Fields { result, out: Escaped { cut, .. }, .. } = fields;
        result?;
        write_spans(ctx, &mut writer)?;
        writer.write_str(if cut { "…\n" } else { "\n" })
    }
}

/// What the spans around an event say holds for the event too.
fn write_spans<S>(ctx: &FmtContext<'_, S, EscapedFields>, writer: &mut Writer<'_>) -> fmt::Result
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let Some(scope) = ctx.event_scope() else {
        return Ok(());
    };
    for span in scope.from_root() {
        let extensions = span.extensions();
        if let Some(fields) = extensions.get::<FormattedFields<EscapedFields>>()
            && !fields.is_empty()
        {
            write!(writer, " {fields}")?;
        }
    }
    Ok(())
}

impl<'writer> FormatFields<'writer> for EscapedFields {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        record: R,
    ) -> fmt::Result {
        let mut fields = Fields::new(&mut writer);
        record.record(&mut fields);
        fields.result
    }
}

/// Writes `message key=value key="value with spaces"`.
struct Fields<'a, W: Write> {
    out: Escaped<'a, W>,
    first: bool,
    result: fmt::Result,
}

impl<'a, W: Write> Fields<'a, W> {
    fn new(writer: &'a mut W) -> Self {
        let out = Escaped { writer, room: MAX_BYTES, cut: false };
        Self { out, first: true, result: Ok(()) }
    }

    fn field(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        // Records of the `log` crate carry where they come from as fields.
        if self.result.is_err() || field.name().starts_with("log.") {
            return;
        }
        self.result = self.write(field.name(), value);
        self.first = false;
    }

    fn write(&mut self, name: &str, value: fmt::Arguments<'_>) -> fmt::Result {
        if !self.first {
            self.out.write_str(" ")?;
        }
        if name != "message" {
            self.out.write_str(name)?;
            self.out.write_str("=")?;
        }
        self.out.write_fmt(value)
    }
}

impl<W: Write> Visit for Fields<'_, W> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.field(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let plain = |byte: u8| !matches!(byte, b' ' | b'"' | b'=');
        if field.name() == "message" || (!value.is_empty() && value.bytes().all(plain)) {
            self.field(field, format_args!("{value}"));
        } else {
            self.field(field, format_args!("\"{value}\""));
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.field(field, format_args!("\"{}\"", Chain(value)));
    }
}

/// An error and its causes in one line.
pub(crate) struct Chain<'a>(pub(crate) &'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// Lets nothing through that would end the line, move the cursor or reorder text, and no more
/// than there is room for.
struct Escaped<'a, W: Write> {
    writer: &'a mut W,
    room: usize,
    cut: bool,
}

impl<W: Write> Escaped<'_, W> {
    /// Writes what there is room for; a character is never cut in two.
    fn put(&mut self, text: &str) -> fmt::Result {
        let text = match text.len() > self.room {
            false => text,
            true => {
                self.cut = true;
                &text[..text.floor_char_boundary(self.room)]
            }
        };
        self.room = if self.cut { 0 } else { self.room - text.len() };
        self.writer.write_str(text)
    }

    fn put_escape(&mut self, c: char) -> fmt::Result {
        match c {
            '\n' => self.put("\\n"),
            '\r' => self.put("\\r"),
            '\t' => self.put("\\t"),
            _ => {
                self.put("\\u{")?;
                let mut hexadecimal = [0_u8; 8];
                let mut digits = 0;
                for shift in (0..8).rev() {
                    let digit = (u32::from(c) >> (4 * shift)) & 0xf;
                    if digits > 0 || digit > 0 || shift == 0 {
                        hexadecimal[digits] = b"0123456789abcdef"[digit as usize];
                        digits += 1;
                    }
                }
                self.put(std::str::from_utf8(&hexadecimal[..digits]).unwrap_or_default())?;
                self.put("}")
            }
        }
    }
}

impl<W: Write> Write for Escaped<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return self.put(text);
        }
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_unsafe(*c)) {
            self.put(&rest[..at])?;
            self.put_escape(c)?;
            rest = &rest[at + c.len_utf8()..];
        }
        self.put(rest)
    }
}

/// Control characters, line and paragraph separators, and the marks that reorder text.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
pub(crate) use tests::logged;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::SubscriberExt as _;

    /// The lines that `events` makes, without their time.
    pub(crate) fn logged(events: impl FnOnce()) -> Vec<String> {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let layer = tracing_subscriber::fmt::layer()
            .fmt_fields(EscapedFields)
            .event_format(LogLine)
            .with_ansi(false)
            .with_writer(move || Sink(Arc::clone(&sink)));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), events);
        let text = String::from_utf8(bytes.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| line["2026-11-15T22:00:00.123456Z ".len()..].to_owned()).collect()
    }

    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn our_targets_are_prefixes_and_others_are_not_shown() {
        // covers: MGR-63
        let lines = logged(|| {
            tracing::info!(target: "START", "a");
            tracing::warn!(target: "MCP", "b");
            tracing::error!(target: "TOOLS", "c");
            tracing::debug!(target: "sqlx", "d");
        });
        assert_eq!(lines, [" INFO [START] a", " WARN [MCP] b", "ERROR [TOOLS] c", "DEBUG d"]);
    }

    #[test]
    fn the_time_is_utc_with_microseconds() {
        let mut text = String::new();
        SystemTime.format_time(&mut Writer::new(&mut text)).unwrap();
        let parsed =
            time::OffsetDateTime::parse(&text, &time::format_description::well_known::Rfc3339);
        assert!(parsed.unwrap().offset().is_utc());
        assert_eq!(text.len(), "2026-11-15T22:00:00.123456Z".len(), "{text}");
    }

    #[test]
    fn values_are_written_so_that_they_can_be_told_apart() {
        let cause = io::Error::other("disk on fire");
        let error = crate::data_dir::DataDirError::NoRandomness(cause);
        let lines = logged(|| {
            tracing::info!(server = "fs", text = "two words", n = 3, empty = "", debug = ?Some("x"), "m");
            tracing::info!(error = &error as &(dyn Error + 'static), "m");
        });
        assert_eq!(
            lines,
            [
                r#" INFO m server=fs text="two words" n=3 empty="" debug=Some("x")"#,
                r#" INFO m error="could not make a token: disk on fire""#,
            ]
        );
    }

    #[test]
    fn text_from_outside_stays_in_its_line_and_cannot_drive_a_terminal() {
        let evil = "a\nb\r\t\u{1b}[2J\u{7f}\u{85}\u{202e}é\u{0}";
        let lines = logged(|| {
            tracing::info!(target: "MCP", line = evil, shown = %evil, "said {evil}");
            let span = tracing::info_span!("s", name = evil);
            span.in_scope(|| tracing::info!("x"));
        });
        let safe = r"a\nb\r\t\u{1b}[2J\u{7f}\u{85}\u{202e}é\u{0}";
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0], format!(" INFO [MCP] said {safe} line={safe} shown={safe}"));
        assert_eq!(lines[1], format!(" INFO x name={safe}"));
    }

    #[test]
    fn an_event_inside_spans_tells_what_they_tell() {
        let lines = logged(|| {
            let outer = tracing::info_span!("server", server = "fs");
            let inner = tracing::info_span!(parent: &outer, "no fields");
            inner.in_scope(|| tracing::info!(n = 1, "x"));
        });
        assert_eq!(lines, [" INFO x n=1 server=fs"]);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let lines = logged(|| tracing::info!(after = 1, "{}", "é".repeat(MAX_BYTES)));
        assert_eq!(lines, [format!(" INFO {}…", "é".repeat(MAX_BYTES / 2))]);
    }
}
