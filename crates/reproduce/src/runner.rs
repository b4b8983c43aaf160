//! Runs units, several at a time, and loses nothing when it is stopped.

use crate::progress::{Progress, Worker};
use crate::store::{History, LOOK};
use crate::trial::{Findings, Keep, Moment};
use crate::{Error, Store, Trial};
use bochner_report::Unit;
use bochner_report::row::Row;
use bochner_report::suite::{Card, Direction};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The units of a suite, ready to be started.
pub trait Units: Sync {
    /// The suite.
    fn card(&self) -> &'static Card;

    /// Sets up one unit at its beginning.
    ///
    /// # Errors
    /// If the unit cannot be run.
    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, Error>;
}

/// How units are run.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Units that run at a time.
    pub jobs: usize,
    /// Threads of all units together.
    pub threads: usize,
    /// Time between two checkpoints of a unit.
    pub checkpoint_every: Duration,
    /// Recorded in every row.
    pub code_version: &'a str,
    /// Stops the run after the running epochs when set.
    pub interrupt: &'a AtomicBool,
}

/// What a run has done.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Units that this run finished.
    pub computed: usize,
    /// Units that were finished before.
    pub found: usize,
    /// Units that could not be run, and why.
    pub failed: Vec<(Unit, Error)>,
    /// Whether the run was interrupted before its end.
    pub interrupted: bool,
}

impl Outcome {
    /// Adds what another run of other units has done.
    pub(crate) fn add(&mut self, other: Self) {
        self.computed += other.computed;
        self.found += other.found;
        self.failed.extend(other.failed);
        self.interrupted |= other.interrupted;
    }
}

/// Runs the units that are not finished yet and records their results.
///
/// Each unit computes on its own pool of `threads / jobs` threads; the results do not depend on
/// either number. A unit whose training fails does not stop the others.
///
/// # Errors
/// What concerns all units: a directory that cannot be written, a damaged result. Units that are
/// finished by then stay recorded.
pub fn run(
    units: &[Unit],
    suite: &dyn Units,
    store: &Store,
    options: &Options<'_>,
) -> Result<Outcome, Error> {
    let todo = unfinished(units, store)?;
    let found = units.len() - todo.len();
    let run = Run {
        suite,
        store,
        options,
        progress: Progress::new(todo.len(), found),
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        outcome: Mutex::new(Outcome {
            found,
            ..Outcome::default()
        }),
    };
    run.work(&todo)?;
    let mut outcome = run.outcome.into_inner().unwrap_or_else(|e| e.into_inner());
    let settled = outcome.computed + outcome.failed.len() + outcome.found - found;
    outcome.interrupted = settled < todo.len();
    Ok(outcome)
}

fn unfinished(units: &[Unit], store: &Store) -> Result<Vec<Unit>, Error> {
    let mut todo = Vec::new();
    for unit in units {
        match store.row(unit)? {
            None => todo.push(unit.clone()),
            // A run may have been killed between recording the row and removing this.
            Some(_) => store.clear(unit)?,
        }
    }
    Ok(todo)
}

struct Run<'a> {
    suite: &'a dyn Units,
    store: &'a Store,
    options: &'a Options<'a>,
    progress: Progress,
    next: AtomicUsize,
    stop: AtomicBool,
    outcome: Mutex<Outcome>,
}

impl Run<'_> {
    fn work(&self, todo: &[Unit]) -> Result<(), Error> {
        let jobs = self.options.jobs.clamp(1, todo.len().max(1));
        let pools = (0..jobs)
            .map(|_| pool(self.options.threads, jobs))
            .collect::<Result<Vec<_>, _>>()?;
        std::thread::scope(|scope| {
            let workers: Vec<_> = pools
                .into_iter()
                .map(|pool| scope.spawn(move || self.worker(&pool, todo)))
                .collect();
            workers.into_iter().try_for_each(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|p| std::panic::resume_unwind(p))
            })
        })
    }

    /// Takes unit after unit until none is left.
    fn worker(&self, pool: &ThreadPool, todo: &[Unit]) -> Result<(), Error> {
        let mut display = self.progress.worker();
        while !self.stopped() {
            let Some(unit) = todo.get(self.next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            self.take(unit, pool, &mut display)
                .inspect_err(|_| self.stop.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    }

    /// Runs a unit, unless another shard has finished it by now.
    fn take(&self, unit: &Unit, pool: &ThreadPool, display: &mut Worker) -> Result<(), Error> {
        let Some(_turn) = self.store.claim(unit, || self.stopped())? else {
            return Ok(());
        };
        if self.store.row(unit)?.is_some() {
            self.outcome.lock().unwrap_or_else(|e| e.into_inner()).found += 1;
            return Ok(());
        }
        let result = pool.install(|| self.unit(unit, display));
        self.settle(unit, result)
    }

    fn stopped(&self) -> bool {
        self.options.interrupt.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed)
    }

    /// Books a unit; passes on the errors that concern all of them.
    fn settle(&self, unit: &Unit, result: Result<Option<Row>, Error>) -> Result<(), Error> {
        let mut outcome = self.outcome.lock().unwrap_or_else(|e| e.into_inner());
        match result {
            Ok(Some(row)) => {
                self.progress.finished(&row);
                outcome.computed += 1;
            }
            Ok(None) => {}
            Err(error) if error.concerns_one_unit() => {
                self.progress.failed(&error);
                outcome.failed.push((unit.clone(), error));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Runs one unit to its end; `None` if it was stopped before.
    fn unit(&self, unit: &Unit, display: &mut Worker) -> Result<Option<Row>, Error> {
        let checkpoint = self.store.checkpoint(unit);
        let version = self.options.code_version;
        let (mut trial, mut history) = self.begin(unit)?;
        let mut clock = Instant::now();
        let mut saved = Instant::now();
        display.start(unit, history.loss.len());
        while !is_over(unit, trial.as_ref(), &history) {
            step(unit, trial.as_mut(), &mut history)?;
            self.keep_weights(unit, trial.as_ref(), &history)?;
            history.seconds += clock.elapsed().as_secs_f64();
            clock = Instant::now();
            display.epoch(&history);
            let stopped = self.stopped();
            if stopped || saved.elapsed() >= self.options.checkpoint_every {
                checkpoint.save(&history, |path| trial.save(path))?;
                saved = Instant::now();
            }
            if stopped && !is_over(unit, trial.as_ref(), &history) {
                return Ok(None);
            }
        }
        if trial.keeps() == Keep::Course {
            // The inspections may take minutes and go to other epochs, and an interrupt ends them.
            checkpoint.save(&history, |path| trial.save(path))?;
        }
        let findings = match self.findings(unit, trial.as_mut(), &history) {
            Err(Error::Interrupted) => return Ok(None),
            findings => findings?,
        };
        let mut row = summarise(unit, self.suite.card(), trial.as_ref(), &history, version);
        row.measures.extend(findings.measures);
        findings.finals.replace(&mut row);
        // A row with such a number could not be read again.
        if let Some((name, value)) = row.measures.iter().find(|(_, value)| !value.is_finite()) {
            return Err(Error::NotFinite {
                unit: unit.id(),
                what: name.clone().into(),
                value: *value,
                epoch: history.loss.len(),
            });
        }
        self.store.record(&row, &findings.artefacts)?;
        Ok(Some(row))
    }

    /// What is found in the model after the last epoch, or where weights are kept in the epoch of the V-number, with the
    /// other beside it. The trial is of no further use.
    fn findings(
        &self,
        unit: &Unit,
        trial: &mut dyn Trial,
        history: &History,
    ) -> Result<Findings, Error> {
        let curves = Findings::from(history.artefacts());
        let chosen = trial.rule().chosen(history, self.direction());
        let stopped = || self.stopped();
        match (trial.keeps(), chosen) {
            (Keep::Course, _) => {
                let mut found = curves.and(trial.findings(Moment::Last, &stopped)?);
                for (kind, moment, epoch) in [
                    ("first", Moment::First, Some(0)),
                    ("r", Moment::OfR, history.best_test(self.direction())),
                    ("v", Moment::OfV, chosen),
                ] {
                    if let Some(epoch) = epoch {
                        self.go_to(unit, trial, kind, epoch)?;
                        found = found.and(trial.findings(moment, &stopped)?);
                    }
                }
                Ok(found)
            }
            (Keep::UntilLookedAt, Some(chosen)) => {
                let last = trial.findings(Moment::Last, &stopped)?;
                self.go_to(unit, trial, LOOK, chosen)?;
                let found = trial.findings(Moment::OfV, &stopped)?;
                Ok(curves.and(last.at_last()).and(found))
            }
            _ => Ok(curves.and(trial.findings(Moment::Last, &stopped)?)),
        }
    }

    /// Puts the kept weights of an epoch, counted from zero, into a trial, which is then of no other use.
    fn go_to(
        &self,
        unit: &Unit,
        trial: &mut dyn Trial,
        kind: &str,
        chosen: usize,
    ) -> Result<(), Error> {
        let path = self.store.weights(unit, kind);
        let unusable = |reason| Error::KeptWeights {
            unit: unit.id(),
            path: path.clone(),
            reason,
        };
        let resumed = trial.resume(&path);
        resumed.map_err(|error| unusable(error.to_string()))?;
        match trial.epochs_done() {
            epoch if epoch == chosen + 1 => Ok(()),
            epoch => Err(unusable(format!(
                "they are of epoch {epoch}, and those of {} are looked at",
                chosen + 1
            ))),
        }
    }

    fn direction(&self) -> Direction {
        self.suite.card().metric.direction
    }

    /// Keeps the weights of the last epoch if it is now that of the V-number, or of the R-number where it is asked for.
    fn keep_weights(&self, unit: &Unit, trial: &dyn Trial, history: &History) -> Result<(), Error> {
        let direction = self.direction();
        let chosen = trial.rule().chosen(history, direction);
        let best = history.best_test(direction);
        let epochs = match trial.keeps() {
            Keep::Nothing => vec![],
            Keep::UntilLookedAt => vec![(LOOK, chosen)],
            Keep::Course => vec![("first", Some(0)), ("v", chosen), ("r", best)],
        };
        let last = history.loss.len().checked_sub(1);
        for (kind, _) in epochs.into_iter().filter(|(_, epoch)| *epoch == last) {
            self.store
                .keep_weights(unit, kind, |path| trial.save(path))?;
        }
        Ok(())
    }

    /// The trial where its last checkpoint left it, or at its beginning.
    fn begin(&self, unit: &Unit) -> Result<(Box<dyn Trial + '_>, History), Error> {
        let mut trial = self.suite.start(unit)?;
        let checkpoint = self.store.checkpoint(unit);
        if let Some((model, history)) = checkpoint.load()? {
            trial.resume(&model)?;
            let (saved, noted) = (trial.epochs_done(), history.loss.len());
            if saved == noted {
                return Ok((trial, history));
            }
            let message = format!("it is of epoch {saved}, and its note of epoch {noted}");
            return Err(Error::checkpoint(&model, &message));
        }
        // What an earlier run kept is of epochs that this one trains again.
        self.store.discard_weights(unit)?;
        Ok((trial, History::default()))
    }
}

/// The threads of one of several jobs.
pub(crate) fn pool(threads: usize, jobs: usize) -> Result<ThreadPool, Error> {
    let threads = (threads / jobs).max(1);
    Ok(ThreadPoolBuilder::new().num_threads(threads).build()?)
}

fn is_over(unit: &Unit, trial: &dyn Trial, history: &History) -> bool {
    history.loss.len() >= unit.settings.epochs() || trial.rule().stops(history)
}

/// One epoch and its measurements.
fn step(unit: &Unit, trial: &mut dyn Trial, history: &mut History) -> Result<(), Error> {
    let step = trial.epoch()?;
    let evaluation = trial.evaluate()?;
    let epoch = history.loss.len() + 1;
    let (validation, validation_loss) = (evaluation.validation, evaluation.validation_loss);
    let others = evaluation.others.iter();
    let others = others.map(|&(_, value)| ("a value on another test part", value));
    let values = [
        ("the training loss", step.loss),
        ("the training error", step.mse),
        ("the validation value", validation.unwrap_or_default()),
        ("the validation loss", validation_loss.unwrap_or_default()),
        ("the test value", evaluation.test),
    ];
    for (what, value) in values.into_iter().chain(others) {
        if !value.is_finite() {
            return Err(Error::NotFinite {
                unit: unit.id(),
                what: what.into(),
                value,
                epoch,
            });
        }
    }
    history.loss.push(step.loss);
    history.mse.push(step.mse);
    history.validation.extend(validation);
    history.validation_loss.extend(validation_loss);
    history.test.push(evaluation.test);
    for (name, value) in evaluation.others {
        history
            .others
            .entry(name.to_owned())
            .or_default()
            .push(value);
    }
    Ok(())
}

fn summarise(
    unit: &Unit,
    card: &Card,
    trial: &dyn Trial,
    history: &History,
    code_version: &str,
) -> Row {
    let facts = trial.facts();
    let direction = card.metric.direction;
    let r = history.best_test(direction).unwrap_or(0);
    let v = trial.rule().chosen(history, direction);
    let other = |(name, values): (&String, &Vec<f64>)| Some((name.clone(), *values.get(v?)?));
    let trained = history.loss.len();
    let last = |values: &[f64]| values.last().copied().unwrap_or_default();
    Row {
        id: unit.id(),
        table: card.table.to_owned(),
        unit: unit.clone(),
        parameters: facts.parameters,
        train_rows: facts.train_rows,
        validation_rows: facts.validation_rows,
        test_rows: facts.test_rows,
        r_number: history.test.get(r).copied().unwrap_or_default(),
        r_epoch: r + 1,
        v_number: v.map(|v| history.test[v]),
        v_epoch: v.map(|v| v + 1),
        validation: v.and_then(|v| history.validation.get(v).copied()),
        validation_loss: v.and_then(|v| history.validation_loss.get(v).copied()),
        stopped_after: (trained < unit.settings.epochs()).then_some(trained),
        last: last(&history.test),
        first_mse: history.mse.first().copied().unwrap_or_default(),
        last_mse: last(&history.mse),
        measures: history.others.iter().filter_map(other).collect(),
        seconds: history.seconds,
        code_version: code_version.to_owned(),
    }
}

#[cfg(test)]
mod tests;
