//! The metric of a suite, and how it is shown.

use crate::statistics::{Estimate, Paired};

/// The better direction of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Errors.
    Smaller,
    /// Accuracies.
    Larger,
}

/// The form in which a recorded value is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The recorded value is shown unchanged.
    Plain,
    /// A share of errors as the share of what is right, in per cent.
    ErrorAsAccuracy,
    /// A share in per cent.
    Percent,
}

/// The metric of a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The better direction of recorded values.
    pub direction: Direction,
    /// The form in which recorded values are shown.
    pub shown: Shown,
    /// Several of the shown values in a sentence, such as `accuracies`.
    pub plural: &'static str,
    /// The digits behind the point of a value.
    pub digits: usize,
    /// The digits behind the point of a difference.
    pub fine: usize,
}

impl Direction {
    /// A value that is the smaller the better.
    pub fn loss(self, value: f64) -> f64 {
        match self {
            Self::Smaller => value,
            Self::Larger => -value,
        }
    }

    /// The place of the best value, the first of equal ones.
    pub fn best(self, values: &[f64]) -> Option<usize> {
        let loss = |place: usize| self.loss(values[place]);
        (0..values.len()).min_by(|&a, &b| loss(a).total_cmp(&loss(b)))
    }
}

impl Metric {
    /// Root mean square errors in units of the scaled target.
    pub const RMSE: Self = Self {
        direction: Direction::Smaller,
        shown: Shown::Plain,
        plural: "errors",
        digits: 3,
        fine: 4,
    };

    /// Accuracies that are recorded as shares of what is right.
    pub const ACCURACY: Self = Self {
        direction: Direction::Larger,
        shown: Shown::Percent,
        plural: "accuracies",
        digits: 1,
        fine: 2,
    };

    /// BLEU, from 0 to 100.
    pub const BLEU: Self = Self {
        direction: Direction::Larger,
        shown: Shown::Plain,
        plural: "scores",
        digits: 2,
        fine: 2,
    };

    /// A recorded value as it is shown.
    pub fn show(&self, value: f64) -> f64 {
        match self.shown {
            Shown::Plain => value,
            Shown::ErrorAsAccuracy => 100.0 * (1.0 - value),
            Shown::Percent => 100.0 * value,
        }
    }

    /// The gain of one shown value over a share of the loss of another.
    pub(crate) fn shown_gain(&self, own: f64, other: f64, share: f64) -> f64 {
        let loss = |value| match self.shown {
            Shown::ErrorAsAccuracy => 100.0 - value,
            Shown::Plain | Shown::Percent => self.direction.loss(value),
        };
        share * loss(other) - loss(own)
    }

    /// The factor of deviations of recorded values.
    pub fn factor(&self) -> f64 {
        match self.shown {
            Shown::Plain => 1.0,
            Shown::ErrorAsAccuracy | Shown::Percent => 100.0,
        }
    }

    /// A difference of losses as a difference of what is shown.
    pub fn gain(&self, loss: f64) -> f64 {
        // Adding zero takes the sign from a negative zero.
        match (self.shown, self.direction) {
            (Shown::ErrorAsAccuracy, _) => -100.0 * loss + 0.0,
            (_, Direction::Smaller) => self.factor() * loss,
            (_, Direction::Larger) => -self.factor() * loss + 0.0,
        }
    }

    /// The unit behind a shown value.
    pub fn unit(&self) -> &'static str {
        match self.shown {
            Shown::Plain => "",
            Shown::ErrorAsAccuracy | Shown::Percent => " %",
        }
    }

    /// The unit behind a difference of shown values.
    pub fn step(&self) -> &'static str {
        match self.shown {
            Shown::Plain => "",
            Shown::ErrorAsAccuracy | Shown::Percent => " points",
        }
    }

    /// The word for a better value that is shown.
    pub fn better(&self) -> &'static str {
        match (self.shown, self.direction) {
            (Shown::Plain | Shown::Percent, Direction::Smaller) => "smaller",
            _ => "larger",
        }
    }

    /// A shown value and what it spreads by.
    pub fn spread(&self, mean: f64, deviation: f64) -> String {
        format!("{mean:.0$} ± {deviation:.0$}", self.digits)
    }

    /// An estimate in favour of a claim, in shown units: mean ± standard error.
    pub fn estimate(&self, estimate: &Estimate) -> String {
        let fine = self.fine;
        format!("{:+.fine$} ± {:.fine$}", estimate.mean, estimate.error)
    }

    /// A paired comparison: mean ± SE (SE'), wins of n.
    pub fn difference(&self, paired: &Paired) -> String {
        let (mean, fine) = (self.gain(paired.mean), self.fine);
        let error = paired
            .error
            .map(|e| format!(" ± {:.fine$}", self.factor() * e));
        let corrected = paired.corrected_error;
        let corrected = corrected.map(|e| format!(" ({:.fine$})", self.factor() * e));
        let errors = [error, corrected].map(Option::unwrap_or_default).concat();
        format!("{mean:+.fine$}{errors}, {} of {}", paired.wins, paired.n)
    }
}
