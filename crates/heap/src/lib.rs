//! How this process uses memory: settings of glibc's allocator, which has no safe interface. A crate of its own, since
//! nothing else that a server or a worker runs in its process contains unsafe code. On another C library it does nothing, and no harm.

/// Keeps memory together that many connections use for long. To be called at the program's start, before it has threads:
/// what was asked for earlier stays where it is.
///
/// One arena, since with one for each thread, what a burst of connections leaves free in one is of no use to the others.
/// Blocks of 16 KiB and more come from the system by themselves: a connection's buffers are mostly larger than what ever
/// is in them, and memory that nobody has touched costs nothing (mallopt(3), `M_ARENA_MAX` and `M_MMAP_THRESHOLD`).
pub fn settle() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const LARGE_BYTES: libc::c_int = 16 * 1024;
        // SAFETY: mallopt takes two numbers and changes only settings of the allocator. A setting that it refuses stays
        // as it was, which is as good as before.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, 1);
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        }
    }
}

/// Gives the system what is free in the middle of the heap. A burst of handshakes leaves holes between what stays, which
/// the allocator keeps by itself (`malloc_trim(3)`). It takes some milliseconds, in which nobody else gets memory.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: malloc_trim takes a number, and the allocator's own lock.
    unsafe {
        libc::malloc_trim(0);
    }
}
