//! One way in which one library computes attention.

use crate::{Error, Shape};
use bochner_numerics::{Seed, Tolerance, standard_normal};
use ndarray::Array4;
use serde::{Deserialize, Serialize};

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Pass {
    /// The output, without what a gradient needs.
    Forward,
    /// The output, and the gradients of queries, keys and values.
    Training,
}

impl Pass {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Training => "training",
        }
    }
}

/// Queries, keys and values, and the cotangent of the output, all of shape (B, H, T, width).
pub(crate) struct Inputs {
    pub(crate) q: Array4<f32>,
    pub(crate) k: Array4<f32>,
    pub(crate) v: Array4<f32>,
    pub(crate) cotangent: Array4<f32>,
}

impl Inputs {
    pub(crate) fn random([b, h, t, d, dv]: Shape) -> Self {
        let mut stream = Seed::new(1).stream("inputs");
        let mut normal =
            |width| Array4::from_shape_simple_fn((b, h, t, width), || standard_normal(&mut stream));
        Self {
            q: normal(d),
            k: normal(d),
            v: normal(dv),
            cotangent: normal(dv),
        }
    }

    /// The factor of the products of queries and keys.
    pub(crate) fn scale(&self) -> f64 {
        1.0 / (self.q.shape()[3] as f64).sqrt()
    }
}

/// The output; of training the gradients of queries, keys and values too.
pub(crate) type Results = Vec<Array4<f32>>;

/// Results as their library holds them: reading them is no part of the time.
pub(crate) type Held = Box<dyn FnOnce() -> Result<Results, Error>>;

/// One way in which one library computes one pass.
pub(crate) struct Form {
    pub(crate) library: &'static str,
    pub(crate) name: &'static str,
    pub(crate) run: Box<dyn FnMut() -> Result<Held, Error>>,
}

impl Form {
    pub(crate) fn new(
        library: &'static str,
        name: &'static str,
        run: impl FnMut() -> Result<Held, Error> + 'static,
    ) -> Self {
        Self {
            library,
            name,
            run: Box::new(run),
        }
    }

    pub(crate) fn results(&mut self) -> Result<Results, Error> {
        (self.run)()?()
    }

    /// The largest error of the results, as a share of what the type of number allows.
    ///
    /// # Errors
    /// If it is more than one.
    pub(crate) fn error(&mut self, expected: &Results) -> Result<f64, Error> {
        let results = self.results()?;
        let error = error(&results, expected);
        if error <= 1.0 {
            return Ok(error);
        }
        let (library, name) = (self.library, self.name);
        Err(
            format!("{library}, {name}: {error} times the error that is allowed; nothing is timed")
                .into(),
        )
    }
}

fn error(results: &Results, expected: &Results) -> f64 {
    let shapes = |all: &Results| -> Vec<_> { all.iter().map(|one| one.dim()).collect() };
    if shapes(results) != shapes(expected) {
        return f64::INFINITY;
    }
    let pairs = results.iter().zip(expected).enumerate();
    let shares = pairs.map(|(place, (result, expected))| {
        // The output comes before the gradients.
        let tolerance = match place {
            0 => Tolerance::outputs::<f32>(),
            _ => Tolerance::gradients::<f32>(),
        };
        let bound = tolerance.bound(expected.iter().map(|&x| f64::from(x)));
        let errors = result
            .iter()
            .zip(expected)
            .map(|(a, b)| f64::from((a - b).abs()));
        largest(errors) / bound
    });
    largest(shares)
}

/// The largest number, or infinity if one is not a number, which `f64::max` would leave out.
fn largest(all: impl Iterator<Item = f64>) -> f64 {
    all.map(|one| if one.is_nan() { f64::INFINITY } else { one })
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_refused() {
        let Inputs { q, k, .. } = Inputs::random([1, 2, 3, 4, 4]);
        let right = vec![q, k];
        assert_eq!(error(&right, &right), 0.0);
        for (place, far) in [(0, 1e-3), (1, 1e-2)] {
            for off in [far, f32::NAN, f32::INFINITY] {
                let mut wrong = right.clone();
                wrong[place][[0, 1, 2, 3]] += off;
                assert!(error(&wrong, &right) > 1.0, "{place} {off}");
            }
        }
        assert!(error(&right[..1].to_vec(), &right) > 1.0);
    }
}
