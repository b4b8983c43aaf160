//! Runs units, several at a time, and loses nothing when it is stopped.

use crate::progress::{Progress, Worker};
use crate::store::Checkpoint;
use crate::suite::Source;
use crate::trial::{AnyError, Findings, History, Moment};
use crate::{Config, Error, Store, Trial};
use bochner_report::Unit;
use bochner_report::row::Row;
use bochner_report::suite::Card;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The outcome of a run.
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

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (computed, found, failed) = (self.computed, self.found, self.failed.len());
        write!(
            f,
            "{computed} units run, {found} finished before, {failed} failed"
        )?;
        match self.interrupted {
            true => f.write_str("; interrupted, run it again to go on"),
            false => Ok(()),
        }
    }
}

/// Runs the units that are not finished yet and records their results, until `interrupt` is set.
///
/// Each unit computes on its own pool of `threads / jobs` threads; the results do not depend on
/// either number. A unit whose training fails does not stop the others.
///
/// # Errors
/// What concerns all units: a directory that cannot be written, a damaged result. Units that are
/// finished by then stay recorded.
pub(crate) fn run(
    units: &[Unit],
    card: &Card,
    source: &dyn Source,
    store: &Store,
    config: &Config,
    interrupt: &AtomicBool,
) -> Result<Outcome, Error> {
    let run = Run {
        card,
        source,
        store,
        config,
        interrupt,
        progress: Progress::new(units.len()),
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        outcome: Mutex::default(),
    };
    run.work(units)?;
    let mut outcome = (run.outcome.into_inner()).unwrap_or_else(PoisonError::into_inner);
    let settled = outcome.computed + outcome.failed.len() + outcome.found;
    outcome.interrupted = settled < units.len();
    Ok(outcome)
}

struct Run<'a> {
    card: &'a Card,
    source: &'a dyn Source,
    store: &'a Store,
    config: &'a Config,
    interrupt: &'a AtomicBool,
    progress: Progress,
    next: AtomicUsize,
    stop: AtomicBool,
    outcome: Mutex<Outcome>,
}

impl Run<'_> {
    fn work(&self, units: &[Unit]) -> Result<(), Error> {
        let jobs = self.config.jobs.clamp(1, units.len().max(1));
        let pools = (0..jobs)
            .map(|_| pool(self.config.threads, jobs))
            .collect::<Result<Vec<_>, _>>()?;
        std::thread::scope(|scope| {
            let workers: Vec<_> = pools
                .into_iter()
                .map(|pool| scope.spawn(move || self.worker(&pool, units)))
                .collect();
            workers.into_iter().try_for_each(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|p| std::panic::resume_unwind(p))
            })
        })
    }

    /// Takes unit after unit until none is left.
    fn worker(&self, pool: &ThreadPool, units: &[Unit]) -> Result<(), Error> {
        let mut display = self.progress.worker();
        while !self.stopped() {
            let Some(unit) = units.get(self.next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            self.take(unit, pool, &mut display)
                .inspect_err(|_| self.stop.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    }

    fn stopped(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed)
    }

    /// Runs a unit, unless it is finished, and books it. Passes on the errors that concern all units.
    fn take(&self, unit: &Unit, pool: &ThreadPool, display: &mut Worker) -> Result<(), Error> {
        let Some(_turn) = self.store.claim(unit, || self.stopped())? else {
            return Ok(());
        };
        let is_found = self.store.row(unit)?.is_some();
        let result = match is_found {
            // A run may have been killed between recording the row and removing this.
            true => self.store.checkpoint(unit).remove().map(|()| None),
            false => pool.install(|| Running::begin(self, unit)?.finish(self, display)),
        };
        let mut outcome = (self.outcome.lock()).unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(Some(row)) => {
                self.progress.finished(&row);
                outcome.computed += 1;
            }
            Ok(None) if is_found => {
                self.progress.found();
                outcome.found += 1;
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
}

/// A unit that runs.
struct Running<'a> {
    unit: &'a Unit,
    card: &'a Card,
    trial: Box<dyn Trial + 'a>,
    history: History,
    checkpoint: Checkpoint,
}

impl<'a> Running<'a> {
    /// The unit where its last checkpoint left it, or at its beginning.
    fn begin(run: &Run<'a>, unit: &'a Unit) -> Result<Self, Error> {
        let mut running = Self {
            unit,
            card: run.card,
            trial: run.source.start(unit).map_err(Error::of_unit(unit))?,
            history: History::default(),
            checkpoint: run.store.checkpoint(unit),
        };
        match running.checkpoint.load()? {
            Some((model, history)) => {
                running.go_to(&model, history.loss.len())?;
                running.history = history;
            }
            // Weights that an earlier run has kept are of epochs that this one trains again.
            None => running.checkpoint.remove()?,
        }
        Ok(running)
    }

    /// Trains to the end, inspects the model and records the row; `None` if it was stopped before.
    ///
    /// The loop is not [`Trainer::fit`](bochner_models::training::Trainer::fit), which follows one measure of dfdx's
    /// models: graph attention's rule looks at two measures, the R-number chooses another epoch, and Gaussian processes
    /// and naive Bayes are not dfdx's. A loop for both would share the `while` alone and cost a trait, more lines than
    /// it saves.
    fn finish(mut self, run: &Run<'_>, display: &mut Worker) -> Result<Option<Row>, Error> {
        let mut clock = Instant::now();
        let mut saved = Instant::now();
        display.start(self.unit, self.history.loss.len());
        while !self.is_over() {
            self.epoch()?;
            self.keep_weights()?;
            self.history.seconds += clock.elapsed().as_secs_f64();
            clock = Instant::now();
            display.epoch(&self.history);
            let stopped = run.stopped();
            if stopped || saved.elapsed() >= run.config.checkpoint_every {
                self.save()?;
                saved = Instant::now();
            }
            if stopped && !self.is_over() {
                return Ok(None);
            }
        }
        if !self.trial.inspected().is_empty() {
            // Inspections may take minutes and go to other epochs, and an interrupt ends them.
            self.save()?;
        }
        let findings = match self.findings(&|| run.stopped()) {
            Err(Error::Interrupted) => return Ok(None),
            findings => findings?,
        };
        let mut row = self.row(&run.config.code_version);
        row.measures.extend(findings.measures);
        findings.finals.replace(&mut row);
        // A row with such a number could not be read again.
        let measures = row.measures.iter();
        self.check_finite(measures.map(|(name, value)| (name.clone().into(), *value)))?;
        run.store.record(&row, Some(&findings.artefacts))?;
        Ok(Some(row))
    }

    fn is_over(&self) -> bool {
        let is_last = self.history.loss.len() >= self.unit.settings.epochs();
        is_last || self.history.stops(self.trial.patience())
    }

    /// The epoch of a moment, counted from zero, as it is known so far; `None` without validation part.
    fn epoch_of(&self, moment: Moment) -> Option<usize> {
        let direction = self.card.metric.direction;
        match moment {
            Moment::First => Some(0),
            Moment::Last => self.history.loss.len().checked_sub(1),
            Moment::OfV => self.history.chosen(self.trial.patience(), direction),
            Moment::OfR => direction.best(&self.history.test),
        }
    }

    /// One epoch and its measurements.
    fn epoch(&mut self) -> Result<(), Error> {
        let named = |error: AnyError| Error::of_unit(self.unit)(error);
        let report = self.trial.model_mut().epoch().map_err(named)?;
        let error = self.trial.training_error(&report);
        let evaluation = self.trial.evaluate().map_err(named)?;
        let history = &mut self.history;
        history.loss.push(report.loss);
        history.mse.push(error);
        history.validation.extend(evaluation.validation);
        history.validation_loss.extend(evaluation.validation_loss);
        history.test.push(evaluation.test);
        let (validation, loss) = (evaluation.validation, evaluation.validation_loss);
        let mut values = vec![
            ("the training loss", report.loss),
            ("the training error", error),
            ("the validation value", validation.unwrap_or_default()),
            ("the validation loss", loss.unwrap_or_default()),
            ("the test value", evaluation.test),
        ];
        for (name, value) in evaluation.others {
            let others = history.others.entry(name.to_owned());
            others.or_default().push(value);
            values.push((name, value));
        }
        let values = values.into_iter();
        self.check_finite(values.map(|(what, value)| (what.into(), value)))
    }

    fn check_finite(
        &self,
        values: impl IntoIterator<Item = (Cow<'static, str>, f64)>,
    ) -> Result<(), Error> {
        match values.into_iter().find(|(_, value)| !value.is_finite()) {
            Some((what, value)) => Err(Error::NotFinite {
                unit: self.unit.id(),
                what,
                value,
                epoch: self.history.loss.len(),
            }),
            None => Ok(()),
        }
    }

    /// Keeps the weights of the last epoch if it is now one that is to be inspected.
    fn keep_weights(&self) -> Result<(), Error> {
        let last = self.epoch_of(Moment::Last);
        let moments = self.trial.inspected().iter();
        for &moment in moments.filter(|moment| self.epoch_of(**moment) == last) {
            let path = self.checkpoint.weights(moment);
            self.checkpoint.write(&path, |path| self.save_to(path))?;
        }
        Ok(())
    }

    fn save(&self) -> Result<(), Error> {
        let save = |path: &Path| self.save_to(path);
        self.checkpoint.save(&self.history, save)
    }

    fn save_to(&self, path: &Path) -> Result<(), Error> {
        let saved = self.trial.model().save(path);
        saved.map_err(|error| Error::checkpoint(path, &*error))
    }

    /// Puts a saved model into the trial, which must be of so many epochs.
    fn go_to(&mut self, path: &Path, epochs: usize) -> Result<(), Error> {
        let resumed = self.trial.model_mut().resume(path);
        resumed.map_err(|error| Error::checkpoint(path, &*error))?;
        match self.trial.model().epochs_done() {
            done if done == epochs => Ok(()),
            done => {
                let message = format!("it is of epoch {done}, and not of epoch {epochs}");
                Err(Error::checkpoint(path, &message))
            }
        }
    }

    /// Returns the findings in the model after the last epoch and in the others that are to be inspected. The trial is
    /// of no further use.
    fn findings(&mut self, stopped: &dyn Fn() -> bool) -> Result<Findings, Error> {
        let curves = Findings::from(self.history.artefacts());
        let (moments, named) = (self.trial.inspected(), Error::of_unit);
        let last = self.trial.findings(Moment::Last, stopped);
        let mut found = last.map_err(named(self.unit))?;
        for &moment in moments {
            let Some(epoch) = self.epoch_of(moment) else {
                continue;
            };
            self.go_to(&self.checkpoint.weights(moment), epoch + 1)?;
            let others = self.trial.findings(moment, stopped);
            let others = others.map_err(named(self.unit))?;
            // A measure that both epochs have gets two names.
            found = match moments {
                [_] => found.at_last().and(others),
                _ => found.and(others),
            };
        }
        Ok(curves.and(found))
    }

    fn row(&self, code_version: &str) -> Row {
        let (unit, history) = (self.unit, &self.history);
        let [train_rows, validation_rows, test_rows] = self.trial.rows();
        let r = self.epoch_of(Moment::OfR).unwrap_or(0);
        let v = self.epoch_of(Moment::OfV);
        let at_v = |values: &[f64]| v.and_then(|v| values.get(v).copied());
        let last = |values: &[f64]| values.last().copied().unwrap_or_default();
        let trained = history.loss.len();
        let others = history.others.iter();
        Row {
            id: unit.id(),
            table: self.card.table.to_owned(),
            unit: unit.clone(),
            parameters: self.trial.model().parameters(),
            train_rows,
            validation_rows,
            test_rows,
            r_number: history.test.get(r).copied().unwrap_or_default(),
            r_epoch: r + 1,
            v_number: at_v(&history.test),
            v_epoch: v.map(|v| v + 1),
            validation: at_v(&history.validation),
            validation_loss: at_v(&history.validation_loss),
            stopped_after: (trained < unit.settings.epochs()).then_some(trained),
            last: last(&history.test),
            first_mse: history.mse.first().copied().unwrap_or_default(),
            last_mse: last(&history.mse),
            measures: others
                .filter_map(|(name, values)| Some((name.clone(), at_v(values)?)))
                .collect(),
            seconds: history.seconds,
            code_version: code_version.to_owned(),
        }
    }
}

/// The threads of one of several jobs.
pub(crate) fn pool(threads: usize, jobs: usize) -> Result<ThreadPool, Error> {
    let threads = (threads / jobs).max(1);
    Ok(ThreadPoolBuilder::new().num_threads(threads).build()?)
}
