//! The row and the artefacts of a finished unit.

use crate::Unit;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Points that a stored curve has at most.
const CURVE_POINTS: usize = 200;

/// Rows and columns that a stored picture of weights has at most.
const PICTURE_SIDE: usize = 144;

/// The result of one unit.
///
/// | field | |
/// |---|---|
/// | `r_number` | the best test value over all epochs: the test part chose the epoch |
/// | `v_number` | the test value in the epoch that the validation part chose |
/// | `last` | the test value after the last epoch |
///
/// The suite's card says what the values are and which are better. Epochs count from one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// [`Unit::id`].
    pub id: String,
    /// The table of the paper.
    pub table: String,
    /// The unit.
    #[serde(flatten)]
    pub unit: Unit,
    /// Numbers that were trained.
    pub parameters: usize,
    /// Rows trained on.
    pub train_rows: usize,
    /// Rows that choose the epoch of the V-number.
    pub validation_rows: usize,
    /// Rows tested on.
    pub test_rows: usize,
    /// The best test value over all epochs.
    pub r_number: f64,
    /// The epoch of the R-number.
    pub r_epoch: usize,
    /// The test value in the epoch that validation chose, which is that of the best validation value
    /// unless the trial has another rule; absent without validation part.
    pub v_number: Option<f64>,
    /// The epoch of the V-number.
    pub v_epoch: Option<usize>,
    /// The validation value in that epoch, which may choose between models; absent without.
    pub validation: Option<f64>,
    /// The loss on the validation part in that epoch; absent where no rule looks at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_loss: Option<f64>,
    /// The epochs trained, where training ended before the last one of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_after: Option<usize>,
    /// The test value after the last epoch.
    pub last: f64,
    /// The mean square training error in the first epoch; of a classifier that of its probabilities,
    /// summed over the classes (its Brier score); of a translator its cross-entropy.
    pub first_mse: f64,
    /// The mean square training error in the last epoch.
    pub last_mse: f64,
    /// Further measures of the suite, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<String, f64>,
    /// Wall-clock time, summed over the attempts of an interrupted unit up to their last
    /// checkpoints; the one field that differs between two runs of the same unit.
    pub seconds: f64,
    /// The version of the code.
    pub code_version: String,
}

impl Row {
    /// A measure; NaN if the row does not have it.
    pub fn measure(&self, name: &str) -> f64 {
        self.measures.get(name).copied().unwrap_or(f64::NAN)
    }
}

/// The name of what is found after the last epoch, where another epoch is judged.
pub fn at_last(name: &str) -> String {
    format!("{name}, last epoch")
}

/// The artefacts of one unit, by name: curves, predictions, heads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Artefacts(BTreeMap<String, Value>);

impl Artefacts {
    /// Adds something under a name.
    ///
    /// # Panics
    /// If it cannot be written as JSON: artefacts have plain fields.
    #[must_use]
    pub fn with(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Self {
        let value = serde_json::to_value(value).expect("artefacts have plain fields");
        self.0.insert(name.to_owned(), value);
        self
    }

    /// These and others; of two with one name the later one.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// The artefacts under other names.
    #[must_use]
    pub fn renamed(self, name: impl Fn(&str) -> String) -> Self {
        let renamed = self.0.into_iter().map(|(old, value)| (name(&old), value));
        Self(renamed.collect())
    }

    /// The artefact of a name; `None` if there is none, or another type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        T::deserialize(self.0.get(name)?).ok()
    }
}

/// A quantity over the epochs, thinned to at most 200 points with the first and the last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The epochs, counted from one.
    pub epochs: Vec<usize>,
    /// The values.
    pub values: Vec<f64>,
}

impl Curve {
    /// Thins a quantity that was recorded in every epoch.
    pub fn thinned(values: &[f64]) -> Self {
        let places = places(values.len());
        Self {
            epochs: places.iter().map(|place| place + 1).collect(),
            values: places.iter().map(|&place| values[place]).collect(),
        }
    }

    /// Epochs with their values.
    pub fn points(&self) -> Vec<(f64, f64)> {
        let epochs = self.epochs.iter().map(|&epoch| epoch as f64);
        epochs.zip(self.values.iter().copied()).collect()
    }
}

fn places(n: usize) -> Vec<usize> {
    if n <= CURVE_POINTS {
        return (0..n).collect();
    }
    (0..CURVE_POINTS)
        .map(|i| i * (n - 1) / (CURVE_POINTS - 1))
        .collect()
}

/// Predictions beside the truth, in the rows' order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Predictions {
    /// The first input: the time.
    pub time: Vec<f32>,
    /// The target.
    pub truth: Vec<f32>,
    /// The prediction.
    pub predicted: Vec<f32>,
    /// The test rows.
    pub test: Vec<usize>,
}

/// The learnt state of the heads of an attention layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heads {
    /// The attention weights of each head.
    pub weights: Vec<Shades>,
    /// The spectral points of each head, `R` points of `dimensions` numbers each.
    pub points: Option<Vec<Vec<f32>>>,
    /// Numbers per spectral point.
    pub dimensions: usize,
    /// The correlation of the heads, row by row, averaged over the latent dimensions.
    pub correlation: Option<Vec<f32>>,
}

/// The spread of the weights of attention along edges: over the heads, and within each of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The mean over the edges of the standard deviation over the heads.
    pub deviation: f64,
    /// The number of edges with a standard deviation in each twentieth of the range from 0 to one half,
    /// which is the largest there can be.
    pub histogram: Vec<usize>,
    /// For each head, the mean over the nodes of the entropy of the weights that a node gives, in nats.
    pub entropies: Vec<f64>,
    /// The mean over the nodes of the entropy of equal weights: what the entropies cannot exceed.
    pub uniform: f64,
}

/// A matrix of weights as a picture: averaged down to at most 144 rows and columns, in 256 shades.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shades {
    /// Rows and columns.
    pub side: usize,
    /// The weight of the darkest shade; the lightest stands for zero.
    pub largest: f32,
    /// One byte per cell, row by row, in base 64.
    pub levels: String,
}

impl Shades {
    /// Draws an `n` by `n` matrix of weights that are not negative.
    pub fn draw(matrix: &[f32], n: usize) -> Self {
        let (side, cells) = shrink(matrix, n);
        let largest = cells.iter().copied().fold(0.0, f32::max);
        let scale = if largest > 0.0 { 255.0 / largest } else { 0.0 };
        let levels: Vec<u8> = cells.iter().map(|c| (c * scale).round() as u8).collect();
        Self {
            side,
            largest,
            levels: BASE64_STANDARD.encode(&levels),
        }
    }

    /// The shades, row by row; `None` if the text is damaged.
    pub fn levels(&self) -> Option<Vec<u8>> {
        let levels = BASE64_STANDARD.decode(&self.levels).ok()?;
        (levels.len() == self.side * self.side).then_some(levels)
    }
}

/// Averages an `n` by `n` matrix down to at most [`PICTURE_SIDE`] rows and columns.
fn shrink(matrix: &[f32], n: usize) -> (usize, Vec<f32>) {
    let side = n.min(PICTURE_SIDE);
    let edge = |i: usize| i * n / side;
    let cell = |i: usize, j: usize| {
        let (rows, columns) = (edge(i)..edge(i + 1), edge(j)..edge(j + 1));
        let count = (rows.len() * columns.len()) as f32;
        rows.map(|r| {
            matrix[r * n + columns.start..r * n + columns.end]
                .iter()
                .sum::<f32>()
        })
        .sum::<f32>()
            / count
    };
    let cells = (0..side * side).map(|c| cell(c / side, c % side));
    (side, cells.collect())
}
