//! What a shim tells the daemon over the control socket, one line each. The other direction
//! is a single byte for SIGTERM; the end of the stream means to kill everything.

use cofer_model::Exit;

/// The descriptor a shim finds its control socket on.
pub(crate) const CONTROL_FD: i32 = 3;

/// Daemon to shim: SIGTERM to the server's process group.
pub(crate) const TERMINATE: u8 = b'T';

/// One line from the shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// The server runs, with this pid.
    Started(u32),
    /// The system refused to run it, with this errno.
    Refused(i32),
    /// The server's own process has ended; the rest of the tree is about to.
    Ended(Exit),
}

impl Report {
    /// The line on the wire, with its end.
    pub(crate) fn line(self) -> String {
        match self {
            Self::Started(pid) => format!("started {pid}\n"),
            Self::Refused(errno) => format!("refused {errno}\n"),
            Self::Ended(Exit { code: Some(code), .. }) => format!("exited {code}\n"),
            Self::Ended(Exit { signal, .. }) => format!("signalled {}\n", signal.unwrap_or(0)),
        }
    }

    /// Reads a line without its end.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (word, number) = line.split_once(' ')?;
        let number: i32 = number.parse().ok()?;
        Some(match word {
            "started" => Self::Started(u32::try_from(number).ok()?),
            "refused" => Self::Refused(number),
            "exited" => Self::Ended(Exit { code: Some(number), signal: None }),
            "signalled" => Self::Ended(Exit { code: None, signal: Some(number) }),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_reads_as_it_was_written() {
        for report in [
            Report::Started(4_194_304),
            Report::Refused(2),
            Report::Ended(Exit { code: Some(0), signal: None }),
            Report::Ended(Exit { code: None, signal: Some(9) }),
        ] {
            assert_eq!(Report::parse(report.line().trim_end()), Some(report));
        }
    }

    #[test]
    fn other_lines_are_no_reports() {
        for line in ["", "started", "started -1", "started x", "hello 1"] {
            assert_eq!(Report::parse(line), None, "{line:?}");
        }
    }
}
