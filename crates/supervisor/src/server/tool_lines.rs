//! The tool calls in a server's log: bounded, in memory only, and text only when they are read,
//! because every call adds two of them.

use std::collections::VecDeque;
use std::sync::Arc;

use cofer_model::{LogEntry, LogStream, LogTag, Outcome};
use time::OffsetDateTime;

/// Lines kept: the last 250 calls.
const MAX_TOOL_LINES: usize = 500;

/// One step of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ToolStep {
    Started,
    Finished { outcome: Outcome, duration_ms: f64 },
}

#[derive(Debug)]
pub(super) struct ToolLine {
    pub(super) seq: u64,
    pub(super) at: OffsetDateTime,
    pub(super) tool: Arc<str>,
    pub(super) step: ToolStep,
}

impl ToolLine {
    pub(super) fn entry(&self) -> LogEntry {
        let tool = &self.tool;
        let line = match self.step {
            ToolStep::Started => format!("{tool}: call started"),
            ToolStep::Finished { outcome, duration_ms } => {
                format!("{tool}: {} after {duration_ms:.1} ms", words(outcome))
            }
        };
        let (stream, tag) = (LogStream::Lifecycle, Some(LogTag::Tools));
        LogEntry { seq: self.seq, at: self.at, stream, tag, line }
    }
}

/// The last steps, oldest first.
#[derive(Debug, Default)]
pub(super) struct ToolLines {
    lines: VecDeque<ToolLine>,
}

impl ToolLines {
    pub(super) fn push(&mut self, line: ToolLine) {
        if self.lines.len() == MAX_TOOL_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    pub(super) fn tail(&self, count: usize) -> impl Iterator<Item = &ToolLine> {
        self.lines.range(self.lines.len().saturating_sub(count)..)
    }
}

fn words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::ToolError => "tool error",
        Outcome::McpError => "MCP error",
        Outcome::Timeout => "timeout",
        Outcome::Cancelled => "cancelled",
        Outcome::Overloaded => "overloaded",
        Outcome::Disconnected => "disconnected",
        Outcome::TooLarge => "result too large",
    }
}
