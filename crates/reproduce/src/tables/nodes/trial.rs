//! One unit of the table: a model trained once.

mod heads;

use super::graphs::Prepared;
use crate::settings::NodeSettings;
use crate::store::{Artefacts, History};
use crate::trial::{EarlyStopping, Evaluation, Facts, Step};
use crate::{Error, Settings, Trial, Unit};
use bochner_models::node_classifier::{NodeClassifierConfig, Trainer, TrainingConfig};
use bochner_numerics::Seed;
use heads::Keep;
use std::fmt::Display;
use std::path::Path;

/// The seed whose units keep their spectral points, for pictures.
const PICTURED: u64 = 0;

/// Sets up the training of a unit.
pub(super) fn start<'a>(unit: &Unit, prepared: &'a Prepared) -> Result<Box<dyn Trial + 'a>, Error> {
    let Settings::Nodes(settings) = &unit.settings else {
        return Err(failed(unit, &"its settings are not a node classifier's"));
    };
    let trainer = trainer(settings, prepared, Seed::new(unit.seed));
    Ok(Box::new(Classifier {
        unit: unit.clone(),
        prepared,
        rule: EarlyStopping {
            patience: settings.patience,
        },
        trainer: trainer.map_err(|error| failed(unit, &error))?,
    }))
}

fn trainer(
    settings: &NodeSettings,
    prepared: &Prepared,
    seed: Seed,
) -> Result<Trainer, bochner_models::Error> {
    let task = prepared.task.clone();
    let config = NodeClassifierConfig {
        inputs: task.features().columns(),
        classes: task.classes(),
        architecture: settings.architecture.clone(),
        dropout: settings.dropout,
    };
    let training = TrainingConfig {
        learning_rate: settings.learning_rate,
        l2: settings.l2,
    };
    Trainer::new(&config, &training, task, seed)
}

fn failed(unit: &Unit, error: &dyn Display) -> Error {
    Error::Trial {
        unit: unit.id(),
        message: error.to_string(),
    }
}

struct Classifier<'a> {
    unit: Unit,
    prepared: &'a Prepared,
    rule: EarlyStopping,
    trainer: Trainer,
}

impl Classifier<'_> {
    fn failed(&self, error: &dyn Display) -> Error {
        failed(&self.unit, error)
    }

    fn measured(&self) -> Result<Evaluation, bochner_models::Error> {
        let logits = self.trainer.predict()?;
        let on = |nodes: &[usize]| self.trainer.task().assess(logits.view(), nodes);
        let validation = on(&self.prepared.split.validation)?;
        Ok(Evaluation {
            validation: Some(validation.error),
            validation_loss: Some(validation.cross_entropy),
            test: on(&self.prepared.split.test)?.error,
        })
    }
}

impl Trial for Classifier<'_> {
    fn facts(&self) -> Facts {
        let split = &self.prepared.split;
        Facts {
            parameters: self.trainer.parameter_count(),
            train_rows: split.train.len(),
            validation_rows: split.validation.len(),
            test_rows: split.test.len(),
        }
    }

    fn epoch(&mut self) -> Result<Step, Error> {
        let report = self.trainer.epoch();
        let report = report.map_err(|error| self.failed(&error))?;
        Ok(Step {
            loss: report.loss,
            mse: report.brier,
        })
    }

    fn evaluate(&self) -> Result<Evaluation, Error> {
        self.measured().map_err(|error| self.failed(&error))
    }

    fn save(&self, path: &Path) -> Result<(), Error> {
        let saved = self.trainer.save(path);
        saved.map_err(|error| Error::checkpoint(path, &error))
    }

    fn resume(&mut self, path: &Path) -> Result<(), Error> {
        Error::unless_verified(path, self.trainer.resume(path))
    }

    fn epochs_done(&self) -> usize {
        self.trainer.steps_done()
    }

    fn stops(&self, history: &History) -> bool {
        self.rule.stops(history)
    }

    fn chosen(&self, history: &History) -> Option<usize> {
        self.rule.chosen(history)
    }

    fn artefacts(&self, history: &History) -> Result<Artefacts, Error> {
        let curves = history.artefacts();
        let Some([layer, _]) = self.trainer.model().attention() else {
            return Ok(curves);
        };
        let keep = match self.unit.seed {
            PICTURED => Keep::Points,
            _ => Keep::CorrelationAlone,
        };
        let task = self.trainer.task();
        let seen = layer.inspect(task.graph(), task.features());
        let seen = seen.map_err(|error| self.failed(&error))?;
        Ok(Artefacts {
            spread: Some(heads::spread(&seen.weights)),
            heads: heads::learnt(&seen, keep),
            ..curves
        })
    }
}
