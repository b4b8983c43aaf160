//! Durations of computations, by the processor's clock.

use std::fs;
use std::time::Instant;

/// Seconds. Shorter than this, a duration is measured over several calls: Linux adds up the processor's time
/// in steps of some milliseconds.
pub(crate) const LONG_ENOUGH: f64 = 0.08;

/// The seconds of one call of `f`, on average over as many calls as take `long_enough` together: those that the calling
/// thread spent on a processor, where the system counts them, and by the wall clock elsewhere. For work of one thread they
/// are what the wall clock would show on an idle machine.
///
/// # Errors
/// The first error of `f`.
pub(crate) fn seconds_of<E>(
    long_enough: f64,
    mut f: impl FnMut() -> Result<(), E>,
) -> Result<f64, E> {
    // A thread that has just begun has spent no time yet.
    let (clock, before) = (Instant::now(), on_processor().unwrap_or(0.0));
    let mut calls = 0.0;
    loop {
        f()?;
        calls += 1.0;
        let on_processor = on_processor().map(|after| after - before);
        let seconds = on_processor.unwrap_or_else(|| clock.elapsed().as_secs_f64());
        if seconds >= long_enough {
            return Ok(seconds / calls);
        }
    }
}

/// Seconds of the calling thread on a processor so far: the first number that Linux keeps of it.
fn on_processor() -> Option<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = text.split_whitespace().next()?.parse().ok()?;
    (nanoseconds > 0).then_some(nanoseconds as f64 * 1e-9)
}
