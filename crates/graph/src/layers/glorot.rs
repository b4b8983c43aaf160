//! Initial values.

use bochner_numerics::{Real, Seed, uniform_within};
use ndarray::{Array, Dimension};

/// Draws from the uniform distribution on $\pm \sqrt{6 / (n + m)}$ for a map from $n$ to $m$ numbers, in
/// double precision and rounded (Glorot and Bengio 2010).
pub(super) fn array<T: Real, D: Dimension>(
    shape: D,
    [inputs, outputs]: [usize; 2],
    seed: Seed,
) -> Array<T, D> {
    let bound = (6.0 / (inputs + outputs) as f64).sqrt();
    let mut stream = seed.stream("initial values");
    Array::from_shape_simple_fn(shape, || uniform_within(bound, &mut stream))
}
