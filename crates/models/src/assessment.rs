//! The quality of logits as predictions of classes.

mod confusion;

pub use confusion::{Average, ConfusionMatrix, Scores};

use crate::Error;
use bochner_nn::Element;
use bochner_numerics::argument;
use dfdx::shapes::HasShape;
use dfdx::tensor::{Cpu, Tensor};
use ndarray::{Array2, ArrayView1, ArrayView2};

/// The quality of the logits of some examples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assessment {
    /// The share of examples whose largest logit, the first of equal ones, is not that of their class.
    pub error: f64,
    /// The mean cross-entropy of the softmax probabilities.
    pub cross_entropy: f64,
    /// The mean over the examples of the squared differences between the probabilities of the classes and
    /// what they should be, one or zero, summed over the classes (Brier 1950).
    pub brier: f64,
}

impl Assessment {
    /// Assesses the logits of examples, `[N, classes]`, by their classes, `[N]`.
    ///
    /// # Errors
    /// [`Error::Argument`] without examples, unless there is one class for each, or for a class that has no logit.
    ///
    /// # Numerics
    /// The sums are in double precision and relative to an example's largest logit, so that no finite logits
    /// overflow.
    pub fn of_rows(logits: ArrayView2<f32>, classes: &[usize]) -> Result<Self, Error> {
        argument::not_empty("logits", logits.shape())?;
        argument::shape("classes", &[logits.nrows()], &[classes.len()])?;
        for &class in classes {
            argument::index("classes", class, logits.ncols())?;
        }
        let labelled: Vec<(usize, usize)> = classes.iter().copied().enumerate().collect();
        Ok(Self::of(logits, &labelled))
    }

    /// Assesses rows of logits by their classes.
    pub(crate) fn of(logits: ArrayView2<f32>, labelled: &[(usize, usize)]) -> Self {
        let each = labelled.iter();
        let each = each.map(|&(row, class)| of_one(logits.row(row), class));
        let mut total = Self {
            error: 0.0,
            cross_entropy: 0.0,
            brier: 0.0,
        };
        for one in each {
            total.error += one.error;
            total.cross_entropy += one.cross_entropy;
            total.brier += one.brier;
        }
        let count = labelled.len() as f64;
        Self {
            error: total.error / count,
            cross_entropy: total.cross_entropy / count,
            brier: total.brier / count,
        }
    }
}

fn of_one(logits: ArrayView1<f32>, class: usize) -> Assessment {
    let logits: Vec<f64> = logits.iter().map(|&x| f64::from(x)).collect();
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logits.iter().map(|x| (x - largest).exp()).sum();
    let square = |(other, x): (usize, &f64)| {
        let wanted = f64::from(u8::from(other == class));
        ((x - largest).exp() / total - wanted).powi(2)
    };
    let found = logits.iter().position(|&x| x == largest);
    Assessment {
        error: f64::from(u8::from(found != Some(class))),
        cross_entropy: total.ln() + (largest - logits[class]),
        brier: logits.iter().enumerate().map(square).sum(),
    }
}

/// The place of the largest logit, the first of equal ones.
pub(crate) fn largest(logits: ArrayView1<f32>) -> usize {
    let places = 1..logits.len();
    places.fold(
        0,
        |best, at| if logits[at] > logits[best] { at } else { best },
    )
}

/// The logits of a tensor, as an array.
pub(crate) fn array<E: Element, T>(logits: &Tensor<(usize, usize), E, Cpu, T>) -> Array2<E> {
    let logits = Array2::from_shape_vec(*logits.shape(), logits.as_vec());
    logits.expect("as many logits as the shape holds")
}
