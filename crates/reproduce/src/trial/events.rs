//! Models of next events: times, positions or shuffled times as what the model takes for times.

use super::model::{AnyError, Training};
use super::{Evaluation, Findings, Moment, read_settings, split_of};
use crate::Trial;
use crate::suite::Source;
use bochner_datasets::{EventData, EventSequence, Split};
use bochner_models::encoder::EncoderConfig;
use bochner_models::next_event::{Events, NextEventConfig, Task, TimeSense, Trainer};
use bochner_models::training::TrainingConfig;
use bochner_numerics::Seed;
use bochner_report::Unit;
use bochner_text::BatchConfig;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// The accuracy on the last event of each test sequence, in the epoch of the V-number.
pub const LAST_EVENT: &str = "last event";
/// The mean distance that logits on test sequences move when the times are shuffled within each sequence.
pub const MOVED: &str = "move of the logits with shuffled times";
/// The share of test sequences whose last event is of the kind that is last most often in training.
pub const MOST_FREQUENT: &str = "most frequent last kind";

/// The settings of a model of next events and its training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventSettings {
    /// Features of times; without any the model sees none.
    pub time: Vec<TimeSense>,
    /// The features of times.
    pub clock: Clock,
    /// The unit of the features' periods, in that of the data.
    pub unit: f64,
    /// The number of events that are read, counted from the end of a sequence; one more is foretold.
    pub longest: usize,
    /// The encoder, whose width includes the features of times.
    pub encoder: EncoderConfig,
    /// Sequences in a batch.
    pub batch: usize,
    /// The training.
    pub training: TrainingConfig,
    /// Passes over the training sequences.
    pub epochs: usize,
}

/// The features that a model has of the times of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// Their times since the first event that is read.
    Time,
    /// Their places in the sequence.
    Position,
    /// The times of those events that are read, shuffled within each sequence; the last event, which is foretold alone,
    /// keeps its own.
    Shuffled,
}

impl EventSettings {
    fn batches(&self) -> BatchConfig {
        BatchConfig {
            tokens: self.batch * self.longest,
            sentences: Some(self.batch),
            ..BatchConfig::default()
        }
    }

    /// The end of a sequence as the model takes it; `seed` shuffles.
    fn events(&self, whole: &EventSequence, clock: Clock, seed: Seed) -> Events {
        let from = whole.kinds.len().saturating_sub(self.longest + 1);
        let (kinds, times) = (whole.kinds[from..].to_vec(), &whole.times[from..]);
        let since = |time: &f64| (time - times[0]) / self.unit;
        let mut times: Vec<f64> = match clock {
            Clock::Position => (0..times.len()).map(|place| place as f64).collect(),
            Clock::Time | Clock::Shuffled => times.iter().map(since).collect(),
        };
        if let (Clock::Shuffled, [read @ .., _]) = (clock, &mut times[..]) {
            read.shuffle(&mut seed.stream("times"));
        }
        Events { kinds, times }
    }
}

impl Source for EventData {
    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, AnyError> {
        let settings: EventSettings = read_settings(unit)?;
        let split = split_of(unit, &self.splits)?;
        let seed = Seed::new(unit.seed);
        let part = |rows: &Vec<usize>| -> Vec<Events> {
            let events = |&row: &usize| {
                let seed = seed.child("shuffle").nth(row as u64);
                settings.events(&self.sequences[row], settings.clock, seed)
            };
            rows.iter().map(events).collect()
        };
        let config = NextEventConfig {
            kinds: self.names.len(),
            encoder: settings.encoder.clone(),
            time: settings.time.clone(),
        };
        let parts = [&split.train, &split.validation, &split.test].map(part);
        let task = Task::new(parts[0].clone(), settings.batches())?;
        Ok(Box::new(Next {
            trainer: Trainer::new(&config, &settings.training, task, seed)?,
            data: self,
            split,
            parts,
            seed,
            settings,
        }))
    }
}

struct Next<'a> {
    trainer: Trainer,
    settings: EventSettings,
    data: &'a EventData,
    split: &'a Split,
    /// The sequences to train on, for validation and for test.
    parts: [Vec<Events>; 3],
    seed: Seed,
}

impl Next<'_> {
    /// The mean distance between the logits on the test part, as it is and with other times. Positions stay what they
    /// are.
    fn moved(&self) -> Result<f64, bochner_models::Error> {
        let clock = match self.settings.clock {
            Clock::Position => Clock::Position,
            Clock::Time | Clock::Shuffled => Clock::Shuffled,
        };
        let other = |&row: &usize| {
            let seed = self.seed.child("moved").nth(row as u64);
            let whole = &self.data.sequences[row];
            self.settings.events(whole, clock, seed)
        };
        let others: Vec<Events> = self.split.test.iter().map(other).collect();
        let pairs = self.trainer.predict(&self.parts[2])?.into_iter();
        let (mut sum, mut count) = (0.0, 0);
        for (one, other) in pairs.zip(self.trainer.predict(&others)?) {
            let apart = one.iter().zip(&other).map(|(a, b)| f64::from(a - b).abs());
            sum += apart.sum::<f64>();
            count += one.len();
        }
        Ok(sum / count as f64)
    }

    /// The share of test sequences whose last kind is the most frequent last kind of training.
    fn most_frequent(&self) -> f64 {
        let last = |events: &Events| events.kinds.last().copied();
        let [train, _, test] = &self.parts;
        let mut counts = vec![0_usize; self.data.names.len()];
        for kind in train.iter().filter_map(last) {
            counts[kind] += 1;
        }
        let frequent = (0..counts.len()).max_by_key(|&kind| counts[kind]);
        let right = test.iter().filter(|events| last(events) == frequent);
        right.count() as f64 / test.len() as f64
    }
}

impl Trial for Next<'_> {
    fn model(&self) -> &dyn Training {
        &self.trainer
    }

    fn model_mut(&mut self) -> &mut dyn Training {
        &mut self.trainer
    }

    /// Rows are events that are foretold.
    fn rows(&self) -> [usize; 3] {
        let foretold = |events: &Events| events.kinds.len() - 1;
        self.parts
            .each_ref()
            .map(|part| part.iter().map(foretold).sum())
    }

    fn evaluate(&self) -> Result<Evaluation, AnyError> {
        let [_, validation, test] = &self.parts;
        let [validation, test] = [self.trainer.assess(validation)?, self.trainer.assess(test)?];
        Ok(Evaluation {
            validation: Some(1.0 - validation.all.error),
            validation_loss: Some(validation.all.cross_entropy),
            test: 1.0 - test.all.error,
            others: vec![(LAST_EVENT, 1.0 - test.last.error)],
        })
    }

    fn findings(&self, _: Moment, _: &dyn Fn() -> bool) -> Result<Findings, AnyError> {
        Ok(Findings::of([
            (MOVED, self.moved()?),
            (MOST_FREQUENT, self.most_frequent()),
        ]))
    }
}
