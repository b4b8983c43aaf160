//! When training has gone on long enough, and which of its epochs to keep.

use crate::store::History;
use std::num::NonZeroUsize;

/// The rule of graph attention networks: training ends when neither the loss nor the error on the
/// validation part has been as good as ever for some epochs in a row.
///
/// An epoch in which at least one of the two is as good as in any epoch before starts the count anew;
/// the epoch to keep is the last one in which both were. That is not always the one with the smallest
/// validation error. Equal values are as good.
///
/// Both are functions of the curves alone, and what follows the end changes neither: a run that goes
/// on from a checkpoint ends in the same epoch and keeps the same one.
///
/// ```
/// use bochner_reproduce::store::History;
/// use bochner_reproduce::trial::EarlyStopping;
/// use std::num::NonZeroUsize;
///
/// let rule = EarlyStopping { patience: NonZeroUsize::new(2).unwrap() };
/// let mut history = History {
///     validation_loss: vec![0.9, 0.8, 0.7, 0.8],
///     validation: vec![0.3, 0.2, 0.25, 0.25],
///     ..History::default()
/// };
/// // In the third epoch the loss was the smallest, but not the error.
/// assert_eq!(rule.chosen(&history), Some(1));
/// assert!(!rule.stops(&history));
/// history.validation_loss.push(0.9);
/// history.validation.push(0.25);
/// assert!(rule.stops(&history));
/// ```
///
/// # Reference
/// P. Veličković et al., *Graph Attention Networks*, 2018, and its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyStopping {
    /// The epochs in a row without progress after which training ends.
    pub patience: NonZeroUsize,
}

impl EarlyStopping {
    /// Whether the last epoch recorded, or one before it, was the last one to train.
    pub fn stops(&self, history: &History) -> bool {
        self.watch(history).idle >= self.patience.get()
    }

    /// The epoch to keep, counted from zero; `None` without epochs, or where one of the two was not
    /// recorded.
    pub fn chosen(&self, history: &History) -> Option<usize> {
        self.watch(history).kept
    }

    fn watch(&self, history: &History) -> Watch {
        let mut watch = Watch::default();
        let epochs = history.validation_loss.iter().zip(&history.validation);
        for (epoch, (&loss, &error)) in epochs.enumerate() {
            watch.see(epoch, loss, error);
            if watch.idle >= self.patience.get() {
                break;
            }
        }
        watch
    }
}

/// The best so far, and since when there was nothing as good.
struct Watch {
    loss: f64,
    error: f64,
    idle: usize,
    kept: Option<usize>,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            loss: f64::INFINITY,
            error: f64::INFINITY,
            idle: 0,
            kept: None,
        }
    }
}

impl Watch {
    fn see(&mut self, epoch: usize, loss: f64, error: f64) {
        match (loss <= self.loss, error <= self.error) {
            (false, false) => self.idle += 1,
            (true, true) => {
                self.idle = 0;
                self.kept = Some(epoch);
            }
            _ => self.idle = 0,
        }
        self.loss = self.loss.min(loss);
        self.error = self.error.min(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_report::suite::Direction;

    fn rule(patience: usize) -> EarlyStopping {
        EarlyStopping {
            patience: NonZeroUsize::new(patience).unwrap(),
        }
    }

    fn curves(loss: &[f64], error: &[f64]) -> History {
        History {
            validation_loss: loss.to_vec(),
            validation: error.to_vec(),
            ..History::default()
        }
    }

    /// The first epochs of a history.
    fn first(history: &History, epochs: usize) -> History {
        curves(
            &history.validation_loss[..epochs],
            &history.validation[..epochs],
        )
    }

    /// The number of epochs after which a run that asks after each of them ends.
    fn end(rule: EarlyStopping, history: &History) -> Option<usize> {
        (1..=history.validation.len()).find(|&epochs| rule.stops(&first(history, epochs)))
    }

    /// Both fall, then the error alone, then the loss alone, then neither for four epochs.
    fn falling() -> History {
        curves(
            &[1.0, 0.9, 0.95, 0.8, 0.81, 0.82, 0.83, 0.84],
            &[0.5, 0.4, 0.30, 0.4, 0.40, 0.40, 0.40, 0.40],
        )
    }

    #[test]
    fn either_of_the_two_starts_the_count_anew() {
        // A rule that asked for both would end after the fourth epoch with patience 2.
        assert_eq!(end(rule(2), &falling()), Some(6));
        assert_eq!(end(rule(4), &falling()), Some(8));
        assert_eq!(end(rule(5), &falling()), None);
    }

    #[test]
    fn the_epoch_that_is_kept_is_the_last_one_in_which_both_were_best() {
        // The smallest error is that of the third epoch, the smallest loss that of the fourth.
        let history = falling();
        assert_eq!(rule(9).chosen(&history), Some(1));
        assert_eq!(history.best_validation(Direction::Smaller), Some(2));
        let later = curves(&[1.0, 0.9, 1.0, 0.8], &[0.5, 0.4, 0.5, 0.3]);
        assert_eq!(rule(9).chosen(&later), Some(3));
    }

    #[test]
    fn equal_values_are_as_good() {
        let history = curves(&[1.0; 6], &[0.5; 6]);
        assert_eq!(end(rule(1), &history), None);
        assert_eq!(rule(1).chosen(&history), Some(5));
        let equal_error = curves(&[1.0, 1.1, 1.2, 1.3], &[0.5; 4]);
        assert_eq!(end(rule(1), &equal_error), None);
        assert_eq!(rule(1).chosen(&equal_error), Some(0));
    }

    #[test]
    fn what_follows_the_end_changes_nothing() {
        let mut history = falling();
        history.validation_loss.extend([0.1, 0.1]);
        history.validation.extend([0.1, 0.1]);
        for patience in 1..=4 {
            let rule = rule(patience);
            let end = end(rule, &history).unwrap();
            let at_the_end = rule.chosen(&first(&history, end));
            assert!(rule.stops(&history));
            assert_eq!(rule.chosen(&history), at_the_end);
        }
        assert_eq!(rule(5).chosen(&history), Some(9));
    }
}
