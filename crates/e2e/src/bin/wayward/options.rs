//! The flags: each names one way to misbehave, or a file that tells a test what happened.

use std::path::PathBuf;

/// Which protocol eras the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// `initialize`, revisions 2024-11-05 to 2025-11-25.
    Legacy,
    /// `server/discover`, revision 2026-07-28.
    Modern,
    /// Both of them.
    Both,
}

/// What a copy of this program is when it is not the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Makes a session of its own, starts the grandchild and goes away.
    Middle,
    /// The grandchild: ignores what it can and lives on.
    Leaf,
}

/// What the server was told to be.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) era: Era,
    /// Exit with this code before reading anything.
    exit_at_start: Option<i32>,
    /// Exit with 3 before reading anything unless this file is there.
    require_file: Option<PathBuf>,
    /// Read nothing before this file is there.
    pub(crate) wait_for_file: Option<PathBuf>,
    pub(crate) hang_at_start: bool,
    /// Milliseconds before the first message is read.
    pub(crate) slow_start: u64,
    /// Lines that are no JSON-RPC before each message.
    pub(crate) noise: bool,
    /// Lines written to stderr at the start.
    pub(crate) stderr_flood: u64,
    pub(crate) ignore_sigterm: bool,
    pub(crate) ignore_stdin_eof: bool,
    /// Start a grandchild in a session of its own.
    pub(crate) grandchildren: bool,
    /// Where grandchildren are written down, one pid a line.
    pub(crate) pids_file: Option<PathBuf>,
    /// Exit with 1 after this many tool calls were answered.
    pub(crate) crash_after: Option<u64>,
    /// Exit with 1 this many milliseconds after the handshake.
    pub(crate) crash_when_ready: Option<u64>,
    /// Where the server's own pids are written down, one a line.
    pub(crate) pid_file: Option<PathBuf>,
    /// Where receipts and answers are written down in their order.
    pub(crate) order_log: Option<PathBuf>,
    /// List this many made-up tools instead of the real ones.
    pub(crate) tools: Option<usize>,
    pub(crate) resources: usize,
    /// Entries on one page of a list.
    pub(crate) page: usize,
    /// Every page of a list names itself as the next one.
    pub(crate) endless_pages: bool,
    /// Every page of a list has one item of so many bytes, and names another page.
    pub(crate) fat_pages: Option<usize>,
    /// Speak Streamable HTTP on this port of all addresses instead of stdio.
    pub(crate) http: Option<u16>,
    /// Answer over HTTP with a stream of one event instead of plain JSON.
    pub(crate) http_stream: bool,
    pub(crate) role: Option<Role>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            era: Era::Legacy,
            exit_at_start: None,
            require_file: None,
            wait_for_file: None,
            hang_at_start: false,
            slow_start: 0,
            noise: false,
            stderr_flood: 0,
            ignore_sigterm: false,
            ignore_stdin_eof: false,
            grandchildren: false,
            pids_file: None,
            crash_after: None,
            crash_when_ready: None,
            pid_file: None,
            order_log: None,
            tools: None,
            resources: 0,
            page: 50,
            endless_pages: false,
            fat_pages: None,
            http: None,
            http_stream: false,
            role: None,
        }
    }
}

impl Options {
    /// Reads the flags; a flag that is not known is an error, as its test would prove nothing.
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        let mut args = args;
        while let Some(flag) = args.next() {
            options.take(&flag, &mut args).map_err(|why| format!("wayward: {flag}: {why}"))?;
        }
        Ok(options)
    }

    fn take(
        &mut self,
        flag: &str,
        args: &mut impl Iterator<Item = String>,
    ) -> Result<(), &'static str> {
        match flag {
            "--era" => self.era = era(&value(args)?)?,
            "--exit-at-start" => self.exit_at_start = Some(number(args)?),
            "--require-file" => self.require_file = Some(path(args)?),
            "--wait-for-file" => self.wait_for_file = Some(path(args)?),
            "--hang-at-start" => self.hang_at_start = true,
            "--slow-start" => self.slow_start = number(args)?,
            "--noise" => self.noise = true,
            "--stderr-flood" => self.stderr_flood = number(args)?,
            "--ignore-sigterm" => self.ignore_sigterm = true,
            "--ignore-stdin-eof" => self.ignore_stdin_eof = true,
            "--grandchildren" => self.grandchildren = true,
            "--pids-file" => self.pids_file = Some(path(args)?),
            "--crash-after" => self.crash_after = Some(number(args)?),
            "--crash-when-ready" => self.crash_when_ready = Some(number(args)?),
            "--pid-file" => self.pid_file = Some(path(args)?),
            "--log-order" => self.order_log = Some(path(args)?),
            "--tools" => self.tools = Some(number(args)?),
            "--resources" => self.resources = number(args)?,
            "--page" => self.page = number(args)?,
            "--endless-pages" => self.endless_pages = true,
            "--fat-pages" => self.fat_pages = Some(number(args)?),
            "--http" => self.http = Some(number(args)?),
            "--http-stream" => self.http_stream = true,
            "--role-middle" => self.role = Some(Role::Middle),
            "--role-leaf" => self.role = Some(Role::Leaf),
            _ => return Err("no such flag"),
        }
        Ok(())
    }

    /// The code to exit with before anything is read, where that was ordered.
    pub(crate) fn exit_code_at_start(&self) -> Option<i32> {
        let missing = self.require_file.as_ref().is_some_and(|path| !path.exists());
        self.exit_at_start.or(missing.then_some(3))
    }
}

fn value(args: &mut impl Iterator<Item = String>) -> Result<String, &'static str> {
    args.next().ok_or("wants a value")
}

fn path(args: &mut impl Iterator<Item = String>) -> Result<PathBuf, &'static str> {
    value(args).map(PathBuf::from)
}

fn number<T: std::str::FromStr>(
    args: &mut impl Iterator<Item = String>,
) -> Result<T, &'static str> {
    value(args)?.parse().map_err(|_| "wants a number")
}

fn era(text: &str) -> Result<Era, &'static str> {
    match text {
        "legacy" => Ok(Era::Legacy),
        "modern" => Ok(Era::Modern),
        "both" => Ok(Era::Both),
        _ => Err("wants legacy, modern or both"),
    }
}
