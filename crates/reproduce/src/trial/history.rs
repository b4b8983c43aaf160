//! The measures of a unit's epochs, the choice of one by validation, and the end of training.

use bochner_report::row::{Artefacts, Curve};
use bochner_report::suite::Direction;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// The measurements of each epoch so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// The training loss.
    pub loss: Vec<f64>,
    /// The mean square training error.
    pub mse: Vec<f64>,
    /// The validation value; empty without validation part.
    pub validation: Vec<f64>,
    /// The loss on the validation part; empty where no rule looks at it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validation_loss: Vec<f64>,
    /// The test value.
    pub test: Vec<f64>,
    /// The values on other test parts, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, Vec<f64>>,
    /// Time spent, over all attempts.
    pub seconds: f64,
}

impl History {
    /// The epoch that validation chooses, counted from zero; `None` without validation part.
    ///
    /// Without a patience it is the first one with the best validation value, and training never ends early. With one,
    /// the rule is that of graph attention networks. Training ends when neither the loss nor the error on the
    /// validation part has been as good as ever for so many epochs in a row. The chosen epoch is the last one in which
    /// both were, which is not always the one with the smallest error. Equal values are as good.
    ///
    /// The end and the chosen epoch depend on the curves alone, and later epochs change neither. So a run that goes on
    /// from a checkpoint ends in the same epoch and chooses the same one.
    ///
    /// # Reference
    /// P. Veličković et al., *Graph Attention Networks*, 2018, and its code.
    pub fn chosen(&self, patience: Option<NonZeroUsize>, direction: Direction) -> Option<usize> {
        match patience {
            None => direction.best(&self.validation),
            Some(patience) => self.early_stopping(patience).0,
        }
    }

    /// Whether the last epoch, or one before it, was the last one to train by the rule of [`chosen`](Self::chosen).
    pub fn stops(&self, patience: Option<NonZeroUsize>) -> bool {
        patience.is_some_and(|patience| self.early_stopping(patience).1)
    }

    /// The chosen epoch, and whether training ends.
    fn early_stopping(&self, patience: NonZeroUsize) -> (Option<usize>, bool) {
        let (mut best_loss, mut best_error) = (f64::INFINITY, f64::INFINITY);
        let (mut chosen, mut idle) = (None, 0);
        let epochs = self.validation_loss.iter().zip(&self.validation);
        for (epoch, (&loss, &error)) in epochs.enumerate() {
            let as_good = [loss <= best_loss, error <= best_error];
            idle = if as_good == [false; 2] { idle + 1 } else { 0 };
            if as_good == [true; 2] {
                chosen = Some(epoch);
            }
            if idle == patience.get() {
                return (chosen, true);
            }
            (best_loss, best_error) = (best_loss.min(loss), best_error.min(error));
        }
        (chosen, false)
    }

    /// The curves of a finished unit.
    pub fn artefacts(&self) -> Artefacts {
        Artefacts::default()
            .with("loss", &Curve::thinned(&self.loss))
            .with("validation", &Curve::thinned(&self.validation))
            .with("test", &Curve::thinned(&self.test))
    }
}
