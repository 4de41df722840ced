//! What the executor and the server beside it say to each other: frames of a length and fields,
//! the same file on both sides. Both read what the other wrote as if it were a stranger's.
//!
//! One connection is one request. A [`Request::Run`] in the foreground lives as long as its
//! connection: whoever closes it, or dies, ends the command and everything it started.

/// Longer than any command line the system takes.
pub(crate) const LONGEST: usize = 4 * 1024 * 1024;

/// What the executor is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// Start a program. With the frame come two descriptors: its stdout and stderr, or in the
    /// background the file for its output and the file for its end.
    Run(Run),
    /// Connect to a port in the container.
    Connect {
        /// The port.
        port: u16,
        /// After [`Answer::Connected`] this connection carries the bytes of the port, instead of a
        /// descriptor that is sent with the answer. For sandboxes, which cannot send any.
        relay: bool,
    },
    /// End everything in the container but the executor.
    Terminate {
        /// How long everything has for ending by itself.
        grace_ms: u32,
    },
    /// Nothing: the connection closes with the container.
    Watch,
}

/// A program to start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Run {
    /// Whether it goes on without its connection.
    pub(crate) background: bool,
    /// Its directory.
    pub(crate) cwd: Vec<u8>,
    /// The program and its arguments.
    pub(crate) argv: Vec<Vec<u8>>,
    /// `NAME=value`, over the container's own; `$NAME` in a value is what it was before.
    pub(crate) env: Vec<Vec<u8>>,
}

/// What the executor answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It runs.
    Started {
        /// Its process, as the container counts.
        pid: u32,
    },
    /// It ended with a code.
    Exited {
        /// The code.
        code: i32,
    },
    /// A signal ended it.
    Signalled {
        /// The signal.
        signal: i32,
    },
    /// The system refused.
    Failed {
        /// What was attempted.
        step: Step,
        /// The system's reason.
        errno: i32,
    },
    /// The port accepted: its connection is sent with this frame, or relayed after it.
    Connected,
    /// Nothing but the executor is left.
    Terminated {
        /// Whether something had to be killed.
        forced: bool,
    },
}

/// What can be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The request made no sense.
    Request,
    /// Using the directory.
    Directory,
    /// Running the program.
    Program,
    /// Everything else.
    System,
}

impl Request {
    /// As a frame.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Out::default();
        match self {
            Self::Run(run) => {
                out.byte(1).byte(u8::from(run.background)).bytes(&run.cwd);
                out.list(&run.argv).list(&run.env)
            }
            Self::Connect { port, relay } => {
                out.byte(2).number(u32::from(*port)).byte(u8::from(*relay))
            }
            Self::Terminate { grace_ms } => out.byte(3).number(*grace_ms),
            Self::Watch => out.byte(4),
        };
        out.frame()
    }

    /// From the payload of a frame.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let mut from = In(payload);
        let request = match from.byte()? {
            1 => {
                let background = from.byte()? != 0;
                let (cwd, argv, env) = (from.bytes()?, from.list()?, from.list()?);
                Self::Run(Run { background, cwd, argv, env })
            }
            2 => {
                let port = u16::try_from(from.number()?).ok()?;
                Self::Connect { port, relay: from.byte()? != 0 }
            }
            3 => Self::Terminate { grace_ms: from.number()? },
            4 => Self::Watch,
            _ => return None,
        };
        from.0.is_empty().then_some(request)
    }
}

impl Answer {
    /// As a frame.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Out::default();
        match *self {
            Self::Started { pid } => out.byte(1).number(pid),
            Self::Exited { code } => out.byte(2).number(code.cast_unsigned()),
            Self::Signalled { signal } => out.byte(3).number(signal.cast_unsigned()),
            Self::Failed { step, errno } => {
                out.byte(4).byte(step.code()).number(errno.cast_unsigned())
            }
            Self::Connected => out.byte(5),
            Self::Terminated { forced } => out.byte(6).byte(u8::from(forced)),
        };
        out.frame()
    }

    /// From the payload of a frame.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let mut from = In(payload);
        let answer = match from.byte()? {
            1 => Self::Started { pid: from.number()? },
            2 => Self::Exited { code: from.number()?.cast_signed() },
            3 => Self::Signalled { signal: from.number()?.cast_signed() },
            4 => Self::Failed {
                step: Step::from_code(from.byte()?),
                errno: from.number()?.cast_signed(),
            },
            5 => Self::Connected,
            6 => Self::Terminated { forced: from.byte()? != 0 },
            _ => return None,
        };
        from.0.is_empty().then_some(answer)
    }
}

impl Step {
    /// As one byte.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Request => 0,
            Self::Directory => 1,
            Self::Program => 2,
            Self::System => 3,
        }
    }

    /// From one byte.
    pub(crate) fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Request,
            1 => Self::Directory,
            2 => Self::Program,
            _ => Self::System,
        }
    }
}

/// The length of the payload that four bytes announce; nothing where it is too long.
pub(crate) fn length(header: [u8; 4]) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(header)).ok().filter(|length| *length <= LONGEST)
}

/// The file of a background command's output: its last [`Ring::SIZE`] bytes, written round and
/// round, and behind them how many there ever were.
pub(crate) struct Ring;

impl Ring {
    /// How many bytes are kept.
    pub(crate) const SIZE: u64 = 64 * 1024;

    /// The kept bytes in order, and how many there ever were.
    pub(crate) fn read(file: &[u8]) -> (Vec<u8>, u64) {
        let size = usize::try_from(Self::SIZE).unwrap_or(usize::MAX);
        let total = file
            .get(size..size + 8)
            .and_then(|total| total.try_into().ok())
            .map_or(0, u64::from_le_bytes);
        let kept = &file[..file.len().min(size)];
        if total <= Self::SIZE {
            return (
                kept[..kept.len().min(usize::try_from(total).unwrap_or(size))].to_vec(),
                total,
            );
        }
        let at = usize::try_from(total % Self::SIZE).unwrap_or_default().min(kept.len());
        ([&kept[at..], &kept[..at]].concat(), total)
    }
}

#[derive(Default)]
struct Out(Vec<u8>);

impl Out {
    fn byte(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    fn number(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.number(u32::try_from(value.len()).unwrap_or(u32::MAX));
        self.0.extend(value);
        self
    }

    fn list(&mut self, values: &[Vec<u8>]) -> &mut Self {
        self.number(u32::try_from(values.len()).unwrap_or(u32::MAX));
        for value in values {
            self.bytes(value);
        }
        self
    }

    fn frame(self) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        [&length.to_le_bytes(), self.0.as_slice()].concat()
    }
}

struct In<'a>(&'a [u8]);

impl In<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }

    fn list(&mut self) -> Option<Vec<Vec<u8>>> {
        let count = usize::try_from(self.number()?).ok()?;
        // Every value takes four bytes at least.
        if count > self.0.len() / 4 {
            return None;
        }
        (0..count).map(|_| self.bytes()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(frame: &[u8]) -> &[u8] {
        let (header, payload) = frame.split_first_chunk().unwrap();
        assert_eq!(length(*header), Some(payload.len()));
        payload
    }

    #[test]
    fn what_is_written_is_read() {
        let run = Run {
            background: true,
            cwd: b"/workdir".to_vec(),
            argv: vec![b"sh".to_vec(), b"-c".to_vec(), b"\xff\0".to_vec()],
            env: vec![b"A=1".to_vec()],
        };
        for request in [
            Request::Run(run),
            Request::Run(Run::default()),
            Request::Connect { port: 65535, relay: false },
            Request::Connect { port: 1, relay: true },
            Request::Terminate { grace_ms: 7 },
            Request::Watch,
        ] {
            assert_eq!(Request::decode(payload(&request.encode())), Some(request));
        }
        for answer in [
            Answer::Started { pid: 7 },
            Answer::Exited { code: -1 },
            Answer::Signalled { signal: 9 },
            Answer::Failed { step: Step::Program, errno: 2 },
            Answer::Connected,
            Answer::Terminated { forced: true },
        ] {
            assert_eq!(Answer::decode(payload(&answer.encode())), Some(answer));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for bytes in [
            &b""[..],
            b"\x09",
            b"\x02\x01",
            b"\x01\x00\xff\xff\xff\xff",
            b"\x02\0\0\x01\0\0",
            // A port without the way of its bytes.
            b"\x02\x01\0\0\0",
            b"\x01\0\0\0\0\0\xff\xff\xff\xff",
        ] {
            assert_eq!(Request::decode(bytes), None, "{bytes:?}");
        }
        assert_eq!(Answer::decode(b"\x05more"), None);
        assert_eq!(length([0xff; 4]), None);
    }

    #[test]
    fn a_ring_is_read_in_order() {
        let size = usize::try_from(Ring::SIZE).unwrap();
        assert_eq!(Ring::read(b""), (Vec::new(), 0));
        let mut file = vec![0; size + 8];
        file[..3].copy_from_slice(b"abc");
        file[size..].copy_from_slice(&3_u64.to_le_bytes());
        assert_eq!(Ring::read(&file), (b"abc".to_vec(), 3));
        file[..size].fill(b'x');
        file[..2].copy_from_slice(b"YZ");
        file[size..].copy_from_slice(&(Ring::SIZE + 2).to_le_bytes());
        let (bytes, total) = Ring::read(&file);
        assert_eq!((bytes.len(), total), (size, Ring::SIZE + 2));
        assert!(bytes.starts_with(b"xx") && bytes.ends_with(b"YZ"));
    }
}
