//! Where everything a person reads goes out: stdout for what was asked for, stderr for what is
//! said about it. Colours only where the stream is a terminal that wants them.

mod container;
pub(crate) mod table;
pub(crate) mod text;

use std::cell::RefCell;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use tokio::time::Instant;

pub(crate) use container::value_words;

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BUSY: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();

/// `text` in `style`; the stream takes the style off again where it does not belong.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// The way out for one command.
pub(crate) struct Output {
    stdout: anstream::AutoStream<io::Stdout>,
    terminal: bool,
    json: bool,
}

impl Output {
    /// Writes to this process's stdout; `json` says that the person asked for JSON.
    pub(crate) fn new(json: bool) -> Self {
        Self { stdout: anstream::stdout(), terminal: io::stdout().is_terminal(), json }
    }

    /// Whether the API's JSON is wanted instead of words.
    pub(crate) fn wants_json(&self) -> bool {
        self.json
    }

    /// The width to fit tables to; none where the reader is a program.
    pub(crate) fn width(&self) -> Option<u16> {
        if !self.terminal {
            return None;
        }
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        (size.ws_col > 0).then_some(size.ws_col)
    }

    /// One line, or several.
    pub(crate) fn print(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.stdout, "{text}")?;
        self.stdout.flush()
    }

    /// JSON: laid out on a terminal, byte for byte as it came for a program.
    pub(crate) fn print_json(&mut self, json: &str) -> io::Result<()> {
        if self.terminal {
            return self.print(&text::pretty_json(json));
        }
        self.print_raw(json)
    }

    /// What a server answered: harmless on a terminal, untouched for a program or a file.
    pub(crate) fn print_foreign(&mut self, foreign: &str) -> io::Result<()> {
        if self.terminal {
            return self.print(&text::block(foreign));
        }
        self.print_raw(foreign)
    }

    /// Some of a text that comes in pieces: harmless on a terminal, untouched for a program.
    pub(crate) fn write_foreign(&mut self, piece: &str) -> io::Result<()> {
        let shown = if self.terminal { text::block(piece) } else { piece.to_owned() };
        let mut stdout = io::stdout().lock();
        stdout.write_all(shown.as_bytes())?;
        stdout.flush()
    }

    /// Goes around the stream that would take escape sequences out.
    pub(crate) fn print_raw(&mut self, raw: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(raw.as_bytes())?;
        if !raw.ends_with('\n') {
            stdout.write_all(b"\n")?;
        }
        stdout.flush()
    }
}

/// Says something beside the output. Nobody reading stderr is no reason to fail.
pub(crate) fn say(text: &str) {
    let mut stderr = anstream::stderr().lock();
    writeln!(stderr, "{text}").unwrap_or_default();
}

/// Says what a person should know although the command goes on.
pub(crate) fn warn(text: &str) {
    say(&format!("{} {}", styled(BUSY.bold(), "Warning:"), text::line(text)));
}

/// Waits for `work`, with a line that counts the seconds where a person is watching.
pub(crate) async fn with_progress<T>(what: &str, work: impl Future<Output = T>) -> T {
    Progress::new(what).during(work).await
}

/// A line that says what is waited for. Where nobody watches, only what is new is said.
pub(crate) struct Progress {
    what: String,
    news: RefCell<Option<String>>,
    watched: bool,
}

impl Progress {
    pub(crate) fn new(what: &str) -> Self {
        let watched = io::stderr().is_terminal();
        Self { what: text::line(what), news: RefCell::default(), watched }
    }

    /// Something else is waited for now.
    pub(crate) fn tell(&self, news: &str) {
        let news = text::line(news);
        let first = self.news.borrow().is_none();
        if first && !self.watched {
            say(&news);
        }
        *self.news.borrow_mut() = Some(news);
    }

    /// Waits for `work`.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        if !self.watched {
            return work.await;
        }
        let started = Instant::now();
        let mut ticks = tokio::time::interval(Duration::from_millis(500));
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => {
                    draw("\r\u{1b}[K");
                    return done;
                }
                _ = ticks.tick() => {
                    let age = text::age(started.elapsed());
                    let what = self.news.borrow().clone().unwrap_or_else(|| self.what.clone());
                    draw(&format!("\r\u{1b}[K{what} {DIM}{age}{DIM:#}"));
                }
            }
        }
    }
}

fn draw(text: &str) {
    let mut stderr = io::stderr().lock();
    stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()).unwrap_or_default();
}

/// Asks a question that is answered with y or n; anything else is no.
pub(crate) fn confirm(question: &str) -> io::Result<bool> {
    draw(&format!("{question} [y/N] "));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Whether a person sits at both ends: sees the question and can answer it.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}
