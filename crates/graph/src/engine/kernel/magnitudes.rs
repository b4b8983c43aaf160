//! The squared norms of keys and of $a$.

use super::Parameters;
use crate::engine::{Call, elements};
use bochner_numerics::Real;
use bochner_numerics::elementary::SquaredNorms;

/// Logarithms of squared p-norms; of zero where the score has no magnitudes.
#[derive(Debug)]
pub(super) struct Magnitudes {
    /// $\log |k_j|_p^2$, `[Ns, H]`.
    pub(super) keys: Vec<f64>,
    /// $\log |a|_p^2$, `[H]`.
    pub(super) a: Vec<f64>,
    /// Whether one of the squares is beyond the range of double precision.
    pub(super) overflow: bool,
}

/// The largest logarithm of which twice the exponential is finite.
const LARGEST_LOGARITHM: f64 = 708.0;

impl Magnitudes {
    pub(super) fn new<T: Real>(call: &Call<T>, own: &Parameters<T>) -> Self {
        let (y, width) = (&call.sources, call.shape.width);
        let of = |x: &[T], width: usize| match own.p {
            Some(p) => logarithms(x, width, p),
            None => vec![f64::NEG_INFINITY; x.len() / width],
        };
        let (keys, a) = (of(y, width), of(&elements(own.a), 2 * width));
        let overflow = keys.iter().chain(&a).any(|&log| log > LARGEST_LOGARITHM);
        Self { keys, a, overflow }
    }
}

/// $\log |x|_p^2$ of each row, by all threads.
fn logarithms<T: Real>(x: &[T], width: usize, p: f64) -> Vec<f64> {
    let rows = 4096;
    let pieces = x.len().div_ceil(rows * width);
    let parts = bochner_numerics::parallel::map(pieces, |i| {
        let x = &x[i * rows * width..x.len().min((i + 1) * rows * width)];
        SquaredNorms::new(x, width, p).logarithms()
    });
    parts.concat()
}
