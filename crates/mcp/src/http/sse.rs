//! Reads Server-Sent Events as their bytes come in: the whole grammar, in linear time, and a
//! message that came in one piece is never copied.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use cofer_model::{Budget, Charge};
use memchr::memchr2;

use crate::memory::attach;

/// The longest wait a server may ask for before we come back.
const MAX_RETRY: Duration = Duration::from_secs(3600);
/// The longest event id that is kept: it becomes a header.
const MAX_ID: usize = 4096;
/// Up to this size, that of a read, an event is not charged.
const UNCHARGED: usize = 64 * 1024;

/// What a stream brings.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// The data of a `message` event that has data.
    Message(Bytes),
    /// The data of an `endpoint` event: the URL for POSTs of the transport of 2024-11-05.
    Endpoint(Bytes),
    /// An event over the cap. Its rest is passed over.
    TooLarge,
    /// An event for which the memory budget has no room. Its rest is discarded.
    Unaffordable,
}

/// Reads one stream, or several of which each goes on where the one before broke off.
#[derive(Debug)]
pub(super) struct Parser {
    cap: usize,
    /// What came in and is not read yet.
    chunk: Bytes,
    /// A line that is not whole yet.
    partial: BytesMut,
    /// For the line and the event that are not whole yet, once they are larger than a read.
    charge: Charge,
    /// Behind a carriage return, which ends a line alone or with a line feed.
    skip_line_feed: bool,
    at_start: bool,
    event: Event,
    last_id: Option<Bytes>,
    retry: Option<Duration>,
    /// Whether `endpoint` events are returned (HTTP+SSE of 2024-11-05).
    reads_endpoint: bool,
}

/// The event that is being read.
#[derive(Debug, Default)]
struct Event {
    first: Option<Bytes>,
    /// All its data, where it has more than one line of it.
    joined: Option<BytesMut>,
    id: Option<Bytes>,
    not_a_message: bool,
    is_endpoint: bool,
    too_large: bool,
}

impl Event {
    fn size(&self) -> usize {
        self.joined
            .as_ref()
            .map_or_else(|| self.first.as_ref().map_or(0, Bytes::len), BytesMut::len)
    }
}

impl Parser {
    pub(super) fn new(cap: usize, memory: &Arc<Budget>) -> Self {
        Self {
            cap,
            chunk: Bytes::new(),
            partial: BytesMut::new(),
            charge: Charge::none(memory),
            skip_line_feed: false,
            at_start: true,
            event: Event::default(),
            last_id: None,
            retry: None,
            reads_endpoint: false,
        }
    }

    /// Tells `endpoint` events too.
    pub(super) fn with_endpoint(self) -> Self {
        Self { reads_endpoint: true, ..self }
    }

    /// The last event's id, where events have ids: what the next stream begins behind.
    pub(super) fn last_id(&self) -> Option<&Bytes> {
        self.last_id.as_ref()
    }

    /// How long the server wants us to wait before we come back.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Forgets what broke off with its stream.
    pub(super) fn begin_stream(&mut self) {
        let (last_id, retry) = (self.last_id.take(), self.retry);
        let memory = Arc::clone(self.charge.budget());
        *self = Self { last_id, retry, ..Self::new(self.cap, &memory) };
    }

    /// Takes the next bytes. What came before them must have been read with `next`.
    pub(super) fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "what came before is read first");
        self.chunk = chunk;
    }

    /// The next item in what came in so far.
    pub(super) fn next(&mut self) -> Option<Item> {
        while !self.chunk.is_empty() {
            if std::mem::take(&mut self.skip_line_feed) && self.chunk[0] == b'\n' {
                drop(self.chunk.split_to(1));
                continue;
            }
            let Some(line) = self.line() else {
                return self.grown_too_large();
            };
            if line.is_empty() {
                if let Some(item) = self.end_of_event() {
                    return Some(item);
                }
            } else {
                self.field(&line);
                if let Some(item) = self.grown_too_large() {
                    return Some(item);
                }
            }
        }
        None
    }

    /// A whole line, where one is there.
    fn line(&mut self) -> Option<Bytes> {
        let Some(end) = memchr2(b'\n', b'\r', &self.chunk) else {
            let rest = std::mem::take(&mut self.chunk);
            if !self.event.too_large {
                self.partial.put_slice(&rest);
            }
            return None;
        };
        self.skip_line_feed = self.chunk[end] == b'\r';
        let mut line = self.chunk.split_to(end + 1);
        line.truncate(end);
        if !self.partial.is_empty() {
            self.partial.put_slice(&line);
            line = self.partial.split().freeze();
        }
        if std::mem::take(&mut self.at_start) && line.starts_with(b"\xef\xbb\xbf") {
            line = line.slice(3..);
        }
        Some(line)
    }

    fn field(&mut self, line: &Bytes) {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let mut value = line.slice((colon + 1).min(line.len())..);
        if value.first() == Some(&b' ') {
            value = value.slice(1..);
        }
        match &line[..colon] {
            b"data" if !self.event.too_large => self.data(value),
            b"event" => {
                self.event.not_a_message = !matches!(&value[..], b"" | b"message");
                self.event.is_endpoint = &value[..] == b"endpoint";
            }
            b"id" if value.len() <= MAX_ID && !value.contains(&0) => self.event.id = Some(value),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let asked = std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok());
                self.retry =
                    asked.map(|ms| Duration::from_millis(ms).min(MAX_RETRY)).or(self.retry);
            }
            _ => {}
        }
    }

    fn data(&mut self, value: Bytes) {
        let event = &mut self.event;
        match (&mut event.joined, &event.first) {
            (Some(joined), _) => {
                joined.put_u8(b'\n');
                joined.put_slice(&value);
            }
            (None, Some(first)) => {
                let mut joined = BytesMut::with_capacity(2 * (first.len() + value.len() + 1));
                joined.put_slice(first);
                joined.put_u8(b'\n');
                joined.put_slice(&value);
                event.joined = Some(joined);
            }
            (None, None) => event.first = Some(value),
        }
    }

    /// Reports once that the event is over the cap, or that no memory is left for it, and
    /// discards it.
    fn grown_too_large(&mut self) -> Option<Item> {
        if self.event.too_large {
            return None;
        }
        let size = self.event.size() + self.partial.len();
        let item = match size > self.cap {
            true => Item::TooLarge,
            false if self.afford(size) => return None,
            false => Item::Unaffordable,
        };
        self.partial = BytesMut::new();
        drop(self.charge.take());
        self.event = Event { too_large: true, id: self.event.id.take(), ..Event::default() };
        Some(item)
    }

    /// Charges what is not whole yet. Its buffers grow by doubling, and are charged as such.
    fn afford(&mut self, size: usize) -> bool {
        if size <= UNCHARGED || size as u64 <= self.charge.bytes() {
            return true;
        }
        let fits = self.charge.resize(2 * size);
        if !fits {
            self.charge.budget().count_loss();
        }
        fits
    }

    fn end_of_event(&mut self) -> Option<Item> {
        let event = std::mem::take(&mut self.event);
        if let Some(id) = event.id {
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
        let charge = self.charge.take();
        let mut data = event.joined.map(BytesMut::freeze).or(event.first)?;
        if charge.bytes() > 0 {
            data = attach(charge, data);
        }
        if data.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        match (event.not_a_message, event.is_endpoint && self.reads_endpoint) {
            (false, _) => Some(Item::Message(data)),
            (true, true) => Some(Item::Endpoint(data)),
            (true, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(chunks: &[&[u8]], cap: usize) -> (Vec<Item>, Parser) {
        let mut parser = Parser::new(cap, &Budget::unlimited());
        let mut items = Vec::new();
        for chunk in chunks {
            parser.push(Bytes::copy_from_slice(chunk));
            while let Some(item) = parser.next() {
                items.push(item);
            }
        }
        (items, parser)
    }

    fn message(text: &str) -> Item {
        Item::Message(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn every_line_end_and_the_byte_order_mark_are_understood() {
        for end in ["\n", "\r", "\r\n"] {
            let text =
                format!("\u{feff}data: a{end}{end}: keep-alive{end}data:b{end}data:  c{end}{end}");
            let (items, _) = read(&[text.as_bytes()], 100);
            assert_eq!(items, [message("a"), message("b\n c")], "{end:?}");
        }
    }

    #[test]
    fn only_messages_with_data_are_told() {
        let text = b"event: ping\ndata: x\n\nid: 7\ndata:\n\nevent: message\ndata: y\n\ndata\n\n\n";
        let (items, parser) = read(&[text], 100);
        assert_eq!(items, [message("y")]);
        assert_eq!(parser.last_id().unwrap(), "7");
    }

    #[test]
    fn the_endpoint_of_the_older_transport_is_told() {
        let text = b"event: endpoint\ndata: /message?id=1\n\ndata: x\n\n";
        assert_eq!(read(&[text], 100).0, [message("x")]);
        let mut parser = Parser::new(100, &Budget::unlimited()).with_endpoint();
        parser.push(Bytes::from_static(text));
        assert_eq!(parser.next(), Some(Item::Endpoint(Bytes::from_static(b"/message?id=1"))));
        assert_eq!(parser.next(), Some(message("x")));
    }

    #[test]
    fn an_id_counts_once_its_event_is_whole() {
        let (_, mut parser) = read(&[b"id: 1\nretry: 250\ndata: x\n\nid: 2\ndata: y\n"], 100);
        assert_eq!(parser.last_id().unwrap(), "1");
        assert_eq!(parser.retry(), Some(Duration::from_millis(250)));
        parser.begin_stream();
        parser.push(Bytes::from_static(b"data: z\n\n"));
        assert_eq!(parser.next(), Some(message("z")));
        assert_eq!(parser.last_id().unwrap(), "1");
        let (_, parser) = read(&[b"id: 1\n\nid\n\nretry: soon\n\n"], 100);
        assert_eq!((parser.last_id(), parser.retry()), (None, None));
    }

    #[test]
    fn an_event_over_the_cap_is_told_at_once_and_passed_over() {
        let (items, _) = read(&[b"data: 1234567", b"89012345", b"67\n\ndata: ok\n\n"], 12);
        assert_eq!(items, [Item::TooLarge, message("ok")]);
        let (items, parser) =
            read(&[b"id: 4\ndata: 12345\ndata: 12345678\ndata: 1\n\ndata: ok\n\n"], 12);
        assert_eq!(items, [Item::TooLarge, message("ok")]);
        assert_eq!(parser.last_id().unwrap(), "4");
    }

    #[test]
    fn an_event_without_room_in_the_budget_is_discarded_and_charges_nothing() {
        let memory = Budget::new(300_000);
        let mut parser = Parser::new(1 << 20, &memory);
        let mut items = Vec::new();
        let mut push = |parser: &mut Parser, chunk: Vec<u8>| {
            parser.push(chunk.into());
            while let Some(item) = parser.next() {
                assert!(memory.used() <= memory.limit());
                items.push(item);
            }
        };
        push(&mut parser, b"data: ".to_vec());
        for _ in 0..20 {
            push(&mut parser, vec![b'x'; 10_000]);
        }
        push(&mut parser, b"\n\ndata: ".to_vec());
        for _ in 0..10 {
            push(&mut parser, vec![b'y'; 10_000]);
        }
        push(&mut parser, b"\n\n".to_vec());
        let [Item::Unaffordable, Item::Message(data)] = &items[..] else { panic!("{items:?}") };
        assert_eq!((data.len(), memory.losses()), (100_000, 1));
        assert!(memory.used() >= 100_000, "the message keeps its charge");
        items.clear();
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn data_in_one_piece_is_not_copied() {
        let chunk = Bytes::from_static(b"data: {\"a\":1}\n\n");
        let mut parser = Parser::new(100, &Budget::unlimited());
        parser.push(chunk.clone());
        let Some(Item::Message(data)) = parser.next() else { panic!("no message") };
        assert_eq!(data.as_ptr(), chunk[6..].as_ptr());
    }

    proptest! {
        #[test]
        fn where_the_stream_is_cut_makes_no_difference(
            lines in prop::collection::vec(prop_oneof![Just("data: a"), Just("data:bb"), Just(""), Just(":x"), Just("id: 9"), Just("event: message")], 0..12),
            end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
            cuts in prop::collection::vec(0usize..120, 0..6),
        ) {
            let text: String = lines.iter().map(|line| format!("{line}{end}")).collect();
            let mut at: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            at.extend([0, text.len()]);
            at.sort_unstable();
            let chunks: Vec<&[u8]> = at.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
            let (whole, one) = read(&[text.as_bytes()], 1000);
            let (pieces, other) = read(&chunks, 1000);
            prop_assert_eq!(whole, pieces);
            prop_assert_eq!(one.last_id(), other.last_id());
        }
    }
}
