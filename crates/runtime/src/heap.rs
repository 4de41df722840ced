//! The heap of this process: how much of it is resident, and how the system gets back what is free.

use std::fs;

/// The resident memory of this process, in bytes; none if `/proc` cannot be read.
pub fn resident_memory() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Gives free memory back to the system. May take milliseconds.
///
/// glibc keeps freed blocks of up to 32 MiB in its arenas, of which every thread may use another:
/// after a burst of large messages the process would keep several times what it needs.
pub fn trim_heap() {
    #[cfg(target_env = "gnu")]
    {
        #[expect(unsafe_code, reason = "glibc has no other way to ask for this")]
        // SAFETY: it takes the locks of the allocator itself, and touches no block in use.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_freed_is_given_back() {
        // Blocks below the threshold from which glibc maps each on its own.
        let blocks: Vec<Vec<u8>> = (0..2000).map(|n| vec![n as u8 | 1; 64 * 1024]).collect();
        let with = resident_memory().unwrap();
        // One of the last keeps the heap from shrinking by itself.
        let last = blocks.into_iter().next_back();
        trim_heap();
        let without = resident_memory().unwrap();
        assert!(with - without > 100 << 20, "{with} {without}");
        drop(last);
    }
}
