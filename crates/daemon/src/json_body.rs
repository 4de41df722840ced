//! A body of JSON around a value that may be large: the value is sent from where it lies.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// So much of a value's end is copied beside what closes its envelope; the rest, where there is
/// more, is sent from where it lies.
const SMALL: usize = 32 * 1024;

/// The parts of `head`, the value as the bytes it came in, and `}`.
pub(crate) fn json_around(head: &[&[u8]], mut value: Bytes) -> Body {
    let length = head.iter().map(|part| part.len()).sum::<usize>();
    if value.len() <= SMALL {
        let mut whole = Vec::with_capacity(length + value.len() + 1);
        for part in head {
            whole.extend_from_slice(part);
        }
        whole.extend_from_slice(&value);
        whole.push(b'}');
        return Body::from(whole);
    }
    // The end of a large value goes with what closes it, which alone would be a packet.
    let end = value.split_off(value.len() - SMALL);
    let rest = [&end[..], b"}"].concat();
    Body::new(Pieces { pieces: [rest.into(), value, head.concat().into()], left: 3 })
}

/// A body of three pieces, in reverse order.
struct Pieces {
    pieces: [Bytes; 3],
    left: usize,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(next) = self.left.checked_sub(1) else {
            return Poll::Ready(None);
        };
        self.left = next;
        Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.pieces[next])))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.pieces.iter().map(|piece| piece.len() as u64).sum())
    }
}
