//! The figures as text: a table of all that was measured, and what was wanted beside what is.

use std::fmt::Write as _;
use std::time::Duration;

use crate::sample::Figures;

/// One column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Bytes of text in each call.
    pub size: usize,
    /// How many callers at once.
    pub callers: usize,
}

impl Column {
    /// As it stands in the table's head.
    pub fn title(self) -> String {
        let callers =
            if self.callers == 1 { "1 caller".to_owned() } else { self.callers.to_string() };
        format!("{}, {callers}", bytes(self.size as u64))
    }
}

/// What was found for one target in one column.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// The medians.
    Measured(Figures),
    /// It could not do it.
    Failed(String),
    /// It was not asked.
    Left,
}

/// All findings: one row per target.
#[derive(Debug, Default)]
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows: a target's name, and a finding per column.
    pub rows: Vec<(String, Vec<Finding>)>,
}

impl Table {
    /// What a target measured there.
    pub fn figures(&self, row: &str, column: Column) -> Option<Figures> {
        let at = self.columns.iter().position(|each| *each == column)?;
        match self.rows.iter().find(|(name, _)| name == row)?.1.get(at)? {
            Finding::Measured(figures) => Some(*figures),
            Finding::Failed(_) | Finding::Left => None,
        }
    }

    /// As Markdown; failures are told below it.
    pub fn markdown(&self) -> String {
        let mut text = String::from("| calls a second · p50 · p99 |");
        let mut notes = String::new();
        for column in &self.columns {
            add(&mut text, format_args!(" {} |", column.title()));
        }
        add(&mut text, format_args!("\n|---|{}\n", "---|".repeat(self.columns.len())));
        for (name, findings) in &self.rows {
            add(&mut text, format_args!("| {name} |"));
            for (finding, column) in findings.iter().zip(&self.columns) {
                let cell = match finding {
                    Finding::Measured(figures) => cell(figures),
                    Finding::Left => "-".to_owned(),
                    Finding::Failed(why) => {
                        let why = why.lines().next().unwrap_or_default();
                        add(&mut notes, format_args!("- {name}, {}: {why}\n", column.title()));
                        "fails".to_owned()
                    }
                };
                add(&mut text, format_args!(" {cell} |"));
            }
            text.push('\n');
        }
        if !notes.is_empty() {
            add(&mut text, format_args!("\nFailed:\n\n{notes}"));
        }
        text
    }
}

/// A figure and what is wanted of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// What was measured.
    pub what: String,
    /// The figure; nothing where it could not be had.
    pub is: Option<f64>,
    /// What it has to be.
    pub wanted: Wanted,
    /// Its unit.
    pub unit: &'static str,
}

/// What a figure has to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wanted {
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
    /// Only shown.
    Nothing,
}

impl Goal {
    /// Whether it is reached.
    pub fn verdict(&self) -> &'static str {
        let met = match (self.is, self.wanted) {
            (None, _) => return "not measured",
            (Some(_), Wanted::Nothing) => return "",
            (Some(is), Wanted::AtMost(limit)) => is <= limit,
            (Some(is), Wanted::AtLeast(limit)) => is >= limit,
        };
        if met { "met" } else { "**not met**" }
    }
}

/// The goals as Markdown.
pub fn goals_markdown(goals: &[Goal]) -> String {
    let mut text = String::from("| | is | wanted | |\n|---|---|---|---|\n");
    for goal in goals {
        let is = goal.is.map_or("-".to_owned(), |is| format!("{is:.2}{}", goal.unit));
        let wanted = match goal.wanted {
            Wanted::AtMost(limit) => format!("at most {limit}{}", goal.unit),
            Wanted::AtLeast(limit) => format!("at least {limit}{}", goal.unit),
            Wanted::Nothing => String::new(),
        };
        let verdict = goal.verdict();
        add(&mut text, format_args!("| {} | {is} | {wanted} | {verdict} |\n", goal.what));
    }
    text
}

/// `9,700 · 97 µs · 0.2 ms`.
fn cell(figures: &Figures) -> String {
    let per_second = if figures.per_second < 100.0 {
        format!("{:.1}", figures.per_second)
    } else {
        thousands(figures.per_second.round() as u64)
    };
    format!("{per_second} · {} · {}", time(figures.p50), time(figures.p99))
}

fn time(time: Duration) -> String {
    match time.as_secs_f64() * 1e6 {
        micros if micros < 1000.0 => format!("{micros:.0} µs"),
        micros if micros < 10_000.0 => format!("{:.2} ms", micros / 1e3),
        micros => format!("{:.0} ms", micros / 1e3),
    }
}

fn thousands(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", thousands(number / 1000), number % 1000),
    }
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

fn add(text: &mut String, words: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    text.write_fmt(words).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Column = Column { size: 100, callers: 1 };
    const LARGE: Column = Column { size: 1 << 20, callers: 8 };

    #[test]
    fn the_table_shows_figures_failures_and_gaps() {
        let figures = Figures {
            per_second: 1_234_567.2,
            p50: Duration::from_micros(97),
            p99: Duration::from_micros(2300),
        };
        let table = Table {
            columns: vec![SMALL, LARGE],
            rows: vec![
                ("a".to_owned(), vec![Finding::Measured(figures), Finding::Left]),
                (
                    "b".to_owned(),
                    vec![Finding::Left, Finding::Failed("status 413\nmore".to_owned())],
                ),
            ],
        };
        assert_eq!(
            table.markdown(),
            "| calls a second · p50 · p99 | 100 B, 1 caller | 1 MiB, 8 |\n|---|---|---|\n\
             | a | 1,234,567 · 97 µs · 2.30 ms | - |\n| b | - | fails |\n\
             \nFailed:\n\n- b, 1 MiB, 8: status 413\n"
        );
        assert_eq!(table.figures("a", SMALL), Some(figures));
        assert_eq!(table.figures("b", LARGE), None);
    }

    #[test]
    fn a_goal_is_met_only_by_a_figure() {
        let goal = |is, wanted| Goal { what: "x".to_owned(), is, wanted, unit: " %" };
        assert_eq!(goal(Some(1.3), Wanted::AtMost(1.3)).verdict(), "met");
        assert_eq!(goal(Some(1.4), Wanted::AtMost(1.3)).verdict(), "**not met**");
        assert_eq!(goal(Some(15.0), Wanted::AtLeast(15.0)).verdict(), "met");
        assert_eq!(goal(Some(14.9), Wanted::AtLeast(15.0)).verdict(), "**not met**");
        assert_eq!(goal(None, Wanted::AtLeast(15.0)).verdict(), "not measured");
        assert_eq!(goal(Some(1.0), Wanted::Nothing).verdict(), "");
        assert!(
            goals_markdown(&[goal(Some(0.5), Wanted::AtMost(1.0))])
                .contains("| x | 0.50 % | at most 1 % | met |")
        );
    }
}
