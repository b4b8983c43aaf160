//! How long something takes, by the wall and by the processor.

use std::fs;
use std::time::Instant;

/// One measured duration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lap {
    /// Seconds by the wall clock.
    pub(crate) wall: f64,
    /// Seconds that the calling thread spent on a processor, where the system says so.
    ///
    /// For work of one thread it is what the wall clock would show on an idle machine.
    pub(crate) processor: Option<f64>,
}

/// Seconds. Shorter than this, a duration is measured over several calls: Linux adds up the processor's time
/// in steps of some milliseconds.
pub(crate) const LONG_ENOUGH: f64 = 0.08;

/// How long one call of `f` takes, on average over as many calls as take `long_enough` seconds together.
///
/// # Errors
/// The first error of `f`.
pub(crate) fn lap<E>(long_enough: f64, mut f: impl FnMut() -> Result<(), E>) -> Result<Lap, E> {
    let (clock, before) = (Instant::now(), on_processor());
    let mut calls = 0.0;
    loop {
        f()?;
        calls += 1.0;
        let wall = clock.elapsed().as_secs_f64();
        let after = on_processor();
        let processor = before.zip(after).map(|(before, after)| after - before);
        if processor.unwrap_or(wall) >= long_enough {
            return Ok(Lap {
                wall: wall / calls,
                processor: processor.map(|seconds| seconds / calls),
            });
        }
    }
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
        let (pause, mut sum) = (Duration::from_millis(20), 0_u64);
        let work = || {
            std::thread::sleep(pause);
            sum = (0..10_000_000).fold(sum, |a, b| std::hint::black_box(a ^ b));
            Ok::<_, ()>(())
        };
        let lap = lap(LONG_ENOUGH, work).unwrap();
        assert!(lap.wall >= pause.as_secs_f64());
        // A coarse clock of the processor may count a step too many, not the whole pause.
        assert!(lap.processor.is_none_or(|seconds| seconds < lap.wall));
        assert_eq!(super::lap(LONG_ENOUGH, || Err("stop")), Err("stop"));
    }
}
