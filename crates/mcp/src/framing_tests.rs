//! Lines, however they are cut into reads, with a cap and with a budget.

use super::*;
use proptest::prelude::*;
use tokio_test::io::Builder;

async fn frames(chunks: &[&[u8]], cap: usize) -> Vec<Frame> {
    let mut builder = Builder::new();
    for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
        builder.read(chunk);
    }
    let mut reader = LineReader::new(builder.build(), cap);
    let mut frames = Vec::new();
    while let Some(frame) = reader.next().await.unwrap() {
        frames.push(frame);
    }
    frames
}

fn line(text: &str) -> Frame {
    Frame::Line(Bytes::copy_from_slice(text.as_bytes()))
}

fn too_long(bytes: u64, id: Option<u64>) -> Frame {
    Frame::TooLong { bytes, id, request: None }
}

#[tokio::test]
async fn lines_come_out_whole_however_they_came_in() {
    let found = frames(&[b"{\"a\"", b":1}\r\n\n  \n{\"b\":2}\n{\"c", b"\":3}"], 100).await;
    assert_eq!(found, [line("{\"a\":1}"), line("{\"b\":2}"), line("{\"c\":3}")]);
}

#[tokio::test]
async fn a_line_over_the_cap_costs_only_itself() {
    let long = format!("{{\"result\":\"{}\",\"id\":5}}\n", "x".repeat(50));
    let (head, tail) = long.as_bytes().split_at(40);
    let found = frames(&[head, tail, b"{\"id\":6}\n"], 20).await;
    assert_eq!(found, [too_long(long.len() as u64 - 1, Some(5)), line("{\"id\":6}")]);
}

#[tokio::test]
async fn a_line_at_the_cap_is_a_line() {
    let found = frames(&[b"12345\n123456\n"], 5).await;
    assert_eq!(found, [line("12345"), too_long(6, None)]);
}

#[tokio::test]
async fn a_long_line_without_an_end_is_told_at_the_end_of_the_stream() {
    assert_eq!(frames(&[b"123", b"456"], 5).await, [too_long(6, None)]);
}

proptest! {
    #[test]
    fn chunks_do_not_matter(lines in prop::collection::vec("[a-z\"{}:]{0,30}", 0..8), cuts in prop::collection::vec(0usize..200, 0..6), cap in 1usize..40) {
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let mut at: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        at.extend([0, text.len()]);
        at.sort_unstable();
        let chunks: Vec<&[u8]> = at.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = runtime.block_on(frames(&chunks, cap));
        let expected: Vec<(bool, usize)> = lines.iter().filter(|line| !line.is_empty()).map(|line| (line.len() > cap, line.len())).collect();
        let told: Vec<(bool, usize)> = found.iter().map(|frame| match frame {
            Frame::Line(line) => (false, line.len()),
            Frame::TooLong { bytes, .. } => (true, *bytes as usize),
            Frame::Unaffordable { .. } => unreachable!("without a budget"),
        }).collect();
        prop_assert_eq!(told, expected);
    }
}

/// Everything that is kept is charged, and nothing of it is charged twice.
#[tokio::test(start_paused = true)]
async fn the_memory_of_lines_is_within_the_budget() {
    let line = |id: u64, size: usize| format!("{{\"id\":{id},\"r\":\"{}\"}}\n", "x".repeat(size));
    let text = [line(1, 200_000), line(2, 300_000), line(3, 10), line(4, 100_000)].concat();
    let memory = Budget::new(500_000);
    let mut reader = LineReader::within(text.as_bytes(), 1 << 20, &memory);
    let Some(Frame::Line(first)) = reader.next().await.unwrap() else { panic!("no line") };
    assert!(memory.used() >= first.len() as u64);
    let second = reader.next().await.unwrap();
    let Some(Frame::Unaffordable { bytes, id: Some(2), request: None }) = second else {
        panic!("{second:?}")
    };
    assert_eq!(bytes, line(2, 300_000).len() as u64 - 1);
    let Some(Frame::Line(third)) = reader.next().await.unwrap() else { panic!("no line") };
    let slice = first.slice(5..10);
    drop(first);
    assert!(memory.used() > 200_000, "a slice keeps the whole line");
    drop(slice);
    let Some(Frame::Line(fourth)) = reader.next().await.unwrap() else { panic!("no line") };
    assert!(reader.next().await.unwrap().is_none());
    drop((reader, third, fourth));
    assert_eq!(memory.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_line_waits_for_memory_that_is_about_to_be_released() {
    let memory = Budget::new(400_000);
    let held = memory.try_charge(300_000).unwrap();
    let text = format!("{}\n", "x".repeat(150_000));
    let mut reader = LineReader::within(text.as_bytes(), 1 << 20, &memory);
    let (frame, ()) = tokio::join!(reader.next(), async {
        sleep(PATIENCE / 2).await;
        drop(held);
    });
    assert!(matches!(frame.unwrap(), Some(Frame::Line(line)) if line.len() == 150_000));
}

/// A source that gives as much in one read as a pipe does.
struct Pipe<'a>(&'a [u8]);

impl AsyncRead for Pipe<'_> {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        room: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        let (now, later) = self.0.split_at(self.0.len().min(room.remaining()).min(READ_SIZE));
        room.put_slice(now);
        self.0 = later;
        std::task::Poll::Ready(Ok(()))
    }
}

proptest! {
    /// The bound in bytes: of all that is kept, whatever lines come and whichever are kept.
    #[test]
    fn kept_lines_and_the_buffer_never_exceed_the_budget(
        lines in prop::collection::vec((0usize..400_000, any::<bool>()), 1..12),
        limit in 0usize..900_000,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let text: Vec<u8> = lines.iter().flat_map(|(size, _)| [vec![b'x'; *size], vec![b'\n']].concat()).collect();
        let memory = Budget::new(limit as u64);
        let (mut kept, mut seen) = (Vec::new(), 0);
        let expected = lines.iter().filter(|(size, _)| *size > 0).count();
        let keeps: Vec<bool> = lines.iter().filter(|(size, _)| *size > 0).map(|(_, keep)| *keep).collect();
        runtime.block_on(async {
            let mut reader = LineReader::within(Pipe(&text), 1 << 20, &memory);
            while let Some(frame) = reader.next().await.unwrap() {
                if let Frame::Line(line) = frame && keeps[seen] { kept.push(line) }
                seen += 1;
                let large: usize = kept.iter().map(Bytes::len).filter(|length| *length > COPIED).sum();
                let own = Some(reader.buffer.capacity()).filter(|own| *own > READ_SIZE).unwrap_or(0);
                prop_assert!(memory.used() <= limit as u64);
                prop_assert!((large + own) as u64 <= memory.used());
            }
            prop_assert_eq!(seen, expected);
            Ok(())
        })?;
        kept.clear();
        prop_assert_eq!(memory.used(), 0);
    }
}

#[tokio::test]
async fn other_tasks_run_while_a_long_line_is_read() {
    let text = [vec![b'x'; 4 * YIELD_AFTER], b"\n".to_vec()].concat();
    // A slice is always ready, like the pipe of a server that keeps it full.
    let mut lines = LineReader::new(&text[..], usize::MAX);
    let other = tokio_util::task::TaskTracker::new().spawn(async {});
    assert!(matches!(lines.next().await, Ok(Some(Frame::Line(_)))));
    assert!(other.is_finished());
}
