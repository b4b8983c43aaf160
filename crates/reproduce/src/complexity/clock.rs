//! How long something takes, by the wall and by the processor.

use std::fs;
use std::time::Instant;

/// One measured duration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lap {
    /// Seconds by the wall clock.
    pub(super) wall: f64,
    /// Seconds that the calling thread spent on a processor, where the system says so.
    ///
    /// For work of one thread it is what the wall clock would show on an idle machine.
    pub(super) processor: Option<f64>,
}

/// What `f` returns, and how long it takes.
pub(super) fn lap<R>(f: impl FnOnce() -> R) -> (R, Lap) {
    let (clock, before) = (Instant::now(), on_processor());
    let result = f();
    let (wall, after) = (clock.elapsed().as_secs_f64(), on_processor());
    let processor = before.zip(after).map(|(before, after)| after - before);
    (result, Lap { wall, processor })
}

/// Seconds of the calling thread on a processor so far: the first number that Linux keeps of it.
fn on_processor() -> Option<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = text.split_whitespace().next()?.parse().ok()?;
    (nanoseconds > 0).then_some(nanoseconds as f64 * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_thread_that_sleeps_spends_no_processor_time() {
        let pause = Duration::from_millis(50);
        let ((), lap) = lap(|| std::thread::sleep(pause));
        assert!(lap.wall >= pause.as_secs_f64());
        assert!(lap.processor.is_none_or(|seconds| seconds < lap.wall / 2.0));
    }
}
