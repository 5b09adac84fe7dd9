//! The thresholds from which the allocator gives freed memory back to the system.
//!
//! One of the three files with `unsafe`; the other two hold the wide instructions of `operators`.
#![cfg_attr(target_env = "gnu", expect(unsafe_code, reason = "no safe library sets these options"))]

/// Makes the GNU C library give freed memory back at once where a block, or the free end of a heap, has at
/// least `bytes`.
///
/// Left alone, the library learns to keep up to 32 MB of either for each worker, which the next stage does
/// not use. Other C libraries have no such options, and nothing changes. Measured: docs/design/memory.md.
pub fn give_back_from(bytes: i32) {
    #[cfg(target_env = "gnu")]
    for option in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
        // SAFETY: `mallopt` takes two integers by value, may be called at any time from any thread, and does
        // nothing if it refuses them.
        unsafe { libc::mallopt(option, bytes) };
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = bytes;
}
