//! The display of a running experiment: bars on a terminal, plain lines elsewhere.

use crate::Error;
use crate::store::History;
use bochner_report::Unit;
use bochner_report::row::Row;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The template of the bar over all units.
const TOTAL: &str = "{bar:30} {pos}/{len} units, {elapsed} so far{msg}";

/// The template of the bar of one unit.
const UNIT: &str = "{bar:30} {prefix}: epoch {pos}/{len}, {msg}, {eta} to go";

/// Time between two plain lines of the same unit.
const QUIET: Duration = Duration::from_secs(30);

/// The display of a run.
pub(crate) struct Progress {
    bars: Option<Bars>,
    settled: AtomicUsize,
    units: usize,
}

struct Bars {
    all: MultiProgress,
    total: ProgressBar,
}

impl Progress {
    pub(crate) fn new(units: usize, found: usize) -> Self {
        let bars = (std::io::stderr().is_terminal() && units > 0).then(|| {
            let all = MultiProgress::new();
            let total = all.add(ProgressBar::new(units as u64));
            total.set_style(style(TOTAL));
            total.enable_steady_tick(Duration::from_millis(500));
            Bars { all, total }
        });
        let progress = Self {
            bars,
            settled: AtomicUsize::new(0),
            units,
        };
        if found > 0 {
            progress.say(&format!("{found} units were finished before and are kept"));
        }
        progress
    }

    /// The display of one worker.
    pub(crate) fn worker(&self) -> Worker {
        let bar = self.bars.as_ref().map(|bars| {
            let bar = bars.all.insert_before(&bars.total, ProgressBar::new(1));
            bar.set_style(style(UNIT));
            bar
        });
        Worker {
            bar,
            line: Line::default(),
        }
    }

    pub(crate) fn finished(&self, row: &Row) {
        let validated = row.v_number.map_or(String::new(), |v| {
            format!("V {v:.4} (epoch {}), ", row.v_epoch.unwrap_or(0))
        });
        self.settle(&format!(
            "{}: {validated}R {:.4} (epoch {}), last {:.4}, {:.1} s",
            row.unit.label(),
            row.r_number,
            row.r_epoch,
            row.last,
            row.seconds
        ));
    }

    pub(crate) fn failed(&self, error: &Error) {
        self.settle(&format!("failed: {error}"));
    }

    fn settle(&self, what: &str) {
        let settled = self.settled.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(bars) = &self.bars {
            bars.total.inc(1);
            let each = bars.total.elapsed() / u32::try_from(settled).unwrap_or(1);
            let left = each * u32::try_from(self.units - settled).unwrap_or(0);
            bars.total
                .set_message(format!(", about {} s to go", left.as_secs()));
        }
        self.say(&format!("[{settled}/{}] {what}", self.units));
    }

    fn say(&self, line: &str) {
        match &self.bars {
            Some(bars) => bars.all.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bars) = &self.bars {
            bars.total.finish_and_clear();
        }
    }
}

/// The display of the unit that one worker runs.
pub(crate) struct Worker {
    bar: Option<ProgressBar>,
    line: Line,
}

/// When the last plain line was written, and of which unit.
#[derive(Default)]
struct Line {
    label: String,
    epochs: usize,
    begun: Option<(Instant, usize)>,
    written: Option<Instant>,
}

impl Worker {
    pub(crate) fn start(&mut self, unit: &Unit, epochs_done: usize) {
        let label = unit.label();
        if let Some(bar) = &self.bar {
            bar.set_length(unit.settings.epochs() as u64);
            bar.set_prefix(label.clone());
            bar.set_message("starts");
            bar.set_position(epochs_done as u64);
            bar.reset_eta();
        }
        let now = Instant::now();
        self.line = Line {
            label,
            epochs: unit.settings.epochs(),
            begun: Some((now, epochs_done)),
            written: Some(now),
        };
    }

    pub(crate) fn epoch(&mut self, history: &History) {
        let (done, loss) = (history.loss.len(), history.loss.last().copied());
        let loss = format!("loss {:.4}", loss.unwrap_or_default());
        if let Some(bar) = &self.bar {
            bar.set_message(loss);
            bar.set_position(done as u64);
            return;
        }
        if self.line.written.is_some_and(|at| at.elapsed() >= QUIET) {
            eprintln!("{}, {loss}", self.line.report(done));
            self.line.written = Some(Instant::now());
        }
    }
}

impl Line {
    fn report(&self, done: usize) -> String {
        let remaining = self.begun.map_or(0.0, |(at, first)| {
            let each = at.elapsed().as_secs_f64() / (done - first).max(1) as f64;
            each * (self.epochs - done) as f64
        });
        format!(
            "{}: epoch {done}/{}, {remaining:.0} s to go",
            self.label, self.epochs
        )
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
