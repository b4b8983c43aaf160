//! The display of a running experiment: bars on a terminal, plain lines elsewhere.

use crate::Error;
use crate::trial::History;
use bochner_report::Unit;
use bochner_report::row::Row;
use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// The template of the bar over all units.
const TOTAL: &str = "{bar:30} {pos}/{len} units, {elapsed} so far, about {eta} to go";

/// The template of the bar of one unit.
const UNIT: &str = "{bar:30} {prefix}: epoch {pos}/{len}, {msg}, {eta} to go";

/// Time between two plain lines of the same unit.
const QUIET: Duration = Duration::from_secs(30);

/// The display of a run. Its bars are hidden unless the standard error is a terminal.
pub(crate) struct Progress {
    bars: MultiProgress,
    total: ProgressBar,
}

impl Progress {
    pub(crate) fn new(units: usize) -> Self {
        let bars = MultiProgress::new();
        let total = bars.add(bar(units, TOTAL));
        total.enable_steady_tick(Duration::from_millis(500));
        Self { bars, total }
    }

    /// The display of one worker.
    pub(crate) fn worker(&self) -> Worker {
        Worker {
            bar: self.bars.insert_before(&self.total, bar(1, UNIT)),
            written: Instant::now(),
        }
    }

    /// Counts a unit that was finished before.
    pub(crate) fn found(&self) {
        self.total.inc(1);
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
        self.total.inc(1);
        let (units, settled) = (self.total.length(), self.total.position());
        let line = format!("[{settled}/{}] {what}", units.unwrap_or_default());
        self.bars.suspend(|| eprintln!("{line}"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.total.finish_and_clear();
    }
}

/// The display of the unit that one worker runs.
pub(crate) struct Worker {
    bar: ProgressBar,
    /// When the last plain line was written, or the unit began.
    written: Instant,
}

impl Worker {
    pub(crate) fn start(&mut self, unit: &Unit, epochs_done: usize) {
        self.bar.set_length(unit.settings.epochs() as u64);
        self.bar.set_prefix(unit.label());
        self.bar.set_message("starts");
        self.bar.set_position(epochs_done as u64);
        self.bar.reset_eta();
        self.written = Instant::now();
    }

    pub(crate) fn epoch(&mut self, history: &History) {
        let loss = history.loss.last().copied().unwrap_or_default();
        self.bar.set_message(format!("loss {loss:.4}"));
        self.bar.set_position(history.loss.len() as u64);
        if self.bar.is_hidden() && self.written.elapsed() >= QUIET {
            let (bar, epochs) = (&self.bar, self.bar.length().unwrap_or_default());
            let (label, epoch, eta) = (bar.prefix(), bar.position(), HumanDuration(bar.eta()));
            eprintln!("{label}: epoch {epoch}/{epochs}, loss {loss:.4}, {eta:#} to go");
            self.written = Instant::now();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn bar(length: usize, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(length as u64).with_style(style)
}
