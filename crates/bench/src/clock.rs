//! The share of the processor that other processes took during a measurement.

use std::fs;
use std::time::Instant;

/// The processor's time that all processes and this one have taken, in ticks; Linux only.
pub(crate) struct Clock {
    wall: Instant,
    busy: u64,
    own: u64,
}

/// Ticks a second, which Linux tells programs to count on.
const TICKS: f64 = 100.0;

impl Clock {
    /// The time now; `None` where the system does not tell it.
    pub(crate) fn start() -> Option<Self> {
        let all = numbers(fs::read_to_string("/proc/stat").ok()?.lines().next()?);
        let own = fs::read_to_string("/proc/self/stat").ok()?;
        // Counted from behind the name, which may hold anything.
        let own = numbers(own.rsplit(')').next()?);
        Some(Self {
            wall: Instant::now(),
            // Without idle and waiting.
            busy: all.iter().take(3).chain(all.get(5..8)?).sum(),
            own: own.iter().skip(10).take(2).sum(),
        })
    }

    /// The share of the processor's time that other processes took since then.
    pub(crate) fn others(&self, then: &Self) -> f64 {
        let others = (self.busy - then.busy).saturating_sub(self.own - then.own);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let whole = self.wall.duration_since(then.wall).as_secs_f64() * cores as f64;
        others as f64 / (TICKS * whole)
    }
}

/// The numbers behind the first word of a line; a word that is not a number counts as zero.
fn numbers(line: &str) -> Vec<u64> {
    let words = line.split_whitespace().skip(1);
    words.map(|word| word.parse().unwrap_or(0)).collect()
}
