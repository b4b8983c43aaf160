//! Models of next events: times, positions or shuffled times as what the model takes for times.

use super::{Evaluation, Facts, Findings, Step, failed};
use crate::suite::Source;
use crate::{Error, Trial};
use bochner_attention::Softmax;
use bochner_datasets::{EventData, EventSequence, Split};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::next_event::{Events, NextEventConfig, Task, TimeSense, Trainer};
use bochner_models::training::TrainingConfig;
use bochner_numerics::Seed;
use bochner_report::Unit;
use bochner_text::BatchConfig;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::path::Path;

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
    /// What the model takes for times.
    pub clock: Clock,
    /// The unit of the features' periods, in that of the data.
    pub unit: f64,
    /// How many events are read, counted from the end of a sequence; one more is foretold.
    pub longest: usize,
    /// Width of the model, features of times included.
    pub width: usize,
    /// Heads of the attention layer.
    pub heads: usize,
    /// Width of the feed-forward layer.
    pub hidden: usize,
    /// Rate of dropout.
    pub dropout: f64,
    /// Sequences in a batch.
    pub batch: usize,
    /// Passes over the training sequences.
    pub epochs: usize,
    /// Adam's step size.
    pub learning_rate: f64,
    /// Largest norm of a gradient.
    pub clip_norm: f64,
}

/// What a model takes for the times of events.
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
    fn config(&self, kinds: usize) -> NextEventConfig {
        let layer = EncoderLayerConfig {
            width: self.width,
            heads: self.heads,
            hidden: self.hidden,
            attention: Softmax::default().into(),
            dropout: self.dropout,
            norm: NormPlacement::Pre,
            ..Default::default()
        };
        NextEventConfig {
            kinds,
            encoder: EncoderConfig { layers: 1, layer },
            time: self.time.clone(),
        }
    }

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
    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, Error> {
        let settings: EventSettings = crate::trial::read_settings(unit)?;
        let split = self.splits.get(unit.split);
        let split = split.ok_or_else(|| failed(unit, &"there is no such split"))?;
        let seed = Seed::new(unit.seed);
        let part = |rows: &[usize]| -> Vec<Events> {
            let own = |&row: &usize| {
                let seed = seed.child("shuffle").nth(row as u64);
                settings.events(&self.sequences[row], settings.clock, seed)
            };
            rows.iter().map(own).collect()
        };
        let training = TrainingConfig {
            learning_rate: settings.learning_rate,
            clip_norm: Some(settings.clip_norm),
            ..TrainingConfig::default()
        };
        let config = settings.config(self.names.len());
        let trainer = Task::new(part(&split.train), settings.batches())
            .and_then(|task| Trainer::new(&config, &training, task, seed));
        Ok(Box::new(Next {
            unit: unit.clone(),
            trainer: trainer.map_err(|error| failed(unit, &error))?,
            validation: part(&split.validation),
            test: part(&split.test),
            data: self,
            split,
            settings,
        }))
    }
}

struct Next<'a> {
    unit: Unit,
    settings: EventSettings,
    data: &'a EventData,
    split: &'a Split,
    validation: Vec<Events>,
    test: Vec<Events>,
    trainer: Trainer,
}

impl Next<'_> {
    /// The mean distance between the logits on the test part, as it is and with other times. Positions stay what they are.
    fn moved(&self) -> Result<f64, bochner_models::Error> {
        let clock = match self.settings.clock {
            Clock::Position => Clock::Position,
            Clock::Time | Clock::Shuffled => Clock::Shuffled,
        };
        let other = |&row: &usize| {
            let seed = Seed::new(self.unit.seed).child("moved").nth(row as u64);
            let whole = &self.data.sequences[row];
            self.settings.events(whole, clock, seed)
        };
        let others: Vec<Events> = self.split.test.iter().map(other).collect();
        let pairs = self.trainer.predict(&self.test)?.into_iter();
        let (mut sum, mut count) = (0.0, 0);
        for (one, other) in pairs.zip(self.trainer.predict(&others)?) {
            let apart = one.iter().zip(&other).map(|(a, b)| f64::from(a - b).abs());
            sum += apart.sum::<f64>();
            count += one.len();
        }
        Ok(sum / count as f64)
    }

    /// How often the kind that is last most often in training is last in the test part, too.
    fn most_frequent(&self) -> f64 {
        let last = |own: &Events| own.kinds.last().copied();
        let mut counts = vec![0_usize; self.data.names.len()];
        for kind in self.trainer.task().sequences().iter().filter_map(last) {
            counts[kind] += 1;
        }
        let frequent = (0..counts.len()).max_by_key(|&kind| counts[kind]);
        let right = self.test.iter().filter(|own| last(own) == frequent).count();
        right as f64 / self.test.len() as f64
    }
}

impl Trial for Next<'_> {
    /// Rows are events that are foretold.
    fn facts(&self) -> Facts {
        let count = |part: &[Events]| part.iter().map(|own| own.kinds.len() - 1).sum();
        Facts {
            parameters: self.trainer.parameter_count(),
            train_rows: count(self.trainer.task().sequences()),
            validation_rows: count(&self.validation),
            test_rows: count(&self.test),
        }
    }

    fn epoch(&mut self) -> Result<Step, Error> {
        let report = self.trainer.epoch();
        let report = report.map_err(|error| failed(&self.unit, &error))?;
        Ok(Step {
            loss: report.loss,
            mse: report.squared_error,
        })
    }

    fn evaluate(&self) -> Result<Evaluation, Error> {
        let assess = |part: &[Events]| {
            let seen = self.trainer.assess(part);
            seen.map_err(|error| failed(&self.unit, &error))
        };
        let (validation, test) = (assess(&self.validation)?, assess(&self.test)?);
        Ok(Evaluation {
            validation: Some(1.0 - validation.all.error),
            validation_loss: Some(validation.all.cross_entropy),
            test: 1.0 - test.all.error,
            others: vec![(LAST_EVENT, 1.0 - test.last.error)],
        })
    }

    fn save(&self, path: &Path) -> Result<(), Error> {
        let saved = self.trainer.save(path);
        saved.map_err(|error| Error::checkpoint(path, &error))
    }

    fn resume(&mut self, path: &Path) -> Result<(), Error> {
        Error::unless_verified(path, self.trainer.resume(path))
    }

    fn epochs_done(&self) -> usize {
        self.trainer.epochs_done()
    }

    fn findings(&self) -> Result<Findings, Error> {
        let moved = self.moved().map_err(|error| failed(&self.unit, &error))?;
        Ok(Findings::of([
            (MOVED, moved),
            (MOST_FREQUENT, self.most_frequent()),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_datasets::Protocol;
    use bochner_report::{Preset, Scale, Settings};

    fn settings() -> EventSettings {
        EventSettings {
            time: Vec::new(),
            clock: Clock::Time,
            unit: 10.0,
            longest: 4,
            width: 8,
            heads: 1,
            hidden: 8,
            dropout: 0.0,
            batch: 4,
            epochs: 1,
            learning_rate: 1e-3,
            clip_norm: 1.0,
        }
    }

    #[test]
    fn the_end_of_a_sequence_is_read_in_the_order_of_its_events() {
        let whole = EventSequence {
            kinds: (0..8).collect(),
            times: (0..8).map(|t| 1e9 + 5.0 * f64::from(t * t)).collect(),
        };
        let of = |clock, seed| settings().events(&whole, clock, Seed::new(seed));
        let (time, position) = (of(Clock::Time, 1), of(Clock::Position, 1));
        assert_eq!(time.kinds, [3, 4, 5, 6, 7]);
        assert_eq!(time.times, [0.0, 3.5, 8.0, 13.5, 20.0]);
        assert_eq!(position.times, [0.0, 1.0, 2.0, 3.0, 4.0]);
        let shuffled = of(Clock::Shuffled, 1);
        assert_eq!(shuffled.kinds, time.kinds);
        assert_ne!(shuffled.times, time.times);
        for seed in 0..20 {
            assert_eq!(of(Clock::Shuffled, seed).times[4], 20.0, "seed {seed}");
        }
        let mut sorted = shuffled.times.clone();
        sorted.sort_by(f64::total_cmp);
        assert_eq!(sorted, time.times);
        assert_ne!(of(Clock::Shuffled, 2), shuffled);
        let short = EventSequence {
            kinds: vec![1, 0],
            times: vec![7.0, 27.0],
        };
        assert_eq!(
            settings().events(&short, Clock::Time, Seed::new(1)).times,
            [0.0, 2.0]
        );
    }

    /// A model that has seen nothing but kind 0 come next names it always: how often that is right tells the parts apart.
    #[test]
    fn each_number_is_that_of_its_own_part() {
        let kinds = [
            [1, 0, 0, 0],
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            [0, 1, 1, 0],
            [0, 0, 0, 1],
            [0, 0, 1, 1],
        ];
        let sequence = |kinds: [usize; 4]| EventSequence {
            kinds: kinds.to_vec(),
            times: vec![0.0, 1.0, 2.0, 3.0],
        };
        let data = EventData {
            names: ["always", "never"].map(str::to_owned).to_vec(),
            sequences: kinds.map(sequence).to_vec(),
            splits: vec![Split {
                train: vec![0, 1],
                validation: vec![2],
                test: vec![3, 4, 5],
            }],
            provenance: Vec::new(),
        };
        let settings = EventSettings {
            learning_rate: 2e-2,
            ..settings()
        };
        let unit = Unit {
            suite: "time".into(),
            scale: Scale::Smoke,
            set: "echoes".into(),
            variant: "no time".into(),
            preset: Preset::Paper,
            protocol: Protocol::P10,
            split: 0,
            seed: 1,
            repeat: 0,
            settings: Settings::of(&settings),
            versions: None,
        };
        let mut trial = data.start(&unit).unwrap();
        let facts = trial.facts();
        let rows = [facts.train_rows, facts.validation_rows, facts.test_rows];
        assert_eq!(rows, [6, 3, 9]);
        for _ in 0..200 {
            trial.epoch().unwrap();
        }
        let seen = trial.evaluate().unwrap();
        let found = trial.findings().unwrap().measures;
        let [(name, last)] = seen.others[..] else {
            panic!("{seen:?}")
        };
        assert_eq!(name, LAST_EVENT);
        for (got, want) in [
            (seen.validation.unwrap(), 1.0),
            (seen.test, 4.0 / 9.0),
            (last, 1.0 / 3.0),
            (found[MOST_FREQUENT], 1.0 / 3.0),
            (found[MOVED], 0.0),
        ] {
            assert!((got - want).abs() < 1e-12, "{got} {want}");
        }
    }
}
