//! Times and peak memory.

use crate::statistics::median;
use crate::{Error, Workload};
use bochner_numerics::{operations::count, parallel::awake};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

const MIN_RUNS: usize = 7;
const MAX_RUNS: usize = 300;
const MIN_TIME: Duration = Duration::from_secs(1);
const WARM_UPS: usize = 2;

/// The measurements of one case by one process, with the field names of `peers/common.py`: our
/// processes and the peers' write the same fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured(Map<String, Value>);

impl Measured {
    /// Times every pass of a workload in this process.
    ///
    /// # Errors
    /// The errors of the work.
    pub fn of(workload: &Workload) -> Result<Self, Error> {
        let (clock, memory) = (Clock::now(), peak_kb());
        let mut fields = Map::new();
        for (pass, run) in workload.passes.iter().zip((workload.start)()?.iter_mut()) {
            let times = times(run)?;
            let ms = |t: f64| (1e6 * t).round() / 1e3;
            fields.insert(format!("{}_ms", pass.name), ms(median(&times)).into());
            fields.insert(format!("{}_min_ms", pass.name), ms(times[0]).into());
            if let Some((before, now)) = memory.zip(peak_kb()) {
                let peak = (now.saturating_sub(before)) as f64 / 1024.0;
                fields.insert(format!("{}_peak_mb", pass.name), peak.into());
            }
            let operations = match pass.operations {
                Some(operations) => operations,
                None => {
                    let (done, counted) = count(run);
                    done?;
                    2.0 * counted.multiply_adds as f64
                }
            };
            fields.insert(format!("{}_operations", pass.name), operations.into());
        }
        if let Some((then, now)) = clock.zip(Clock::now()) {
            fields.insert("others_cpu".to_owned(), now.others(&then).into());
        }
        Ok(Self(fields))
    }

    /// Runs a process that prints such a line last; one that fails, or prints something else, has
    /// measured nothing but says why.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub fn by(command: &mut Command) -> Result<Self, Error> {
        let output = command.output()?;
        let lines = String::from_utf8_lossy(&output.stdout);
        Ok(Self::read(&lines).unwrap_or_else(|| {
            let complaint = String::from_utf8_lossy(&output.stderr);
            let last = complaint.lines().last().unwrap_or_default();
            let failed = format!("{}; {last}", output.status);
            Self([("failed".to_owned(), failed.into())].into_iter().collect())
        }))
    }

    /// The measurements as one line of JSON.
    ///
    /// # Errors
    /// The errors of `serde_json`.
    pub fn json(&self) -> Result<String, Error> {
        Ok(serde_json::to_string(self)?)
    }

    /// The measurements in the last line, or `None` if that line holds none.
    pub fn read(lines: &str) -> Option<Self> {
        serde_json::from_str(lines.lines().last()?).ok()
    }

    /// The median of a pass, in milliseconds.
    pub fn ms(&self, pass: &str) -> Option<f64> {
        self.number(&format!("{pass}_ms"))
    }

    /// The fastest run of a pass, in milliseconds.
    pub fn min_ms(&self, pass: &str) -> Option<f64> {
        self.number(&format!("{pass}_min_ms"))
    }

    /// The peak memory of a pass and those before it above the level at the start, in MiB.
    pub fn peak_mb(&self, pass: &str) -> Option<f64> {
        let of_pass = self.number(&format!("{pass}_peak_mb"));
        of_pass.or_else(|| self.number("peak_mb"))
    }

    /// The operations of a run of a pass of ours: two for each multiplication with its addition.
    pub fn operations(&self, pass: &str) -> Option<f64> {
        self.number(&format!("{pass}_operations"))
    }

    /// The share of the processor's time that other processes took.
    pub fn others_cpu(&self) -> Option<f64> {
        self.number("others_cpu")
    }

    /// The reason why there are no times.
    pub fn failure(&self) -> Option<String> {
        let named = |what| Some(format!("{what}: {}", self.0.get(what)?.as_str()?));
        named("skipped").or_else(|| named("failed"))
    }

    fn number(&self, field: &str) -> Option<f64> {
        self.0.get(field)?.as_f64()
    }
}

/// The seconds of many runs, in ascending order.
fn times(run: &mut impl FnMut() -> Result<(), Error>) -> Result<Vec<f64>, Error> {
    for _ in 0..WARM_UPS {
        awake(&mut *run)?;
    }
    let (mut times, mut total) = (Vec::new(), Duration::ZERO);
    while times.len() < MIN_RUNS || (total < MIN_TIME && times.len() < MAX_RUNS) {
        let clock = Instant::now();
        awake(&mut *run)?;
        let time = clock.elapsed();
        total += time;
        times.push(time.as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// The largest memory that this process has had resident; Linux only.
fn peak_kb() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The processor's time that all processes and this one have taken, in ticks; Linux only.
struct Clock {
    wall: Instant,
    busy: u64,
    this: u64,
}

/// Ticks a second, which Linux tells programs to count on.
const TICKS: f64 = 100.0;

impl Clock {
    /// The time now; `None` where the system does not tell it.
    fn now() -> Option<Self> {
        let all = numbers(fs::read_to_string("/proc/stat").ok()?.lines().next()?);
        let this = fs::read_to_string("/proc/self/stat").ok()?;
        // Counted from behind the name, which may hold anything.
        let this = numbers(this.rsplit(')').next()?);
        Some(Self {
            wall: Instant::now(),
            // Without idle and waiting.
            busy: all.iter().take(3).chain(all.get(5..8)?).sum(),
            this: this.iter().skip(10).take(2).sum(),
        })
    }

    /// The share of the processor's time that other processes took since then.
    fn others(&self, then: &Self) -> f64 {
        let taken = (self.busy - then.busy).saturating_sub(self.this - then.this);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let whole = self.wall.duration_since(then.wall).as_secs_f64() * cores as f64;
        taken as f64 / (TICKS * whole)
    }
}

/// The numbers behind the first word of a line; a word that is not a number counts as zero.
fn numbers(line: &str) -> Vec<u64> {
    let words = line.split_whitespace().skip(1);
    words.map(|word| word.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_did_not_run_says_why() {
        let lines = "warning\n{\"fwd_ms\": 1.5, \"fwd_bwd_ms\": null, \"peak_mb\": 3.0}\n";
        let ran = Measured::read(lines).unwrap();
        assert_eq!((ran.ms("fwd"), ran.ms("fwd_bwd")), (Some(1.5), None));
        assert_eq!((ran.peak_mb("fwd"), ran.failure()), (Some(3.0), None));
        let skipped = Measured::read("{\"fwd_ms\": null, \"skipped\": \"memory\"}").unwrap();
        assert_eq!(skipped.failure().unwrap(), "skipped: memory");
        assert!(Measured::read("Traceback").is_none() && Measured::read("").is_none());
        let failed = Measured::by(Command::new("false").arg("x")).unwrap();
        assert!(
            failed
                .failure()
                .unwrap()
                .starts_with("failed: exit status: 1")
        );
    }

    #[test]
    fn ours_is_written_as_it_is_read() {
        let passes = vec![crate::Pass::new("fwd", 0.0)];
        let workload = Workload::new("nap", [], passes, || {
            Ok(vec![Box::new(|| {
                std::thread::sleep(Duration::from_millis(20));
                Ok(())
            })])
        });
        let measured = Measured::of(&workload).unwrap();
        let read = Measured::read(&serde_json::to_string(&measured).unwrap()).unwrap();
        assert_eq!(read, measured);
        assert!(read.min_ms("fwd").unwrap() >= 20.0 && read.ms("fwd") >= read.min_ms("fwd"));
    }
}
