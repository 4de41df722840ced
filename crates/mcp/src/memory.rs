//! Buffers that carry their own charge: the memory of a message is charged where it is read, and
//! released with the last slice of it, however many queues it passes in between.

use std::sync::Arc;

use bytes::Bytes;
use cofer_model::{Budget, Charge};

use crate::off_worker::off_worker;

/// What the bookkeeping of one queued message costs besides its bytes, rounded up.
const OVERHEAD: usize = 128;

struct Charged<T: AsRef<[u8]>> {
    /// None only while it is dropped.
    buffer: Option<T>,
    _charge: Charge,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Charged<T> {
    fn as_ref(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], AsRef::as_ref)
    }
}

impl<T: AsRef<[u8]>> Drop for Charged<T> {
    fn drop(&mut self) {
        // The allocator unmaps a large buffer at once, which takes milliseconds.
        off_worker(self.as_ref().len(), || drop(self.buffer.take()));
    }
}

/// `buffer` as bytes of which every slice keeps `charge`.
pub fn attach<T: AsRef<[u8]> + Send + 'static>(charge: Charge, buffer: T) -> Bytes {
    Bytes::from_owner(Charged { buffer: Some(buffer), _charge: charge })
}

/// Makes a buffer of `length` bytes with `build` and charges it; none, and nothing is made, if
/// `memory` has no room. Counts what is lost that way.
pub fn build_charged(
    memory: &Arc<Budget>,
    length: usize,
    build: impl FnOnce() -> Bytes,
) -> Option<Bytes> {
    let charge = memory.try_charge(length + OVERHEAD);
    if charge.is_none() {
        memory.count_loss();
    }
    let charge = charge?;
    Some(attach(charge, off_worker(length, build)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_slice_releases_the_charge() {
        let memory = Budget::new(1000);
        let bytes = build_charged(&memory, 500, || Bytes::from(vec![1; 500])).unwrap();
        let slice = bytes.slice(1..2);
        drop(bytes);
        assert_eq!(memory.used(), 500 + OVERHEAD as u64);
        assert!(build_charged(&memory, 500, || panic!("not made")).is_none());
        assert_eq!(memory.losses(), 1);
        drop(slice);
        assert_eq!(memory.used(), 0);
    }
}
