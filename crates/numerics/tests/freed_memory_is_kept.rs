//! Freed memory stays with the process: for all of it, and in full on its first thread alone, hence
//! a process without a test harness.

fn main() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    arrays_of_any_size_leave_their_pages();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn arrays_of_any_size_leave_their_pages() {
    const MIB: usize = 1 << 20;
    use bochner_numerics::memory::keep_freed_memory;
    std::thread::scope(|scope| {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || stopped.recv());
        assert!(!keep_freed_memory(), "another thread may be allocating");
        drop(stop);
    });
    // The system may still list the other thread for a moment after it was joined.
    while std::fs::read_dir("/proc/self/task").unwrap().count() > 1 {
        std::thread::yield_now();
    }
    assert!(keep_freed_memory(), "this is the only thread");
    drop(std::hint::black_box(vec![1_u8; 200 * MIB]));
    let held = resident();
    assert!(held >= 200 * MIB, "{held} bytes are held");
}

/// Bytes of memory that the process occupies.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.unwrap().split_whitespace().nth(1);
    kilobytes.unwrap().parse::<usize>().unwrap() << 10
}
